"""A third kind of robot, registered from outside: a load that hangs on an elastic rope from a winch.

The load of mass m moves along z only. With l = top - z the rope pulls with t = max(0, k (l - d) + c l'), d being the
rest length that the winch lets out:

    m z'' = t - m g + f
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import Field

from tensegrity_dynamics import Robot, RobotModel, RobotType, TensegrityError
from tensegrity_dynamics.errors import unknown_name
from tensegrity_dynamics.estimation_interface import Estimate, Estimator
from tensegrity_dynamics.robots.file_errors import Problems
from tensegrity_dynamics.robots.output_frame import OutputFrame
from tensegrity_dynamics.robots.report import (
    KinematicsOptions,
    Report,
    RobotReport,
    Section,
    closing_rows,
    drive_notes,
    facts,
)
from tensegrity_dynamics.robots.robot_types import BuiltModel
from tensegrity_dynamics.robots.schema import CommonBlock, Damping, Length, Mass, PositiveLength, Stiffness
from tensegrity_dynamics.robots.state_record import DecodedState, StateCodec, StateRecord
from tensegrity_dynamics.simulation_interface import (
    EFFORT,
    MODES,
    POSITION,
    VELOCITY,
    Energy,
    Observation,
    Simulator,
    checked_commands,
)
from tensegrity_dynamics.visualization.picture import LineSet, Link, Picture, Snapshot, Solid, with_frame_names
from tensegrity_dynamics.visualization.style import Sizes, smallest_full_scale

FILE = """\
kind: hoist
name: crane
description: a load on an elastic rope
units: {length: mm}
top: 2 m
mass: 3 kg
rope: {rest_length: 800, stiffness: 2 N/mm, damping: 20 N s/m}
actuators:
  - {name: winch, drives: rope, position: [200, 1800], rate: 300 mm/s, effort: 200 N}
tour:
  - {name: lower, move: [0, 0, -300]}
  - {name: back, move: [0, 0, 0]}
provenance:
  - {fields: rope, status: assumed, note: made up}
"""


class RopeBlock(CommonBlock.__base__):  # type: ignore[name-defined,misc]
    rest_length: PositiveLength
    stiffness: Annotated[Stiffness, Field(gt=0)]
    damping: Annotated[Damping, Field(ge=0)] = 0.0


class HoistFile(CommonBlock):
    """Fields of the robot file."""

    kind: Literal["hoist"]
    top: Length
    mass: Annotated[Mass, Field(gt=0)]
    rope: RopeBlock


@dataclass(frozen=True)
class LoadFrame(OutputFrame):
    """The load, as the output that goals move along z."""

    name: str = "load"
    controlled: tuple[str, ...] = ("z",)


@dataclass(frozen=True)
class Hoist(RobotModel):
    """Its configuration is (z,), height of the load [m]."""

    kind: ClassVar[str] = "hoist"
    noun: ClassVar[str] = "a hoist"

    top: float
    mass: float
    rest_length: float
    stiffness: float
    damping: float
    gravity: float

    @property
    def tension_names(self) -> tuple[str, ...]:
        return ("rope",)

    @property
    def tension_kinds(self) -> Mapping[str, str]:
        return {"rope": "rope"}

    @property
    def initial_configuration(self) -> np.ndarray:
        return np.array([self.height(self.rest_length)])

    def height(self, rest_length: float) -> float:
        """Of the load at rest [m]."""
        return self.top - rest_length - self.mass * self.gravity / self.stiffness

    def output_pose(self, output: LoadFrame, configuration: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.array([0.0, 0.0, configuration[0]]), np.array([1.0, 0.0, 0.0, 0.0])

    def tendon_stiffness(self, driven: str) -> float:
        return self.stiffness

    def tension(self, z: float, speed: float, rest_length: float) -> float:
        stretch = self.top - z - rest_length
        return max(0.0, self.stiffness * stretch - self.damping * speed) if stretch > 0.0 else 0.0


def build(block: HoistFile, problems: Problems) -> BuiltModel:
    rope = block.rope
    if rope.rest_length >= block.top:
        problems.add(("rope", "rest_length"), f"{rope.rest_length:g} m reach the ground; make it shorter than the top.")
    model = Hoist(block.top, block.mass, rope.rest_length, rope.stiffness, rope.damping, -block.gravity[2])
    return BuiltModel(model, {"rope": "tendon"}, (LoadFrame(),), {"rope": rope.rest_length})


@dataclass(frozen=True)
class HoistState:
    """(z,) m and (z',) m/s at a time [s], and the rest length of the rope [m]."""

    time: float
    configuration: np.ndarray
    velocity: np.ndarray
    rest_length: float


class HoistSimulator(Simulator):
    """Heun's method on z and z'; the winch follows its set point within its rate and position limits."""

    def __init__(self, robot: Robot, time_step: float | None, integrator: str, **options: Any) -> None:
        if integrator not in ("heun",):
            raise TensegrityError(unknown_name("integrator of hoists", integrator, ("heun",)))
        self.model, self.integrator = robot.model_as(Hoist), integrator
        (self.winch,) = robot.actuators
        start = options.get("start")
        self._start = self.model.initial_configuration if start is None else np.array(start, dtype=float)
        self.shortest_period = float(2.0 * np.pi * np.sqrt(self.model.mass / self.model.stiffness))
        self.time_step = self.shortest_period / 200.0 if time_step is None else time_step
        self.reset()

    def reset(self) -> None:
        self._z, self._speed, self._rest, self._rate = float(self._start[0]), 0.0, self.model.rest_length, 0.0
        self._mode, self._target, self._steps, self._force = POSITION, self._rest, 0, 0.0
        self._work = dict.fromkeys(("actuators", "damping", "forces"), 0.0)

    def hold(self) -> None:
        self._mode, self._target = POSITION, self._rest

    @property
    def time(self) -> float:
        return self._steps * self.time_step

    @property
    def state(self) -> HoistState:
        return HoistState(self.time, np.array([self._z]), np.array([self._speed]), self._rest)

    def command(self, mode: str, values: Mapping[str, float], *, age: float = 0.0, period: float = 0.0) -> None:
        for value in checked_commands(mode, values, (self.winch.name,)).values():
            self._mode, self._target = MODES[mode], value

    def apply_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> None:
        forces = {} if forces is None else forces
        if not isinstance(forces, Mapping) or set(forces) - {"load"}:
            raise TensegrityError(unknown_name("body", ", ".join(forces), ["load"]))
        self._force = float(np.asarray(forces.get("load", (0.0, 0.0, 0.0)))[2])

    def set_motion(self, velocity: ArrayLike) -> None:
        (self._speed,) = np.asarray(velocity, dtype=float)

    def set_state(self, configuration: ArrayLike, velocity: ArrayLike | None = None) -> None:
        (self._z,) = np.asarray(configuration, dtype=float)
        self.set_motion(np.zeros(1) if velocity is None else velocity)

    def _acceleration(self, z: float, speed: float, rest: float) -> float:
        return (self.model.tension(z, speed, rest) + self._force) / self.model.mass - self.model.gravity

    def advance(self, steps: int) -> None:
        model, step, (low, high) = self.model, self.time_step, self.winch.position
        for _ in range(steps):
            z, speed, rest = self._z, self._speed, self._rest
            tension = model.tension(z, speed, rest)
            desired = {
                POSITION: (self._target - rest) / step,
                VELOCITY: self._target,
                EFFORT: (tension - self._target) / (0.05 * model.stiffness),
            }[self._mode]
            rate = min(max(desired, -self.winch.rate), self.winch.rate)
            next_rest = min(max(rest + rate * step, low), high)
            first = self._acceleration(z, speed, rest)
            second = self._acceleration(z + step * speed, speed + step * first, next_rest)
            self._z += 0.5 * step * (2.0 * speed + step * first)
            self._speed += 0.5 * step * (first + second)
            self._rest, self._rate = next_rest, (next_rest - rest) / step
            elastic = model.stiffness * max(0.0, model.top - z - rest)
            after = model.stiffness * max(0.0, model.top - self._z - next_rest)
            self._work["forces"] += self._force * (self._z - z)
            self._work["actuators"] -= 0.5 * (elastic + after) * (next_rest - rest)
            self._work["damping"] += step * model.damping * (speed + 0.5 * step * first) ** 2 * (tension > 0.0)
            self._steps += 1

    def observe(self) -> Observation:
        length, tension = self.model.top - self._z, self.model.tension(self._z, self._speed, self._rest)
        name = self.winch.name
        twist = np.array([0.0, 0.0, self._speed, 0.0, 0.0, 0.0])
        pose = self.model.output_pose(LoadFrame(), np.array([self._z]))
        return Observation(
            self.time, {"rope": length}, {"rope": self._rest}, {"rope": tension}, {name: self._rest},
            {name: self._rate}, {name: tension}, pose, twist,
        )  # fmt: skip

    def energy(self) -> Energy:
        stretch = max(0.0, self.model.top - self._z - self._rest)
        return Energy(
            kinetic=0.5 * self.model.mass * self._speed**2,
            elastic=0.5 * self.model.stiffness * stretch**2,
            gravity=self.model.mass * self.model.gravity * self._z,
            **self._work,
        )


class HoistEstimator(Estimator):
    """Where the load hangs at rest for a rest length of the rope."""

    def __init__(self, robot: Robot, *, rigid_bars: bool = True) -> None:
        self.model = robot.model_as(Hoist)
        (self.winch,) = robot.actuators
        self.reset()

    @property
    def actuators(self) -> tuple[str, ...]:
        return (self.winch.name,)

    def reset(self) -> None:
        self._last: Estimate | None = None

    def solve(self, positions: Mapping[str, float], method: str = "newton") -> Estimate:
        for name in positions:
            if name not in (self.winch.name, "rope"):
                raise TensegrityError(unknown_name("actuator", name, (self.winch.name,)))
        (rest,) = positions.values() if positions else (self.model.rest_length,)
        return self._estimate(0.0, self.model.height(rest), 0.0)

    def update(
        self,
        time: float,
        positions: Mapping[str, float],
        efforts: Mapping[str, float] | None = None,
        tensions: Mapping[str, float] | None = None,
    ) -> Estimate:
        last, z = self._last, float(self.solve(positions).configuration[0])
        speed = 0.0 if last is None or time <= last.time else (z - last.configuration[0]) / (time - last.time)
        self._last = self._estimate(time, z, speed)
        return self._last

    def _estimate(self, time: float, z: float, speed: float) -> Estimate:
        configuration = np.array([z])
        return Estimate(
            time=time, configuration=configuration, velocity=np.array([speed]),
            pose=self.model.output_pose(LoadFrame(), configuration), twist=np.array([0.0, 0.0, speed, 0.0, 0.0, 0.0]),
            tensions={"rope": self.model.mass * self.model.gravity}, slack=(), residual=0.0,
            softest=self.model.stiffness, stable=True, converged=bool(np.isfinite(z)),
        )  # fmt: skip


class HoistCodec(StateCodec):
    """One coordinate, the height of the load."""

    def __init__(self, robot: Robot) -> None:
        self._robot = robot

    def encode(self, state: Any, pose: Any = None, twist: Any = None) -> StateRecord:
        return StateRecord(
            coordinate_name=("height",), q=state.configuration, v=state.velocity, output_name="load", output_pose=pose,
            output_twist=twist,
        )  # fmt: skip

    def decode(self, record: StateRecord) -> DecodedState:
        if tuple(record.coordinate_name) != ("height",):
            raise TensegrityError(f"the state lists {list(record.coordinate_name)}, a hoist has its height.")
        return DecodedState(record.q, record.v)

    def tensions(self, names: Sequence[str], tensions: Sequence[float], configuration: np.ndarray) -> np.ndarray:
        by_name = dict(zip(names, tensions, strict=False))
        return np.array([by_name.get("rope", by_name.get(self._robot.actuators[0].name, np.nan))])


class HoistReport(RobotReport):
    """What commands print of a hoist."""

    def check(self) -> Report:
        model, rest = self.robot.model_as(Hoist), HoistEstimator(self.robot).solve({})
        rows = [
            ("load", f"{model.mass:g} kg, {1e3 * rest.configuration[0]:.1f} mm above the ground"),
            ("rope", f"{model.stiffness:g} N/m, carries {rest.tensions['rope']:.4g} N"),
            *closing_rows(self.robot),
        ]
        figures = {**facts(self.robot), "mass_kg": model.mass, "height_m": rest.configuration[0]}
        return Report(
            figures, [Section("hoist", ("", ""), rows)], heading=(self.robot.name, self.robot.description),
            notes=drive_notes(self.robot), verdict="It hangs.",
        )  # fmt: skip

    def forward_kinematics(self, options: KinematicsOptions) -> Report:
        lengths = {item.partition("=")[0]: float(item.partition("=")[2]) for item in options.lengths}
        height = float(HoistEstimator(self.robot).solve(lengths).configuration[0])
        return Report({"height_m": height}, [Section("load", ("", ""), [("height", f"{1e3 * height:.1f} mm")])])

    def not_stable(self, called: str) -> str:
        return f"{called} does not hang."


class HoistPicture(Picture):
    """The load as a box, and the rope above it."""

    def __init__(self, robot: Robot) -> None:
        model = robot.model_as(Hoist)
        side, self._top = 0.1 * model.top, np.array([0.0, 0.0, model.top])
        self.name, self.start = robot.name, model.initial_configuration
        self.sizes = Sizes(
            span=model.top, bar=0.02 * model.top, tendon=0.01 * model.top, spring=0.02 * model.top,
            node=0.02 * model.top, axes=0.1 * model.top, axes_radius=0.01 * model.top,
        )  # fmt: skip
        inertia = model.mass * side**2 / 6.0 * np.eye(3)
        self.links = with_frame_names([Link("box", model.mass, inertia=inertia), Link("load")])
        self.solids = (Solid(0, "bodies", "box", (side, side, side)),)
        self.line_sets = (LineSet("ropes", np.array([0]), "strand", self.sizes.tendon),)
        self.tension_names, self.unilateral, self.plotted = ("rope",), np.array([True]), np.array([0])
        self.smallest_full_scale = smallest_full_scale([model.stiffness * model.rest_length])
        self.outline = np.vstack((self._top, np.zeros(3)))
        self.goal_corners, self.has_orientation, self.goal_sets_orientation = np.zeros((1, 3)), False, False
        self.label_kind, self.label_names = "loads", ("load",)

    def at(self, configuration: np.ndarray) -> Snapshot:
        load, upright = np.array([0.0, 0.0, configuration[0]]), np.array([1.0, 0.0, 0.0, 0.0])
        return Snapshot(
            load[None], upright[None], np.array([self.solids[0].size]), (np.array([[self._top, load]]),),
            [(load, upright)] * 2, (load, upright), load[None],
        )  # fmt: skip

    def problem(self, configuration: np.ndarray) -> str | None:
        return None if np.shape(configuration) == (1,) and np.isfinite(configuration[0]) else "a hoist has one height"


HOIST = RobotType(
    name="hoist",
    model=Hoist,
    schema=HoistFile,
    builder=build,
    motions=lambda data: lambda driven: "tendon",
    simulator=HoistSimulator,
    integrators=("heun",),
    estimators={"rest": HoistEstimator},
    codec=HoistCodec,
    report=HoistReport,
    picture=HoistPicture,
)
