"""Steps per second of environments for learning beside `mujoco.rollout` and `mujoco.batch` (of MuJoCo 4, where it is
installed): the six-bar robot in flight, processor time.

A step is 5 ms for all. Ours brings the whole observation, drawn goals and rewards with it; `mujoco.rollout` the states
after every sub-step, as it always does; `mujoco.batch` those at the end alone.
Then mechanisms, as exported to MuJoCo: pulleys start to turn by a steady torque, and for every integrator and step the
largest error of an actuated joint after 0.1 s stands beside its processor time. The error is that from a fine reference
of the same program, so that neither has to answer for what MJCF cannot say. (Of six_bar at the same accuracy:
`six_bar_mujoco.py rollouts`.)

Run: python benchmarks/learning.py [members] [steps] [robot ...]      (needs mujoco)
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import mujoco
import mujoco.rollout
import numpy as np
from six_bar_mujoco import mujoco_xml

from tensegrity_dynamics import Rollout, Simulation, load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_tools.learning.task import Episode, RobotTask

try:
    from mujoco.batch import Batch
except ImportError:  # before MuJoCo 4
    Batch = None

PERIOD, STEP = 5e-3, 1e-3


def main() -> None:
    members = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    robot = load_robot("six_bar")
    flying = replace(robot, model=replace(robot.structure, ground=None, gravity=np.zeros(3)))
    task = RobotTask(flying, period=PERIOD, reward=lambda transition: 0.0)
    batch = Rollout(flying, members, STEP, threads=2, separate=True)
    episodes = [Episode(task, each) for each in batch.simulations]
    action = np.zeros(task.action_size)
    for episode in episodes:
        episode.begin(np.random.default_rng(0))

    def walk(_: object, i: int) -> None:
        for _number in range(steps):
            episodes[i].step(action)

    batch.for_all(walk)
    begin = time.process_time()
    batch.for_all(walk)
    ours = (time.process_time() - begin) / (members * steps)
    begin = time.process_time()
    batch.run(periods=steps, period=PERIOD)
    physics = (time.process_time() - begin) / (members * steps)

    nodes = batch.simulations[0].state.configuration
    model = mujoco.MjModel.from_xml_string(mujoco_xml(flying.structure, nodes, step=STEP, integrator="RK4"))
    data = [mujoco.MjData(model) for _ in range(2)]
    states = np.zeros((members, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    for row in states:
        mujoco.mj_getState(model, data[0], row, mujoco.mjtState.mjSTATE_FULLPHYSICS)
    count = round(PERIOD / STEP) * steps
    begin = time.process_time()
    mujoco.rollout.rollout([model] * members, data, states, nstep=count)
    theirs = (time.process_time() - begin) / (members * steps)
    rows = [("environment", ours), ("Rollout", physics), ("mujoco.rollout (RK4)", theirs)]
    if Batch is not None:
        many = Batch(model, members, nthread=2)
        begin = time.process_time()
        many.step(nstep=count)
        rows.append(("mujoco.batch (RK4)", (time.process_time() - begin) / (members * steps)))
    print(f"{members} members, {steps} steps of {1e3 * PERIOD:g} ms in sub-steps of {1e3 * STEP:g} ms; per step:")
    for name, taken in rows:
        print(f"  {name}: {1e6 * taken:.0f} us of processor time, {1.0 / taken:.0f} steps per second and core")


DURATION, TORQUE = 0.1, 0.2  # s, and part of the torque at rest that is added


def exported(name: str, members: int) -> None:
    """Error and time of both programs on one mechanism, over integrators and steps."""
    robot = load_robot(name)
    held = Simulation(robot).observe().efforts
    torque = {each: (1.0 + TORQUE) * value + 0.01 for each, value in held.items()}
    joints = robot.model.driven_joints(robot.actuators)
    at = [robot.mechanism.positions_of(joint).start for joint in joints]

    def ours(integrator: str, step: float) -> tuple[np.ndarray, float]:
        batch = Rollout(robot, members, step, integrator, threads=2, separate=True)
        for each in batch.simulations:
            each.advance(1)
            each.reset()
            each.command("effort", torque)

        def walk(_: object, i: int) -> None:
            batch.simulations[i].advance(duration=DURATION)

        begin = time.process_time()
        batch.for_all(walk)
        return batch.simulations[0].state.q[at], time.process_time() - begin

    text = type_of(robot).exports["mjcf"](robot).text

    def their_model(integrator: str, step: float) -> tuple[mujoco.MjModel, list[int]]:
        model = mujoco.MjModel.from_xml_string(text)
        model.opt.timestep = step
        model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
        return model, [model.joint(joint).qposadr[0] for joint in joints]

    def theirs(integrator: str, step: float) -> tuple[np.ndarray, float]:
        model, rows = their_model(integrator, step)
        data = [mujoco.MjData(model) for _ in range(2)]
        states = np.zeros((members, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
        for row in states:
            mujoco.mj_getState(model, data[0], row, mujoco.mjtState.mjSTATE_FULLPHYSICS)
        count = round(DURATION / step)
        control = np.tile([torque[each.name] for each in robot.actuators], (members, count, 1))
        begin = time.process_time()
        ends, _ = mujoco.rollout.rollout([model] * members, data, states, control, nstep=count)
        used = time.process_time() - begin
        return ends[0, -1, 1 + np.array(rows)], used

    def their_batch(integrator: str, step: float) -> tuple[np.ndarray, float]:
        model, rows = their_model(integrator, step)
        batch = Batch(model, members, nthread=2)
        batch.bind("ctrl")[:] = [torque[each.name] for each in robot.actuators]
        begin = time.process_time()
        batch.step(nstep=round(DURATION / step))
        used = time.process_time() - begin
        return batch.bind("qpos")[0, rows].copy(), used

    programs = [
        ("ours", ours, ("rk4", "implicit"), 2e-5),
        ("mujoco.rollout", theirs, ("rk4", "implicitfast", "euler"), 1e-5),
    ]
    if Batch is not None:
        programs.append(("mujoco.batch", their_batch, ("rk4", "implicitfast", "euler"), 1e-5))
    print(f"{name}, {members} members, {DURATION:g} s by a steady torque:")
    for who, run, integrators, fine in programs:
        exact, _ = run("rk4", fine)
        for integrator in integrators:
            for step in (1e-2, 5e-3, 2e-3, 1e-3, 5e-4, 2e-4, 1e-4):
                try:
                    found, used = run(integrator, step)
                except TensegrityError:
                    continue
                error = float(np.abs(found - exact).max())
                if error < 1e-1:
                    per = used / (members * DURATION)
                    print(
                        f"  {who:15}{integrator:13}{1e3 * step:6.2g} ms  {error:.1e} rad  {1e3 * per:8.3g} ms per s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
    for chosen in sys.argv[3:] or ("single_strut",):
        exported(chosen, int(sys.argv[1]) if len(sys.argv) > 1 else 8)
