"""Forward dynamics of closed loops with cables against Pinocchio's constraint dynamics on an equivalent model."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multibody_machines import manipulator, single_strut
from numba.core.runtime import _nrt_python, rtsys

from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations, evaluate
from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import accelerate, forward_dynamics
from tensegrity_dynamics.mechanisms.frame import Frame
from tensegrity_dynamics.mechanisms.kinematics.loop_closure import assemble
from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import (
    independent_basis,
    make_reduction_workspace,
    reduce_rows,
)
from tensegrity_dynamics.mechanisms.loop_joints import Loop
from tensegrity_dynamics.mechanisms.mechanism import Body, Joint, Mechanism
from tensegrity_dynamics.mechanisms.workspace import make_workspace
from tensegrity_dynamics.numerics.linear_algebra import cholesky, cholesky_solve

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
pinocchio = pytest.importorskip("pinocchio", reason="the peer library is a test dependency")
from multibody_models import PinocchioPeer, moving_state, tower  # noqa: E402


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
    q = assemble(mechanism, mechanism.neutral() + 0.1 * np.array([3, -2, 4, 1, 2, -1, 0, 0, 0, 0]))
    v, effort, passive = moving_state(mechanism, q, seed)
    ours = forward_dynamics(mechanism, q, v, effort).acceleration
    assert relative_difference(ours, PinocchioPeer(mechanism).acceleration(q, v, effort + passive)) < 1e-9


@pytest.mark.parametrize("stages", [1, 2, 4])
def test_tower_with_closed_loops_accelerates_as_in_pinocchio(stages):
    mechanism, q = tower(stages)
    assert (mechanism.velocity_count, mechanism.constraint_count) == (30 * stages, 18 * stages)
    v, effort, passive = moving_state(mechanism, q)
    assert np.max(np.abs(equations(mechanism, q, v).loop_error)) < 1e-12
    ours = forward_dynamics(mechanism, q, v, effort).acceleration
    assert relative_difference(ours, PinocchioPeer(mechanism).acceleration(q, v, effort + passive)) < 1e-8


def test_variants_of_the_compliant_cable_agree_with_the_one_that_pinocchio_confirms():
    accelerations = []
    for variant in ("length", "epsilon", "u"):
        mechanism, q = manipulator(variant)[:2]
        still = np.zeros(mechanism.velocity_count)
        acceleration = forward_dynamics(mechanism, q, still).acceleration
        ordinary = [k for k, name in enumerate(mechanism.coordinate_names()) if "involuteJt" not in name]
        accelerations.append(acceleration[ordinary])
    for other in accelerations[1:]:
        assert relative_difference(other, accelerations[0]) < 1e-10


@pytest.mark.parametrize("machine", [lambda: manipulator("epsilon")[:2], lambda: tower(2)])
def test_sparse_reduction_spans_the_null_space_of_the_loops_again_and_again(machine):
    """One solver for many states: nothing that one elimination filled in may be left for the next."""
    mechanism, q = machine()
    work, solver = make_workspace(mechanism.flat), make_reduction_workspace(mechanism.flat)
    random = np.random.default_rng(4)
    for seed in range(5):
        v = random.uniform(-1.0, 1.0, mechanism.velocity_count)
        evaluate(mechanism.flat, q + 1e-3 * random.uniform(-1.0, 1.0, q.size), v, work)
        assert reduce_rows(work.loop, work.loop_bias, solver, seed % 2 == 1) == 0
        count = independent_basis(v.size, solver)
        assert count == mechanism.velocity_count - mechanism.constraint_count
        scale = np.max(np.abs(solver.basis[:, :count]))
        np.testing.assert_allclose(work.loop @ solver.basis[:, :count], 0.0, atol=1e-12 * scale)
        np.testing.assert_allclose(work.loop @ solver.offset, work.loop_bias, atol=1e-11 * scale)
        for d in range(v.size):
            listed = np.sort(solver.basis_columns[d, : solver.basis_filled[d]])
            np.testing.assert_array_equal(listed, np.flatnonzero(solver.basis[d, :count]))


@settings(deadline=None, max_examples=30)
@given(size=st.integers(1, 12), seed=st.integers(0, 10**6), share=st.floats(0.1, 1.0))
def test_factor_from_the_last_pivot_to_the_first_solves_positive_systems(size, seed, share):
    random = np.random.default_rng(seed)
    root = np.tril(random.normal(size=(size, size)) * (random.random((size, size)) < share), -1)
    root += np.diag(random.uniform(0.5, 2.0, size))
    matrix, solution = root.T @ root, random.normal(size=size)
    factor, right = matrix.copy(), matrix @ solution
    assert cholesky(factor, size) == -1
    np.testing.assert_allclose(np.tril(factor), root, atol=1e-8)
    cholesky_solve(factor, size, right)
    np.testing.assert_allclose(right, solution, atol=1e-7)


def test_factor_names_the_pivot_that_is_not_positive():
    matrix = np.diag([1.0, 0.0, 2.0])
    assert cholesky(matrix, 3) == 1


def test_forward_dynamics_allocates_nothing():
    mechanism, q = manipulator("length")[:2]
    v, effort, _ = moving_state(mechanism, q)
    work, solver = make_workspace(mechanism.flat), make_reduction_workspace(mechanism.flat)
    accelerate(mechanism.flat, q, v, effort, 20.0, work, solver, False)
    _nrt_python.memsys_enable_stats()
    try:
        before = rtsys.get_allocation_stats()
        for _ in range(10):
            accelerate(mechanism.flat, q, v, effort, 20.0, work, solver, False)
        after = rtsys.get_allocation_stats()
    finally:
        _nrt_python.memsys_disable_stats()
    assert after.alloc == before.alloc
