"""Options of the experiment of the controller qp."""

from __future__ import annotations

import pytest

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.experiments import manipulator, qp
from tensegrity_tools.experiments._runs import Variants


def test_an_unknown_path_is_refused_with_the_known_ones():
    with pytest.raises(TensegrityError, match=r"paths: There is no name 'diagonal'.*vertical, horizontal"):
        qp.run(paths="diagonal")


def test_the_arm_has_the_gravity_of_the_option_and_its_stiffer_variant_as_well():
    variants = Variants()
    arm, stiffer = (load_robot(str(qp._arm(variants, 1.62, stiffer=each))) for each in (False, True))
    assert list(arm.mechanism.gravity) == list(stiffer.mechanism.gravity) == [0.0, 0.0, -1.62]
    assert stiffer.mechanism.cables[0].young == pytest.approx(1.1 * arm.mechanism.cables[0].young)


@pytest.mark.system
def test_the_arm_through_the_nodes_is_that_of_the_libraries_twice(monkeypatch):
    pytest.importorskip("rclpy", reason="ROS 2 is not installed")
    variants = Variants()
    monkeypatch.setattr(manipulator, "APPROACH", 1.2)
    monkeypatch.setattr(manipulator, "SETTLED", 1.5)
    row = qp._row(qp._arm(variants, 9.81), "vertical", 5e-3, 0.05, "impedance", observer=False, nodes=True)
    through = row["through_nodes"]
    assert through["two_runs_have_the_same_bits"] and through["apart"] < 1e-3
    assert 0.0 < through["largest_error"] < 1e-4
