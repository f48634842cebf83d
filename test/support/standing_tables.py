"""Robots of the tests' own that only the ground holds: tables on legs with hips, and a cart on wheels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensegrity_dynamics import Robot, parse_robot

TABLE = """
kind: mechanism
name: table
gravity: [0, 0, -9.81]
contact: {{stiffness: "20 kN/m", damping: "200 N s/m", friction: {friction}, slope: "{slope} deg"}}
bodies:
  trunk: {{shapes: [{{kind: cylinder, size: ["15 cm", "5 cm"], mass: "3 kg"}}]}}
joints:
  - {{name: base, kind: floating, parent: world, body: trunk, start: [0, 0, "{height} cm", 0, "{slope} deg", 0]}}
repeat:
  count: {legs}
  about: z
  bodies:
    leg_$: {{shapes: [{{kind: cylinder, size: ["1 cm", "25 cm"], mass: "0.3 kg", frame: {{at: [0, 0, "-12.5 cm"]}}}}]}}
  joints:
    - {{name: hip_$, kind: revolute, parent: trunk, body: leg_$, axis: [0, 1, 0], frame: {{at: ["13 cm", 0, 0]}},
       start: ["{angle} deg"], resistance: {{damping: "0.5 N m s/rad"{spring}}}}}
  contact_parts:
    - {{name: foot_$, body: leg_$, kind: sphere, size: ["15 mm"], at: [0, 0, "-25 cm"]}}
{actuators}
outputs:
  - {{name: top, body: trunk, controlled: [{controlled}]}}
"""
DRIVEN = (
    '  actuators:\n    - {{drives: hip_$, position: ["-40 deg", "40 deg"], rate: "2 rad/s", effort: "{effort} N m"}}\n'
)
CART = """
kind: mechanism
name: cart
gravity: [0, 0, -9.81]
contact: {{stiffness: "20 kN/m", damping: "200 N s/m", friction: {friction}}}
bodies:
  deck: {{mass: "3 kg", inertia: ["0.02 kg m^2", "0.02 kg m^2", "0.02 kg m^2"]}}
  axle: {{mass: "0.5 kg", inertia: ["0.002 kg m^2", "0.002 kg m^2", "0.002 kg m^2"]}}
joints:
  - {{name: base, kind: floating, parent: world, body: deck, start: [0, 0, "5 cm"]}}
  - {{name: drive, kind: revolute, parent: deck, body: axle, axis: [0, 1, 0], frame: {{at: ["{axle} cm", 0, 0]}}}}
contact_parts:
  - {{name: left, body: axle, kind: sphere, size: ["5 cm"], at: [0, "10 cm", 0]}}
  - {{name: right, body: axle, kind: sphere, size: ["5 cm"], at: [0, "-10 cm", 0]}}
  - {{name: skid, body: deck, kind: sphere, size: ["1 cm"], at: ["{skid} cm", 0, "-4 cm"]}}
actuators:
  - {{drives: drive, position: [-20, 20], rate: "2 rad/s", effort: "5 N m"}}
outputs:
  - {{name: deck, body: deck, controlled: [x]}}
"""


def table(
    angle: float, *, friction: float = 0.6, slope: float = 0.0, legs: int = 3, effort: float = 20.0,
    spring: float | None = None, driven: bool = True, controlled: str = "z",
) -> Robot:  # fmt: skip
    """A table on legs that are bent outwards by -angle [deg] at driven hips, or at passive ones with a spring
    [N m/rad]."""
    numbers: dict[str, Any] = {"angle": angle, "friction": friction, "slope": slope, "legs": legs}
    numbers["height"] = 26.5 / np.cos(np.radians(slope)) + 0.01 * slope
    resistance = "" if spring is None else f', stiffness: "{spring} N m/rad", rest: "{angle} deg"'
    actuators = DRIVEN.format(effort=effort) if driven else ""
    text = TABLE.format(**numbers, spring=resistance, actuators=actuators, controlled=controlled)
    return parse_robot(text, "table.yaml")


def cart(friction: float, *, axle: float = 2.0, skid: float = -10.0) -> Robot:
    """A cart with one driven axle and a skid at x [cm] on both sides of its weight."""
    return parse_robot(CART.format(friction=friction, axle=axle, skid=skid), "cart.yaml")
