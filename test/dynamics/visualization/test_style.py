"""Colours and scales that all pictures share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensegrity_dynamics.visualization import style


def test_more_tension_is_lighter():
    colours = style.tension_colours(np.linspace(0.0, 10.0, 60), 10.0) / 255.0
    lightness = colours**2.2 @ [0.2126, 0.7152, 0.0722]
    assert np.all(np.diff(lightness) > 0.0)


def test_colours_agree_with_the_published_map():
    matplotlib = pytest.importorskip("matplotlib")
    published = matplotlib.colormaps["plasma"](0.8 * np.linspace(0.0, 1.0, 41))[:, :3] * 255.0
    ours = style.tension_colours(np.linspace(0.0, 5.0, 41), 5.0)
    assert np.abs(published - ours).max() < 8.0


def test_unknown_tension_has_its_own_colour():
    colours = style.tension_colours([np.nan, 1.0], 2.0)
    assert tuple(colours[0]) == style.UNKNOWN_COLOUR
    assert tuple(colours[1]) != style.UNKNOWN_COLOUR


@given(st.floats(1e-6, 1e9))
def test_rounding_up_holds_the_value_and_wastes_at_most_half(value):
    rounded = style.round_up(value)
    assert value <= rounded * (1.0 + 1e-8)
    assert rounded <= 1.5 * value * (1.0 + 1e-8)
