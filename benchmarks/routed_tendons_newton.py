"""Cables over points beside newton's routed tendons: distance from a fine reference, and processor time.

    python benchmarks/routed_tendons_newton.py --newton PYTHON      where PYTHON is an interpreter with newton installed

newton's own examples `tendon_pulley` (a body on a string) and `tendon_pinhole` (two bodies on a cable through a hole)
as it ships them, at its step and at a tenth of it, and the same bodies, masses, stiffness and damping as robot files
here. The reference is a third formulation, planar bodies on a spring that only pulls, integrated by DOP853 within
1e-13. The error is the largest distance of any body's origin from it, at 60 frames a second, before a body meets the
hole. Without --newton its part is left out. Its compilation takes minutes the first time and counts for neither side.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

FRAMES = 60  # a second
RADIUS = 1e-3  # m, of the cable; its modulus makes the stiffness that newton has

THEIRS = """
import importlib, json, sys, time
import warp
warp.config.quiet = True
warp.set_device("cpu")
name, finer, frames = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def make():
    example = importlib.import_module("newton.examples.tendon.example_tendon_" + name).Example(None, None)
    example.sim_substeps *= finer
    example.sim_dt /= finer
    return example
make().step()
example, poses = make(), []
begun = time.process_time()
for _ in range(frames):
    example.step()
    poses.append(example.state_0.body_q.numpy()[:, :3].tolist())
used = time.process_time() - begun
masses = example.model.body_mass.numpy().tolist()
print("RESULT" + json.dumps({"poses": poses, "time": used, "step": example.sim_dt, "masses": masses}))
"""


@dataclass(frozen=True)
class Body:
    """A planar body: mass kg, inertia kg m^2 about y, start (x, z) m, height of the cable's end above its centre m."""

    name: str
    mass: float
    inertia: float
    start: tuple[float, float]
    end: float


@dataclass(frozen=True)
class Case:
    """newton's example, its bodies (in newton's order after the first), the point that the cable passes or ends on.

    stiffness N/m and damping N s/m are those of the whole cable: its pieces are in series.
    """

    name: str
    bodies: tuple[Body, ...]
    point: tuple[float, float]
    stiffness: float
    damping: float
    duration: float

    @property
    def length(self) -> float:
        """Rest length m."""
        return sum(float(np.hypot(b.start[0] - self.point[0], b.start[1] + b.end - self.point[1])) for b in self.bodies)


CASES = (
    Case("pulley", (Body("weight", 10.0, 8.0 * 0.08 / 12.0, (0.5, 1.5), 0.1),), (0.0, 3.0), 1e5, 0.1, 1.0),
    Case(
        "pinhole",
        (
            Body("left", 2.728, 1.728 * 2.0 * 0.12**2 / 12.0, (-0.3, 2.0), 0.06),
            Body("right", 11.0, 8.0 * 0.08 / 12.0, (0.3, 2.0), 0.1),
        ),
        (0.0, 3.5), 5e5, 0.05, 0.5,
    ),
)  # fmt: skip


def reference(case: Case, tolerance: float, longest: float = 1e-3) -> np.ndarray:
    """(frames, bodies, 2) m: x and z of the centres."""

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        states, result = y.reshape(-1, 6), np.zeros((len(case.bodies), 6))
        length = speed = 0.0
        pulls = []
        for body, (x, z, turn, vx, vz, spin) in zip(case.bodies, states, strict=True):
            arm = body.end * np.array([np.sin(turn), np.cos(turn)])
            way = np.array(case.point) - np.array([x, z]) - arm
            far = np.hypot(*way)
            length += far
            moving = np.array([vx, vz]) + spin * np.array([arm[1], -arm[0]])
            speed -= way @ moving / far
            pulls.append((arm, way / far))
        strain = length - case.length
        tension = max(0.0, case.stiffness * strain + case.damping * speed) if strain > 0.0 else 0.0
        for row, body, (arm, toward) in zip(result, case.bodies, pulls, strict=True):
            force = tension * toward
            row[3:5] = force / body.mass + [0.0, -9.81]
            row[5] = (arm[1] * force[0] - arm[0] * force[1]) / body.inertia
        result[:, :3] = states[:, 3:]
        return result.ravel()

    start = np.concatenate([[*body.start, 0.0, 0.0, 0.0, 0.0] for body in case.bodies])
    times = np.arange(1, round(FRAMES * case.duration) + 1) / FRAMES
    done = solve_ivp(
        rate, (0.0, times[-1]), start, "DOP853", times, rtol=tolerance, atol=0.1 * tolerance, max_step=longest
    )
    return done.y.T.reshape(len(times), -1, 6)[:, :, :2]


def robot_text(case: Case) -> str:
    """The robot file of a case."""
    area = np.pi * RADIUS**2
    young, damping = case.stiffness * case.length / area, case.damping * case.length / area
    bodies = [f"  {b.name}: {{mass: {b.mass}, inertia: [{b.inertia}, {b.inertia}, {b.inertia}]}}" for b in case.bodies]
    joints = [
        f"  - {{name: {b.name}Jt, kind: floating, parent: world, body: {b.name},"
        f" start: [{b.start[0]}, 0, {b.start[1]}]}}"
        for b in case.bodies
    ]
    ends = [f"{{body: {b.name}, at: [0, 0, {b.end}]}}" for b in case.bodies]
    ends.insert(1, f"{{body: world, at: [{case.point[0]}, 0, {case.point[1]}]}}")
    return "\n".join(
        [
            "kind: mechanism", f"name: {case.name}", "gravity: [0, 0, -9.81]", "bodies:", *bodies, "joints:", *joints,
            "routed_cables:",
            f"  - {{name: cable, young: {young!r}, damping: {damping!r}, cable_radius: {RADIUS}, strain: 0,"
            f" route: [{', '.join(ends)}]}}",
        ]
    )  # fmt: skip


def ours(case: Case, step: float) -> tuple[np.ndarray, float]:
    """(frames, bodies, 2) m, and processor seconds per simulated second, after compilation."""
    from tensegrity_dynamics import Simulation, parse_robot
    from tensegrity_dynamics.mechanisms.body_poses import BodyPoses

    robot = parse_robot(robot_text(case), case.name)
    poses, index = BodyPoses(robot.model), robot.mechanism.body_index
    rows = [index[body.name] for body in case.bodies]
    Simulation(robot, step, "rk4", start=robot.model.start).advance(duration=1.0 / FRAMES)
    simulation, places, used = Simulation(robot, step, "rk4", start=robot.model.start), [], 0.0
    for _ in range(round(FRAMES * case.duration)):
        begun = time.process_time()
        simulation.advance(duration=1.0 / FRAMES)
        used += time.process_time() - begun
        places.append(poses.update(simulation.state.q).positions[rows][:, [0, 2]].copy())
    return np.array(places), used / case.duration


def theirs(case: Case, python: str, finer: int) -> tuple[np.ndarray, float, float]:
    """(frames, bodies, 2) m, processor seconds per simulated second, and its step [s]."""
    frames = round(FRAMES * case.duration)
    done = subprocess.run([python, "-c", THEIRS, case.name, str(finer), str(frames)], capture_output=True, text=True)
    line = next((each for each in done.stdout.splitlines() if each.startswith("RESULT")), None)
    if line is None:
        raise SystemExit(f"newton did not run: {done.stderr.strip()[-500:]}")
    found = json.loads(line[len("RESULT") :])
    np.testing.assert_allclose(found["masses"][1:], [body.mass for body in case.bodies], rtol=1e-6)
    return np.array(found["poses"])[:, 1:, ::2], found["time"] / case.duration, found["step"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--newton", metavar="PYTHON", help="interpreter with newton; sys.executable: this one")
    chosen = parser.parse_args()
    python = sys.executable if chosen.newton == "sys.executable" else chosen.newton
    print(f"{'case':10}{'who':>10}{'step [s]':>12}{'error [m]':>12}{'CPU s per s':>13}")
    for case in CASES:
        exact = reference(case, 1e-13)
        spread = np.abs(exact - reference(case, 1e-11, 3e-3)).max()
        print(f"{case.name:10}{'reference':>10}{'':12}{spread:12.1e}")

        def show(who: str, step: float, places: np.ndarray, used: float, exact=exact, name=case.name) -> None:
            error = np.linalg.norm(places - exact, axis=2).max()
            print(f"{name:10}{who:>10}{step:12.2e}{error:12.1e}{used:13.4f}", flush=True)

        for step in (1.0 / 960.0, 1.0 / 9600.0, 1.0 / 48000.0):
            show("ours", step, *ours(case, step))
        for finer in (1, 10) if python else ():
            places, used, step = theirs(case, python, finer)
            show("newton", step, places, used)


if __name__ == "__main__":
    main()
