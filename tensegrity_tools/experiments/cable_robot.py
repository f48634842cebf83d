"""Suspended cable robot: continuous tensions along a path, and pose errors of point anchors compared with pulleys.

The platform moves along a closed path of positions and rotations. At every point the tensions between floor and ceiling
nearest to a desired level are computed. From these follow, in closed form, the angles of the pulleys: once with the
geometry of the pulleys and the stretch of the cables, and once as if every cable started at a fixed point (where it
leaves its pulley at rest). The model with pulleys then gives the pose at rest for both sets of angles.

In simulation, angles of static poses neglect the acceleration of the platform: the cables stretch under the inertial
load, and the platform oscillates about its path. Angles that include the tensions for the inertial wrench of the path
avoid this, and so does `qp`, which computes the tensions in every period.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from scipy.interpolate import CubicSpline
from scipy.spatial.transform import Rotation, RotationSpline

from tensegrity_control.controller import RobotState
from tensegrity_control.controllers.qp.controller import QPController
from tensegrity_control.inverse_kinematics.mechanism_equilibria import MechanismEquilibriumMap
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.impedance import MovingPosition
from tensegrity_dynamics.mechanisms.body_poses import BodyPoses
from tensegrity_dynamics.mechanisms.mechanism_model import MechanismModel
from tensegrity_dynamics.mechanisms.statics.hanging_body import hanging_position
from tensegrity_dynamics.mechanisms.statics.wrench_feasibility import cable_statics, tension_distribution
from tensegrity_dynamics.numerics.rotations import (
    matrix_from_quaternion,
    matrix_from_vector,
    quaternion_from_matrix,
    rotation_vector,
)
from tensegrity_dynamics.robots.output_frame import pose_error

from ..output import panels, save_picture, table

NAME = "cable_robot"
DESCRIPTION = "tensions of the suspended cable robot along a path, and its pose with pulleys beside point anchors"
QUANTITIES = {"reach": "length", "turn": "angle", "level": "force", "duration": "time"}
MAY_BE_ZERO = ("turn", "duration")
PERIOD = 0.005
"""Control period of `qp` [s]."""
WAYPOINTS = 401
"""Number of waypoints of the path for `qp`."""
CHECKED = 12
"""Number of points of the path at which static poses are computed."""


def run(
    robot: str = "cable_robot", reach: float = 0.5, turn: float = np.radians(12.0), level: float = 20.0,
    points: int = 400, duration: float = 12.0,
) -> dict[str, Any]:  # fmt: skip
    """Run the experiment, see the module docstring.

    Args:
        robot: shipped robot or file whose output is suspended only by cables.
        reach: diameter of the path in x and y [m]. turn: amplitude of the rotations [rad].
        level: desired tension [N]. points: number of points of the path.
        duration: duration of the motion in simulation [s]; 0: no simulation.
    """
    if points < CHECKED:
        raise TensegrityError(f"points is {points}; give {CHECKED} or more.")
    loaded = load_robot(robot)
    model, output = loaded.model_as(MechanismModel), loaded.output
    equilibria = MechanismEquilibriumMap(loaded)
    home = equilibria.home
    shares = np.linspace(0.0, 1.0, points + 1)
    poses = [_pose(home.pose, float(share), reach, turn) for share in shares]
    tensions, exact, straight = [], [], []
    for position, quaternion in poses:
        q = hanging_position(model, output, position, quaternion)
        for _ in range(2):  # the stretch changes the pose that determines the tensions
            own = tension_distribution(cable_statics(loaded, q), desired=level)
            if own is None:
                return {"experiment": NAME, "robot": loaded.name, "feasible": False, "position_m": position}
            q = hanging_position(model, output, position, quaternion, own / _stiffness(model))
        tensions.append(own)
        exact.append(_angles(loaded, model, q))
        straight.append(_point_anchors(loaded, model, home.q, (position, quaternion), own))
    values = np.array(tensions)
    finer = np.max(np.abs(np.diff(values, axis=0))), np.max(np.abs(np.diff(values[::2], axis=0)))
    picked = np.linspace(0, points, CHECKED, endpoint=False).astype(int)
    errors = {"pulleys": [], "point anchors": []}  # type: dict[str, list[Any]]
    last = dict.fromkeys(errors, home)
    for index in picked:
        for what, angles in (("pulleys", exact), ("point anchors", straight)):
            last[what] = equilibria.solve(angles[index], last[what])  # starts from the previous pose
            errors[what].append(pose_error(poses[index], last[what].pose))
    result: dict[str, Any] = {
        "experiment": NAME, "robot": loaded.name, "feasible": True, "level_N": level, "points": points,
        "share": shares, "tensions_N": values, "cables": list(cable_statics(loaded, home.q).cables),
        "lowest_tension_N": float(values.min()), "highest_tension_N": float(values.max()),
        "largest_jump_N": float(finer[0]), "largest_jump_with_half_the_points_N": float(finer[1]),
        "errors": {what: np.array(rows) for what, rows in errors.items()}, "checked": shares[picked],
        "largest": {
            what: {"position_m": float(np.max(np.linalg.norm(np.array(rows)[:, :3], axis=1))),
                   "angle_rad": float(np.max(np.linalg.norm(np.array(rows)[:, 3:], axis=1)))}
            for what, rows in errors.items()
        },
    }  # fmt: skip
    if duration > 0.0:
        moving = []
        for (position, quaternion), wrench, own in zip(
            poses,
            _inertial_wrenches(loaded, home.pose, shares, reach, turn, duration),
            tensions,
            strict=True,
        ):
            q = hanging_position(model, output, position, quaternion, own / _stiffness(model))
            carried = tension_distribution(cable_statics(loaded, q), wrench, level)
            stretched = (own if carried is None else carried) / _stiffness(model)
            moving.append(_angles(loaded, model, hanging_position(model, output, position, quaternion, stretched)))
        result["driven"] = {
            "at rest everywhere": _drive(loaded, model, np.array(exact), poses, duration),
            "with inertia": _drive(loaded, model, np.array(moving), poses, duration),
            "qp": _control(loaded, poses, duration),
        }
    return result


def _inertial_wrenches(loaded: Any, home: Any, shares: Any, reach: float, turn: float, duration: float) -> list[Any]:
    """(6,) inertial wrench of the platform on the output at every pose, in world axes [N, N m]."""
    output = loaded.output
    body = next(each for each in loaded.mechanism.bodies if each.name == output.body)
    step, result = 1e-3, []
    for share in shares:
        at = [_pose(home, float(np.clip(share + k * step, 0.0, 1.0)), reach, turn) for k in (-1, 0, 1)]
        per = (step * duration) ** 2
        (before, here, after) = [matrix_from_quaternion(q) for _, q in at]
        ahead, behind = rotation_vector(after @ here.T), rotation_vector(here @ before.T)
        omega, alpha = (ahead + behind) / (2.0 * step * duration), (ahead - behind) / per
        arm = here @ (body.centre - output.frame.origin)  # from the output to the centre of mass
        a = (at[2][0] - 2.0 * at[1][0] + at[0][0]) / per + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
        inertia = here @ body.inertia @ here.T
        moment = inertia @ alpha + np.cross(omega, inertia @ omega)
        result.append(-np.concatenate((body.mass * a, moment + np.cross(arm, body.mass * a))))
    return result


def _control(loaded: Any, poses: Any, duration: float) -> dict[str, float]:
    """Follow the same poses with `qp`; returns the errors during the motion and one second after its end."""
    control = QPController(loaded, period=PERIOD)
    steps = max(1, int(np.ceil(PERIOD / min(Simulation(loaded).time_step, 1e-3) - 1e-9)))
    simulation, body_poses = Simulation(loaded, PERIOD / steps), BodyPoses(loaded.model_as(MechanismModel))
    grid = np.linspace(0.0, duration, len(poses))
    path = CubicSpline(grid, [position for position, _ in poses], bc_type="clamped")
    turns = RotationSpline(grid, Rotation.from_quat(np.roll([quaternion for _, quaternion in poses], -1, axis=1)))

    def look() -> RobotState:
        return RobotState(q=simulation.state.q.copy(), v=simulation.state.v.copy())

    control.reset(0.0, look())
    picked = np.linspace(0, len(poses) - 1, min(len(poses), WAYPOINTS)).astype(int)[1:]
    control.follow(0.0, [(float(grid[k]), *poses[k]) for k in picked], "smooth")
    during_motion = np.zeros(2)
    for k in range(round((duration + 1.0) / PERIOD)):
        command = control.command(k * PERIOD, look())
        simulation.command(command.mode, command.set_points(), period=PERIOD)
        simulation.advance(duration=PERIOD)
        time = min((k + 1) * PERIOD, duration)
        pose = path(time), np.roll(turns(time).as_quat(), 1)
        error = pose_error(pose, body_poses.update(simulation.state.q).output(loaded.output)[0])
        left = np.array([np.linalg.norm(error[:3]), np.linalg.norm(error[3:])])
        if (k + 1) * PERIOD <= duration:
            during_motion = np.maximum(during_motion, left)
    return {
        "position_during_motion_m": float(during_motion[0]), "angle_during_motion_rad": float(during_motion[1]),
        "position_at_rest_m": float(left[0]), "angle_at_rest_rad": float(left[1]),
    }  # fmt: skip


def _pose(home: Any, share: float, reach: float, turn: float) -> tuple[Any, Any]:
    """Pose at a fraction of the closed path, which starts and ends smoothly at rest."""
    s = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    angle = 2.0 * np.pi * s
    away = np.array([1.0 - np.cos(angle), np.sin(angle), 0.4 * (1.0 - np.cos(2.0 * angle))])
    turned = turn * np.array([np.sin(angle), 0.5 * np.sin(2.0 * angle), 1.0 - np.cos(angle)])
    rotation = matrix_from_vector(turned) @ matrix_from_quaternion(home[1])
    return home[0] + 0.5 * reach * away, quaternion_from_matrix(rotation)


def _stiffness(model: MechanismModel) -> Any:
    """(c,) axial stiffness E A of the cables [N]."""
    return np.array([cable.young * cable.area for cable in model.mechanism.cables])


def _angles(loaded: Any, model: MechanismModel, q: Any) -> Any:
    """(a,) angles of the actuators at q [rad]."""
    return np.array([q[model.mechanism.positions_of(model.joint_of(each.drives)).start] for each in loaded.actuators])


def _point_anchors(loaded: Any, model: MechanismModel, rest: Any, pose: Any, tensions: Any) -> Any:
    """(a,) angles of the actuators if each cable started at the point where it leaves its pulley at `rest` (nq,)
    [rad]."""
    body_poses, turned = BodyPoses(model).update(rest), matrix_from_quaternion(pose[1])
    body = model.mechanism.body_index[loaded.output.body]
    first, first_turned = body_poses.positions[body].copy(), body_poses.rotations[body].copy()
    angles, stiffness = _angles(loaded, model, rest), _stiffness(model)
    strains = body_poses.strains().copy()
    for k, entry in enumerate(model.entries):
        anchor = first + first_turned @ entry.anchor
        q = rest[model.mechanism.positions_of(entry.joints[2])]
        taut = entry.radius * q[0] * (1.0 + q[1])
        cable = model.mechanism.body_index[f"{entry.name}-cable"]
        along = body_poses.rotations[cable][:, 0]  # from the point where it leaves the pulley to its end
        point = anchor - taut * along
        offset = turned @ (entry.anchor - loaded.output.frame.origin)
        length = float(np.linalg.norm(pose[0] + offset - point))
        unwound = length / (1.0 + tensions[k] / stiffness[k]) - taut / (1.0 + strains[k])
        angles[k] -= unwound / entry.radius
    return angles


def _drive(loaded: Any, model: MechanismModel, angles: Any, poses: Any, duration: float) -> dict[str, float]:
    """Follow the angles with the servos of the pulleys in simulation; returns errors during and 1 s after the
    motion."""
    simulation, body_poses = Simulation(loaded), BodyPoses(model)
    names = [each.name for each in loaded.actuators]
    step = duration / (len(angles) - 1)
    curve = CubicSpline(step * np.arange(len(angles)), angles, bc_type="clamped")  # linear interpolation would deviate
    parts = max(1, int(np.ceil(step / PERIOD - 1e-9)))
    during_motion = np.zeros(2)
    for k, pose in enumerate(poses[1:]):
        for part in range(parts):
            time = (k + part / parts) * step
            moving = zip(names, curve(time).tolist(), curve(time, 1).tolist(), strict=True)
            simulation.advance(duration=step / parts, position={n: MovingPosition(*x) for n, *x in moving})
        error = pose_error(pose, body_poses.update(simulation.state.q).output(loaded.output)[0])
        during_motion = np.maximum(during_motion, [np.linalg.norm(error[:3]), np.linalg.norm(error[3:])])
    simulation.advance(duration=1.0, position=dict(zip(names, angles[-1].tolist(), strict=True)))
    error = pose_error(poses[-1], body_poses.update(simulation.state.q).output(loaded.output)[0])
    return {
        "position_during_motion_m": float(during_motion[0]), "angle_during_motion_rad": float(during_motion[1]),
        "position_at_rest_m": float(np.linalg.norm(error[:3])), "angle_at_rest_rad": float(np.linalg.norm(error[3:])),
    }  # fmt: skip


def render(result: dict[str, Any], console: Console) -> None:
    """Print the results as a table."""
    if not result["feasible"]:
        at = ", ".join(f"{x:.3f}" for x in result["position_m"])
        console.print(f"{result['robot']} cannot hold itself at ({at}) m within its tensions; take a smaller reach.")
        return
    console.print(
        f"{result['robot']}: {result['points']} poses round a path, tensions nearest to {result['level_N']:g} N: "
        f"{result['lowest_tension_N']:.3g} to {result['highest_tension_N']:.3g} N, largest jump between two poses "
        f"{result['largest_jump_N']:.3g} N ({result['largest_jump_with_half_the_points_N']:.3g} N with half the poses; "
        "of continuous tensions it halves with the distance).\n",
        highlight=False,
    )
    rows = [
        (what, f"{row['position_m']:.2e}", f"{row['angle_rad']:.2e}") for what, row in result["largest"].items()
    ] + [
        (f"pulleys, simulated, {what}, {when}", f"{own[f'position_{key}_m']:.2e}", f"{own[f'angle_{key}_rad']:.2e}")
        for what, own in result.get("driven", {}).items()
        for when, key in (("on the path", "during_motion"), ("at the end", "at_rest"))
    ]
    heads = ("pulley angles from", "largest error m", "largest error rad")
    console.print(table("where the platform comes to rest", heads, rows, right=(1, 2)))


def draw(result: dict[str, Any], path: Path) -> None:
    """Plot the tensions along the path, and the errors with pulleys and with point anchors."""
    if not result["feasible"]:
        return
    figure, axes = panels(1, 2, figsize=(11, 4))
    for name, column in zip(result["cables"], np.asarray(result["tensions_N"]).T, strict=True):
        axes[0].plot(result["share"], column, label=name)
    axes[0].set_xlabel("share of the path")
    axes[0].set_ylabel("tension [N]")
    axes[0].legend(fontsize=8, ncols=2)
    for what, rows in result["errors"].items():
        for part, style, unit in ((slice(0, 3), "o-", "m"), (slice(3, 6), "x--", "rad")):
            errors = np.linalg.norm(np.asarray(rows)[:, part], axis=1)
            errors[errors == 0.0] = np.nan  # not on a logarithmic axis
            axes[1].semilogy(result["checked"], errors, style, label=f"{what}, {unit}")
    axes[0].set_title("tensions", fontsize=10)
    axes[1].set_xlabel("share of the path")
    axes[1].set_ylabel("error [m], [rad]")
    axes[1].set_title("error of the pose at rest", fontsize=10)
    axes[1].legend(fontsize=8)
    for each in axes:
        each.grid(alpha=0.3)
    save_picture(figure, path, dpi=120)
