"""Export of the motion of a simulated robot as a table."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensegrity_dynamics.saved_file import save_file


def write_table(samples: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write samples as CSV.

    The columns are time [s], output [m and quaternion wxyz], tensions [N] and ground forces [N] by foot, and, for
    routed cables with friction, slip [m], slip speed [m/s] and whether the cable slips (1), by element.

    Raises:
        TensegrityError: the file cannot be written.
    """
    feet = sorted({name for sample in samples for name in sample["contacts_N"]})
    tensions, posed = list(samples[0]["tensions_N"]), samples[0]["position_m"] is not None
    head = ["time_s", *([*(f"{axis}_m" for axis in "xyz"), "qw", "qx", "qy", "qz"] if posed else [])]
    head += [f"{name}_N" for name in tensions]
    head += [f"ground_{name}_{axis}_N" for name in feet for axis in "xyz"]
    rubbing = list(samples[0].get("slip", {}))
    head += [f"{name}_{what}" for name in rubbing for what in ("slip_m", "slip_m_per_s", "slips")]
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(head)
    for sample in samples:
        row = [sample["time_s"]]
        row += [*sample["position_m"], *sample["quaternion_wxyz"]] if posed else []
        row += [sample["tensions_N"][name] for name in tensions]
        row += [force for name in feet for force in sample["contacts_N"].get(name, (0.0, 0.0, 0.0))]
        for name in rubbing:
            contact, slipped, speed = sample["slip"][name]
            row += [slipped, speed, float(contact == "slips")]
        table.writerow([repr(float(value)) for value in row])
    save_file(path, text.getvalue())
