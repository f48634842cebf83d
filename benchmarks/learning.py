"""Steps per second of environments for learning beside `mujoco.rollout`: the six-bar robot in flight, processor time.

A step is 5 ms for both. Ours brings the whole observation, drawn goals and rewards with it; MuJoCo the states alone.

Run: python benchmarks/learning.py [members] [steps]      (needs mujoco)
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace

import mujoco
import mujoco.rollout
import numpy as np
from six_bar_mujoco import mujoco_xml

from tensegrity_dynamics import Rollout, load_robot
from tensegrity_tools.learning.task import Episode, RobotTask

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
    print(f"{members} members, {steps} steps of {1e3 * PERIOD:g} ms in sub-steps of {1e3 * STEP:g} ms; per step:")
    for name, taken in (("environment", ours), ("Rollout", physics), ("mujoco.rollout (RK4)", theirs)):
        print(f"  {name}: {1e6 * taken:.0f} us of processor time, {1.0 / taken:.0f} steps per second and core")


if __name__ == "__main__":
    main()
