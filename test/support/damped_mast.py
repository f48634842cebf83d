"""A mast on a universal joint with dampers, held by three stays."""

from __future__ import annotations

from tensegrity_dynamics import Robot, parse_robot

DAMPED_MAST = """
kind: mechanism
name: mast
gravity: [0, 0, -9.81]
bodies:
  cross: {{}}
  mast: {{shapes: [{{kind: cylinder, size: [0.012, 0.6], mass: {mass}, frame: {{at: [0, 0, 0.3]}}}}]}}
joints:
  - {{name: roll, kind: revolute, parent: world, body: cross, axis: [1, 0, 0], resistance: {{damping: {damping}}}}}
  - {{name: pitch, kind: revolute, parent: cross, body: mast, axis: [0, 1, 0], resistance: {{damping: {damping}}}}}
repeat:
  count: 3
  about: z
  cables:
    - name: stay_$
      body: world
      at: [0.5, 0, 0]
      block_axis: [0, 0, 1]
      pulley_axis: [0, 1, 0]
      pulley_radius: 0.04
      anchor: {{body: mast, at: [0, 0, 0.6]}}
      young: 2.0e+9
      damping: 1.0e+7
      cable_radius: 0.0005
      length: 1.3
      strain: 0.01
      block: [{{kind: cube, size: [0.04], mass: 0.2}}]
      pulley: [{{kind: cylinder, size: [0.04, 0.008], mass: 0.1}}]
  actuators:
    - {{drives: stay_$, position: [-8, 8], rate: 6, effort: 8, minimum_tension: 4}}
outputs:
  - {{name: tip, body: mast, frame: {{at: [0, 0, 0.6]}}, controlled: [x, y]}}
"""


def damped_mast(damping: float, mass: float = 0.4) -> Robot:
    """The mast. damping: N m s/rad of each of its two axes. mass: kg."""
    return parse_robot(DAMPED_MAST.format(damping=damping, mass=mass))
