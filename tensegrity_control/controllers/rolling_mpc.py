"""Rolling with all cables: each roll onto another face is tipped by model predictive control instead of one cable.

The horizons (`rolling.tipping_mpc`) choose the rates of all cables until the centre of mass is outside the face. If a
horizon is not solved in time (iterations, or wall-clock time if limited), or the horizons do not move the structure
nearer to tipping, the gait with one cable takes over for the rest of this roll; diagnostics report how often and why.
Plans use the results of simulated rolls by horizons, which differ from those of the cable alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from tensegrity_dynamics.numerics.types import Array
from tensegrity_dynamics.robots.robot import Robot

from ..controller import Setting
from ..rolling.gait import Roll, RollingBody
from ..rolling.hill_map import make_roll_map
from ..rolling.roll_map import Outcome, RollMap, Stand
from ..rolling.tipping_mpc import Horizon, HorizonSettings, PredictedRoll, TippingMPC
from .rolling import RollingController


class RollingMPCController(RollingController):
    """Rolling by model predictive control; see the module.

    Args:
        robot, rigid_bars, rate_margin, tolerance: as in `RollingController`.
        solver: solver of quadratic programs: "piqp", "osqp" or "daqp".
        blocks: number of blocks of a horizon.
        block: s, duration of a block.
        iteration_limit: iteration limit of the solver, 0 for the default.
        time_limit: s, wall-clock time for one horizon, 0 for no limit.

    Attributes:
        horizons: results of all horizons.
        took_over: reason of each takeover by the gait.
    """

    GAINS = ("tolerance", "time_limit")
    ABOUT: ClassVar[Mapping[str, Setting]] = {
        **RollingController.ABOUT,
        "time_limit": Setting("wall time for one horizon, after which the single-cable gait takes over [s]; 0: none"),
    }

    def __init__(
        self, robot: Robot, *, rigid_bars: bool = True, rate_margin: float = 0.9, tolerance: float = 0.0,
        solver: str = "piqp", blocks: int = 5, block: float = 0.2, iteration_limit: int = 0, time_limit: float = 0.0,
    ) -> None:  # fmt: skip
        self._horizon = HorizonSettings(blocks=blocks, block=block, solver=solver, iteration_limit=iteration_limit)
        self._rigid_bars = rigid_bars
        super().__init__(robot, rigid_bars=rigid_bars, rate_margin=rate_margin, tolerance=tolerance)
        timed = replace(self._horizon, time_limit=time_limit)  # plans have no time limit
        self._mpc = TippingMPC(self.rolls.body, timed, rate_margin, rigid_bars=rigid_bars)
        self.horizons: list[Horizon] = []
        self.took_over: list[str] = []

    def gains(self) -> dict[str, float]:
        return {**super().gains(), "time_limit": self._mpc.settings.time_limit}

    def set_gains(self, **values: float) -> None:
        checked = self.checked_gains(values)
        settings = replace(self._mpc.settings, time_limit=checked.pop("time_limit", self._mpc.settings.time_limit))
        super().set_gains(**checked)
        self._mpc.settings = settings

    def diagnostics(self) -> dict[str, str]:
        values = super().diagnostics()
        values["horizons"] = str(len(self.horizons))
        if self.horizons:
            values["horizon_ms"] = f"{1e3 * self.horizons[-1].seconds:.3g}"
        why = self._roll.why if isinstance(self._roll, PredictedRoll) else ""
        if why or self.took_over:
            values["gait_took_over"] = f"{len(self.took_over) + bool(why)} times, last: {why or self.took_over[-1]}"
        return values

    def _make_rolls(self, rigid_bars: bool) -> RollMap:
        return make_roll_map(self.robot, self._settings, rigid_bars=rigid_bars, tipped_by=self._in_the_model)

    def _in_the_model(self, body: RollingBody, cable: int, nodes: Array, after: Array) -> Roll:
        """The same roll for plans, with its own solver, so that warm starts of plans and robot remain separate."""
        margin = self._settings.rate_margin
        mpc = TippingMPC(body, self._horizon, margin, rigid_bars=self._rigid_bars)
        return PredictedRoll(
            body, cable, self._settings, 0.0, nodes, body.neutral, mpc=mpc, onto=body.reader.touching(after),
            end=body.position(after), report=lambda horizon: None,
        )  # fmt: skip

    def _make_roll(self, time: float, stand: Stand, roll: Outcome) -> Roll:
        end = self.rolls.after(stand, roll).position
        return PredictedRoll(
            self.rolls.body, roll.cable, self._settings, time, self._nodes, self._positions, mpc=self._mpc,
            onto=roll.feet, end=end, report=self.horizons.append,
        )  # fmt: skip

    def _finish(self, time: float, roll: Roll) -> None:
        if isinstance(roll, PredictedRoll) and roll.why:
            self.took_over.append(roll.why)
        super()._finish(time, roll)
