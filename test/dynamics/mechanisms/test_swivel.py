"""Blocks whose pulleys stand off their axis and skew to it: exact lengths, virtual work, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensegrity_dynamics import RobotFileError, parse_robot
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations
from tensegrity_dynamics.mechanisms.kinematics.configuration_space import displaced
from tensegrity_dynamics.mechanisms.kinematics.loop_closure import assemble
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel

SWIVEL = """
name: swivelling
kind: mechanism
bodies: {{load: {{mass: 1, inertia: [1, 1, 1]}}}}
joints: [{{name: loadJt, kind: floating, parent: world, body: load, start: [{x!r}, {y!r}, -1, 0, 0, 0]}}]
cables:
  - {{name: rope, body: world, at: [0, 0, 0], block_axis: [0, 0, 1], pulley_axis: [0, -1, {skew!r}], skew: true,
     swivel: {swivel}, pulley_radius: 0.05, anchor: {{body: load, at: [0.03, 0.02, 0.01]}}, young: 1.0e+7,
     cable_radius: 0.001, strain: 0.01, pulley: [{{kind: sphere, size: [0.03], mass: 0.1}}]}}
"""


def swivelling(x=0.3, y=0.25, skew=0.3, swivel=(0.07, 0.01, -0.02)):
    return parse_robot(SWIVEL.format(x=x, y=y, skew=skew, swivel=list(swivel)), "here").model_as(MechanismModel)


@settings(max_examples=5, deadline=None)
@given(
    x=st.floats(0.1, 0.8), y=st.floats(-0.5, 0.5), skew=st.floats(-0.5, 0.5), beside=st.floats(-0.05, 0.05),
    ahead=st.floats(-0.1, 0.1),
)  # fmt: skip
def test_pulls_over_a_skew_swivel_are_the_gradient_of_the_length(x, y, skew, beside, ahead):
    model = swivelling(x, y, skew, (ahead, beside, -0.02))
    mechanism, poses = model.mechanism, BodyPoses(model).update(model.start)
    assert poses.strains()[0] == pytest.approx(0.01, abs=1e-12)
    at, pulley = mechanism.velocities_of("loadJt").start, mechanism.velocities_of(model.entries[0].joints[1]).start
    found = equations(mechanism, model.start, np.zeros(mechanism.velocity_count))
    assert np.abs(found.loop_error).max() < 1e-12
    others = [d for d in range(mechanism.velocity_count) if d != pulley and not at <= d < at + 6]
    for d in range(6):
        motion = np.zeros(mechanism.velocity_count)
        motion[at + d] = 1.0
        motion[others] = np.linalg.lstsq(found.loop[:, others], -found.loop @ motion, rcond=None)[0]
        stretches = []
        for sign in (1.0, -1.0):
            q = displaced(mechanism, model.start, sign * 1e-5 * motion)
            poses.update(assemble(mechanism, q, hold=("loadJt", model.entries[0].joints[1])))
            stretches.append(float(poses.lengths()[0] - poses.rest_lengths()[0]))
        gradient = (stretches[0] - stretches[1]) / 2e-5
        assert motion @ found.passive == pytest.approx(-found.tension[0] * gradient, rel=1e-6, abs=1e-5)


def test_the_cable_leaves_the_rim_of_a_skew_pulley_along_its_tangent():
    model = swivelling()
    poses = BodyPoses(model).update(model.start)
    index = model.mechanism.body_index
    leaving, end = poses.cables()[0]
    centre, axes = poses.positions[index["rope-pulley"]], poses.rotations[index["rope-pulley"]]
    along = (end - leaving) / np.linalg.norm(end - leaving)
    arm = leaving - centre
    assert np.linalg.norm(arm) == pytest.approx(0.05, abs=1e-12)
    assert np.allclose([arm @ along, arm @ axes[:, 2], along @ axes[:, 2]], 0.0, atol=1e-12)
    # the swivel keeps its length and height while it turns about the block's axis
    assert np.linalg.norm(centre[:2]) == pytest.approx(np.hypot(0.07, 0.01), abs=1e-12)
    assert centre[2] == pytest.approx(-0.02)
    assert end == pytest.approx([0.33, 0.27, -0.99])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("skew: true", "skew: false", "pulley_axis: it must be square to block_axis.*say skew: true"),
        ("[0, -1, 0.3]", "[0, -0.01, 1]", "lies along block_axis"),
        ("swivel: [0.07, 0.01, -0.02]", "swivel: [0, 2, 0]", "away from the pulley's plane"),
        ("at: [0.03, 0.02, 0.01]", "at: [-0.23, -0.25, 0.97]", "within the pulley radius"),
    ],
)  # fmt: skip
def test_a_swivel_that_cannot_face_its_anchor_is_refused_by_name(old, new, said):
    text = SWIVEL.format(x=0.3, y=0.25, skew=0.3, swivel=[0.07, 0.01, -0.02])
    assert old in text
    with pytest.raises(RobotFileError, match=said):
        parse_robot(text.replace(old, new, 1), "here")
