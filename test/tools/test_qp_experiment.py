"""Options of the experiment of the controller qp."""

from __future__ import annotations

import pytest

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.experiments import qp
from tensegrity_tools.experiments._runs import Variants


def test_an_unknown_path_is_refused_with_the_known_ones():
    with pytest.raises(TensegrityError, match=r"paths: There is no name 'diagonal'.*vertical, horizontal"):
        qp.run(paths="diagonal")


def test_the_arm_has_the_gravity_of_the_option_and_its_stiffer_variant_as_well():
    variants = Variants()
    arm, stiffer = (load_robot(str(qp._arm(variants, 1.62, stiffer=each))) for each in (False, True))
    assert list(arm.mechanism.gravity) == list(stiffer.mechanism.gravity) == [0.0, 0.0, -1.62]
    assert stiffer.mechanism.cables[0].young == pytest.approx(1.1 * arm.mechanism.cables[0].young)
