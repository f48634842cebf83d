"""Outputs that springs carry under `qp`: where they settle is what is controlled, gears get what they take."""

import numpy as np
import pytest
import yaml

from tensegrity_control import RobotState, make_controller
from tensegrity_control.controllers.qp.settled_output import SettledOutput
from tensegrity_dynamics import Simulation, TensegrityError, parse_robot
from tensegrity_dynamics.mechanisms.dynamics.tight_cables import TightCables
from tensegrity_dynamics.mechanisms.statics.equilibrium_solver import MechanismEquilibriumSolver
from tensegrity_tools.runtime.delayed_loop import DelayedLoop

PERIOD = 0.005


def spring_finger(seed, efficiency=1.0, *, young=2e9, gravity=-9.81):
    """Two to four hinges on springs of drawn stiffness, bent by one tendon."""
    draw = np.random.default_rng(seed)
    joints, bodies, above = [], {"drum": {"mass": 0.004, "inertia": [2e-7] * 3}}, "world"
    route = [{"joint": "winding", "radius": 0.008, "side": 1}, {"body": "world", "at": [-0.005, 0.0, 0.006]}]
    lengths = draw.uniform(0.02, 0.05, draw.integers(2, 5)).tolist()
    for k, length in enumerate(lengths):
        box = {"kind": "box", "size": [0.009, 0.009, length], "mass": float(draw.uniform(0.005, 0.015))}
        bodies[f"link{k}"] = {"shapes": [{**box, "frame": {"at": [0.0, 0.0, -0.5 * length]}}]}
        joint = {"name": f"hinge{k}", "kind": "revolute", "parent": above, "body": f"link{k}", "axis": [0, 1, 0]}
        spring = {"stiffness": float(draw.uniform(0.02, 0.05)), "damping": float(draw.uniform(1e-4, 4e-4))}
        joint |= {"start": [float(np.radians(draw.uniform(12.0, 30.0)))], "resistance": spring}
        joints.append(joint | ({"frame": {"at": [0.0, 0.0, -lengths[k - 1]]}} if k else {}))
        above = f"link{k}"
        route += [{"body": above, "at": [-0.005, 0.0, -part * length]} for part in (0.3, 0.75)]
    winding = {"name": "winding", "kind": "revolute", "parent": "world", "body": "drum", "axis": [0, 1, 0]}
    joints.append(winding | {"frame": {"at": [-0.013, 0.0, 0.04]}, "resistance": {"damping": 1e-4}})
    tendon = {"name": "tendon", "young": young, "cable_radius": 2e-4, "damping": 1e6, "tension": 2.0, "route": route}
    motor = {"name": "winch", "drives": "winding", "position": [-6, 6], "rate": 10, "effort": 0.3}
    tip = {"name": "tip", "body": above, "frame": {"at": [0, 0, -lengths[-1]]}, "controlled": ["z"]}
    file = {
        "kind": "mechanism", "name": f"finger_{seed}", "bodies": bodies, "joints": joints, "routed_cables": [tendon],
        "gravity": [0, 0, gravity],
        "actuators": [motor | {"gear": 200, "efficiency": efficiency, "rotor_inertia": 1e-9}], "outputs": [tip],
    }  # fmt: skip
    return parse_robot(yaml.safe_dump(file), "test")


def at_rest(robot):
    """A simulation of the robot from its shape at rest."""
    joints = robot.model.driven_joints(robot.actuators)
    shape = MechanismEquilibriumSolver(robot.mechanism, joints).solve(robot.model.start)
    return Simulation(robot, 1e-3, integrator="implicit", start=shape)


def lead(robot, move, seconds=1.8):
    """Error [m] so long after a goal."""
    simulation, control = at_rest(robot), make_controller("qp", robot, period=PERIOD)
    control.reset(0.0, RobotState.of(simulation))
    goal = RobotState.of(simulation).pose[0] + np.array([0.0, 0.0, move])
    control.set_goal(0.0, goal)
    for k in range(round(seconds / PERIOD)):
        command = control.command(k * PERIOD, RobotState.of(simulation))
        simulation.command(command.mode, command.set_points(), period=PERIOD)
        simulation.advance(duration=PERIOD)
    return abs(RobotState.of(simulation).pose[0][2] - goal[2])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("seed", "efficiency"), [pytest.param(3, 1.0, marks=pytest.mark.long), (5, 0.7)])
def test_finger_of_one_tendon_against_springs_reaches_what_its_statics_reach(seed, efficiency):
    assert lead(spring_finger(seed, efficiency), 0.006) < 2e-4


def test_gain_is_the_slope_of_shapes_at_rest_by_the_winch():
    robot = spring_finger(11, young=2e11)
    solver = MechanismEquilibriumSolver(robot.mechanism, robot.model.driven_joints(robot.actuators))
    shapes = [solver.solve(robot.model.start, {"winding": angle}) for angle in (-1e-4, 0.0, 1e-4)]
    equations = TightCables(robot)
    settled = SettledOutput(equations)
    settled.begin(shapes[1].q, np.array(shapes[1].routes["tendon"].tensions))
    heights = [equations.update(each.q, np.zeros(equations.mechanism.velocity_count)).position[2] for each in shapes]
    assert settled.gain[0, 0] == pytest.approx((heights[2] - heights[0]) / 2e-4, rel=5e-3)
    assert settled.ahead[0] == pytest.approx(0.0, abs=1e-9)


def test_what_the_output_lacks_to_its_shape_at_rest_is_foreseen():
    robot = spring_finger(11)
    solver = MechanismEquilibriumSolver(robot.mechanism, robot.model.driven_joints(robot.actuators))
    shape = solver.solve(robot.model.start)
    equations = TightCables(robot)
    settled = SettledOutput(equations)
    settled.begin(shape.q, np.array(shape.routes["tendon"].tensions))
    free = settled.free_directions[:, 0]
    still = np.zeros(equations.mechanism.velocity_count)
    rest = equations.update(shape.q, still).position[2]
    beside = equations.moved(shape.q, free, 1e-3)
    settled.look(beside, settled.effort)
    off = equations.update(beside, still).position[2] - rest
    assert abs(off) > 1e-6
    assert settled.ahead[0] == pytest.approx(-off, rel=0.05)


def test_output_on_hinges_that_fall_over_is_refused_by_name():
    robot = spring_finger(3, gravity=60.0)
    with pytest.raises(TensegrityError, match=r"hinge.*neither an actuator nor a spring"):
        make_controller("qp", robot, period=PERIOD).reset(0.0, RobotState.of(Simulation(robot, 1e-4, start="file")))


FLOATING_STRUT = """
kind: mechanism
name: strut
gravity: [0, 0, -9.81]
density: 1500
bodies:
  strut: {shapes: [{kind: cylinder, size: [0.015, 0.5], frame: {at: [0, 0, 0]}}]}
joints:
  - {name: free, kind: floating, parent: world, body: strut, start: [0, 0, 0.6, TILT, 0, 0]}
defaults:
  cables: {body: world, block_axis: [0, 0, 1], pulley_radius: 0.025, young: "1 GPa", damping: "3 MPa s", length: 2.5,
    cable_radius: "0.8 mm", block: [{kind: cube, size: [0.03]}], pulley: [{kind: cylinder, size: [0.025, 0.01]}]}
  actuators: {position: [-25, 25], rate: "20 rad/s", effort: "5 N m", minimum_tension: 4}
repeat:
  count: 4
  about: z
  cables:
    - {name: up$, at: [0.5, 0.1, 1.2], pulley_axis: [0, -1, 0], strain: 0.015, anchor: {body: strut, at: [0, 0, 0.25]}}
    - {name: down$, at: [0.5, -0.1, 0], pulley_axis: [0, 1, 0], strain: 0.012, anchor: {body: strut, at: [0, 0, -0.25]}}
  actuators: [{drives: up$}, {drives: down$}]
outputs: [{name: middle, body: strut, controlled: [x, y, z, rx, ry]}]
"""


@pytest.mark.parametrize("tilt", [0.0, 0.035])
def test_a_floating_strut_starts_upright_and_tilted_although_nothing_holds_its_spin(tilt):
    robot = parse_robot(FLOATING_STRUT.replace("TILT", str(tilt)), "strut.yaml")
    loop = DelayedLoop(robot, make_controller("qp", robot, period=PERIOD), PERIOD)
    position, turn = loop.simulation.observe().pose
    loop.run(loop.control.set_goal(loop.stamp, position + [0.03, 0.0, 0.02], turn).duration + 0.5)
    assert np.linalg.norm(loop.simulation.observe().pose[0] - position - [0.03, 0.0, 0.02]) < 1e-4
