"""Tours of whole robots on emulated servos, through driver, estimator and controller, in counted cycles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hardware_loop import Clockwork, hardware_loop, measured

from tensegrity_control.resting_error import SETTLING
from tensegrity_driver.emulator import with_servos
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_dynamics import load_robot
from tensegrity_dynamics.late_messages import LateMessages
from tensegrity_tools.runtime.tour import goal_of

MANIPULATOR, TENSEBOT = load_robot("manipulator"), load_robot("tensebot")
ON_BOARD = replace(TENSEBOT, servos={**TENSEBOT.servos, "position_loop": "board"})
pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("robot", "controller"),
    [(MANIPULATOR, "task"), (MANIPULATOR, "qp"), (ON_BOARD, "")],
    ids=["task", "qp", "board"],
)
def test_every_goal_of_the_tour_is_reached_without_a_fault(robot, controller) -> None:
    period = {"period": 0.02} if controller else {}
    with hardware_loop(robot, controller, **period) as loop:
        reached = loop.tour()
        assert len(reached) == len(robot.tour) == 5
        assert not loop.faults
        assert controller == "" or loop.lowest > 5.0  # the floor of the manipulator


def test_gears_that_rub_do_not_keep_the_output_from_its_goal_nor_let_it_wander() -> None:
    with hardware_loop(MANIPULATOR, "qp", period=0.02) as loop:
        goal = loop.emulated.observe().pose[0] + (0.01, 0.0, 0.0)
        loop.run(loop.send((goal, None)).duration)
        off: list[float] = []
        loop.run(4.0, lambda: off.append(float(np.linalg.norm(loop.emulated.observe().pose[0] - goal))))
        assert max(off) < 4.2e-4  # three steps of the encoders; 1.5e-3 where friction was taken for motion


@pytest.mark.parametrize("controller", ["task", "qp"])
@pytest.mark.parametrize("run", ["run_1", "run_2"])
def test_cycles_and_commands_as_uneven_as_they_were_by_the_clock_break_no_floor(run: str, controller: str) -> None:
    with hardware_loop(MANIPULATOR, controller, Clockwork(measured=measured(run)), period=0.02) as loop:
        assert len(loop.tour()) == 5
        assert not loop.faults
        assert loop.lowest > 5.0  # the floor of the manipulator


def test_commands_that_stop_in_motion_and_come_back_are_no_fault() -> None:
    freezes = ((0.3, 0.3), (1.0, 0.2))
    with hardware_loop(MANIPULATOR, "task", Clockwork(freezes=freezes), period=0.02) as loop:
        assert len(loop.tour(stops=1)) == 1
        assert not loop.faults


@pytest.mark.parametrize("at", [0.3, 0.6, 0.9])
def test_a_cable_that_snaps_on_the_way_to_a_goal_is_found_at_once(at: float) -> None:
    with hardware_loop(MANIPULATOR, "task", period=0.02) as loop:
        position, quaternion = loop.emulated.observe().pose
        loop.send((np.add(position, [0.0, 0.0, -0.1]), quaternion))
        loop.run(at)
        loop.emulated.faults.snap("B1-bot")
        snapped = loop.time
        loop.run(0.2)
        assert not [each for each in loop.faults if each[0] <= snapped]
        kinds = {fault.kind for _, fault in loop.faults if fault.tendon == "B1-bot"}
        assert kinds & {FaultKind.SNAPPED, FaultKind.SLACK}
        assert min(time for time, fault in loop.faults if fault.tendon == "B1-bot") - snapped <= 0.12


@pytest.mark.parametrize(
    ("controller", "fault", "tendon", "elsewhere"),
    [
        ("task", lambda faults, name: faults.jam(name), "B3-top", True),
        ("qp", lambda faults, name: faults.pull_shaft(name, -0.56), "B3-top", True),
        ("joint_position", lambda faults, name: faults.jam(name), "B2-bot", None),
        ("task", lambda faults, name: None, "", False),
        ("qp", lambda faults, name: None, "", False),
    ],
    ids=["jam-task", "pull-qp", "jam-joint_position", "task", "qp"],
)
def test_a_spool_that_is_caught_or_pulled_is_a_fault_or_said_where_it_leaves_the_output_elsewhere(
    controller, fault, tendon, elsewhere
) -> None:
    """Servos with an impedance may stand off where they are sent as far as a load explains: no fault of theirs."""
    with hardware_loop(MANIPULATOR, controller, period=0.02) as loop:
        position, quaternion = loop.emulated.observe().pose
        answer = loop.send((np.add(position, [0.008, 0.007, -0.006]), quaternion))
        loop.run(0.2 * answer.duration)
        fault(loop.emulated.faults, tendon)
        loop.run(0.8 * answer.duration + SETTLING + 0.5)
        off = float(np.linalg.norm(loop.emulated.observe().pose[0] - loop.control.reference(loop.time).pose[0]))
        found = bool(loop.stopped or loop.off)
        assert found or off < 1.2e-3  # of which 0.2 mm are the estimate's
        if elsewhere is not None:
            assert found == elsewhere, (off, loop.off, loop.faults)


def test_uneven_cycles_that_were_seen_before_a_tour_slacken_no_tendon_wherever_they_fall() -> None:
    with hardware_loop(MANIPULATOR, "task", Clockwork(measured=measured("run_1")), period=0.02) as loop:
        loop.run(6.0)  # all that was measured, at rest; the long cycles then fall into other motions
        assert len(loop.tour()) == 5
        assert not loop.faults
        assert loop.lowest > 0.0  # 1.3 N of 5 for a moment


def test_a_goal_on_whose_way_the_computer_was_too_busy_is_reached_when_it_is_idle_again() -> None:
    with hardware_loop(MANIPULATOR, "qp", period=0.02) as loop:
        goal = loop.emulated.observe().pose[0] + (0.0, 0.0, -0.1)
        duration = loop.send((goal, None)).duration
        loop.run(0.55 * duration)
        since = loop.time - loop.began
        freezes = tuple((since + 0.08 * k, 0.06) for k in range(25))  # every fourth cycle is answered
        loop.clockwork, loop.late = replace(loop.clockwork, freezes=freezes), LateMessages(3, 5, 0)
        loop.run(2.0)
        assert "held by the actuators' impedances alone" in " ".join(loop.control.relaxed())
        loop.late = LateMessages(0, 0, 0)
        loop.run(duration + SETTLING)
        assert not loop.faults and loop.lowest > 5.0  # the floor of the manipulator
        assert np.linalg.norm(loop.emulated.observe().pose[0] - goal) < 1e-3


@pytest.mark.parametrize(
    ("robot", "controller", "tendon", "slip"),
    [
        (MANIPULATOR, "joint_position", "B1-top", 0.01),
        (MANIPULATOR, "task", "B1-top", 0.003),
        (TENSEBOT, "", "saddle_1", 0.003),
        (with_servos(TENSEBOT, "XM430-W350"), "", "saddle_1", 0.006),
    ],
    ids=["joint_position", "task", "wheels", "turning"],
)
def test_a_tendon_that_slips_on_its_spool_is_found_or_breaks_no_ceiling_and_no_limit(
    robot, controller, tendon, slip
) -> None:
    """Its own encoder shows nothing: if the tension stays, the length is wrong by the slip, and so is the output."""
    with hardware_loop(robot, controller) as loop:
        answer = loop.send(goal_of(robot.tour[0], loop.emulated.observe().pose))
        loop.run(0.4 * answer.duration)
        loop.emulated.faults.slip(tendon, slip)

        def look() -> None:
            seen = loop.emulated.observe()
            for each in robot.actuators:
                low, high = each.position
                assert low <= seen.positions[each.name] <= high
                assert abs(seen.efforts[each.name]) <= 1.05 * each.effort

        loop.run(0.6 * answer.duration + SETTLING, look)
        assert {fault.kind for _, fault in loop.faults} <= {FaultKind.SNAPPED, FaultKind.SLACK}
        assert np.isfinite(loop.emulated.observe().pose[0]).all()
