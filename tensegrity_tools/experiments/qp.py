"""Sections 5.3 and 5.4 of 000 without any plan: the controller `qp`, one quadratic program in every control period.

The manipulator along its vertical and its horizontal path, held over 5 ms and over 1 ms; then a tenth of the horizontal
path with commands one to three periods late, and with a cable that is stiffer and masses that are larger than the
controller knows. Gravity acts, cables keep 5 N, the robot starts at rest and comes to the start of the path by itself.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from tensegrity_dynamics import load_robot

from ..runtime.closed_loop import TrajectoryRun
from . import manipulator
from ._runs import Variants, run_trajectory

NAME = "qp"
DESCRIPTION = "sections 5.3 and 5.4 of 000 by one quadratic program a period, without any plan"
SHORT = 0.1
"""Share of the paths where commands are late or the model is wrong."""


def run(share: float = 1.0) -> dict[str, Any]:
    """Errors, tensions and torques; `share` of the document's time and length."""
    rows = [
        _row(path, period, share, actuation)
        for path in manipulator.PATHS
        for period, actuation in ((5e-3, "impedance"), (5e-3, "effort"), (1e-3, "impedance"))
    ]
    rows += [_row("horizontal", 5e-3, SHORT, "impedance", delay=delay) for delay in (1, 2, 3)]
    with_variants = Variants()
    rows.append(_row("horizontal", 5e-3, SHORT, "impedance", plant=_stiffer(with_variants), label="E, masses + 10 %"))
    return {"experiment": NAME, "floor_N": manipulator.FLOOR, "rows": rows}


def _stiffer(variants: Variants) -> Any:
    def change(blocks: dict[str, Any]) -> None:
        blocks["density"] *= 1.1
        for block in blocks["repeat"]:
            for cable in block.get("cables", []):
                cable["young"] = "2.2 GPa"

    return variants.file("manipulator", change)


def _row(
    path: str, period: float, share: float, actuation: str, *, delay: int = 0, plant: Any = None, label: str = ""
) -> dict[str, Any]:
    spline = manipulator.path(path, share)
    found: TrajectoryRun = run_trajectory(
        "manipulator", "qp", manipulator.waypoints(spline), nodes=False, period=period, time_step=1e-3, delay=delay,
        plant=plant, parameters={"actuation": actuation},
    ).after(manipulator.SETTLED)  # fmt: skip
    reference = np.array([spline.value(min(float(time), spline.end)) for time in found.times])
    errors = np.linalg.norm(found.poses - reference, axis=1)
    limit = max(each.effort for each in load_robot("manipulator").actuators)
    return {
        "path": path,
        "share": share,
        "period_s": period,
        "actuation": actuation,
        "delay_periods": delay,
        "plant": label or "as known",
        "largest_error_m": float(np.max(errors)),
        "last_error_m": float(errors[-1]),
        "least_tension_over_floor": float(np.min(found.tensions)) / manipulator.FLOOR,
        "largest_torque_over_limit": float(np.max(np.abs(found.commands))) / limit,
    }


def render(result: dict[str, Any], console: Console) -> None:
    """One line for each run."""
    table = Table(title="no plan, one program a period", title_justify="left", box=None, pad_edge=False)
    for head in (
        "path",
        "s",
        "held",
        "commands",
        "late",
        "robot",
        "error [m]",
        "at the end",
        "tension/floor",
        "torque/limit",
    ):
        table.add_column(head, justify="left" if head in ("path", "commands", "robot") else "right")
    for row in result["rows"]:
        table.add_row(
            row["path"], f"{20.0 * row['share']:g}", f"{1e3 * row['period_s']:g} ms", row["actuation"],
            str(row["delay_periods"]), row["plant"], f"{row['largest_error_m']:.1e}", f"{row['last_error_m']:.1e}",
            f"{row['least_tension_over_floor']:.2f}", f"{row['largest_torque_over_limit']:.2f}",
        )  # fmt: skip
    console.print(table)
