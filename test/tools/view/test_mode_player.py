"""A robot that swings along a mode in the browser view: how far it moves, that it closes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from tensegrity_dynamics import TensegrityError, load_robot
from tensegrity_dynamics.visualization.picture import make_picture
from tensegrity_tools.view.mode_player import SIZE, ModePlayer, drawn_points


@pytest.mark.parametrize("name", [pytest.param("tensebot", marks=pytest.mark.long), "single_strut"])
def test_a_mode_moves_the_robot_about_its_shape_at_rest_by_a_part_of_its_size(name):
    player = ModePlayer(load_robot(name), 2)
    picture, rest = make_picture(player.robot), player.shapes.configuration
    at = player.configurations(picture)
    ahead, behind = at(0.0), at(np.pi)
    moved = np.linalg.norm(drawn_points(picture, ahead) - drawn_points(picture, rest), axis=1).max()
    assert moved == pytest.approx(SIZE * picture.sizes.span, rel=0.2)
    away = np.abs(ahead - rest).max()
    assert np.abs(0.5 * (ahead + behind) - rest).max() < 0.2 * away
    np.testing.assert_allclose(at(2.0 * np.pi), ahead, atol=1e-9)


def test_a_mode_that_is_not_there_is_refused_by_number():
    with pytest.raises(TensegrityError, match="single_strut has modes 1 to"):
        ModePlayer(load_robot("single_strut"), 99)
