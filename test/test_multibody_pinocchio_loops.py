"""Forward dynamics of closed loops with cables against Pinocchio's constraint dynamics on an equivalent model."""

import sys
from pathlib import Path

import numpy as np
import pytest
from multibody_machines import manipulator, single_strut

from tensegrity_dynamics.multibody.equations import equations
from tensegrity_dynamics.multibody.forward_dynamics import forward_dynamics
from tensegrity_dynamics.multibody.loops import Loop
from tensegrity_dynamics.multibody.mechanism import Body, Frame, Joint, Mechanism

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
pinocchio = pytest.importorskip("pinocchio", reason="the peer library is a test dependency")
from multibody_models import PinocchioPeer, moving_state  # noqa: E402


def relative_difference(ours, theirs):
    return np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs))


@pytest.mark.parametrize("machine", [single_strut, manipulator])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_machines_with_cables_accelerate_as_in_pinocchio(machine, seed):
    mechanism, q = machine("length")[:2]
    v, effort, passive = moving_state(mechanism, q, seed)
    ours = forward_dynamics(mechanism, q, v, effort).acceleration
    theirs = PinocchioPeer(mechanism).acceleration(q, v, effort + passive)
    assert np.max(np.abs(passive)) > 1.0
    assert relative_difference(ours, theirs) < 1e-8


@pytest.mark.parametrize("end_mass", [0.005, 0.03])
def test_mass_moved_from_a_strut_to_the_cable_end_it_meets_changes_nothing(end_mass):
    mechanism, q = manipulator("length")[:2]
    v, effort, passive = moving_state(mechanism, q)
    ours = forward_dynamics(mechanism, q, v, effort).acceleration
    theirs = PinocchioPeer(mechanism, end_mass).acceleration(q, v, effort + passive)
    assert relative_difference(ours, theirs) < 1e-8


def test_pulley_that_turns_under_a_cable_of_fixed_direction_leaves_it_where_it_is():
    """The peer's cable hangs on the block; only psi = pulley angle + phi and l move it."""
    mechanism, q = single_strut("length")
    turned = q.copy()
    for i in (1, 2, 3):
        turned[mechanism.positions_of(f"B{i}-pulleyJt")] += 0.3
        turned[mechanism.positions_of(f"B{i}-involuteJt").start] -= 0.3
    still = np.zeros(mechanism.velocity_count)
    np.testing.assert_allclose(equations(mechanism, turned, still).loop_error, 0.0, atol=1e-12)
    peer = PinocchioPeer(mechanism)
    before, after = (peer.state(each, still, still)[0] for each in (q, turned))
    assert np.sum(np.abs(before - after) > 1e-12) == 3  # the pulleys alone


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_spatial_loop_of_ordinary_joints_accelerates_as_in_pinocchio(seed):
    """A slider and a free body that a chain of skew hinges closes; the loop's ends lie off the joints."""
    random = np.random.default_rng(seed)

    def body(name):
        spread = random.uniform(-1.0, 1.0, (3, 3))
        return Body(name, random.uniform(0.5, 2.0), random.uniform(-0.2, 0.2, 3), spread @ spread.T + np.eye(3))

    def joint(name, kind, parent, carried):
        axes, _ = np.linalg.qr(random.normal(size=(3, 3)))
        axes[:, 0] *= np.linalg.det(axes)
        return Joint(name, kind, parent, carried, Frame(random.uniform(-1, 1, 3), axes), random.normal(size=3))

    joints = (
        joint("rail", "prismatic", "world", "slider"),
        joint("arm", "revolute", "slider", "upper"),
        joint("elbow", "revolute", "upper", "lower"),
        joint("free", "floating", "world", "load"),
    )
    ends = (Frame(random.uniform(-0.5, 0.5, 3)), Frame(random.uniform(-0.5, 0.5, 3)))
    loop = Loop("grip", "point", "lower", "load", *ends)
    bodies = tuple(body(each.body) for each in joints)
    mechanism = Mechanism(bodies, joints, (loop,), (), np.array([1.0, -2.0, -9.81]))
    from tensegrity_dynamics.multibody.assembly import assemble

    q = assemble(mechanism, mechanism.neutral() + 0.1 * np.array([3, -2, 4, 1, 2, -1, 0, 0, 0, 0]))
    v, effort, passive = moving_state(mechanism, q, seed)
    ours = forward_dynamics(mechanism, q, v, effort).acceleration
    assert relative_difference(ours, PinocchioPeer(mechanism).acceleration(q, v, effort + passive)) < 1e-9
