"""The six-bar robot beside MuJoCo, in one run: time and energy of steps, sag, calls, linear models, rollouts;
start-up beside compas_dr. Processor time; rollouts on two threads by the clock.

Run: python benchmarks/six_bar_mujoco.py [--json] [--quick]      (needs the extra `benchmark`)

The same robot for both: six bodies with the mass and inertia of their rods, 24 spatial tendons with
`springlength="0 rest"` that only pull, a plane, and spheres of no size to speak of at the ends on a floor that gives
way like ours (`on_our_ground`). MuJoCo's contact is a constraint, ours a spring, so that sags are compared and not
assumed to be equal.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tensegrity_dynamics import Robot, Rollout, Simulation, Structure, StructureEquilibriumSolver, load_robot, start_up
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.linear_models.discretization import discretise
from tensegrity_dynamics.structures.dynamics.linearisation import StructureLinearisation
from tensegrity_tools.experiments.six_bar import icosahedron

RADIUS = 1e-4  # m, of the spheres at the ends
IMPEDANCE = 0.1  # of MuJoCo's contacts: small, so that they are nearly springs
FLIGHT_STEP, GROUND_STEP = 1e-3, 1e-3


def mujoco_xml(structure: Structure, nodes: np.ndarray, *, step: float, integrator: str) -> str:
    """The robot as MJCF, rods at nodes (n, 3) m."""
    gravity = " ".join(f"{x:.10g}" for x in structure.gravity)
    bodies, sites = [], {}
    for k in np.flatnonzero(~structure.unilateral):
        i, j = structure.members[k]
        name, mass = structure.member_names[k], structure.masses[k]
        axis = nodes[i] - nodes[j]
        length = float(np.linalg.norm(axis))
        axis = axis / length
        turn = np.cross([0.0, 0.0, 1.0], axis)
        quaternion = np.array([1.0 + axis[2], *turn])
        quaternion /= np.linalg.norm(quaternion)
        centre = 0.5 * (nodes[i] + nodes[j])
        inertia = mass * length**2 / 12.0
        ends = []
        for node, z in ((i, 0.5 * length), (j, -0.5 * length)):
            sites[node] = structure.node_names[node]
            ends.append(f'<site name="{sites[node]}" pos="0 0 {z:.10g}"/>')
            if structure.ground is not None:
                ends.append(
                    f'<geom type="sphere" size="{RADIUS}" pos="0 0 {z:.10g}" mass="0" contype="1" conaffinity="2"/>'
                )
        bodies.append(
            f'<body name="{name}" pos="{" ".join(f"{x:.12g}" for x in centre)}" '
            f'quat="{" ".join(f"{x:.12g}" for x in quaternion)}"><freejoint/>'
            # a body needs three inertias: about its own axis as little as MuJoCo accepts of a rod
            f'<inertial pos="0 0 0" mass="{mass:.10g}" '
            f'diaginertia="{inertia:.10g} {inertia:.10g} {1e-3 * inertia:.10g}"/>' + "".join(ends) + "</body>"
        )
    tendons = []
    for k in np.flatnonzero(structure.unilateral):
        i, j = structure.members[k]
        tendons.append(
            f'<spatial name="{structure.member_names[k]}" stiffness="{structure.stiffness[k]:.10g}" '
            f'damping="{structure.damping[k]:.10g}" springlength="0 {structure.rest_lengths[k]:.12g}">'
            f'<site site="{sites[i]}"/><site site="{sites[j]}"/></spatial>'
        )
    floor = ""
    if structure.ground is not None:
        floor = (
            f'<geom name="floor" type="plane" size="5 5 0.1" contype="2" conaffinity="1" condim="3" priority="1" '
            f'friction="{structure.ground.friction} 0 0" solimp="{IMPEDANCE} {IMPEDANCE} 0.001"/>'
        )
    return (
        f'<mujoco><option timestep="{step:.10g}" integrator="{integrator}" gravity="{gravity}" cone="elliptic"/>'
        f"<worldbody>{floor}{''.join(bodies)}</worldbody><tendon>{''.join(tendons)}</tendon></mujoco>"
    )


def on_our_ground(mujoco, structure: Structure, nodes: np.ndarray, step: float, integrator: str):
    """The model with a floor that yields like ours: at rest the force of a contact is stiffness times depth.

    A contact of MuJoCo at rest obeys R f = k r with R = (1 - d) / d A, A the inverse weight of the body and d the
    impedance; solref of two negative numbers gives k / d and the damping likewise (documentation, "Solver parameters").
    """
    model = mujoco.MjModel.from_xml_string(mujoco_xml(structure, nodes, step=step, integrator=integrator))
    floor = model.geom("floor").id
    softness = (1.0 - IMPEDANCE) / IMPEDANCE * float(model.body_invweight0[1, 0])
    stiffness, damping = structure.ground.stiffness * softness, structure.ground.damping * softness
    model.geom_solref[floor] = (-stiffness * IMPEDANCE, -damping * IMPEDANCE)
    return model


def best_of(work: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = time.process_time) -> float:
    """s, the least of several: of processor time, which other work on the machine moves little."""
    least = float("inf")
    for _ in range(repeats):
        begin = clock()
        work()
        least = min(least, clock() - begin)
    return least


def mujoco_energy(mujoco, model, data) -> float:
    """Kinetic and tendon energy [J] of a weightless model; sensors of MuJoCo do not know the tendons' dead band."""
    mujoco.mj_forward(model, data)
    matrix = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, matrix) if _new_full_m(mujoco) else mujoco.mj_fullM(model, matrix, data.qM)
    stretch = np.maximum(data.ten_length - model.tendon_lengthspring[:, 1], 0.0)
    return 0.5 * float(data.qvel @ matrix @ data.qvel) + 0.5 * float(model.tendon_stiffness @ stretch**2)


def _new_full_m(mujoco) -> bool:
    return int(mujoco.__version__.split(".")[0]) >= 4


SPIN = np.array([1.2, 0.9, 0.3])  # rad/s


def in_flight(mujoco, body: Structure, steps: int) -> list[dict[str, Any]]:
    """us a step and largest relative error of energy in `steps` steps, spinning, without damping.

    Beside each of MuJoCo's what is quickest of ours without a larger error: integrator, step and ms a simulated second.
    """
    rows: list[dict[str, Any]] = [our_flight(body, name, FLIGHT_STEP, steps) for name in ("rk4", "rattle")]
    nodes = body.nodes - body.nodes.mean(axis=0)
    finer = [
        our_flight(body, name, float(step), round(steps * FLIGHT_STEP / step))
        for name in ("rk4", "rattle") for step in FLIGHT_STEP * 2.0 ** np.arange(-2.0, 4.5, 0.5)
    ]  # fmt: skip
    for integrator in ("RK4", "Euler", "implicitfast"):
        model = mujoco.MjModel.from_xml_string(mujoco_xml(body, nodes, step=FLIGHT_STEP, integrator=integrator))
        data = mujoco.MjData(model)
        bars = np.flatnonzero(~body.unilateral)
        for b, k in enumerate(bars):
            i, j = body.members[k]
            data.qvel[6 * b : 6 * b + 3] = np.cross(SPIN, 0.5 * (nodes[i] + nodes[j]))
            turn = np.zeros(9)
            mujoco.mju_quat2Mat(turn, data.qpos[7 * b + 3 : 7 * b + 7])
            axis = nodes[i] - nodes[j]
            across = SPIN - axis * (axis @ SPIN) / (axis @ axis)  # our rods do not spin about themselves
            data.qvel[6 * b + 3 : 6 * b + 6] = turn.reshape(3, 3).T @ across

        def advance(count: int, model=model, data=data) -> None:
            mujoco.mj_step(model, data, count)

        error = energy_error(advance, lambda m=model, d=data: mujoco_energy(mujoco, m, d), steps)
        row = {"who": "mujoco", "integrator": integrator, "energy_error": error}
        row["us"] = 1e6 * best_of(lambda advance=advance: advance(steps)) / steps
        row["ms_a_second"] = 1e-3 * row["us"] / FLIGHT_STEP
        row["ours_as_exact"] = min(
            (each for each in finer if each["energy_error"] <= error),
            key=lambda each: each["ms_a_second"],
            default=None,
        )
        rows.append(row)
    return rows


def our_flight(body: Structure, integrator: str, step: float, steps: int) -> dict[str, Any]:
    """One row of `in_flight`."""
    nodes = body.nodes - body.nodes.mean(axis=0)
    simulation = Simulation(body, step, integrator, start=nodes)
    simulation.set_motion(np.cross(SPIN, nodes))
    row: dict[str, Any] = {"who": "ours", "integrator": integrator, "step": step}
    try:
        row["energy_error"] = energy_error(
            lambda count: simulation.step_arrays(steps=count), lambda: simulation.energy().total, steps
        )
        row["us"] = 1e6 * best_of(lambda: simulation.step_arrays(steps=steps)) / steps
    except TensegrityError:  # too long a step
        row["energy_error"], row["us"] = float("inf"), float("inf")
    row["ms_a_second"] = 1e-3 * row["us"] / step
    return row


def energy_error(advance: Callable[[int], object], energy: Callable[[], float], steps: int) -> float:
    """Largest relative error of the energy over `steps` steps, looked at after every hundredth of them."""
    start, worst, pieces = energy(), 0.0, min(steps, 100)
    for piece in range(pieces):
        advance((piece + 1) * steps // pieces - piece * steps // pieces)
        worst = max(worst, abs(energy() - start) / start)
    return worst


def on_the_ground(mujoco, robot: Robot, steps: int) -> list[dict[str, object]]:
    """us a step at rest on the ground, and by how much the lowest node sinks [m]."""
    structure = robot.structure
    shape = StructureEquilibriumSolver(structure, rigid_bars=True).solve()
    rows: list[dict[str, object]] = []
    for integrator in ("rk4", "rattle"):
        simulation = Simulation(structure, GROUND_STEP, integrator, start=shape)
        simulation.step_arrays(steps=max(steps, 3000))
        sink = -float(simulation.state.nodes[:, 2].min())
        rows.append({"who": "ours", "integrator": integrator, "sink_m": sink,
                     "us": 1e6 * best_of(lambda s=simulation: s.step_arrays(steps=steps)) / steps})  # fmt: skip
    for integrator in ("RK4", "Euler", "implicitfast"):
        model = on_our_ground(mujoco, structure, shape.nodes, GROUND_STEP, integrator)
        data = mujoco.MjData(model)
        mujoco.mj_step(model, data, max(steps, 3000))
        sink = -float(data.site_xpos[:, 2].min()) + RADIUS
        rows.append({"who": "mujoco", "integrator": integrator, "sink_m": sink,
                     "us": 1e6 * best_of(lambda m=model, d=data: mujoco.mj_step(m, d, steps)) / steps})  # fmt: skip
    return rows


def one_step_a_call(mujoco, body: Structure, robot: Robot, calls: int) -> dict[str, float]:
    """us of one step called from Python, in flight."""
    nodes = body.nodes
    simulation = Simulation(replace(robot, model=body), FLIGHT_STEP, "rattle", start=nodes)
    points = np.array(body.rest_lengths[[body.member(each.drives) for each in robot.actuators]])
    by_name = dict(zip((each.name for each in robot.actuators), points.tolist(), strict=True))
    model = mujoco.MjModel.from_xml_string(mujoco_xml(body, nodes, step=FLIGHT_STEP, integrator="Euler"))
    data = mujoco.MjData(model)

    def repeated(work: Callable[[], object]) -> float:
        def loop() -> None:
            for _ in range(calls):
                work()

        loop()
        return 1e6 * best_of(loop, 9) / calls

    return {
        "ours, step_arrays": repeated(simulation.step_arrays),
        "ours, step_arrays with 24 set points": repeated(lambda: simulation.step_arrays(points)),
        "ours, step": repeated(simulation.step),
        "ours, step with 24 positions by name": repeated(lambda: simulation.step(position=by_name)),
        "mujoco, mj_step (Euler)": repeated(lambda: mujoco.mj_step(model, data)),
    }


def linear_models(mujoco, body: Structure, robot: Robot, calls: int) -> list[dict[str, object]]:
    """us for a linear model at rest: ours exact in continuous time, and in steps; MuJoCo's by differences of a step.

    Forward differences, which take half the time of centred ones and are less exact. Ours has the
    24 rest lengths as inputs beside nodes and velocities; MuJoCo's has no inputs, which spares it 24 of 97 evaluations.
    """
    shape = StructureEquilibriumSolver(robot.structure, rigid_bars=True).solve()
    rows: list[dict[str, object]] = []
    for where, structure, start in (("flight", body, body.nodes), ("ground", robot.structure, shape)):
        nodes = np.asarray(getattr(start, "nodes", start))
        linear = StructureLinearisation(structure, inputs="lengths")
        still, rest = np.zeros_like(nodes), np.array(structure.rest_lengths)
        simulation = Simulation(structure, GROUND_STEP, "rattle", start=start)
        xml = mujoco_xml(structure, nodes, step=GROUND_STEP, integrator="Euler")
        model = (
            mujoco.MjModel.from_xml_string(xml)
            if structure.ground is None
            else on_our_ground(mujoco, structure, nodes, GROUND_STEP, "Euler")
        )
        data = mujoco.MjData(model)
        if structure.ground is not None:
            mujoco.mj_step(model, data, 500)
        slopes = np.zeros((2 * model.nv, 2 * model.nv))

        def one(model=model, data=data, slopes=slopes) -> None:
            mujoco.mjd_transitionFD(model, data, 1e-6, False, slopes, None, None, None)

        works: dict[str, Callable[[], object]] = {
            "ours, A and B (72 x 72, 72 x 24), sparse": lambda a=(linear, nodes, still, rest): a[0].update(*a[1:]),
            "ours, linearise(), a model by name": lambda s=simulation: s.linearise("lengths"),
            "ours, the same and the trapezoidal rule": lambda s=simulation: discretise(
                s.linearise("lengths"), GROUND_STEP, "trapezoidal"
            ),
            "mujoco, mjd_transitionFD, forward (72 x 72)": one,
        }
        for who, work in works.items():
            work()

            def loop(work=work) -> None:
                for _ in range(calls):
                    work()

            rows.append({"where": where, "who": who, "us": 1e6 * best_of(loop, 7) / calls})
    return rows


def largest_stable_steps(mujoco, body: Structure) -> list[dict[str, float]]:
    """ms, the largest of a geometric row of steps with which 2 s of flight do not grow in energy by a tenth."""
    rows = []
    for stiffness in (1e3, 1e4, 1e5):
        own = replace(body, stiffness=np.where(body.unilateral, stiffness, body.stiffness))
        lengths = np.linalg.norm(own.nodes[own.members[:, 0]] - own.nodes[own.members[:, 1]], axis=1)
        own = own.with_rest_lengths(np.where(own.unilateral, lengths - 50.0 / stiffness, own.rest_lengths))
        row: dict[str, float] = {"stiffness": stiffness}
        nodes = own.nodes - own.nodes.mean(axis=0)
        for name in ("rk4", "rattle", "implicit", "RK4", "Euler", "implicitfast"):
            row[name] = 0.0
            for h in 2e-4 * 1.25 ** np.arange(30):
                if not _is_stable(mujoco, own, nodes, name, float(h)):
                    break
                row[name] = 1e3 * float(h)
        rows.append(row)
    return rows


def _is_stable(mujoco, body: Structure, nodes: np.ndarray, name: str, step: float) -> bool:
    count = max(20, round(2.0 / step))
    rng = np.random.default_rng(0)
    kick = 0.05 * rng.normal(size=nodes.shape)
    if name in ("rk4", "rattle", "implicit"):
        import warnings

        simulation = Simulation(body, step, name, start=nodes)
        simulation.set_motion(kick)
        start = simulation.energy().total
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                simulation.advance(count)
        except TensegrityError:
            return False
        return simulation.energy().total < 1.1 * start
    model = mujoco.MjModel.from_xml_string(mujoco_xml(body, nodes, step=step, integrator=name))
    data = mujoco.MjData(model)
    data.qvel[:] = 0.05 * rng.normal(size=model.nv)
    start = mujoco_energy(mujoco, model, data)
    mujoco.mj_step(model, data, count)
    finite = bool(np.isfinite(data.qpos).all()) and not any(w.number for w in data.warning)
    return finite and mujoco_energy(mujoco, model, data) < 1.1 * start


def rollouts(mujoco, robot: Robot, count: int) -> list[dict[str, object]]:
    """ms a motion for `count` motions of 1 s on the ground over two threads, and how exact they are.

    Each begins standing, pushed off at random and spinning; without commands, and with new rest lengths for all cables
    every 20 ms. The error is the root of the mean square of node positions after 1 s in the first motions, against the
    same method with a sixteenth of the step: so no model's contact is measured by the other's. Rollouts of MuJoCo come
    in pieces of 100, because they keep every step.
    """
    structure = robot.structure
    shape = StructureEquilibriumSolver(structure, rigid_bars=True).solve()
    nodes, centre = shape.nodes, shape.nodes.mean(axis=0)
    random = np.random.default_rng(0)
    pushes = np.array((0.3, 0.3, 0.0)) * random.uniform(-1.0, 1.0, (count, 3))
    spins = 0.5 * random.uniform(-1.0, 1.0, (count, 3))
    velocities = pushes[:, None] + np.cross(spins[:, None], nodes - centre)
    points = np.array(structure.rest_lengths[[structure.member(each.drives) for each in robot.actuators]])
    rates = np.array([each.rate for each in robot.actuators])
    commands = points + 0.02 * random.uniform(-1.0, 0.0, size=(count, 50, points.size))
    few, fine = min(8, count), 16
    rows: list[dict[str, object]] = []

    def note(who: str, step: float, seconds: float, motions: int, ends: np.ndarray | None, exact: np.ndarray | None):
        error = "" if ends is None or exact is None else float(np.sqrt(np.mean((ends - exact) ** 2)))
        rows.append({"who": who, "step_ms": 1e3 * step, "ms": 1e3 * seconds / motions, "error_m": error})

    def ours(step: float, members: int) -> tuple[Callable[[], Any], Callable[[], Any]]:
        batch = Rollout(robot, members, step, "rattle", start=shape, threads=2)
        return (
            lambda: batch.run(periods=50, period=0.02, velocity=velocities[:members]).configurations[:few, -1],
            lambda: batch.run(commands[:members], period=0.02, velocity=velocities[:members]),
        )

    def theirs(step: float, integrator: str, members: int) -> Callable[[], Any]:
        from mujoco import rollout as mujoco_rollout

        model = on_our_ground(mujoco, structure, nodes, step, integrator)
        datas = [mujoco.MjData(model) for _ in range(2)]
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        states = np.empty((members, mujoco.mj_stateSize(model, full)))
        for i in range(members):
            set_off(mujoco, model, datas[0], structure, nodes, velocities[i])
            mujoco.mj_getState(model, datas[0], states[i], full)

        def run() -> np.ndarray:
            ends = np.empty((members, states.shape[1]))
            for begin in range(0, members, 100):
                part = states[begin : begin + 100]
                ends[begin : begin + 100] = mujoco_rollout.rollout(
                    model, datas, part, nstep=round(1.0 / step), persistent_pool=True
                )[0][:, -1]
            return ends

        def found() -> np.ndarray:
            return np.array([sites_at(mujoco, model, datas[0], structure, each, full) for each in run()[:few]])

        return found

    step = GROUND_STEP
    exact = ours(step / fine, few)[0]()
    for h in (step, step / 2.0, step / 4.0, step / 8.0):
        members = count if h == step else max(few, count // 20)
        free, commanded = ours(h, members)
        ends = free()
        note("ours, rattle", h, best_of(free, 2, time.perf_counter), members, ends, exact)
        if h == step:
            note("ours, rattle, commands", h, best_of(commanded, 2, time.perf_counter), members, None, None)
    for integrator in ("Euler", "implicitfast"):
        exact = theirs(step / fine, integrator, few)()
        for h in (step, step / 2.0, step / 4.0, step / 8.0):
            members = count if h == step and integrator == "Euler" else max(few, count // 20)
            free = theirs(h, integrator, members)
            begin = time.perf_counter()
            ends = free()
            note(f"mujoco.rollout, {integrator}", h, time.perf_counter() - begin, members, ends, exact)
    try:
        from mujoco.batch import Batch
    except ImportError:
        return rows
    model = on_our_ground(mujoco, structure, nodes, step, "Euler")
    data = mujoco.MjData(model)
    batch = Batch(model, nsim=count, nthread=2)
    springs = batch.expand("tendon_lengthspring")
    for i in range(count):
        set_off(mujoco, model, data, structure, nodes, velocities[i])
        batch.bind("qpos")[i], batch.bind("qvel")[i] = data.qpos, data.qvel
    lengths = np.tile(points, (count, 1))  # actuators are the cables in their order, and so are the tendons
    begin = time.perf_counter()
    for p in range(50):
        lengths += np.clip(commands[:, p] - lengths, -0.02 * rates, 0.02 * rates)
        springs[:, :, 1] = lengths
        batch.step(nstep=round(0.02 / step))
    note("mujoco.batch, Euler, commands", step, time.perf_counter() - begin, count, None, None)
    return rows


def set_off(mujoco, model, data, structure: Structure, nodes: np.ndarray, velocity: np.ndarray) -> None:
    """Bodies at nodes (n, 3) m, their ends with a velocity (n, 3) m/s."""
    mujoco.mj_resetData(model, data)
    mujoco.mj_forward(model, data)
    for b, k in enumerate(np.flatnonzero(~structure.unilateral)):
        i, j = structure.members[k]
        axis = nodes[i] - nodes[j]
        data.qvel[6 * b : 6 * b + 3] = 0.5 * (velocity[i] + velocity[j])
        turn = np.zeros(9)
        mujoco.mju_quat2Mat(turn, data.qpos[7 * b + 3 : 7 * b + 7])
        spin = np.cross(axis, velocity[i] - velocity[j]) / (axis @ axis)
        data.qvel[6 * b + 3 : 6 * b + 6] = turn.reshape(3, 3).T @ spin


def sites_at(mujoco, model, data, structure: Structure, state: np.ndarray, kind: int) -> np.ndarray:
    """(n, 3) m, where the nodes are in a state."""
    mujoco.mj_setState(model, data, state, kind)
    mujoco.mj_forward(model, data)
    return np.array([data.site(name).xpos for name in structure.node_names])


def start_ups(body: Structure) -> list[dict[str, object]]:
    """Processor time from the icosahedron to rest with 40 N: the start-up, Newton, and dynamic relaxation of compas_dr.

    compas_dr has no rigid rods: theirs get a finite stiffness, by which its shape is off.
    """
    nodes, pretension = icosahedron(body, 1.0), 40.0
    first, second = body.members.T
    lengths = np.linalg.norm(nodes[first] - nodes[second], axis=1)
    rest = np.where(body.unilateral, lengths - pretension / body.stiffness, body.rest_lengths)
    chosen = replace(body, rest_lengths=rest)

    def timed(run: Callable[[], Any]) -> tuple[Any, float]:
        run()  # compiled and read from disk before the clock runs
        begin = time.process_time()
        return run(), time.process_time() - begin

    done, seconds = timed(lambda: start_up(body, pretension, start=nodes))
    apart = np.linalg.norm(done.nodes[:, None] - done.nodes[None], axis=2)
    rows: list[dict[str, object]] = [{"who": "start_up", "ms": 1e3 * seconds, "steps": done.steps, "off_m": 0.0}]
    solver = StructureEquilibriumSolver(chosen, rigid_bars=True)
    shape, seconds = timed(lambda: solver.solve(rest, start=nodes))

    def off(found: np.ndarray) -> float:
        return float(np.abs(np.linalg.norm(found[:, None] - found[None], axis=2) - apart).max())

    rows.append({"who": "newton", "ms": 1e3 * seconds, "steps": shape.iterations, "off_m": off(shape.nodes)})
    try:
        from shape_from_lengths import peer_run  # beside this file
    except ImportError:
        print("compas_dr is not installed, and left out: pip install 'tensegrity-robotics[benchmark]'", file=sys.stderr)
        return rows
    for stiffness in (1e4, 1e5, 1e6):
        springs = replace(chosen, stiffness=np.where(body.unilateral, body.stiffness, stiffness))
        (found, _), seconds = timed(lambda springs=springs: peer_run(springs, nodes, rest, 0.1))
        rows.append({
            "who": f"compas_dr, rods of {stiffness:.0e} N/m", "ms": 1e3 * seconds, "steps": "", "off_m": off(found)
        })  # fmt: skip
    return rows


def print_rollouts(rows: list[dict[str, Any]]) -> None:
    """The table, and how many times longer MuJoCo takes: at the same step, and where it is as exact as ours."""
    if not rows:
        return
    print("rollouts of 1 s on two threads       step [ms]   ms a motion   error of the nodes after it [m]")
    for row in rows:
        error = f"{row['error_m']:.1e}" if row["error_m"] != "" else ""
        print(f"  {row['who']:<34}{row['step_ms']:>8.4g}{row['ms']:>14.3g}   {error}")
    own = [row for row in rows if row["who"] == "ours, rattle"]
    peers = [row for row in rows if row["who"].startswith("mujoco.rollout")]
    print(
        f"  mujoco.rollout takes {peers[0]['ms'] / own[0]['ms']:.2f} times as long as ours at {own[0]['step_ms']:g} ms"
    )
    for who, some, others in (("our error", own, peers), ("its error", peers, own)):
        exact = [row["ms"] for row in others if row["error_m"] <= some[0]["error_m"]]
        name = "mujoco.rollout" if others is peers else "ours"
        said = f"{min(exact):.3g} ms a motion" if exact else "none of these steps"
        print(f"  {name} with {who} at {some[0]['step_ms']:g} ms or less: {said}")


PARTS = ("flight", "ground", "calls", "linear", "rollouts", "steps", "start-up")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything")
    parser.add_argument("--part", choices=PARTS, action="append", help="only this, may be given more than once")
    options = parser.parse_args()
    chosen = options.part or PARTS
    try:
        import mujoco
    except ImportError:
        parser.exit(1, "mujoco is not installed: pip install 'tensegrity-robotics[benchmark]'\n")
    part = 0.1 if options.quick else 1.0
    robot = load_robot("six_bar")
    body = replace(
        robot.structure, gravity=np.zeros(3), ground=None, damping=np.zeros(len(robot.structure.kinds))
    )  # fmt: skip
    figures = {
        "mujoco": mujoco.__version__,
        "flight": in_flight(mujoco, body, round(2000 * part)) if "flight" in chosen else [],
        "ground": on_the_ground(mujoco, robot, round(2000 * part)) if "ground" in chosen else [],
        "one step a call, us": one_step_a_call(mujoco, body, robot, round(2000 * part)) if "calls" in chosen else {},
        "linear": linear_models(mujoco, body, robot, round(200 * part)) if "linear" in chosen else [],
        "rollouts": rollouts(mujoco, robot, round(1000 * part)) if "rollouts" in chosen else [],
        "largest stable step, ms": largest_stable_steps(mujoco, body) if "steps" in chosen else [],
        "start-up": start_ups(body) if "start-up" in chosen else [],
    }
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"MuJoCo {mujoco.__version__}, steps of {1e3 * FLIGHT_STEP:g} ms")
    print("in flight       us/step   largest relative error of energy")
    for row in figures["flight"]:
        print(f"{row['who']:<7}{row['integrator']:<13}{row['us']:>6.2f}   {row['energy_error']:.1e}")
    for row in figures["flight"]:
        own = row.get("ours_as_exact")
        if own:
            print(
                f"a second of flight by mujoco {row['integrator']} {row['ms_a_second']:.3g} ms; with no larger error "
                f"of energy by ours {own['ms_a_second']:.3g} ms ({own['integrator']}, {1e3 * own['step']:.3g} ms, "
                f"{own['energy_error']:.1e}): {own['ms_a_second'] / row['ms_a_second']:.2g} of it"
            )
        elif row["who"] == "mujoco":
            print(f"none of our steps is as exact as mujoco {row['integrator']}")
    print("on the ground   us/step   lowest node sinks [mm]")
    for row in figures["ground"]:
        print(f"{row['who']:<7}{row['integrator']:<13}{row['us']:>6.2f}   {1e3 * row['sink_m']:.4f}")
    print("linear model at rest, us")
    for row in figures["linear"]:
        print(f"  {row['where']:<8}{row['who']:<46}{row['us']:>8.4g}")
    print("one step a call, us")
    for key, value in figures["one step a call, us"].items():
        print(f"  {key:<40}{value:>8.3g}")
    print_rollouts(figures["rollouts"])
    print("start-up from the icosahedron: ms of processor time, steps, farthest from the first in any distance [m]")
    for row in figures["start-up"]:
        print(f"  {row['who']:<32}{row['ms']:>9.3g}  {row['steps']:>5}  {row['off_m']:.1e}")
    print("largest stable step [ms] by stiffness [N/m]")
    for row in figures["largest stable step, ms"]:
        print("  " + "  ".join(f"{key} {value:.4g}" for key, value in row.items()))


if __name__ == "__main__":
    main()
