"""`tensegrity compile` leaves nothing to be compiled in a loop that moves a robot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from patience import PATIENCE_S, until

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


@pytest.mark.parametrize("after", [0.0, *(pytest.param(each, marks=pytest.mark.long) for each in (1.0, 4.0, 8.0))])
def test_compiling_ends_by_a_signal_without_a_traceback(tmp_path, after):
    words = [sys.executable, "-m", "tensegrity_tools.cli", "compile", "single_strut"]
    process = subprocess.Popen(
        words, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True,
    )  # fmt: skip
    until(lambda: any(tmp_path.rglob("*.nbi")) or process.poll() is not None)  # one is compiled, and many are to come
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGINT
    assert "Traceback" not in said and "Error" not in said
