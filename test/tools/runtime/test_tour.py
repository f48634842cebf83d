"""A tour is a success only where nothing was wrong on the way."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tensegrity_dynamics import load_robot
from tensegrity_tools.commands.up import tour_summary
from tensegrity_tools.runtime.node_graph import Watching, simulation_graph
from tensegrity_tools.runtime.tour import Arrival, fault_of, run_tour
from tensegrity_tools.runtime.tour_time import ByTheClock, InLockstep, for_tours, tour_time

ROBOT = load_robot("manipulator")
FLOORS = {each.drives: each.minimum_tension for each in ROBOT.actuators}


def test_a_tension_below_its_floor_is_named_with_number_and_time():
    assert min(FLOORS.values()) > 0.0
    sound = {name: (1.5 * floor, 1.0) for name, floor in FLOORS.items()}
    assert fault_of(ROBOT, sound, "") == ""
    assert fault_of(ROBOT, {}, "") == ""
    for name, floor in FLOORS.items():
        said = fault_of(ROBOT, {**sound, name: (0.5 * floor, 12.34)}, "")
        assert (
            said.startswith(f"tension floor broken: {name} fell to") and "12.34 s" in said and f"{floor:.3g} N" in said
        )


def test_the_worst_of_several_is_named_and_a_missed_command_counts_alone():
    first, second = list(FLOORS)[:2]
    assert f": {second} " in fault_of(ROBOT, {first: (0.9 * FLOORS[first], 1.0), second: (0.0, 2.0)}, "no command")
    assert fault_of(ROBOT, {}, "no command from controller for 0.5 s") == "no command from controller for 0.5 s"


@pytest.mark.parametrize(
    ("reached", "fault", "success"), [(True, "", True), (True, "no command from controller", False), (False, "", False)]
)
def test_a_tour_with_a_fault_is_no_success(reached, fault, success, capsys):
    good = Arrival("one", True, 0.0, 0.0, 1.0)
    assert tour_summary([good, Arrival("two", reached, 0.0, 0.0, 1.0, "", fault)]) is success
    assert ("no command from controller" in capsys.readouterr().out) == bool(fault)


def test_a_tour_without_goals_is_no_success():
    assert not tour_summary([])


class LateMachine:
    """A watcher of a lock-step simulation on a machine that takes at random long over everything."""

    def __init__(self, seed: int, late: float = 0.0) -> None:
        self._random, self._late = np.random.default_rng(seed), late
        self.tick, self._stop, self._paused, self._unanswered = 0, 0, True, 3
        self.lowest, self.missed, self.diagnostics = {}, "", {}
        self.sent: list[float] = []
        self._goal, self._began = np.zeros(3), -np.inf

    time = property(lambda self: 0.02 * self.tick)
    pose = property(lambda self: (self._goal * min(1.0, (self.time - self._began) / 1.3), np.array([1.0, 0, 0, 0])))

    def hear_references(self) -> None: ...

    def forget(self) -> None: ...

    def send_goal(self, position, quaternion, duration=0.0):
        assert self._paused and not self._unanswered
        self.sent.append(self.time)
        self._goal, self._began = np.array(position), self.time
        predicted = round(1e9 * (self.time + 0.5))  # the motion takes longer
        stamp = SimpleNamespace(sec=predicted // 10**9, nanosec=predicted % 10**9)
        return SimpleNamespace(accepted=True, predicted_arrival=stamp, reason="")

    def phase_at(self, time: float) -> str | None:
        return "moving" if time < self._began + 1.3 else "holding"

    def wait_until(self, condition, patience) -> bool:
        return bool(condition())

    def pause_at(self, time: float) -> None:
        self._stop = round(1e9 * time) / 2e7

    def pause(self, stand_still: bool) -> bool:
        if not stand_still:
            self._paused, self._unanswered = False, int(self._random.integers(0, 4))
        elif self._unanswered:
            self._unanswered -= 1
            return False
        return self._paused

    def spin(self, duration: float) -> None: ...

    def spin_once(self) -> None:
        for _ in range(int(self._random.integers(0, 9))):
            self.tick += not self._paused
            self._paused = self._paused or self.tick >= self._stop


@pytest.mark.parametrize("late", [0.0, 0.06])
def test_in_lock_step_goals_are_sent_at_the_same_simulated_times_however_busy_the_machine_is(late):
    robot = load_robot("six_bar")
    runs = []
    for seed in range(4):
        machine = LateMachine(seed, late)
        arrivals = run_tour(robot, machine, lambda *_: None, lambda: None, InLockstep(machine, late))
        runs.append((machine.sent, [(each.duration, each.position_error, each.reached) for each in arrivals]))
    assert len(runs[0][0]) == len(robot.tour) and all(reached for _, _, reached in runs[0][1])
    assert all(run == runs[0] for run in runs)


def test_simulations_in_lock_step_stand_still_for_their_tours_and_others_go_by_the_clock():
    quiet = Watching(markers=False, view=False)
    locked = for_tours(simulation_graph("tensebot", lockstep=True, watching=quiet, state_delay=0.04))
    assert locked["simulator"].parameters["paused"] is True and locked["controller"].parameters["reference_rate"] == 0.0
    machine = LateMachine(0)
    assert isinstance(tour_time(machine, locked), InLockstep)
    free = simulation_graph("tensebot", watching=quiet)
    assert for_tours(free) is free and isinstance(tour_time(machine, free), ByTheClock)


class Interrupted:
    """A watcher of a robot in real time whose controller stands still on the way to some goals: these motions end."""

    def __init__(self, at: tuple[int, ...], refuses: bool = False) -> None:
        self.at, self.refuses = at, refuses
        self.sent: list[np.ndarray] = []
        self.time, self.missed, self.lowest, self.diagnostics, self.moving = 0.0, "", {}, {}, False
        self._here = np.zeros(3)

    pose = property(lambda self: (self._here, np.array([1.0, 0, 0, 0])))

    def forget(self) -> None:
        self.missed = ""

    def send_goal(self, position, quaternion, duration=0.0):
        self.sent.append(np.array(position))
        stopped = len(self.sent) in self.at
        self.missed = "no command from controller for 0.5 s: the actuators hold" if stopped else ""
        accepted = not (self.refuses and len(self.sent) - 1 in self.at)
        if accepted:
            self._here = self._here + (0.5 if stopped else 1.0) * (self.sent[-1] - self._here)
        stamp = SimpleNamespace(sec=int(self.time) + 1, nanosec=0)
        return SimpleNamespace(accepted=accepted, predicted_arrival=stamp, reason="" if accepted else "held")

    def spin(self, duration: float) -> None:
        self.time += 1.0


@pytest.mark.parametrize(("at", "reached"), [((2,), True), ((2, 3), False), ((1, 3), True)])
def test_a_stop_on_whose_way_commands_were_missing_is_sent_once_more_and_is_still_no_success(at, reached):
    robot, machine = ROBOT, Interrupted(at)
    arrivals = run_tour(robot, machine, lambda *_: None, lambda: None)
    assert all(each.reached for each in arrivals) is reached
    faulty = [each for each in arrivals if each.fault]
    assert (
        faulty and not any(each.success for each in faulty) and all(each.fault.count("no command") for each in faulty)
    )
    tries = len(machine.sent) - len(robot.tour)
    assert tries == len(faulty) == sum("second time" in each.fault for each in faulty)


def test_a_second_try_that_is_refused_says_why():
    arrivals = run_tour(ROBOT, Interrupted((1,), refuses=True), lambda *_: None, lambda: None)
    assert not arrivals[0].reached and arrivals[0].reason == "held" and "no command" in arrivals[0].fault
