"""`tensegrity compile` leaves nothing to be compiled in a loop that moves a robot."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tensegrity_dynamics.numerics.late_call import WITHOUT_COMPILATION

RUN = """
import gc
from numba.core.dispatcher import Dispatcher
from tensegrity_control import RobotState, make_controller
from tensegrity_dynamics import Simulation, load_robot
from tensegrity_dynamics.estimation import make_estimator
from tensegrity_tools.commands.compile_kernels import PARTS, _tasks

def compiled():
    kernels = [each for each in gc.get_objects() if isinstance(each, Dispatcher)]
    return {(each.py_func.__qualname__, str(kinds)) for each in kernels for kinds in each.overloads}

for part in PARTS:
    for name, _, use in (word.rpartition(":") for word in part if word.startswith("cable_robot")):
        for _, work in _tasks(name, (use,)):
            work()
before = compiled()
robot = load_robot("single_strut")
simulation = Simulation(robot)
control, observer = make_controller("qp", robot), make_estimator(robot, observer=True)
for k in range(12):
    seen = simulation.observe()
    state = RobotState.of(simulation, observer.update(simulation.time, seen.positions, seen.efforts))
    if k == 0:
        control.reset(0.0, state)
        control.set_goal(0.0, state.pose[0] + [1e-3, 0.0, 0.0])
    command = control.command(simulation.time, state)
    simulation.command(command.mode, command.set_points(), period=control.period)
    simulation.advance(duration=control.period)
print("|".join(sorted(name for name, _ in compiled() - before)))
"""


@pytest.mark.long
@pytest.mark.skipif(WITHOUT_COMPILATION, reason="compilation is switched off")
def test_what_leads_a_robot_is_compiled_before_it_moves():
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "", done.stdout
