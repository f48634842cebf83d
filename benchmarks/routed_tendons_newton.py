"""Cables over points beside newton's routed tendons: distance from a fine reference, and processor time.

    python benchmarks/routed_tendons_newton.py --newton PYTHON      where PYTHON is an interpreter with newton installed

newton's own examples `tendon_pulley` (a body on a string), `tendon_pinhole` (two bodies on a cable through a hole),
`tendon_capstan_friction` (two weights over a heavy pulley that the cable slides over, or turns), `tendon_3d_routing`
(over, under and over three pulleys whose axes are square to each other) and `tendon_mujoco_switch` (a pulley that is
touched only sometimes, on bodies that move as prescribed), at its step and at a tenth of it, and the same bodies,
masses, stiffness and damping as robot files here.

The bodies, masses, pulleys and points are newton's as it ships them. What differs, since it cannot be said here:

* newton holds every piece of a cable by a spring of its own stiffness, whatever its length; here one cable has one
  E A. Both are compared with a reference of their own law, so that no error is the other's choice.
* In the routing example pieces leave the planes of their pulleys, aslant by 6 degrees, which is refused here by name;
  here they pass a ring where both planes meet, at half the height. The pulleys do not move, so that the length of these
  pieces stays as it is, and what the pulleys give the cable is the same; newton's torque on the outer pulleys is that
  of the aslant pull, which does not balance the energy of the cable.
* All three machines of the capstan example are compared; they are one run, of whose time each has a third. That of
  friction 0.4 (`grips`) sticks and slips in turns as its weights bounce, with the ratio e^(friction x wrap) where it
  slips; newton turns the pulley by a share of the cable's displacement even while the cable does not slip, as no law of
  friction says, and its distance from the law of Euler and Eytelwein has that in it.
* Wheels on which newton's friction is 10 or 1000 never slip here; e^(10 x half a turn) is never reached.
* Of the switch example, whose bodies have no mass, the error is that of the length of the cable.

The reference is a third formulation, planar bodies on a spring that only pulls, integrated by DOP853 within
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
from functools import lru_cache
from itertools import pairwise

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
module = importlib.import_module("newton.examples.tendon.example_tendon_" + name)
def make():
    example = module.Example(None, None)
    example.sim_substeps *= finer
    example.sim_dt /= finer
    return example
make().step()
example, poses = make(), []
lengths = []
begun = time.process_time()
for _ in range(frames):
    example.step()
    poses.append(example.state_0.body_q.numpy()[:, :3].tolist())
    if name == "mujoco_switch":
        from newton.examples.tendon.utils import get_tendon_total_lengths
        found = get_tendon_total_lengths(example.solver, example.model, example.state_0)
        lengths.append(float(found[0]))
used = time.process_time() - begun
masses = example.model.body_mass.numpy().tolist()
found = {"poses": poses, "time": used, "step": example.sim_dt, "masses": masses, "lengths": lengths}
print("RESULT" + json.dumps(found))
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
            offset = np.array(case.point) - np.array([x, z]) - arm
            far = np.hypot(*offset)
            length += far
            moving = np.array([vx, vz]) + spin * np.array([arm[1], -arm[0]])
            speed -= offset @ moving / far
            pulls.append((arm, offset / far))
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
    simulation, positions, used = Simulation(robot, step, "rk4", start=robot.model.start), [], 0.0
    for _ in range(round(FRAMES * case.duration)):
        begun = time.process_time()
        simulation.advance(duration=1.0 / FRAMES)
        used += time.process_time() - begun
        positions.append(poses.update(simulation.state.q).positions[rows][:, [0, 2]].copy())
    return np.array(positions), used / case.duration


@lru_cache
def run_theirs(python: str, name: str, finer: int, frames: int) -> dict:
    """What newton's example of a name gives, as it ships but for its step, `finer` times shorter."""
    done = subprocess.run([python, "-c", THEIRS, name, str(finer), str(frames)], capture_output=True, text=True)
    line = next((each for each in done.stdout.splitlines() if each.startswith("RESULT")), None)
    if line is None:
        raise SystemExit(f"newton did not run: {done.stderr.strip()[-500:]}")
    return json.loads(line[len("RESULT") :])


def theirs(case: Case, python: str, finer: int) -> tuple[np.ndarray, float, float]:
    """(frames, bodies, 2) m, processor seconds per simulated second, and its step [s]."""
    found = run_theirs(python, case.name, finer, round(FRAMES * case.duration))
    np.testing.assert_allclose(found["masses"][1:], [body.mass for body in case.bodies], rtol=1e-6)
    return np.array(found["poses"])[:, 1:, ::2], found["time"] / case.duration, found["step"]


# -- two weights over pulleys that turn -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Wheel:
    """A pulley: centre (3,) m, axis, side, radius m, inertia kg m^2."""

    centre: tuple[float, float, float]
    axis: str
    side: int
    radius: float
    inertia: float


@dataclass(frozen=True)
class Machine:
    """Weights that rise and sink on a cable over wheels; stiffness N/m and damping N s/m of every piece.

    holds: the wheels turn with the cable, by a friction of this coefficient (without end by default). bodies: newton's
    numbers of both weights. machines: in newton's example, which all take their share of its time.
    """

    name: str
    example: str
    masses: tuple[float, float]
    starts: tuple[tuple[float, float, float], tuple[float, float, float]]
    ends: tuple[float, float]
    wheels: tuple[Wheel, ...]
    holds: bool
    stiffness: float
    damping: float
    duration: float
    bodies: tuple[int, int]
    friction: float = np.inf
    machines: int = 1

    @property
    def outer(self) -> tuple[tuple[float, float, Wheel], tuple[float, float, Wheel]]:
        """For both weights: how far it hangs from its wheel's axis, height of its cable's end, its wheel."""
        pairs = zip(self.starts, self.ends, (self.wheels[0], self.wheels[-1]), strict=True)
        return tuple((abs(at[0] - wheel.centre[0]), at[2] + end, wheel) for at, end, wheel in pairs)  # type: ignore[return-value]


def _cylinder(radius: float, half: float) -> float:
    """kg m^2 of a cylinder of water about its axis."""
    return 0.5 * 1000.0 * np.pi * radius**4 * 2.0 * half


HEAVY = (1.0 + 1000.0 * 0.12**3, 1.2 + 1000.0 * 0.18**3)
ATWOOD = ((-0.7, 0.0, 2.0), (0.7, 0.0, 2.0))
TURNED = (
    Wheel((-0.32, 0.32, 3.55), "0, 1, 0", 1, 0.32, _cylinder(0.32, 0.06)),
    Wheel((0.0, 0.0, 2.25), "1, 0, 0", -1, 0.18, _cylinder(0.18, 0.24)),
    Wheel((0.32, -0.32, 3.55), "0, 1, 0", 1, 0.32, _cylinder(0.32, 0.06)),
)
BIG = (Wheel((0.0, 0.0, 4.1), "0, 1, 0", 1, 0.22, 0.9),)
MACHINES = (
    Machine("slides", "capstan_friction", HEAVY, ATWOOD, (0.06, 0.06), BIG, False, 1e5, 5.0, 0.6, (1, 2), machines=3),
    Machine("grips", "capstan_friction", HEAVY, ATWOOD, (0.06, 0.06), BIG, True, 1e5, 5.0, 0.6, (4, 5), 0.4, 3),
    Machine("turns", "capstan_friction", HEAVY, ATWOOD, (0.06, 0.06), BIG, True, 1e5, 5.0, 0.6, (7, 8), machines=3),
    Machine(
        "3d", "3d_routing", (1.5 + 4000.0 / 3.0 * np.pi * 0.1**3, 3.5 + 1000.0 * 0.24**3),
        ((-0.64, 0.32, 1.55), (0.64, -0.32, 1.55)), (0.1, 0.12), TURNED, True, 1e5, 0.1, 1.0, (3, 4),
    ),
)  # fmt: skip


def piece(away: float, height: float, wheel: Wheel) -> tuple[float, float]:
    """Length [m] from a weight to the top of its wheel, and its slope by the height of the weight."""
    below = wheel.centre[2] - height
    far = np.hypot(away, below)
    straight = np.sqrt(max(far**2 - wheel.radius**2, 0.0))
    beta = np.pi - np.arctan2(away, below) - np.arccos(wheel.radius / far)
    return straight + wheel.radius * beta, -(below + wheel.radius * np.cos(beta)) / straight


def spans(machine: Machine) -> np.ndarray:
    """(p,) m of all pieces at the start, from top (or bottom) of wheel to that of the next one."""
    first, last = (piece(*each)[0] for each in machine.outer)
    inner = []
    for one, other in pairwise(machine.wheels):
        length = 0.0
        for wheel in (one, other):
            x, y, z = np.array(ring(one, other)) - wheel.centre
            length += piece(float(np.hypot(x, y)), wheel.centre[2] - abs(z), wheel)[0]
        inner.append(length)
    return np.array([first, *inner, last])


def ring(one: Wheel, other: Wheel) -> tuple[float, float, float]:
    """m, where the cable passes from the plane of one wheel to that of the next, with axes square to each other."""
    x, y = (next(w.centre[n] for w in (one, other) if w.axis == axis) for n, axis in enumerate(("1, 0, 0", "0, 1, 0")))
    return x, y, 0.5 * (one.centre[2] + other.centre[2])


def machine_reference(machine: Machine, tolerance: float, springs: bool) -> np.ndarray:
    """(frames, 2) m, heights of both weights; pieces as springs, or of one cable of one E A."""
    rest, wheels = spans(machine), machine.wheels
    size = rest.mean()  # E A = stiffness x this

    def pulls(stretch: np.ndarray, rate: np.ndarray, own: np.ndarray, k: float, c: float) -> tuple[np.ndarray, ...]:
        elastic, damped = (k * stretch, c * rate) if springs else (k * size * stretch / own, c * size * rate / own)
        tension = np.where(stretch > 0.0, np.maximum(elastic + damped, 0.0), 0.0)
        if springs:
            return tension, tension
        strain = np.maximum(stretch / own, 0.0)
        return tension, np.where(strain > 0.0, elastic * (1.0 + 0.5 * strain) + (tension - elastic) * (1.0 + strain), 0)

    def rate(_: float, y: np.ndarray) -> np.ndarray:
        count = len(y) // 2
        z, v = y[:count], y[count:]
        ends = [piece(a, top + z[k], wheel) for k, (a, top, wheel) in enumerate(machine.outer)]
        flow, flows = z[2:] if machine.holds else np.zeros(1), v[2:] if machine.holds else np.zeros(1)
        passed, passing = np.concatenate(([0.0], flow, [0.0])), np.concatenate(([0.0], flows, [0.0]))
        own, length = rest + passed[:-1] - passed[1:], rest.copy()
        length[0], length[-1] = ends[0][0], ends[1][0]
        rates = np.zeros(len(rest))
        rates[0], rates[-1] = ends[0][1] * v[0], ends[1][1] * v[1]
        if machine.holds:
            grows = passing[:-1] - passing[1:]
            factor = 1.0 if springs else length / own
            tension, drive = pulls(length - own, rates - factor * grows, own, machine.stiffness, machine.damping)
        else:
            whole = np.array([rest.sum()])
            k = machine.stiffness / (len(rest) if springs else 1.0)
            c = machine.damping / (len(rest) if springs else 1.0)
            tension, drive = pulls(np.array([(length - own).sum()]), np.array([rates.sum()]), whole, k, c)
            tension = np.array([tension[0], tension[0]])
        result = [
            -9.81 - tension[0] * ends[0][1] / machine.masses[0],
            -9.81 - tension[-1] * ends[1][1] / machine.masses[1],
        ]
        if machine.holds:
            result += [(drive[k + 1] - drive[k]) * wheel.radius**2 / wheel.inertia for k, wheel in enumerate(wheels)]
        return np.concatenate((v, result))

    times = np.arange(1, round(FRAMES * machine.duration) + 1) / FRAMES
    size_of_state = 2 * (2 + (len(wheels) if machine.holds else 0))
    done = solve_ivp(
        rate, (0.0, times[-1]), np.zeros(size_of_state), "DOP853", times, rtol=tolerance, atol=0.1 * tolerance,
        max_step=1e-3,
    )  # fmt: skip
    return done.y.T[:, :2] + [at[2] for at in machine.starts]


class Grip:
    """Two weights over one wheel that the cable sticks to and slips over by the law of Euler and Eytelwein.

    y: heights of both weights [m], how far the rim has turned, and their rates. mode: 0 sticks, 1 slips towards the
    second weight, -1 towards the first; `slip` is what has slipped while it sticks. The side that is pulled at is
    e^(friction x wrap) times as much strained (springs: stretched) as the other, never more; from that follow what has
    slipped and, by its derivative, how fast, which strains and damps, too.
    """

    def __init__(self, machine: Machine, springs: bool) -> None:
        self.machine, self.springs, self.mode, self.slip = machine, springs, 0, 0.0
        self.rest = spans(machine)
        self.size = 1.0 if springs else float(self.rest.mean())

    def pieces(self, y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Lengths, their rates, rest lengths before slip, their rates, ratio of the bound and its rate."""
        wheel, ends = self.machine.wheels[0], self.machine.outer
        found = [(*piece(a, top + z, wheel), a, top + z) for (a, top, _), z in zip(ends, y, strict=False)]
        lengths = np.array([each[0] for each in found])
        slopes = np.array([each[1] for each in found])
        wrap = wrapped = 0.0
        for (_, _, away, height), speed in zip(found, y[3:5], strict=True):
            below = wheel.centre[2] - height
            far = np.hypot(away, below)
            wrap += np.pi - np.arctan2(away, below) - np.arccos(wheel.radius / far)
            turn = away / far**2 - wheel.radius * below / (far**2 * np.sqrt(far**2 - wheel.radius**2))
            wrapped -= turn * speed  # below shrinks as the weight rises
        ratio = np.exp(self.machine.friction * wrap)
        signs = np.array([-1.0, 1.0])
        rates, own, grows = slopes * y[3:5], self.rest + y[2] * signs, y[5] * signs
        return lengths, rates, own, grows, ratio, self.machine.friction * ratio * wrapped

    def strains(self, lengths: np.ndarray, own: np.ndarray) -> np.ndarray:
        return lengths - own if self.springs else lengths / own - 1.0

    def slipped(self, y: np.ndarray, mode: int) -> float:
        """m: at the bound of a mode."""
        lengths, _, own, _, ratio, _ = self.pieces(y)
        pulled, other = (1, 0) if mode > 0 else (0, 1)
        s = self.slip
        for _ in range(60):
            now = own + s * np.array([-1.0, 1.0])
            e = self.strains(lengths, now)
            slope = -np.ones(2) if self.springs else -lengths / now**2
            slope *= np.array([-1.0, 1.0])
            step = (e[pulled] - ratio * e[other]) / (slope[pulled] - ratio * slope[other])
            s -= step
            if abs(step) < 1e-17:
                break
        return s

    def state(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Strains, their rates, rest lengths, speed of slip."""
        lengths, rates, own, grows, ratio, ratio_rate = self.pieces(y)
        signs = np.array([-1.0, 1.0])
        s = self.slip if self.mode == 0 else self.slipped(y, self.mode)
        own = own + s * signs
        e = self.strains(lengths, own)
        pace = np.ones(2) if self.springs else 1.0 / own
        factor = np.ones(2) if self.springs else lengths / own
        e_rate, by_slip, speed = pace * (rates - factor * grows), -pace * factor * signs, 0.0
        if self.mode:
            pulled, other = (1, 0) if self.mode > 0 else (0, 1)
            lacks = ratio * e_rate[other] + ratio_rate * e[other] - e_rate[pulled]
            speed = lacks / (by_slip[pulled] - ratio * by_slip[other])
            e_rate = e_rate + speed * by_slip
        return e, e_rate, own, speed

    def rate(self, _: float, y: np.ndarray) -> np.ndarray:
        m, (e, e_rate, _, _) = self.machine, self.state(y)
        elastic, damped = m.stiffness * self.size * e, m.damping * self.size * e_rate
        tension = np.where(e > 0.0, np.maximum(elastic + damped, 0.0), 0.0)
        drive = tension if self.springs else np.where(e > 0.0, tension * (1.0 + e) - 0.5 * elastic * e, 0.0)
        slopes = [piece(a, top + z, wheel)[1] for (a, top, wheel), z in zip(m.outer, y, strict=False)]
        wheel = m.wheels[0]
        pulls = [-9.81 - tension[k] * slopes[k] / m.masses[k] for k in (0, 1)]
        return np.concatenate((y[3:], [*pulls, (drive[1] - drive[0]) * wheel.radius**2 / wheel.inertia]))

    def within(self, mode: int, y: np.ndarray) -> float:
        """Above zero inside the bound of a mode, while it sticks."""
        lengths, _, own, _, ratio, _ = self.pieces(y)
        e = self.strains(lengths, own + self.slip * np.array([-1.0, 1.0]))
        return float(ratio * e[0] - e[1] if mode > 0 else ratio * e[1] - e[0])

    def run(self, tolerance: float, longest: float = 2e-4) -> tuple[np.ndarray, int]:
        """(frames, 2) m, heights of both weights, and how often it began to slip."""
        times = np.arange(1, round(FRAMES * self.machine.duration) + 1) / FRAMES
        y, t, found, begun = np.zeros(6), 0.0, [], 0
        while len(found) < len(times):
            if self.mode == 0:
                events = [lambda _, y, k=k: self.within(k, y) for k in (1, -1)]
            else:
                events = [lambda _, y: self.mode * self.state(y)[3]]
            for event in events:
                event.terminal, event.direction = True, -1  # type: ignore[attr-defined]
            done = solve_ivp(
                self.rate, (t, times[-1]), y, "DOP853", rtol=tolerance, atol=0.1 * tolerance, max_step=longest,
                events=events, dense_output=True,
            )  # fmt: skip
            for each in times[len(found) :]:
                if each <= done.t[-1]:
                    found.append(done.sol(each)[:2])
            t, y = done.t[-1], done.y[:, -1]
            if done.status != 1:
                break
            if self.mode == 0:
                self.mode, begun = (1 if done.t_events[0].size else -1), begun + 1
            else:
                self.slip, self.mode = self.slipped(y, self.mode), 0
        return np.array(found) + [at[2] for at in self.machine.starts], begun


def machine_text(machine: Machine) -> str:
    """The robot file of a machine."""
    size, area = float(spans(machine).mean()), np.pi * RADIUS**2
    young, damping = machine.stiffness * size / area, machine.damping * size / area
    bodies, joints, route = [], [], []
    for k, (mass, at) in enumerate(zip(machine.masses, machine.starts, strict=True)):
        bodies.append(f"  weight{k}: {{mass: {mass!r}, inertia: [1, 1, 1]}}")
        joints.append(
            f"  - {{name: weight{k}Jt, kind: prismatic, parent: world, body: weight{k},"
            f" frame: {{at: [{at[0]}, {at[1]}, {at[2]}]}}}}"
        )
    for k, wheel in enumerate(machine.wheels):
        at = f"[{wheel.centre[0]}, {wheel.centre[1]}, {wheel.centre[2]}]"
        if machine.holds:
            bodies.append(f"  wheel{k}: {{mass: 1, inertia: [{wheel.inertia}, {wheel.inertia}, {wheel.inertia}]}}")
            joints.append(
                f"  - {{name: wheel{k}Jt, kind: revolute, parent: world, body: wheel{k}, axis: [{wheel.axis}],"
                f" frame: {{at: {at}}}}}"
            )
            if k:
                route.append(f"{{body: world, at: {list(ring(machine.wheels[k - 1], wheel))}}}")
            rubs = f", friction: {machine.friction}" if np.isfinite(machine.friction) else ""
            route.append(f"{{joint: wheel{k}Jt, radius: {wheel.radius}, side: {wheel.side}{rubs}}}")
        else:
            route.append(f"{{body: world, at: {at}, axis: [{wheel.axis}], radius: {wheel.radius}, side: {wheel.side}}}")
    route.insert(0, f"{{body: weight0, at: [0, 0, {machine.ends[0]}]}}")
    route.append(f"{{body: weight1, at: [0, 0, {machine.ends[1]}]}}")
    return "\n".join(
        [
            "kind: mechanism", "name: machine", "gravity: [0, 0, -9.81]", "bodies:", *bodies, "joints:", *joints,
            "routed_cables:",
            f"  - {{name: cable, young: {young!r}, damping: {damping!r}, cable_radius: {RADIUS}, strain: 0,"
            f" route: [{', '.join(route)}]}}",
        ]
    )  # fmt: skip


def our_machine(machine: Machine, step: float) -> tuple[np.ndarray, float]:
    """(frames, 2) m, heights of both weights, and processor seconds per simulated second, after compilation."""
    from tensegrity_dynamics import Simulation, parse_robot

    robot = parse_robot(machine_text(machine), machine.name)
    Simulation(robot, step, "rk4", start="file").advance(duration=1.0 / FRAMES)
    simulation, heights, used = Simulation(robot, step, "rk4", start="file"), [], 0.0
    for _ in range(round(FRAMES * machine.duration)):
        begun = time.process_time()
        simulation.advance(duration=1.0 / FRAMES)
        used += time.process_time() - begun
        heights.append(simulation.state.q[:2] + [at[2] for at in machine.starts])
    return np.array(heights), used / machine.duration


def run_machine(machine: Machine, python: str | None, finers: list[int], steps: tuple[float, ...]) -> None:
    if np.isfinite(machine.friction):
        (exact, slips), (other, _) = (Grip(machine, springs).run(1e-12) for springs in (False, True))
        spread = np.abs(exact - Grip(machine, False).run(1e-10, 5e-4)[0]).max()
        print(f"{machine.name}: begins to slip {slips} times in {machine.duration:g} s")
    else:
        exact, other = (machine_reference(machine, 1e-13, springs) for springs in (False, True))
        spread = np.abs(exact - machine_reference(machine, 1e-11, False)).max()
    print(f"{machine.name:10}{'reference':>10}{'':12}{spread:12.1e}")
    for step in steps:
        heights, used = our_machine(machine, step)
        print(f"{machine.name:10}{'ours':>10}{step:12.2e}{np.abs(heights - exact).max():12.1e}{used:13.4f}", flush=True)
    for finer in finers if python else ():
        found = run_theirs(python, machine.example, finer, round(FRAMES * machine.duration))
        np.testing.assert_allclose([found["masses"][k] for k in machine.bodies], machine.masses, rtol=1e-6)
        error = np.abs(np.array(found["poses"])[:, machine.bodies, 2] - other).max()
        per_second = found["time"] / machine.duration / machine.machines
        print(f"{machine.name:10}{'newton':>10}{found['step']:12.2e}{error:12.1e}{per_second:13.4f}", flush=True)


# -- a pulley that is touched only sometimes ------------------------------------------------------------------------

SWITCH = """
kind: mechanism
name: switch
gravity: [0, 0, 0]
bodies: {top: {mass: 1, inertia: [1, 1, 1]}}
joints:
  - {name: topJt, kind: revolute, parent: world, body: top, axis: [0, 1, 0], frame: {at: [0, 0, 0.62]}, start: 1.08}
routed_cables:
  - {name: cable, young: 1e9, cable_radius: 0.001, strain: 0, route: [{body: world, at: [-0.72, 0, 0.015]},
     {body: world, at: [0, 0, 0.05], axis: [0, 1, 0], radius: 0.09, side: -1},
     {body: world, at: [0, 0, 0.62], axis: [0, 1, 0], radius: 0.085, side: -1, may_be_clear: true},
     {body: top, at: [0, 0, 0.6]}]}
"""


def swing(t: np.ndarray) -> np.ndarray:
    """rad, of the top at times [s], as newton's example has it."""
    u = np.where((t > 0.25) & (t < 3.25), 0.5 - 0.5 * np.cos(2.0 * np.pi * (t - 0.25) / 3.0), 0.0)
    return 1.08 + (-0.27 - 1.08) * u


def switch_length(angle: float) -> float:
    """m, closed form: straight pieces are common tangents of circles that lie to the left of the cable."""
    end = complex(0.6 * np.sin(angle), 0.62 + 0.6 * np.cos(angle))
    lower, middle = (complex(0.0, 0.05), 0.09), (complex(0.0, 0.62), 0.085)
    for circles in ([lower, middle], [lower]):
        offset = [(complex(-0.72, 0.015), 0.0), *circles, (end, 0.0)]
        lines = []
        for (a, r), (b, s) in pairwise(offset):
            far = abs(b - a)
            # the line has a at the distance r to its left and b at s
            lines.append((np.sqrt(far**2 - (s - r) ** 2), np.angle(b - a) - np.arcsin((s - r) / far)))
        turns = [(after[1] - before[1]) % (2.0 * np.pi) for before, after in pairwise(lines)]
        if all(turn < np.pi for turn in turns):
            break
    return float(sum(line[0] for line in lines) + sum(r * t for (_, r), t in zip(circles, turns, strict=True)))


def run_switch(python: str | None, finers: list[int]) -> None:
    from tensegrity_dynamics import Simulation, parse_robot

    times = np.arange(1, 2 * FRAMES + 1) / FRAMES
    simulation, found = Simulation(parse_robot(SWITCH, "switch"), start="file"), []
    simulation.set_state([1.0])
    begun = time.process_time()
    for angle in swing(times):
        simulation.set_state([angle])
        found.append(simulation.observe().lengths["cable"])
    used = (time.process_time() - begun) / 2.0
    error = np.abs(np.array(found) - [switch_length(each) for each in swing(times)]).max()
    print(f"{'switch':10}{'ours':>10}{'':12}{error:12.1e}{used:13.4f}", flush=True)
    for finer in finers if python else ():
        theirs = run_theirs(python, "mujoco_switch", finer, times.size)
        reported = swing(times - theirs["step"])  # where the bodies stood in the last step of every frame
        error = np.abs(np.array(theirs["lengths"]) - [switch_length(each) for each in reported]).max()
        print(f"{'switch':10}{'newton':>10}{theirs['step']:12.2e}{error:12.1e}{theirs['time'] / 2.0:13.4f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*(case.name for case in CASES), *(each.name for each in MACHINES), "switch"]
    parser.add_argument("--only", choices=names, action="append", help="these cases; may be given several times")
    parser.add_argument("--newton", metavar="PYTHON", help="interpreter with newton; sys.executable: this one")
    parser.add_argument("--shipped-step", action="store_true", help="newton at its own step alone")
    chosen = parser.parse_args()
    finers = [1] if chosen.shipped_step else [1, 10]
    python = sys.executable if chosen.newton == "sys.executable" else chosen.newton
    print(f"{'case':10}{'who':>10}{'step [s]':>12}{'error [m]':>12}{'CPU s per s':>13}")
    desired = chosen.only or names
    steps = (1.0 / 960.0, 1.0 / 9600.0, 1.0 / 48000.0)
    for case in CASES:
        if case.name not in desired:
            continue
        exact = reference(case, 1e-13)
        spread = np.abs(exact - reference(case, 1e-11, 3e-3)).max()
        print(f"{case.name:10}{'reference':>10}{'':12}{spread:12.1e}")

        def show(who: str, step: float, positions: np.ndarray, used: float, exact=exact, name=case.name) -> None:
            error = np.linalg.norm(positions - exact, axis=2).max()
            print(f"{name:10}{who:>10}{step:12.2e}{error:12.1e}{used:13.4f}", flush=True)

        for step in steps:
            show("ours", step, *ours(case, step))
        for finer in finers if python else ():
            positions, used, step = theirs(case, python, finer)
            show("newton", step, positions, used)
    for machine in MACHINES:
        if machine.name in desired:
            run_machine(machine, python, finers, steps)
    if "switch" in desired:
        run_switch(python, finers)


if __name__ == "__main__":
    main()
