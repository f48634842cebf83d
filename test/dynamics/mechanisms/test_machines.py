"""The machines of the documents: assembly, section 5.2, static shapes, implicit steps, loop kinematics."""

import numpy as np
import pytest
from multibody_machines import LEG, TIP_MASS, WIDTH, biglide, manipulator, single_strut

from tensegrity_dynamics import Simulation, parse_robot
from tensegrity_dynamics.errors import TensegrityError, UnreachableGoalError
from tensegrity_dynamics.mechanisms.dynamics.equations_of_motion import equations, evaluate
from tensegrity_dynamics.mechanisms.dynamics.forward_dynamics import forward_dynamics
from tensegrity_dynamics.mechanisms.dynamics.state_derivative import components, make_displacement_workspace
from tensegrity_dynamics.mechanisms.kinematics.loop_closure import assemble
from tensegrity_dynamics.mechanisms.kinematics.loop_reduction import make_reduction_workspace
from tensegrity_dynamics.mechanisms.kinematics.mode_enumeration import assembly_modes, working_modes
from tensegrity_dynamics.mechanisms.mechanism import Mechanism
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.simulation.actuation import make_drives
from tensegrity_dynamics.mechanisms.simulation.rosenbrock import rosenbrock
from tensegrity_dynamics.mechanisms.simulation.runge_kutta import runge_kutta
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_dynamics.mechanisms.workspace import make_stage_workspace, make_workspace

COMPLIANT = ("epsilon", "u", "length")


def run(mechanism, q, effort, step, count, method="rk4"):
    """Position, velocity and scratch after `count` steps from rest."""
    q, v = q.copy(), np.zeros(mechanism.velocity_count)
    work, solver, stages = (
        make_workspace(mechanism.flat),
        make_reduction_workspace(mechanism.flat),
        make_stage_workspace(mechanism.flat),
    )
    if method == "rk4":
        status = runge_kutta(mechanism.flat, q, v, effort, step, count, 0.0, work, solver, stages, False)
    else:
        scratch = make_displacement_workspace(mechanism.flat, q.size)
        drives = make_drives((), (), (), v.size)
        status = 0
        for _ in range(count):
            status = status or rosenbrock(mechanism.flat, drives, q, v, effort, step, work, solver, stages, scratch)
    assert status == 0
    evaluate(mechanism.flat, q, v, work)
    return q, v, work


def pulley_torques(mechanism, values):
    """Efforts on all coordinates with the given pulley torques."""
    effort = np.zeros(mechanism.velocity_count)
    names = [joint.name for joint in mechanism.joints if joint.name.endswith("pulleyJt")]
    for name, value in zip(names, values, strict=True):
        effort[mechanism.velocities_of(name)] = value
    return effort


# -- counts and assembly -------------------------------------------------------------------------------------


def test_machines_have_the_printed_numbers_of_coordinates_and_constraints():
    for (mechanism, q), counts in (
        (single_strut(), (14, 9)),
        (manipulator()[:2], (39, 27)),
        ((biglide()[0].mechanism, biglide()[1]), (4, 2)),
    ):
        assert (mechanism.velocity_count, mechanism.constraint_count) == counts
        loop = equations(mechanism, q, np.zeros(mechanism.velocity_count)).loop
        assert np.linalg.matrix_rank(loop) == counts[1]


def test_loops_are_closed_at_the_start():
    for mechanism, q in (single_strut(), manipulator()[:2]):
        error = equations(mechanism, q, np.zeros(mechanism.velocity_count)).loop_error
        assert np.max(np.abs(error)) < 1e-12


def test_upright_strut_has_its_cables_at_45_degrees():
    mechanism, q = single_strut()
    work = make_workspace(mechanism.flat)
    evaluate(mechanism.flat, q, np.zeros(14), work)
    for i in range(3):
        along = work.rotation[mechanism.body_index[f"B{i + 1}-cable"]][:, 0]
        assert along[2] == pytest.approx(np.sqrt(0.5), abs=1e-12)


def test_manipulator_stands_at_its_rest_height():
    _, q, top = manipulator()
    assert top == pytest.approx(np.sqrt(0.5) * (1 + np.sqrt(2 / 3)), rel=1e-15)
    assert q[2] == pytest.approx(top, abs=1e-12)


def test_assembly_closes_the_loops_from_a_rough_start():
    mechanism, q, _ = manipulator()
    rough = q + 0.02 * np.random.default_rng(0).normal(size=q.size)
    rough[3:7] /= np.linalg.norm(rough[3:7])
    closed = assemble(mechanism, rough)
    assert np.max(np.abs(equations(mechanism, closed, np.zeros(39)).loop_error)) < 1e-12


def test_a_loop_that_cannot_close_is_named():
    kinematics, q = biglide()
    far = kinematics.mechanism
    joints = list(far.joints)
    from dataclasses import replace

    from tensegrity_dynamics.mechanisms.frame import Frame

    joints[2] = replace(joints[2], placement=Frame([2.0, 0, 0]))
    with pytest.raises(TensegrityError, match="loop tip cannot close"):
        assemble(Mechanism(far.bodies, tuple(joints), far.loops), q)


# -- 000, section 5.2 ----------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("gravity", [0.0, 9.81])
def test_compliant_variants_agree_and_the_strut_stays_in_its_plane(gravity):
    ends = {}
    for variant in COMPLIANT:
        mechanism, q = single_strut(variant, gravity=gravity)
        q, _, work = run(mechanism, q, pulley_torques(mechanism, [0.1001, 0.1, 0.1]), 1e-4, 10_000)
        assert abs(q[0]) < 1e-12
        ends[variant] = np.concatenate((q[:2], work.strain))
    assert abs(ends["epsilon"][1]) > 1e-4  # it did move
    for variant in ("u", "length"):
        np.testing.assert_allclose(ends[variant], ends["epsilon"], atol=1e-10)


def test_equal_torques_leave_the_strut_at_rest():
    mechanism, q = single_strut(gravity=0.0)
    end, _, _ = run(mechanism, q, pulley_torques(mechanism, [0.1, 0.1, 0.1]), 1e-4, 1000)
    np.testing.assert_allclose(end[:2], 0.0, atol=1e-13)


# -- static shapes -------------------------------------------------------------------------------------------


def test_manipulator_with_held_pulleys_settles_in_one_stable_shape_whatever_the_variant():
    heights = {}
    for variant in COMPLIANT:
        mechanism, q, top = manipulator(variant)
        pulleys = tuple(joint.name for joint in mechanism.joints if joint.name.endswith("pulleyJt"))
        shape = MechanismEquilibriumSolver(mechanism, pulleys).solve(q)
        assert shape.stable and shape.residual < 1e-9
        still = forward_dynamics(mechanism, shape.q, np.zeros(39), shape.effort)
        np.testing.assert_allclose(still.acceleration, 0.0, atol=1e-6)
        heights[variant] = shape.q[2] - top
    assert heights["epsilon"] < -0.05  # far from the square-faced prism
    assert heights["u"] == pytest.approx(heights["epsilon"], abs=1e-9)
    assert heights["length"] == pytest.approx(heights["epsilon"], abs=1e-9)


def test_a_warm_start_follows_the_pulleys_in_few_steps():
    mechanism, q, _ = manipulator()
    pulleys = tuple(joint.name for joint in mechanism.joints if joint.name.endswith("pulleyJt"))
    solver = MechanismEquilibriumSolver(mechanism, pulleys)
    shape = solver.solve(q)
    wound = {name: shape.q[mechanism.positions_of(name)] + 0.01 for name in pulleys}
    near = solver.solve(shape.q, wound)
    assert near.stable and near.iterations < 8
    assert near.q[2] > shape.q[2]  # winding lifts it


# -- implicit steps ------------------------------------------------------------------------------------------


def test_implicit_steps_are_of_second_order():
    mechanism, q = single_strut(torque=1.0)
    effort = pulley_torques(mechanism, [1.1, 1.0, 1.0])
    exact = run(mechanism, q, effort, 1e-5, 10_000)[0]
    errors = [
        np.max(np.abs(run(mechanism, q, effort, h, round(0.1 / h), "implicit")[0][:2] - exact[:2]))
        for h in (1e-3, 5e-4)
    ]
    assert np.log2(errors[0] / errors[1]) > 1.6


@pytest.mark.parametrize("kind", ["point", "point_xy", "point_z", "planar", "universal"])
def test_implicit_steps_are_of_third_order_where_loops_hold_a_part_of_a_floating_joint(kind):
    robot = parse_robot(
        f"""
kind: mechanism
name: tumbling
gravity: [0, 0, -9.81]
bodies: {{top: {{mass: 1, centre: [0.1, 0.05, 0.2], inertia: [0.02, 0.03, 0.015, 0.002, 0.001, -0.003]}}}}
joints: [{{name: topJt, kind: floating, parent: world, body: top, start: [0, 0, 0, 0.3, 0.2, -0.1]}}]
loops: [{{name: pin, kind: {kind}, before: world, after: top}}]
"""
    )

    def end(integrator, step):
        simulation = Simulation(robot, time_step=step, integrator=integrator, start="file")
        simulation.set_motion([2.0, -3.0, 4.0, 0.5, -0.7, 0.3])
        return simulation.advance(duration=0.1).q

    exact = end("rk4", 5e-4)
    errors = [np.max(np.abs(end("implicit", step) - exact)) for step in (4e-3, 2e-3)]
    assert errors[1] < 1e-6
    assert np.log2(errors[0] / errors[1]) > 2.7


def test_implicit_steps_stay_stable_with_cables_of_steel_at_a_millisecond():
    mechanism, q = single_strut(young=2e10, torque=1.0)
    effort = pulley_torques(mechanism, [1.01, 1.0, 1.0])
    end, v, work = run(mechanism, q, effort, 1e-3, 300, "implicit")
    fine, _, _ = run(mechanism, q, effort, 1e-5, 30_000)
    np.testing.assert_allclose(end[:2], fine[:2], atol=2e-4)
    assert np.max(np.abs(v)) < 10.0
    assert np.max(np.abs(work.loop_error)) < 1e-11


ARMS = {
    "a": ["{name: a1Jt, kind: revolute, parent: world, body: a1, axis: [0, 1, 0], resistance: {stiffness: 900}}",
          "{name: a2Jt, kind: spherical, parent: a1, body: a2, frame: {at: [0.3, 0, 0]}, resistance: {damping: 900}}"],
    "b": ["{name: b1Jt, kind: floating, parent: world, body: b1, start: [0, 1, 0.2]}"],
    "c": ["{name: c1Jt, kind: prismatic, parent: world, body: c1, axis: [0, 0, 1], resistance: {damping: 4e3}}"],
}  # fmt: skip


def arms(names, cable=""):
    joints = [joint for name in names for joint in ARMS[name]]
    bodies = [f"{name}: {{mass: 0.4, centre: [0.1, 0, 0.05], inertia: [2.0e-3, 3.0e-3, 2.5e-3]}}" for name in
              (joint.split("body: ")[1].split(",")[0].rstrip("}") for joint in joints)]  # fmt: skip
    text = "kind: mechanism\nname: arms\nbodies: {" + ", ".join(bodies) + "}\njoints: [" + ", ".join(joints) + "]\n"
    return parse_robot(text + cable, "here").model_as(MechanismModel)


def test_implicit_steps_move_a_part_that_nothing_ties_to_others_as_if_it_were_alone():
    """Differences of the parts are taken at once: nothing of one may get into another."""
    rng = np.random.default_rng(4)
    whole, shares = arms("abc"), [arms(name) for name in "abc"]
    assert components(whole.mechanism.flat).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]
    effort = rng.uniform(-1, 1, whole.mechanism.velocity_count)
    together = run(whole.mechanism, whole.start, effort, 1e-3, 20, "implicit")
    q = v = 0
    for share in shares:
        own = slice(v, v + share.mechanism.velocity_count)
        alone = run(share.mechanism, share.start, effort[own], 1e-3, 20, "implicit")
        np.testing.assert_allclose(together[1][own], alone[1], rtol=1e-12)
        np.testing.assert_allclose(together[0][q : q + share.start.size], alone[0], rtol=1e-12, atol=1e-14)
        q, v = q + share.start.size, own.stop
    cable = "routed_cables: [{name: tie, young: 1e9, cable_radius: 1e-3, strain: 0, route: [{body: a2, at: [0, 0, 0]},"
    tied = arms("abc", cable + " {body: c1, at: [0, 0, 0.5]}]}]")
    assert components(tied.mechanism.flat).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 0]


# -- loop kinematics against the corrected closed forms of 002 -----------------------------------------------


def closed_form(x, y, signs):
    """q (2,), phi (2,), A and B of 002 (2.6 to 2.13) for a point and a working mode."""
    ends = np.array([x + 0.5 * WIDTH, x - 0.5 * WIDTH])
    rails = y + np.array(signs) * np.sqrt(LEG**2 - ends**2)
    phi = np.arctan2(y - rails, ends)
    return rails, phi, np.column_stack((np.cos(phi), np.sin(phi))), -np.diag(np.sin(phi))


MODES = {(-1, -1): "++", (1, 1): "--", (-1, 1): "+-", (1, -1): "-+"}  # relative to the mode at the start


@pytest.mark.long
def test_all_working_modes_of_the_biglide_are_found_and_agree_with_the_closed_forms():
    kinematics, q = biglide()
    random = np.random.default_rng(3)
    for _ in range(3):
        point = np.array([random.uniform(-0.1, 0.1), random.uniform(-0.3, 0.5)])
        modes = working_modes(kinematics, kinematics.inverse(point, q))
        assert sorted(name[:2] for name in modes) == ["++", "+-", "-+", "--"]
        for signs, name in MODES.items():
            position = next(value for key, value in modes.items() if key.startswith(name))
            rails, phi, a, b = closed_form(*point, signs)
            np.testing.assert_allclose(position[[0, 2]], rails, atol=1e-9)
            np.testing.assert_allclose(np.exp(1j * position[[1, 3]]), np.exp(1j * phi), atol=1e-9)
            first = kinematics.first_order(position)
            np.testing.assert_allclose(first.jacobian, -np.linalg.solve(a, b), rtol=1e-9, atol=1e-9)
            assert abs(np.linalg.det(first.a)) == pytest.approx(abs(np.linalg.det(a)), rel=1e-9)
            assert first.type_1 == pytest.approx(np.min(np.abs(np.sin(phi))), rel=1e-9)


def test_the_biglide_has_two_assembly_modes_with_the_tip_on_either_side_of_the_line_between_the_sliders():
    kinematics, q = biglide()
    position = kinematics.inverse([0.05, 0.2], q)
    modes = list(assembly_modes(kinematics, position).values())
    assert len(modes) == 2
    np.testing.assert_allclose(modes[1][[0, 2]], modes[0][[0, 2]], atol=1e-9)
    sliders = np.array([[-0.5 * WIDTH, position[0]], [0.5 * WIDTH, position[2]]])
    along = (sliders[1] - sliders[0]) / np.linalg.norm(sliders[1] - sliders[0])
    here, there = (kinematics.output_values(mode) - sliders[0] for mode in modes)
    np.testing.assert_allclose(there, 2.0 * (here @ along) * along - here, atol=1e-9)


def test_second_order_model_agrees_with_the_closed_form():
    kinematics, q = biglide()
    position = kinematics.inverse([0.05, 0.2], q)
    _, _, a, b = closed_form(0.05, 0.2, (-1, -1))
    rate, acceleration = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    v, _, output = kinematics.second_order(position, rate, acceleration)
    turn = v[[1, 3]]
    expected = np.linalg.solve(a, -b @ acceleration - LEG * turn**2)  # 002, 2.20 corrected
    np.testing.assert_allclose(output, expected, rtol=1e-9)


def test_direct_model_inverts_the_inverse_model():
    kinematics, q = biglide()
    position = kinematics.inverse([0.08, 0.15], q)
    again = kinematics.direct([position[0], position[2]], q)
    np.testing.assert_allclose(kinematics.output_values(again), [0.08, 0.15], atol=1e-12)


def test_inverse_dynamics_of_the_biglide_follows_the_document():
    """tau = m_f q'' + m_p J' P'' (002, 2.32), by solving for the forces that give an acceleration."""
    kinematics, q = biglide()
    position = kinematics.inverse([0.05, 0.2], q)
    forces = np.array([2.0, -1.0])
    result = forward_dynamics(kinematics.mechanism, position, np.zeros(4), [forces[0], 0, forces[1], 0])
    rails = result.acceleration[[0, 2]]
    jacobian = kinematics.first_order(position).jacobian
    np.testing.assert_allclose(rails + TIP_MASS * jacobian.T @ jacobian @ rails, forces, rtol=1e-9)


def test_type_2_singularity_is_where_the_legs_line_up():
    kinematics, q = biglide()
    mixed = kinematics.inverse([0.1, 0.1], q)
    mixed[:2] = 0.2 - mixed[0], -mixed[1]  # the first slider on the other side of the tip: another working mode
    distances = [kinematics.first_order(kinematics.inverse([x, 0.1], mixed)).type_2 for x in (0.1, 0.05, 0.01, 0.001)]
    assert distances == sorted(distances, reverse=True)
    assert distances[-1] < 0.01


def test_type_1_singularity_bounds_the_reach_and_says_where_the_way_ends():
    kinematics, q = biglide()
    limit = LEG - 0.5 * WIDTH
    with pytest.raises(UnreachableGoalError, match=f"{limit:.4g}"):
        kinematics.inverse([0.5, 0.1], q)
    edge = kinematics.inverse([limit - 1e-6, 0.1], q)
    assert kinematics.first_order(edge).type_1 < 0.01
