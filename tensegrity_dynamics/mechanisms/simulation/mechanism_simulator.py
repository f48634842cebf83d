"""Simulation of a mechanism: state, actuators and sensors over the compiled integrators."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, StepTooShortError, TensegrityError, unknown_name
from ...impedance import ImpedanceSetPoint, MovingPosition, lead_of
from ...linear_models.linear_model import LinearModel
from ...numerics.compilation import QuickCall
from ...numerics.number_array import number_array
from ...numerics.short_repr import ShortRepr
from ...robots.robot import Robot
from ...simulation_interface import (
    EFFORT,
    IMPEDANCE,
    IMPLICIT_STEP,
    MODES,
    POSITION,
    Energy,
    Observation,
    SensorReadings,
    Simulator,
    checked_commands,
)
from ..body_poses import BodyPoses
from ..contact_readings import contact_forces, ground_energy, point_jacobians, point_normals, read_contacts
from ..dynamics.equations_of_motion import cable_efforts, evaluate
from ..dynamics.forward_dynamics import SINGULAR_MASS, accelerate, massless_message
from ..dynamics.linearisation import linearise
from ..dynamics.rigid_tensions import RigidTensions, pushing
from ..dynamics.state_derivative import NOT_CLOSED, make_displacement_workspace, state_derivative
from ..kinematics.loop_closure import assemble, project_onto_loops
from ..kinematics.loop_reduction import make_reduction_workspace
from ..late_kernels import CONTACTS, ENTRIES
from ..loads import Payload
from ..mechanism import FlatMechanism, Mechanism, check_state, put_on
from ..mechanism_model import MechanismModel
from ..resistance import (
    CARRIED,
    DAMPING,
    EFFICIENCY,
    FIRST,
    FRICTION,
    HIGH,
    KIND,
    LAW,
    LOW,
    STIFFNESS,
    STOP_DAMPING,
    STOP_STIFFNESS,
    TREE,
)
from ..route_readings import RouteReading, read_routes, set_slips, slip_words, slips, with_slips
from ..routing.columns import SLIP, STATUS, WHERE
from ..routing.route import route_problem
from ..routing.slip import hold_contacts
from ..statics.equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from ..workspace import make_stage_workspace, make_workspace
from .actuation import BROKEN_ROUTE, DRIVE_STATE, PAST_END, Drives, Ends, drive, load_gears, make_drives, servo_torques
from .adaptive import integrate
from .powers import powers_of
from .rigid_routes import RigidRoutes, Stepper, refuse_adaptive, refuse_implicit

SOFTEST_HOLD = 0.01
"""Largest deflection of an impedance under its feed-forward while holding, relative to the position range. Softer
impedances are replaced by a servo that holds the position."""
GIVEN = ("gravity", "mass", "centre", "inertia", "cable_young")
"""Arrays of a mechanism whose values can be changed during the simulation."""
CHANGING = (*GIVEN, "resistances")
"""The same arrays, and the resistances, which contain the efforts transmitted by gears."""
DAMPING_WORK, FORCES, FRICTION_WORK = 1, 3, 4
"""Entries of the works of `drive` [J]: dissipation of damping, work of the loads, dissipation of friction."""
INTEGRATORS = ("rk4", "implicit", "adaptive")
SHORTEST_STEP = 1e-7
"""Shortest default step [s]. With shorter ones a second would take many minutes, and motions as fast as that are those
of a term without meaning, such as a friction of 1e8 N m."""
STIFF_TERMS = {
    STIFFNESS: "stiffness",
    DAMPING: "damping",
    FRICTION: "friction (over its friction_speed)",
    STOP_STIFFNESS: "stop_stiffness",
    STOP_DAMPING: "stop_damping",
}
"""Terms of a joint's resistance that can make steps short, by their column."""


@dataclass(frozen=True, eq=False, repr=False)
class MechanismState(ShortRepr):
    """Time [s], configuration q (nq,) and velocity v (nv,) in the coordinates of the mechanism."""

    time: float
    q: NDArray[np.float64]
    v: NDArray[np.float64]

    @property
    def configuration(self) -> NDArray[np.float64]:
        """Configuration q (nq,)."""
        return self.q

    @property
    def velocity(self) -> NDArray[np.float64]:
        """Velocity v (nv,)."""
        return self.v


@dataclass(frozen=True, eq=False, repr=False)
class MechanismObservation(Observation):
    """Readings of ideal sensors, and quantities that only a model can provide.

    Attributes:
        strains: strains by cable name. constraint_error: largest error of the loops [m, or sine of an angle].
        actuator_power: present power of the actuators [W].
        routes: readings of the routed cables by name, with the tensions of their strands.
        contact_points: for each contact part that touches, by name, (k, 2, 3): contact points [m], ground forces [N].
    """

    strains: dict[str, float]
    constraint_error: float
    actuator_power: float
    routes: dict[str, RouteReading] = field(default_factory=dict)
    contact_points: dict[str, NDArray[np.float64]] = field(default_factory=dict)


class MechanismSimulator(Simulator):
    """Simulator of the mechanism of a robot. See `Simulation` for the arguments.

    Args:
        start: None for the equilibrium with the actuators at the positions of the robot file; "file" for the start of
            the file without changes; a `MechanismEquilibrium`; or a configuration (nq,), whose loops are then closed.
        integrator: "rk4", "implicit" (stiff cables with long steps) or "adaptive" (error control, with events when
            cables become slack or taut).
    """

    def __init__(
        self,
        robot: Robot,
        time_step: float | None,
        integrator: str,
        *,
        start: Any = None,
        gravity: ArrayLike | None = None,
    ) -> None:
        if integrator not in INTEGRATORS:
            raise TensegrityError(unknown_name("integrator for mechanisms", integrator, INTEGRATORS))
        model = robot.model_as(MechanismModel)
        if gravity is not None:
            mechanism = replace(model.mechanism, gravity=np.asarray(gravity, dtype=np.float64))
            model = replace(model, mechanism=mechanism)
        self.model, self.integrator, self.actuators = model, integrator, robot.actuators
        self.output = robot.outputs[0] if robot.outputs else None
        self._names = tuple(each.name for each in robot.actuators)
        self._joints = model.driven_joints(robot.actuators)
        self._mechanism = model.mechanism
        self.flat = flat = own_copy(model.mechanism.flat)
        self._work, self._reduction, self._stages = (
            make_workspace(flat),
            make_reduction_workspace(flat),
            make_stage_workspace(flat),
        )
        self._scratch = make_displacement_workspace(flat, self._mechanism.position_count)
        self._drive, self._pull, self._evaluate = QuickCall(drive), QuickCall(cable_efforts), QuickCall(evaluate)
        self._poses = BodyPoses(model, self._work)
        rows = {cable.name: k for k, cable in enumerate(self._mechanism.cables)}
        self._tension_rows = [(name, rows.get(name, -1)) for name in model.cable_names]
        self._rigid = RigidTensions(model)
        self._strands = RigidRoutes(self._mechanism, self.flat, self._work)
        if integrator == "adaptive":
            refuse_adaptive(self._mechanism)
        elif integrator == "implicit":
            refuse_implicit(self._mechanism)
        self._effort = np.zeros(self._mechanism.velocity_count)
        self._works, self._powers, self._steps = np.zeros(5), np.zeros(4), 0
        self.events: list[tuple[float, str, str]] = []
        self._start, self._start_effort, self._start_slip = self._find_start(start)
        set_slips(self._work, self._start_slip)
        self._q, self._v = self._start.copy(), np.zeros(self._mechanism.velocity_count)
        self._ends = self._make_ends()
        self.drives = self._make_drives()
        self._stepper = self._make_stepper()
        self.shortest_period = self._shortest_period()
        explicit = min(1e-3, self.shortest_period / 20.0)
        if time_step is None and integrator != "implicit" and explicit < SHORTEST_STEP:
            raise self._step_too_short(explicit)
        # steps of "adaptive" are the intervals of servos; those of its method have error control
        usual = explicit if integrator == "rk4" else IMPLICIT_STEP
        self.time_step = usual if time_step is None else float(time_step)
        self.reset()

    def __deepcopy__(self, memo: dict[int, Any]) -> MechanismSimulator:
        made = object.__new__(type(self))
        memo[id(self)] = made
        for name, value in self.__dict__.items():
            if name != "_stepper":  # its functions change the arrays of this object
                made.__dict__[name] = deepcopy(value, memo)
        made._stepper = made._make_stepper()
        return made

    def __getstate__(self) -> dict[str, Any]:
        raise TensegrityError(
            "the simulation of a mechanism stays in its process, where its compiled functions are: send the robot and "
            "state.q and state.v, and take set_state there."
        )

    # -- interface of `Simulator` -----------------------------------------------------------------------------------

    @property
    def state(self) -> MechanismState:
        return MechanismState(self.time, self._q.copy(), self._v.copy())

    @property
    def time(self) -> float:
        return self._steps * self.time_step

    def set_state(self, configuration: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Set configuration (nq,) and velocity (nv,), projected onto closed loops."""
        zero = np.zeros(self._v.size)
        q, v = check_state(
            self._mechanism,
            np.array(configuration, dtype=np.float64),
            np.array(zero if velocity is None else velocity, dtype=np.float64),
        )
        self._q[:] = self._assembled(q)
        self._v[:] = v
        project_onto_loops(self.flat, self._q, self._v, self._work, self._reduction, self._stages)
        self.drives.set_point[:], self.drives.known[:] = self._q[self.drives.q], 0.0

    def set_closed_state(self, q: NDArray[np.float64], v: NDArray[np.float64]) -> None:
        """As `set_state`, for a state (nq,), (nv,) with closed loops; nothing is checked."""
        self._q[:], self._v[:] = q, v
        if self._strands.names:
            self._strands.fit(self._q, self._v)
        self.drives.set_point[:], self.drives.known[:] = q[self.drives.q], 0.0

    def give_efforts(self, efforts: NDArray[np.float64]) -> None:
        """Command all actuators in effort mode with finite efforts (a,) [N m or N]."""
        drives = self.drives
        moving = drives.mode == IMPEDANCE
        drives.set_point[moving] = self._q[drives.q[moving]]
        drives.mode[:], drives.command[:], drives.lead[:] = EFFORT, efforts, 0.0

    def set_motion(self, velocity: ArrayLike) -> None:
        """Set the velocities (nv,) of the coordinates; components that would open a loop are removed."""
        _, v = check_state(self._mechanism, self._q, np.array(velocity, dtype=np.float64))
        self._v[:], self.drives.known[:] = v, 0.0
        self._strands.let_slip()
        project_onto_loops(self.flat, self._q, self._v, self._work, self._reduction, self._stages)
        self._strands.take_directions(self._q, self._v)

    def apply_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> None:
        """Apply constant forces in addition to the weight, in world axes, until the next call.

        Args:
            forces: by body name, a force (3,) [N] at the origin of the body, or a force and a moment (6,) [N and N m]
                there; or (b, 6) for all bodies in sweep order; None for none.
        """
        self._work.load[:] = load_array(self._mechanism, forces)

    def take_loads(self, load: NDArray[np.float64], stiffness: NDArray[np.float64]) -> None:
        """Set loads (b, 6) [moment, force], and factors (c,) on the cable stiffness of the file, until the next call.

        Nothing is checked, and the energy balance does not include the change of the cables."""
        self._work.load[:] = load
        np.multiply(self._mechanism.flat.cable_young, stiffness, out=self.flat.cable_young)

    def set_gravity(self, gravity: ArrayLike) -> None:
        """Set the gravity (3,) [m/s^2]; the change of energy counts as work of forces."""
        vector = np.array(gravity, dtype=np.float64)
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise TensegrityError("gravity must be three finite numbers in m/s^2.")
        with self._given_energy():
            self.flat.gravity[:] = vector

    def attach(
        self, name: str, body: str, mass: float, at: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
    ) -> None:
        """Attach a payload to a body, or move the payload of this name to it; it has the speed of the body at once.

        Args:
            mass: mass [kg]. at: (3,) centre of mass in the frame of the body [m].
            inertia: (3, 3) inertia about the centre of mass [kg m^2].
        """
        index = {each: row for each, row in self._mechanism.body_index.items() if row >= 0}
        if body not in index:
            raise TensegrityError(f"payload {name}: " + unknown_name("body", body, index))
        about: ArrayLike = np.zeros((3, 3)) if inertia is None else inertia
        self.carry({**self._payloads, name: Payload(name, body, mass, at, about)})  # type: ignore[arg-type]

    def detach(self, name: str) -> None:
        """Remove a payload, either one of the robot file or an attached one."""
        if name not in self._payloads:
            raise TensegrityError(unknown_name("payload", name, self._payloads))
        self.carry({key: each for key, each in self._payloads.items() if key != name})

    def carry(self, payloads: dict[str, Payload]) -> None:
        """Replace all payloads of the bodies by these payloads (by name)."""
        with self._given_energy():
            put_on(self.flat, self._mechanism, payloads.values())
        self._payloads = payloads

    @contextlib.contextmanager
    def _given_energy(self) -> Iterator[None]:
        """Context in which a change of the energy of the state counts as work of forces."""
        before = self.energy().total
        yield
        self._works[FORCES] += self.energy().total - before

    def command(self, mode: str, values: Mapping[str, Any], *, age: float = 0.0, period: float = 0.0) -> None:
        drives, lead = self.drives, lead_of(period, age)
        for index, value in checked_commands(mode, values, self._names).items():
            before, new = drives.mode[index], MODES[mode]
            if before in (EFFORT, IMPEDANCE) and new != before:
                drives.set_point[index] = self._q[drives.q[index]]
            drives.mode[index] = new
            if isinstance(value, ImpedanceSetPoint):
                if before != IMPEDANCE:
                    drives.feed_forward[index] = drives.torque[index]
                drives.command[index], drives.speed[index] = value.position, value.velocity
                most = float(drives.effort[index])
                drives.feed[index] = min(max(value.effort, -most), most)
                drives.stiffness[index], drives.damping[index] = value.stiffness, value.damping
                drives.age[index], drives.lead[index] = age, lead
            elif isinstance(value, MovingPosition):
                drives.command[index], drives.speed[index] = value, value.rate
                drives.age[index], drives.lead[index] = age, lead
            else:
                drives.command[index], drives.lead[index] = value, 0.0

    def advance(self, steps: int) -> None:
        """Advance by a number of steps.

        Raises:
            TensegrityError: a cable is wound past its end, a massless body moves independently, or the motion is too
                fast for the step. The state is then the last valid one.
        """
        if self._rigid.names or self._strands.names:
            for _ in range(steps):
                self._advance_watched()
            return
        self._advance_steps(steps)

    def _advance_watched(self) -> None:
        """One step, which is undone if a rigid cable is under compression at its end."""
        q, v, works, count = self._q.copy(), self._v.copy(), self._works.copy(), self._steps
        torque = self.drives.torque.copy()
        if self._strands.names:
            self._now = self.time
            self._stepper.advance(self.time_step)
            self._steps = count + 1
        else:
            self._advance_steps(1)
        if reason := pushing(self._rigid_tensions()):
            when = self.time
            self._q[:], self._v[:], self._works[:], self._steps = q, v, works, count
            self.drives.torque[:] = torque  # that of the last valid state
            raise TensegrityError(f"at {when:.4g} s {reason}.")

    def _rigid_tensions(self) -> dict[str, float]:
        """Tensions [N] of the rigid cables at the present state and efforts."""
        if not self._rigid.names and not self._strands.names:
            return {}
        if self._strands.slip.slipping:
            self._strands.slip.settle(self._strand_tensions)
        return self._unsettled_tensions()

    def _pulling_tensions(self) -> dict[str, float]:
        """As `_rigid_tensions`. Raises TensegrityError if a cable would push, as in a start that no cable can hold."""
        found = self._rigid_tensions()
        if (self._rigid.strand_tensions < 0.0).any():  # a set state, or a new effort or load: they go slack at once
            self._stepper.find_pulls()
        if reason := pushing(found):
            raise TensegrityError(f"at {self.time:.4g} s {reason}.")
        return found

    def _strand_tensions(self) -> NDArray[np.float64]:
        """(s,) tensions [N] of the inextensible strands, with the present contribution of friction."""
        self._unsettled_tensions()
        return np.array(self._rigid.strand_tensions)

    def _unsettled_tensions(self) -> dict[str, float]:
        effort = np.zeros(self._v.size)
        effort[self.drives.v] = self.drives.torque
        accelerate(self.flat, self._q, self._v, effort, 0.0, self._work, self._reduction, False)
        return self._rigid.tensions(self._work, self._reduction.acceleration, effort)

    def _make_stepper(self) -> Stepper:
        """Create the stepper whose steps end when inextensible strands become slack or taut."""
        arrays = [self._q, self._v, self._works, self.flat.resistances]
        arrays += [self._work.route_state, self._work.route_results]
        driven = [getattr(self.drives, name) for name in DRIVE_STATE]
        arrays += driven

        def save() -> list[NDArray]:
            return [array.copy() for array in arrays]

        def restore(saved: list[NDArray]) -> None:
            for array, values in zip(arrays, saved, strict=True):
                array[:] = values

        def keep() -> list[NDArray]:
            return [array.copy() for array in driven]

        def hold(kept: list[NDArray]) -> None:
            resume(kept)
            self.drives.mode[:], self.drives.command[:], self.drives.lead[:] = EFFORT, self.drives.torque, 0.0

        def resume(kept: list[NDArray]) -> None:
            for array, values in zip(driven, kept, strict=True):
                array[:] = values

        def lose(energy: float, kind: int = DAMPING_WORK) -> None:
            self._works[kind] += energy

        def note(cable: str, kind: str, time: float) -> None:
            self.events.append((self._now + time, cable, kind))

        return Stepper(
            self._strands, (self._q, self._v), self._reduction, self._advance_by, save, restore, keep, hold, resume,
            self._strand_tensions, lose, lambda energy: lose(energy, FRICTION_WORK), note,
        )  # fmt: skip

    def _advance_by(self, length: float) -> None:
        """One step of another length [s]."""
        before, self.time_step = self.time_step, length
        try:
            self._advance_steps(1)
        finally:
            self.time_step = before

    def _advance_steps(self, steps: int) -> None:
        if self.integrator == "adaptive":
            self._advance_adaptive(steps)
            return
        status, done = self._drive(
            self.flat, self.drives, self._ends, self._q, self._v, self._effort, self.time_step, steps,
            self.integrator == "implicit", self._works, self._powers, self._work, self._reduction, self._stages,
            self._scratch,
        )  # fmt: skip
        self._steps += done
        if status:
            raise TensegrityError(self._reason(int(status)))

    def observe_sensors(self) -> SensorReadings | MechanismObservation:
        if self.model.routes:
            return self.observe()
        rigid, drives = self._pulling_tensions(), self.drives
        self._pull(self.flat, self._q, self._v, self._work)
        poses, elastic, names = self._poses.take(self._q), self._work.tension.tolist(), self.model.cable_names
        return SensorReadings(
            lengths=dict(zip(names, poses.lengths().tolist(), strict=True)),
            rest_lengths=dict(zip(names, poses.rest_lengths().tolist(), strict=True)),
            tensions={name: elastic[row] if row >= 0 else rigid[name] for name, row in self._tension_rows},
            positions=dict(zip(self._names, self._q[drives.q].tolist(), strict=True)),
            rates=dict(zip(self._names, self._v[drives.v].tolist(), strict=True)),
            efforts=dict(zip(self._names, drives.torque.tolist(), strict=True)),
        )

    def observe(self) -> MechanismObservation:
        rigid = self._pulling_tensions()
        self._evaluate(self.flat, self._q, self._v, self._work)
        poses = self._poses.take(self._q)
        names, drives = self.model.cable_names, self.drives
        elastic = self._work.tension.tolist()
        tensions = {name: elastic[row] if row >= 0 else rigid[name] for name, row in self._tension_rows}
        routes = read_routes(self._mechanism, self._work, self.flat.gravity)
        touching = read_contacts(self._mechanism, self._work)
        tensions |= {name: each.tension for name, each in routes.items()}
        pose, twist = poses.output(self.output) if self.output is not None else (None, None)
        speeds = self._v[drives.v]
        return MechanismObservation(
            time=self.time,
            lengths=dict(zip(names, poses.lengths().tolist(), strict=True))
            | {name: each.length for name, each in routes.items()},
            rest_lengths=dict(zip(names, poses.rest_lengths().tolist(), strict=True))
            | {name: each.rest_length for name, each in routes.items()},
            tensions=tensions,
            positions=dict(zip(self._names, self._q[drives.q].tolist(), strict=True)),
            rates=dict(zip(self._names, speeds.tolist(), strict=True)),
            efforts=dict(zip(self._names, drives.torque.tolist(), strict=True)),
            pose=pose,
            twist=twist,
            strains=dict(zip(names, poses.strains().tolist(), strict=True))
            | {name: each.strain for name, each in routes.items()},
            constraint_error=float(np.max(np.abs(self._work.loop_error), initial=0.0)),
            actuator_power=float(drives.torque @ speeds),
            routes=routes,
            contact_points=touching,
            contacts=contact_forces(touching),
        )

    @property
    def details(self) -> dict[str, str]:
        if not self.model.routes:
            return {}
        readings = read_routes(self._mechanism, self._work, self.flat.gravity)
        words = {f"cable {name}": said for name, said in slip_words(readings).items()}
        for name in dict.fromkeys(self._strands.names):
            slack = [k for k, tension in enumerate(readings[name].tensions) if tension == 0.0]
            if slack:
                words[f"cable {name}"] = "slack"
        return words

    def energy(self) -> Energy:
        evaluate(self.flat, self._q, self._v, self._work)
        work, flat = self._work, self.flat
        kinetic = 0.5 * float(self._v @ work.mass @ self._v)
        centres = work.position + np.einsum("bij,bj->bi", work.rotation, flat.centre)
        gravity = -float(flat.mass @ centres @ flat.gravity)
        elastic = float(powers_of(flat, self._q, self._v, work, np.zeros(4)))
        actuators, damping, winding, forces, friction = (float(each) for each in self._works)
        return Energy(kinetic, elastic, gravity, actuators, damping, forces, winding, ground_energy(work), friction)

    def linearise(self, inputs: str = "efforts", *, reduced: bool = True) -> LinearModel:
        """Linear model at the present state, under the last efforts of the actuators."""
        if inputs not in ("", "efforts"):
            raise TensegrityError(unknown_name("kind of inputs of mechanisms", inputs, ("efforts",)))
        if self._strands.slack.any():
            name = self._strands.names[int(np.argmax(self._strands.slack))]
            raise TensegrityError(
                f"cable {name} hangs slack, and does not stretch: what is linear on one side of its being taut is not "
                "on the other. Take the model where it is taut, or let it stretch."
            )
        if self._strands.slip.slipping:
            raise TensegrityError(
                "a cable without stretch slips, and friction of slip is not linear; take the model where it sticks."
            )
        effort = np.zeros(self._v.size)
        effort[self.drives.v] = self.drives.torque
        powers_of(self.flat, self._q, self._v, self._work, np.zeros(4))
        mechanism = with_slips(self._mechanism, slips(self._work))
        return linearise(mechanism, self._q, self._v, effort, self.drives.v, self._names, self._work.load)

    def reset(self) -> None:
        self._q[:], self._v[:], self._steps = self._start, 0.0, 0
        set_slips(self._work, self._start_slip)
        self._payloads = {each.name: each for each in self._mechanism.payloads}
        for name in GIVEN:
            getattr(self.flat, name)[:] = getattr(self._mechanism.flat, name)
        self._works[:], self._effort[:], self._work.load[:] = 0.0, 0.0, 0.0
        drives = self.drives
        drives.mode[:] = POSITION
        drives.command[:] = drives.set_point[:] = self._q[drives.q]
        drives.known[:] = 0.0
        drives.lead[:] = 0.0
        drives.torque[:] = self._start_effort[drives.v]
        self.flat.resistances[:, LAW + CARRIED] = 0.0
        if self._strands.names:
            self._strands.fit(self._q, self._v)
        self.events.clear()

    def hold(self) -> None:
        drives = self.drives
        carried = drives.stiffness * SOFTEST_HOLD * (drives.high - drives.low) >= np.abs(drives.feed)
        stays = (drives.mode == IMPEDANCE) & carried & (drives.stiffness > 0.0) & (drives.damping > 0.0)
        drives.command[stays], drives.speed[stays] = drives.set_point[stays], 0.0
        moving = (drives.mode == EFFORT) | (drives.mode == IMPEDANCE) & ~stays
        drives.set_point[moving] = self._q[drives.q][moving]
        drives.mode[~stays] = POSITION
        drives.command[~stays], drives.lead[~stays] = drives.set_point[~stays], 0.0

    # -- parts ----------------------------------------------------------------------------------------------------

    def _find_start(self, start: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Start configuration, efforts that hold the actuators there, and slip of the routed cables."""
        stuck = np.zeros(self._work.route_state.shape[0])
        none = np.zeros(self._mechanism.velocity_count)
        if isinstance(start, MechanismEquilibrium):
            return start.q.copy(), start.effort.copy(), start.slip if start.slip.size else stuck
        if isinstance(start, str) and start != "file":
            raise TensegrityError(f"start is {start!r}; give 'file', a position, a shape or None.")
        if isinstance(start, str):
            return self.model.start.copy(), none, stuck
        if start is not None:
            return self._assembled(np.array(start, dtype=np.float64)), none, stuck
        try:
            shape = MechanismEquilibriumSolver(self._mechanism, self._joints).solve(self.model.start)
        except NoEquilibriumError:
            return self.model.start.copy(), none, stuck
        return shape.q, shape.effort, shape.slip

    def _assembled(self, q: NDArray[np.float64]) -> NDArray[np.float64]:
        """Configuration (nq,) near q with closed loops; inextensible strands with a shorter path are slack there."""
        if self._strands.names:
            self._strands.fit(q, np.zeros(self._mechanism.velocity_count))
        return assemble(self._mechanism, q, work=self._work)

    def _make_ends(self) -> Ends:
        joints = [self._mechanism.joint(entry.joints[2]) for entry in self.model.entries]
        return Ends(
            q=np.array([self._mechanism.positions_of(joint.name).start for joint in joints], dtype=np.int64),
            radius=np.array([joint.radius for joint in joints], dtype=np.float64),
            longest=np.array([entry.longest for entry in self.model.entries], dtype=np.float64),
        )  # fmt: skip

    def _make_drives(self) -> Drives:
        mechanism = self._mechanism
        positions = [mechanism.positions_of(name).start for name in self._joints]
        velocities = [mechanism.velocities_of(name).start for name in self._joints]
        return make_drives(self.actuators, positions, velocities, self._v.size, self._gears(velocities))

    def _gears(self, velocities: list[int]) -> list[int]:
        """Row of the resistance with the gear of each actuator, from the index of its joint in v; -1 without gear."""
        rows = self.flat.resistances
        rubbing = (rows[:, KIND] == TREE) & (rows[:, LAW + EFFICIENCY] < 1.0)
        by_velocity = {int(rows[row, FIRST]): int(row) for row in np.flatnonzero(rubbing)}
        return [by_velocity.get(column, -1) for column in velocities]

    def _shortest_period(self) -> float:
        """Shortest period [s] of the linearised motions at the start (vibration or decay)."""
        matrix = self._rates_matrix(self.flat)
        fastest = _fastest(matrix)
        self.step_limit = self._fastest_part(matrix)
        if self._mechanism.touches and matrix.size:
            fastest, self.step_limit = self._fastest_on_ground(matrix, fastest)
        # pure drift gives a rate that is only rounding error
        return 2.0 * np.pi / fastest if fastest > 1e-2 else 1.0

    def _rates_matrix(self, flat: FlatMechanism) -> NDArray[np.float64]:
        """(2 y, 2 y) matrix of the linearised motions at the start without the ground, for arrays of the mechanism."""
        self.drives.torque[:] = self._start_effort[self.drives.v]
        load_gears(flat, self.drives)
        flat, reduction, scratch = with_stops(flat), self._reduction, self._scratch
        # the ground is included later, also for a robot in the air
        flat = flat._replace(late_kernels=np.where(np.arange(ENTRIES) == CONTACTS, 0, flat.late_kernels))
        still = np.zeros(self._v.size)
        accelerate(flat, self._start, still, self._start_effort, 0.0, self._work, reduction, False)
        cables = (flat.route_elements, flat.routed_cables, self._work.route_state)
        hold_contacts(*cables, True)
        free = np.flatnonzero(~reduction.is_pivot)
        count = free.size
        scratch.independent[:count] = free
        scratch.basis[:, :count] = reduction.basis[:, :count]
        u, sides = np.zeros(2 * self._v.size), [np.zeros(2 * self._v.size) for _ in range(2)]
        matrix = np.zeros((2 * count, 2 * count))
        args = (self._start_effort, self._work, reduction, self._stages, scratch)
        for c in range(2 * count):
            h = 1e-6
            for side, sign in zip(sides, (1.0, -1.0), strict=True):
                u[:] = 0.0
                u[c] = sign * h
                if state_derivative(flat, self._start, u, count, args[0], side, *args[1:]):
                    side[:] = 0.0
            matrix[:, c] = (sides[0] - sides[1])[: 2 * count] / (2.0 * h)
        hold_contacts(*cables, False)
        return matrix

    def _fastest_part(self, matrix: NDArray[np.float64]) -> str:
        """Words for the joint with most of the kinetic energy in the fastest motion of a matrix of rates."""
        count = matrix.shape[0] // 2
        if not count:
            return "its own fastest motion"
        rates, vectors = np.linalg.eig(matrix)
        v = self._scratch.basis[:, :count] @ vectors[count:, np.argmax(np.abs(rates))]
        energies = np.real(np.conj(v) * (self._work.mass @ v))
        shares = {
            joint.name: float(energies[self._mechanism.velocities_of(joint.name)].sum())
            for joint in self._mechanism.joints
        }
        return f"the motion of joint {max(shares, key=lambda name: shares[name])}"

    def _step_too_short(self, step: float) -> StepTooShortError:
        """Error for a default step [s] that is too short; it names the term without which steps could be longest."""
        what, part, slowest = self.step_limit, tuple[str, ...](), np.pi / self.shortest_period
        for row, name in enumerate(self._mechanism.resistance_parts):
            for column, term in STIFF_TERMS.items():
                if self.flat.resistances[row, LAW + column] > 0.0:
                    rows = np.array(self.flat.resistances)
                    rows[row, LAW + column] = 0.0
                    rate = _fastest(self._rates_matrix(self.flat._replace(resistances=rows)))
                    if rate < slowest:
                        what, part, slowest = f"the {term} of {name[1]}", name, rate
        return StepTooShortError(
            f"{what} makes motions as fast as {self.shortest_period:.3g} s, for which {self.integrator} would take "
            f"{1.0 / step:.1g} steps per second, more than {1.0 / SHORTEST_STEP:.0g}: make it smaller, or take "
            "integrator 'implicit'.",
            *part,
        )

    def _fastest_on_ground(self, matrix: NDArray[np.float64], fastest: float) -> tuple[float, str]:
        """Rate [1/s] of the fastest motion with all points on the ground; a single point can carry the whole weight."""
        flat, reduction, ground = self.flat, self._reduction, self._mechanism.ground
        assert ground is not None
        count = matrix.shape[0] // 2
        still = np.zeros(self._v.size)
        accelerate(flat, self._start, still, self._start_effort, 0.0, self._work, reduction, False)
        basis = reduction.basis[:, :count]
        mass = basis.T @ self._work.mass @ basis
        weight = float(flat.mass.sum() * np.linalg.norm(flat.gravity))
        drag = ground.friction * weight / ground.friction_speed + ground.viscous
        normals, jacobians = point_normals(self._work), point_jacobians(flat, self._work)
        limit = self.step_limit
        for what, stiffness, damping, rubbing in (
            ("the ground's stiffness", ground.stiffness, 0.0, 0.0),
            ("the ground's damping", 0.0, ground.damping, 0.0),
            ("the ground's friction", 0.0, 0.0, drag),
        ):
            for normal, jacobian in zip(normals, jacobians @ basis, strict=True):
                across = np.outer(normal, normal)
                push, slow = stiffness * across, damping * across + rubbing * (np.eye(3) - across)
                matrix[count:, :count] -= np.linalg.solve(mass, jacobian.T @ push @ jacobian)
                matrix[count:, count:] -= np.linalg.solve(mass, jacobian.T @ slow @ jacobian)
            more = _fastest(matrix)
            if more > 1.2 * fastest:
                limit = what
            fastest = max(fastest, more)
        return fastest, limit

    def _advance_adaptive(self, steps: int) -> None:
        """One interval with error control if all efforts are constant; else one interval per step with constant
        efforts.
        """
        drives = self.drives
        spans = 1 if (drives.mode == EFFORT).all() else steps
        length = steps * self.time_step / max(1, spans)
        for _ in range(spans if steps else 0):
            servo_torques(self.flat, drives, self._q, self._v, self._effort, length, False, self._work, self._reduction)
            load_gears(self.flat, drives)
            path = integrate(
                self._mechanism, self._q, self._v, self._effort, length, load=self._work.load, flat=self.flat,
                slip=self._work.route_state[:, SLIP],
            )  # fmt: skip
            set_slips(self._work, path.slip)
            self.events += [(self.time + event.time, event.cable, event.kind) for event in path.events]
            self._works[0] += float(drives.torque @ (path.q[-1][drives.q] - self._q[drives.q]))
            self._works[1:] += path.works
            self._q[:], self._v[:] = path.q[-1], path.v[-1]
            self._steps += steps // spans

    def _reason(self, status: int) -> str:
        if status >= BROKEN_ROUTE:
            route, result = self.model.routes[status - BROKEN_ROUTE], self._work.route_results[status - BROKEN_ROUTE]
            problem = route_problem(route, int(result[STATUS]), int(result[WHERE]))
            return f"cable {route.name} at {self.time:.4g} s: {problem}"
        if status >= PAST_END:
            entry = self.model.entries[status - PAST_END]
            free_length = self._q[self._ends.q[status - PAST_END]] * entry.radius
            if free_length > 0.5 * min(entry.longest, 1e9):
                what = f"unwound past its end: all {entry.longest:.4g} m of it are off the pulley"
            else:
                what = "wound past its end: nothing of it is left between pulley and anchor"
            return f"cable {entry.name} is {what} at {self.time:.4g} s; keep its pulley within narrower limits."
        if status == SINGULAR_MASS:
            here = (self.flat, self._q, self._v, self._effort, 0.0, self._work, self._reduction, False)
            still, coordinate = accelerate(*here)
            if still == SINGULAR_MASS:  # otherwise numbers grew within the step
                return massless_message(self._mechanism, int(coordinate))
        shorter = "" if self.integrator == "implicit" else ", or integrator 'implicit'"
        why = "a loop could not be closed within a step" if status == NOT_CLOSED else "numbers grew without bound"
        return (
            f"the simulation diverged at {self.time:.4g} s: {why} with steps of {self.time_step:.3g} s (shortest "
            f"period {self.shortest_period:.3g} s, from {self.step_limit}); take shorter steps{shorter}."
        )


def _fastest(matrix: NDArray[np.float64]) -> float:
    return float(np.max(np.abs(np.linalg.eigvals(matrix)), initial=0.0))


def own_copy(flat: FlatMechanism) -> FlatMechanism:
    """Arrays of a mechanism, with copies of those that a simulation can change."""
    return flat._replace(**{name: np.array(getattr(flat, name)) for name in CHANGING})


def with_stops(flat: FlatMechanism) -> FlatMechanism:
    """Arrays with all stops as springs and dampers that always act: the largest stiffness and damping of the stops."""
    rows = np.array(flat.resistances)
    law = rows[:, LAW:]
    law[:, STIFFNESS] += law[:, STOP_STIFFNESS]
    law[:, DAMPING] += law[:, STOP_DAMPING]
    law[:, LOW], law[:, HIGH] = -np.inf, np.inf
    return flat._replace(resistances=rows)


def load_array(mechanism: Mechanism, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> NDArray[np.float64]:
    """(b, 6) moment [N m] and force [N] on each body at its origin, in world axes and sweep order.

    Args:
        forces: by body name (3,) [N] or (6,) [N and N m] (force, then moment); or (b, 6) in the same order; or None.

    Raises:
        TensegrityError: a body is unknown or the world, a shape is wrong, or a number is not finite.
    """
    index, joints = mechanism.body_index, mechanism.joints
    given = np.zeros((len(joints), 6))
    if isinstance(forces, Mapping):
        for name, value in forces.items():
            if index.get(name, -1) < 0:  # the world is not a body
                raise TensegrityError(unknown_name("body", name, [joint.body for joint in joints]))
            wrench = number_array(value, f"the force on body {name} in N and N m")
            if wrench.shape not in ((3,), (6,)):
                raise TensegrityError(
                    f"the force on body {name} has shape {wrench.shape}; give (3,) N, or (6,) N and N m."
                )
            given[index[name], : wrench.size] += wrench
    elif forces is not None:
        given = number_array(forces, "forces in N and N m")
        if given.shape != (len(joints), 6):
            raise TensegrityError(f"forces has shape {given.shape}, expected ({len(joints)}, 6).")
    if not np.isfinite(given).all():
        name = joints[int(np.argwhere(~np.isfinite(given))[0][0])].body
        raise TensegrityError(f"force on body {name} is not finite; give numbers in N and N m.")
    return np.concatenate((given[:, 3:], given[:, :3]), axis=1)
