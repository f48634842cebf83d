"""The hash of a layout is that of its names alone, and differs with every one of them and their order."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import TensegrityError, load_robot, parse_robot
from tensegrity_dynamics.robots.layout import RobotLayout
from tensegrity_dynamics.robots.robot_types import type_of

NAMES = st.lists(st.text('a"],[é', max_size=3), max_size=3).map(tuple)
LAYOUTS = st.builds(RobotLayout, st.sampled_from(["structure", "mechanism"]), NAMES, NAMES, NAMES, NAMES)


@settings(max_examples=30)
@given(LAYOUTS, LAYOUTS)
def test_two_layouts_have_one_hash_exactly_where_they_are_equal(one: RobotLayout, other: RobotLayout) -> None:
    assert (one.hash == other.hash) == (one == other)
    assert len(one.hash) == 16 and one.hash == replace(one).hash


def test_the_hash_is_the_one_that_the_documents_say() -> None:
    import hashlib

    text = b'["structure",["a","b"],[],[],["t"]]'
    assert RobotLayout("structure", ("a", "b"), tendon_name=("t",)).hash == hashlib.sha256(text).hexdigest()[:16]


@pytest.mark.parametrize("name", ["three_prism", "single_strut"])
def test_the_layout_names_what_the_states_count(name: str) -> None:
    robot = load_robot(name)
    codec = type_of(robot).codec(robot)
    from tensegrity_dynamics import Simulation

    record = codec.encode(Simulation(robot).state)
    assert codec.layout is not None and record.layout == codec.layout.hash
    for field in fields(codec.layout):
        if hasattr(record, field.name):
            assert tuple(getattr(record, field.name)) == getattr(codec.layout, field.name)
    assert codec.layout.tendon_name == robot.model.tension_names


def test_other_numbers_of_a_robot_leave_its_layout_as_it_is() -> None:
    text = open(str(load_robot("three_prism").path), encoding="utf-8").read()
    heavier = parse_robot(text.replace("name: three_prism", "name: other"))
    layouts = [type_of(each).codec(each).layout for each in (load_robot("three_prism"), heavier)]
    assert heavier.name == "other" and layouts[0] == layouts[1]
    with pytest.raises(TensegrityError, match="belong to other names"):
        layouts[0].check("0" * 16, "other")
