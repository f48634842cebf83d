"""`tensegrity servo spring`: rate and zero-force length of a spring from its lengths under weights."""

from __future__ import annotations

from pathlib import Path

from tensegrity_driver.calibration.spring_rate import spring_from_weights

from ...output import console, print_json, print_table, table
from .measurement_files import read_amount, read_weights


def run_spring(points: Path, rule: str, as_json: bool) -> None:
    """Fit a spring and print it, with the entry of the robot file.

    Args:
        points: file of masses and lengths. rule: resolution of the lengths. as_json: print only results as JSON.
    """
    masses, lengths = read_weights(points)
    resolution = read_amount(rule, "length", "--rule")
    fit = spring_from_weights(masses, lengths, resolution=resolution, name=str(points))
    if as_json:
        print_json({
            "rate_n_per_m": fit.rate, "rate_interval": fit.rate_interval, "zero_length_m": fit.zero_length,
            "zero_length_interval": fit.zero_length_interval, "initial_tension_n": fit.initial_tension,
            "in_contact": fit.in_contact, "outliers": fit.outliers, "residuals_m": fit.residuals,
            "deviation_m": fit.deviation, "confidence": fit.confidence,
        })  # fmt: skip
        return
    remarks = {
        **dict.fromkeys(fit.in_contact, "coils closed, left out"),
        **dict.fromkeys(fit.outliers, "outlier, left out; measure it again"),
    }
    rows = [
        (k + 1, f"{mass:.4g} kg", f"{1e3 * length:.1f} mm", f"{1e3 * off:+.2f} mm", remarks.get(k, ""))
        for k, (mass, length, off) in enumerate(zip(masses, lengths, fit.residuals, strict=True))
    ]
    print_table(table(f"{points}", ("point", "mass", "length", "residual", ""), rows, right=(1, 2, 3)))
    percent = f"{100 * fit.confidence:.0f} %"
    low, high = fit.rate_interval
    console.print(f"rate: {fit.rate:.1f} N/m ({percent}: {low:.1f} to {high:.1f})", highlight=False)
    low, high = (1e3 * each for each in fit.zero_length_interval)
    console.print(
        f"zero-force length: {1e3 * fit.zero_length:.2f} mm ({percent}: {low:.2f} to {high:.2f})", highlight=False
    )
    if fit.initial_tension > 0.0:
        console.print(
            f"Its coils open at {fit.initial_tension:.2f} N only; keep it stretched beyond that, the model is a line.",
            highlight=False,
        )
    console.print(
        f'In the robot file: stiffness: "{fit.rate:.1f} N/m", rest_length: "{1e3 * fit.zero_length:.2f} mm"',
        highlight=False,
    )
