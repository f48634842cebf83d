"""What servos do when nobody speaks to them any more, and how a driver comes back to a robot that is still tight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from bus_fault_cases import HOME, K, N
from emulated_cell import TURNING, WHEELS, EmulatedCell, emulated_cell

from tensegrity_driver.calibration.line_fit import CalibrationError
from tensegrity_driver.calibration.turn_counter import load_turns, turns_path
from tensegrity_driver.safety.faults import FaultKind
from tensegrity_dynamics.command_gate import Mode
from tensegrity_dynamics.errors import CommandRefused

WATCHDOG = 0.5
"""s after which the driver lets an X servo stop by itself."""
FAR = 0.01
"""m: a goal that takes more than 30 cycles."""


def moving(cell: EmulatedCell) -> None:
    """On its way to a goal that it will not have reached."""
    cell.run(5)
    cell.goals = {N: cell.length(N) + FAR}
    cell.run(10)


def kill_driver(cell: EmulatedCell) -> None:
    """The program is gone from one moment to the next: nothing is sent any more, and its ports are closed."""
    cell.driver.close()


def start_again(cell: EmulatedCell) -> None:
    cell.driver = cell.open()
    cell.driver.begin(lambda: cell.now)
    cell.goals = {}


def test_x_servos_stop_by_their_watchdog_when_the_driver_is_killed(tmp_path: Path) -> None:
    with emulated_cell(tmp_path, TURNING) as cell:
        moving(cell)
        kill_driver(cell)
        cell.run_world_only(round(WATCHDOG / cell.period) + 1)
        stands = cell.lengths()
        assert all(fired(cell, name) for name in stands)
        cell.run_world_only(50)
        assert cell.lengths() == pytest.approx(stands, abs=1e-6)


def fired(cell: EmulatedCell, name: str) -> bool:
    """The bus watchdog of a servo reads -1: it has stopped it."""
    return cell.emulated.register(name, "bus_watchdog") < 0.0


def test_x_servos_never_get_further_than_they_were_sent_when_the_driver_is_killed(tmp_path: Path) -> None:
    with emulated_cell(tmp_path, TURNING) as cell:
        moving(cell)
        sent, here = cell.driver.sent[N].value, cell.length(N)
        kill_driver(cell)
        cell.run_world_only(50)
        spool = cell.driver.spools[N]
        lead = cell.settings.lag * cell.settings.period
        assert here <= cell.length(N) <= sent + 1e-5
        assert sent - here <= spool.actuator.rate * lead + 1e-5


def test_ax_servos_have_no_watchdog_and_go_on_within_their_torque_limit(tmp_path: Path) -> None:
    """Why docs/faults.md asks for a switch within reach: this is not mended by any driver."""
    with emulated_cell(tmp_path, WHEELS) as cell:
        cell.run(5)
        cell.goals = {N: cell.length(N) - FAR}
        cell.run(10)
        kill_driver(cell)
        cell.disobedient = (N,)
        cell.run_world_only(100)  # no tendon passes its ceiling all the same: the cell asserts it
        before = cell.length(N)
        cell.world(cell.period)
        assert cell.length(N) < before - 1e-4


@pytest.mark.sampled(1)
@pytest.mark.parametrize("servos", [WHEELS, TURNING])
def test_a_driver_that_is_started_again_on_a_tight_robot_takes_it_over_without_a_jump(
    servos: str, tmp_path: Path
) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        moving(cell)
        cell.goals = {}
        cell.driver.end()
        cell.run_world_only(3)
        stands, tension = cell.lengths(), cell.tension(N)
        cell.driver.close()
        start_again(cell)
        step = cell.run(40)
        assert not step.faults
        assert tension > 50.0
        assert cell.lengths() == pytest.approx(stands, abs=2e-4)
        goes_on(cell)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("servos", [WHEELS, TURNING])
def test_a_driver_that_was_killed_on_the_way_is_started_again_from_where_the_robot_is(
    servos: str, tmp_path: Path
) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        moving(cell)
        kill_driver(cell)
        cell.run_world_only(30)
        start_again(cell)
        stands = cell.lengths()
        step = cell.run(40)
        assert not step.faults
        assert cell.lengths() == pytest.approx(stands, abs=2e-4)
        goes_on(cell)


def goes_on(cell: EmulatedCell) -> None:
    """New goals are followed, from here."""
    cell.go_to(N, cell.length(N) - 0.002, within=50)
    assert not cell.faults


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("cut", "kind"),
    [(lambda c: c.emulated.faults.silence(N), K.SERVO_SILENT), (lambda c: c.emulated.faults.unplug(), K.PORT_LOST)],
    ids=["cable", "adapter"],
)
def test_an_x_servo_whose_line_is_cut_on_the_way_stops_where_it_was_sent(
    cut: Callable[[EmulatedCell], object], kind: FaultKind, tmp_path: Path
) -> None:
    with emulated_cell(tmp_path, TURNING) as cell:
        moving(cell)
        sent, here = cell.driver.sent[N].value, cell.length(N)
        cut(cell)
        cell.run(7)
        assert kind in cell.kinds
        assert here <= cell.length(N) <= sent + 1e-5


def test_an_ax_servo_whose_line_is_cut_on_the_way_in_goes_on_within_its_torque_limit(tmp_path: Path) -> None:
    with emulated_cell(tmp_path, WHEELS) as cell:
        cell.run(5)
        cell.goals = {N: cell.length(N) - FAR}
        cell.run(10)
        here = cell.length(N)
        cell.emulated.faults.silence(N)
        cell.disobedient = (N,)
        cell.run(10)
        assert (K.SERVO_SILENT, N) in cell.faults
        assert cell.length(N) < here - 1e-3
        cell.emulated.faults.mend()
        cell.run(10)  # it hears again that it shall hold
        stands = cell.length(N)
        cell.run(10)
        assert cell.length(N) == pytest.approx(stands, abs=3e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("servos", [WHEELS, TURNING])
def test_a_supply_that_goes_off_and_on_for_all_servos_is_found_and_none_comes_on_by_itself(
    servos: str, tmp_path: Path
) -> None:
    """The robot collapses, which no driver can help; what it must not do is wind in while it falls."""
    with emulated_cell(tmp_path, servos) as cell:
        moving(cell)
        cell.emulated.faults.power_cycle()
        cell.pulled = True  # by its own weight
        found = [fault for _ in range(2) for fault in cell.run(1).new]
        assert {fault.tendon for fault in found} >= set(cell.driver.spools)
        assert {fault.kind for fault in found} <= {
            K.SERVO_RESTARTED,
            K.TURNS_LOST,
            K.RUNAWAY,
            K.WRONG_SIGN,
            K.SPOOL_LIMIT,
        }
        assert set(cell.driver.link.unprepared()) == set(cell.driver.spools)
        before = cell.lengths()
        cell.run(6)
        for name, length in cell.lengths().items():
            assert cell.emulated.register(name, "torque_enable") == 0.0
            assert length > before[name] - 1e-4


def test_turns_lost_while_the_driver_was_off_are_refused_before_torque_comes_on(tmp_path: Path) -> None:
    with emulated_cell(tmp_path, TURNING) as cell:
        cell.run(5)
        cell.driver.end()
        cell.driver.close()
        cell.emulated.faults.power_cycle(N)
        cell.driver = cell.open()
        with pytest.raises(CommandRefused, match=f"{N} lost power and may have lost turns.*home it again"):
            cell.driver.begin(lambda: cell.now)
        assert cell.emulated.register(N, "torque_enable") == 0.0
        cell.home(N)  # a new calibration makes the memory void
        cell.driver.begin(lambda: cell.now)
        cell.run(5)


def test_a_memory_of_turns_of_another_calibration_is_void_and_a_damaged_one_an_error_in_words(tmp_path: Path) -> None:
    with emulated_cell(tmp_path, TURNING) as cell:
        cell.run(5)
        cell.driver.end()
        path = turns_path(cell.path)
        assert set(load_turns(cell.path, cell.driver.calibration)) == set(cell.driver.spools)
        assert load_turns(cell.path, replace(cell.driver.calibration, revision=99)) == dict.fromkeys(cell.driver.spools)
        for damaged in (b"", b"{", b"[]", b'{"revision": 1, "spools": {"draw_1": 3}}'):
            path.write_bytes(damaged)
            with pytest.raises(CalibrationError, match="damaged"):
                load_turns(cell.path, cell.driver.calibration)
        path.unlink()
        assert load_turns(cell.path, cell.driver.calibration) == {}


# -- at the limits -----------------------------------------------------------------------------------------------------


@pytest.mark.sampled(1)
@pytest.mark.parametrize("servos", [WHEELS, TURNING])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_spools_that_are_driven_at_full_rate_to_their_limits_stop_there(
    servos: str, sign: float, tmp_path: Path
) -> None:
    limits = {name: (HOME - 0.003, HOME + 0.003) for name in ("draw_1", "draw_2", "draw_3", "saddle_1")}
    with emulated_cell(tmp_path, servos, limits=limits) as cell:
        cell.run(5)
        cell.mode = Mode.VELOCITY
        cell.goals = dict.fromkeys(limits, 0.015 * sign)
        cell.run(60)
        for name in limits:
            assert 0.0026 < sign * (cell.length(name) - HOME) < 0.0031
        assert cell.kinds <= {K.REFUSED_COMMANDS}  # at the limit the gate lets none of them pass


@pytest.mark.sampled(1)
@pytest.mark.parametrize("servos", [WHEELS, TURNING])
def test_tendons_that_are_all_wound_in_for_long_stay_below_their_ceilings(servos: str, tmp_path: Path) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        cell.run(5)
        cell.mode = Mode.VELOCITY
        cell.goals = dict.fromkeys((name for name in cell.driver.spools if name.startswith("saddle")), -0.015)
        cell.run(220)
        assert 0.85 < cell.worst_tension <= 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("torque", "found"), [(-0.7, set()), (-1.5, {K.WRONG_SIGN})], ids=["slowly", "fast"])
def test_a_spool_that_is_pulled_over_its_ceiling_gives_way_and_tells_no_more_than_its_ceiling(
    torque: float, found: set[FaultKind], tmp_path: Path
) -> None:
    """Why docs/faults.md says how to be told of it before."""
    with emulated_cell(tmp_path, TURNING) as cell:
        cell.run(5)
        before, effort = cell.length(N), cell.driver.spools[N].actuator.effort
        cell.emulated.faults.pull_shaft(N, torque)
        for _ in range(50):
            cell.run(1)
            assert cell.driver.readings.tendons[N].tension <= 1.01 * effort
        assert cell.length(N) > before + 1e-3
        assert cell.kinds - {K.SLACK} == found


@pytest.mark.parametrize("servos", [WHEELS, TURNING])
def test_a_spool_that_ran_out_without_torque_holds_where_it_is_when_its_servo_is_prepared_again(
    servos: str, tmp_path: Path
) -> None:
    with emulated_cell(tmp_path, servos) as cell:
        cell.run(5)
        before, cell.disobedient = cell.length(N), (N,)
        cell.emulated.faults.lose_torque(N)
        cell.run(12)
        assert cell.length(N) > before + 0.002 and K.SERVO_RESTARTED in cell.kinds
        cell.driver.recover()
        cell.run(1)
        stands = cell.lengths()
        cell.driver.clear()  # it did not turn by itself or against its command: it was without torque
        cell.run(25)
        assert cell.lengths() == pytest.approx(stands, abs=3e-4)


def test_a_spool_that_ran_out_without_torque_does_not_go_back_while_another_fault_keeps_it_from_release(
    tmp_path: Path,
) -> None:
    with emulated_cell(tmp_path, TURNING) as cell:
        cell.run(5)
        before, cell.disobedient = cell.length(N), (N,)
        cell.emulated.faults.lose_torque(N)
        cell.emulated.faults.heat("draw_2", 71.0)
        cell.run(12)
        cell.driver.recover()
        cell.run(1)
        with pytest.raises(CommandRefused, match="draw_2"):
            cell.driver.clear()
        stands = cell.length(N)
        cell.run(40)
        assert cell.length(N) == pytest.approx(stands, abs=3e-4) and stands > before + 0.002


@pytest.mark.parametrize("fault", ["mute", "damage"])
@pytest.mark.parametrize("out", [FAR, -FAR])
def test_a_wheel_whose_answers_are_lost_on_the_way_stops(fault: str, out: float, tmp_path: Path) -> None:
    with emulated_cell(tmp_path, WHEELS) as cell:
        cell.run(5)
        cell.goals = {N: cell.length(N) + out}
        cell.run(10)
        assert not cell.faults and abs(cell.length(N) - HOME) > 0.001
        getattr(cell.emulated.faults, fault)(N)
        cell.run(6)
        assert K.SERVO_SILENT in cell.kinds
        stands = cell.length(N)
        cell.run(20)
        assert cell.length(N) == pytest.approx(stands, abs=3e-4)
        assert cell.kinds <= {K.SERVO_SILENT, K.BAD_PACKETS, K.DUPLICATE_ID}
