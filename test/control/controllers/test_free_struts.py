"""Struts on ball joints and struts that float: joints of several coordinates, with a spin that nothing resists."""

from __future__ import annotations

import numpy as np
import pytest
import qp_loop

from tensegrity_control import make_controller
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.mechanisms.dynamics.reduced_model import ReducedModel
from tensegrity_tools.experiments._runs import Variants

FREE = pytest.param("floating", marks=pytest.mark.long), pytest.param("spherical", marks=pytest.mark.long)


def free_strut_manipulator(kind: str):
    """The manipulator with its struts on ball joints, or floating and held at the base by closed loops."""
    variants = Variants()

    def change(blocks):
        struts = blocks["repeat"][1]
        del struts["bodies"]["B$-dummy"], blocks["provenance"]
        frame = struts["joints"][0]["frame"]
        struts["joints"] = [{"name": "B$-strutJt", "kind": kind, "parent": "world", "body": "B$-strut", "frame": frame}]
        if kind == "floating":
            base = {"at": list(frame["at"])}
            struts["loops"] = [
                {"name": "B$-base", "kind": "point", "before": "world", "after": "B$-strut", "frame_before": base}
            ]

    return load_robot(str(variants.file("manipulator", change)))


@pytest.mark.parametrize("kind", FREE)
def test_free_struts_are_simulated_and_controlled_by_qp(monkeypatch, kind):
    robot = free_strut_manipulator(kind)
    monkeypatch.setattr(qp_loop, "robot_named", lambda _: robot)
    made = qp_loop.loop("free struts")
    assert made.control.equations.count == 12 + 3  # three spins more
    made.run(1.2)
    goal = made.look().pose[0] + [0.03, 0.02, -0.04]
    accepted = made.control.set_goal(made.time, goal)
    worst, least = 0.0, np.inf
    for _ in range(int((accepted.duration + 0.5) / 0.05)):
        outputs, tensions = made.run(0.05)
        worst = max(worst, np.linalg.norm(outputs[-1] - made.control.reference(made.time).pose[0]))
        least = min(least, np.min(tensions))
    assert worst < 1e-5 and np.linalg.norm(outputs[-1] - goal) < 1e-5 and least > 0.99 * 5.0
    assert not made.control.relaxed()


@pytest.mark.long
def test_planners_of_equilibria_refuse_a_spin_that_nothing_resists_by_name():
    with pytest.raises(TensegrityError, match="the controller qp takes such robots"):
        make_controller("task", free_strut_manipulator("spherical"))


def test_coordinates_of_universal_and_cable_joints_may_be_independent_ones():
    robot = load_robot("cable_robot")
    model = ReducedModel(robot)
    assert model.index.size == 14
    assert not any(name.startswith("floating") for name in model.names)
    with pytest.raises(TensegrityError, match="turns freely: its coordinates have numbers together or not at all"):
        ReducedModel(robot, [robot.mechanism.coordinate_names().index("floating.vx"), *model.index[1:]])
