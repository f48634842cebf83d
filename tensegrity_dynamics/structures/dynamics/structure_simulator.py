"""Simulator of a structure: point masses, spools and an integrator with the interface that `Simulation` uses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...contact.collision import collision_energy
from ...contact.ground_forces import ground_energy
from ...errors import NoEquilibriumError, PartError, TensegrityError, is_finite_number, unknown_name
from ...impedance import MovingPosition, lead_of
from ...linear_models.linear_model import LinearModel
from ...numerics.number_array import number_array
from ...numerics.short_repr import ShortRepr
from ...robots.robot import Robot
from ...simulation_interface import (
    IMPLICIT_STEP,
    MODES,
    POSITION,
    STEPPED_MODES,
    Energy,
    Observation,
    Simulator,
    checked_commands,
)
from ..crossings import describe_crossings
from ..energy import free_positions, member_tensions, stored_energy, tangent_stiffness
from ..form_finding.equilibrium import StructureEquilibrium
from ..form_finding.equilibrium_solver import StructureEquilibriumSolver
from ..imu import read_imu
from ..structure import Structure
from .bar_constraints import close_bars, couple_bars, dependent_bars, project_velocities
from .bdf2 import bdf2
from .explicit_integrators import make_stage_workspace, rattle, runge_kutta
from .linearisation import StructureLinearisation
from .minimal_rods import make_rods, minimal_runge_kutta, read_rods, report_uses, stretch_rods
from .plant import BAD_SET_POINT, NO_SET_POINTS, make_plant
from .point_masses import (
    AWAY,
    COMPLETED,
    CONTACT,
    DEPENDENT_BARS,
    FRICTION_STEP,
    HELD,
    NORMAL_FORCE,
    accelerations,
    make_network,
    make_workspace,
)
from .rod_masses import coupling_weights, inverse_mass_matrix, inverse_masses, kinetic_energy
from .spools import make_spools

INTEGRATORS = {"rk4": runge_kutta, "rattle": rattle, "implicit": bdf2}
MODELS = ("point_masses", "minimal")

MAX_DENSE_COORDINATES, MAX_IMPLICIT_COORDINATES = 300, 1500
"""Largest number of free coordinates for computing periods with dense matrices, and for the implicit method."""

LOST = 1e50
"""Coordinate [m] above which a node counts as diverged."""


@dataclass(frozen=True, eq=False, repr=False)
class StructureState(ShortRepr):
    """State of a structure.

    Attributes:
        time: time [s]. nodes, velocities: (n, 3) m and m/s. rest_lengths: (m,) m.
    """

    time: float
    nodes: NDArray[np.float64]
    velocities: NDArray[np.float64]
    rest_lengths: NDArray[np.float64]

    @property
    def configuration(self) -> NDArray[np.float64]:
        """Node positions (n, 3) [m]."""
        return self.nodes

    @property
    def velocity(self) -> NDArray[np.float64]:
        """Node velocities (n, 3) [m/s]."""
        return self.velocities


STABLE_PART = {"rk4": np.sqrt(8.0) / (2.0 * np.pi), "rattle": 1.0 / np.pi}
"""Longest stable step of explicit methods, relative to the period of an undamped vibration."""


class StructureSimulator(Simulator):
    """Simulator of the structure of a robot. See `Simulation` for the arguments, and:

    Args:
        model: "point_masses" (`point_masses`), or "minimal" for class-1 structures (`minimal_rods`).
        vertical: method of the minimal model near the polar axis of a rod: "chart", "guard" or "none".
        rod_mass: mass distribution of bars, "spread" along them or at their "ends" (003, section 3.4).
        stabilisation: k_s [1/s^2] and k_d [1/s] of 003, 3.36, in place of projection; if both are negative, this is
            3.37 as printed, which is unstable.
    """

    def __init__(
        self,
        robot: Robot,
        time_step: float | None,
        integrator: str,
        *,
        rigid_bars: bool = True,
        start: StructureEquilibrium | ArrayLike | None = None,
        gravity: ArrayLike | None = None,
        air_damping: float = 0.0,
        model: str = "point_masses",
        rod_mass: str = "spread",
        stabilisation: tuple[float, float] | None = None,
        vertical: str = "chart",
    ) -> None:
        if not (np.isfinite(air_damping) and air_damping >= 0.0):
            raise TensegrityError(f"air_damping is {air_damping} N s/m, must be a finite number, zero or more.")
        structure = robot.model_as(Structure)
        if gravity is not None:
            structure = replace(structure, gravity=np.asarray(gravity, dtype=np.float64))
        if integrator not in INTEGRATORS:
            raise TensegrityError(unknown_name("integrator", integrator, INTEGRATORS))
        if model not in MODELS:
            raise TensegrityError(unknown_name("model", model, MODELS))
        self.model = model
        if stabilisation is not None:
            _check_stabilisation(stabilisation, integrator, model)
        if model == "minimal" and (integrator != "rk4" or not rigid_bars):
            raise TensegrityError(
                "the model of minimal coordinates has rigid bars and the integrator rk4; leave integrator and "
                "rigid_bars as they are, or use model 'point_masses'."
            )
        if structure.collision is not None and (integrator == "implicit" or model == "minimal"):
            raise TensegrityError(
                "collisions of rods are simulated by model 'point_masses' with integrator rk4 or rattle; take one of "
                "these, or leave the block collision: out of the robot file."
            )
        if integrator == "implicit" or model == "minimal":
            what = "integrator implicit" if integrator == "implicit" else "the model of minimal coordinates"
            structure.check_no_rollers(what, "take model 'point_masses' with integrator rk4 or rattle")
        self.structure, self.integrator, self.rigid_bars = structure, integrator, rigid_bars
        self.actuators = robot.actuators
        self.output = robot.outputs[0] if robot.outputs else None
        self._names = tuple(each.name for each in self.actuators)
        masses: dict[str, Any] = {
            "rigid_bars": rigid_bars, "air_damping": air_damping, "rod_mass": rod_mass, "stabilisation": stabilisation
        }  # fmt: skip
        self._network = make_network(structure, **masses)
        self._model_options, self._linearisations = masses, dict[str, StructureLinearisation]()
        if integrator == "implicit" and structure.free.size > MAX_IMPLICIT_COORDINATES:
            raise PartError(
                f"the implicit method solves dense systems of up to {MAX_IMPLICIT_COORDINATES} free coordinates, this "
                f"structure has {structure.free.size}; use rk4 or rattle.",
                "nodes",
            )
        self._work, self._stages = make_workspace(self._network), make_stage_workspace(self._network, integrator)
        self._spools = make_spools(structure, self.actuators, self._network.bars)
        for actuator, k in zip(self.actuators, self._spools.member, strict=True):
            if not structure.unilateral[k] and actuator.position[0] <= 0.0:
                raise TensegrityError(
                    f"actuator {actuator.name} drives {actuator.drives}, a bar, whose length stays above zero; its "
                    f"lowest position is {actuator.position[0]:g} m."
                )
            if self._network.stiffness[k] == 0.0 and integrator == "implicit":
                raise TensegrityError(
                    f"actuator {actuator.name} drives {actuator.drives}, which is a rigid bar: rods of variable length "
                    "move with integrator rk4 or rattle, or with rigid_bars=False."
                )
        self.rods = make_rods(structure, vertical, rod_mass == "spread") if model == "minimal" else None
        movable = ~structure.unilateral & ~structure.fixed[structure.members].all(axis=1)
        self._rod_names = [structure.member_names[k] for k in np.flatnonzero(movable)]
        self._stepper = minimal_runge_kutta if model == "minimal" else INTEGRATORS[integrator]
        self._start_nodes, self._start_rest = self._start(start)
        self._nodes, self._velocities = self._start_nodes.copy(), np.zeros_like(self._start_nodes)
        self._rest, self._steps, self._force_work = self._start_rest.copy(), 0, 0.0
        self._payloads: dict[str, tuple[int, float]] = {}
        self._applied = np.array(structure.loads)
        self.shortest_period = self._shortest_period()
        self.time_step = self._default_step() if time_step is None else float(time_step)
        self._work.horizon[0] = self.time_step if integrator == "implicit" else 0.0
        self._bind()
        self.reset()

    def _bind(self) -> None:
        """Pass the arrays of this simulation to the compiled functions and to the readers."""
        self._plant = make_plant(
            self._network, self._spools, self.rods or (), self._nodes, self._velocities, self._rest, self._work,
            self._stages,
        )  # fmt: skip
        self._views = (self._nodes.view(), self._velocities.view())
        for view in self._views:
            view.setflags(write=False)

    def __getstate__(self) -> dict[str, Any]:
        """State for copies and other processes, without references to the arrays of this object."""
        own = ("_plant", "_views", "_linearisations")
        return {name: value for name, value in self.__dict__.items() if name not in own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _linearisations={})
        self._bind()

    # -- interface of `Simulator` -----------------------------------------------------------------------------------

    @property
    def state(self) -> StructureState:
        return StructureState(self.time, self._nodes.copy(), self._velocities.copy(), self._rest.copy())

    @property
    def time(self) -> float:
        return self._steps * self.time_step

    def set_state(self, configuration: ArrayLike, velocity: ArrayLike | None = None) -> None:
        """Set the nodes (n, 3) [m]; rigid bars are brought to their lengths, supports and rest lengths are
        unchanged."""
        nodes = np.array(configuration, dtype=np.float64)
        if nodes.shape != self._nodes.shape or not np.isfinite(nodes).all():
            raise TensegrityError(f"nodes must be finite with shape {self._nodes.shape}.")
        nodes[self.structure.supports] = self.structure.nodes[self.structure.supports]
        self._close(nodes)
        self._nodes[:] = nodes
        self.set_motion(np.zeros_like(nodes) if velocity is None else velocity)

    def set_motion(self, velocity: ArrayLike) -> None:
        """Set the node velocities (n, 3) [m/s]; components that would stretch a rigid bar are removed."""
        array = np.array(velocity, dtype=np.float64)
        if array.shape != self._nodes.shape or not np.isfinite(array).all():
            raise TensegrityError(f"velocities must be finite with shape {self._nodes.shape}.")
        array[self.structure.supports] = 0.0
        if not project_velocities(self._network, self._nodes, array, self._work):
            raise self._dependence()
        self._velocities[:] = array
        self._forget()

    def apply_forces(self, forces: Mapping[str, ArrayLike] | ArrayLike | None) -> None:
        """Apply constant forces in addition to the weight until the next call.

        Args:
            forces: by node name (3,) [N], for all nodes (n, 3) [N], or None for none.
        """
        applied = self.structure.force_array(forces)
        self._applied[:] = self.structure.loads + applied
        self._network.load[:] = self._network.weight + self._applied
        self._is_pushed = bool(self._applied.any())

    def set_gravity(self, gravity: ArrayLike) -> None:
        vector = number_array(gravity, "gravity in m/s^2")
        if vector.shape != (3,) or not np.isfinite(vector).all():
            raise TensegrityError("gravity must be three finite numbers in m/s^2.")
        self._weigh(self._masses, vector)

    def attach(
        self, name: str, body: str, mass: float, at: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
    ) -> None:
        """Attach a mass [kg] to a node, or move the payload of this name to it; nodes have no frame: `at` and `inertia`
        are zero."""
        if not (is_finite_number(mass) and mass >= 0.0):
            raise TensegrityError(f"payload {name}: mass is {mass!r}; give a finite number of kg, not below zero.")
        if np.any(number_array(at, f"payload {name}: its position in m")):
            raise TensegrityError(f"payload {name}: a node has no frame, and so no positions in it; leave `at` out.")
        if inertia is not None and np.any(number_array(inertia, f"payload {name}: its inertia in kg m^2")):
            raise TensegrityError(f"payload {name}: a node has no orientation and therefore no inertia; leave it out.")
        node = self.structure.node(body)
        self._carry({**self._payloads, name: (node, float(mass))})

    def detach(self, name: str) -> None:
        """Remove an attached payload; payloads of the robot file are node masses and cannot be removed."""
        if name not in self._payloads:
            raise TensegrityError(unknown_name("attached payload", name, self._payloads))
        self._carry({key: each for key, each in self._payloads.items() if key != name})

    def _carry(self, payloads: dict[str, tuple[int, float]]) -> None:
        masses = self.structure.lumped_masses()
        for node, mass in payloads.values():
            masses[node] += mass
        if self.rods is not None:
            raise TensegrityError("payloads are for model 'point_masses'; in the minimal one give the node a mass.")
        self._payloads = payloads
        self._weigh(masses, self._gravity)

    def _weigh(self, masses: NDArray[np.float64], gravity: NDArray[np.float64]) -> None:
        """Set masses (n,) [kg] and gravity; the change of energy counts as work of forces."""
        before = self.energy().total
        self._masses, self._gravity = masses, gravity
        network = self._network
        if not np.array_equal(masses, network.node_masses):
            inverse = inverse_masses(self.structure, masses, network.spread)
            network.node_masses[:], network.inverse_value[:] = masses, inverse[2]
            network.shared[:] = coupling_weights(self.structure.members, network.bars, network.first, inverse)
        network.weight[:] = masses[:, None] * gravity
        self._network.load[:] = self._network.weight + self._applied
        self._force_work += self.energy().total - before
        self._forget()

    @property
    def without_impedance(self) -> Mapping[str, str]:
        why = (
            "it winds a tendon on a spool that holds by itself and has no inertia here; impedance is for joints and "
            "pulleys of mechanisms, send positions"
        )
        return dict.fromkeys(self._names, why)

    def command(self, mode: str, values: Mapping[str, Any], *, age: float = 0.0, period: float = 0.0) -> None:
        commands = checked_commands(mode, values, self._names)
        if mode == "impedance":
            for index in commands:
                name = self._names[index]
                raise TensegrityError(f"actuator {name}: {self.without_impedance[name]}")
        for index, value in commands.items():
            spools = self._spools
            spools.mode[index], spools.target[index], spools.lead[index] = MODES[mode], value, 0.0
            if isinstance(value, MovingPosition):
                spools.going[index], spools.age[index], spools.lead[index] = value.rate, age, lead_of(period)

    def step_arrays(
        self, set_points: ArrayLike | None = None, mode: str = "position", steps: int = 1
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        points = NO_SET_POINTS
        if set_points is not None:
            points = np.ascontiguousarray(set_points, dtype=np.float64)
            if points.shape != (len(self._names),):
                raise TensegrityError(f"set_points have shape {points.shape}, expected ({len(self._names)},).")
            if mode not in STEPPED_MODES:
                raise TensegrityError(unknown_name("mode", mode, STEPPED_MODES))
        self._run(MODES[mode], points, steps)
        return self._views

    def advance(self, steps: int) -> None:
        self._run(POSITION, NO_SET_POINTS, steps)

    def set_rest_lengths(self, rest_lengths: ArrayLike) -> None:
        """Set the rest lengths of all members (m,) [m] at once; spools hold them."""
        self._rest[:] = self.structure.rest_length_array(np.asarray(rest_lengths, dtype=np.float64))
        self._network.bar_lengths[:] = self._rest[self._network.bars]
        self._forget()
        self.hold()

    def run_start_up(self, steps: Any, *arguments: Any) -> tuple[int, bool]:
        """Run `start_up_steps` in place of the integrator; returns the number of steps and whether it is at rest."""
        status, done, at_rest = steps(self._plant, self.time_step, *arguments)
        self._steps += done
        if status != COMPLETED:
            self._raise(status)
        return done, at_rest

    def _run(self, mode: int, set_points: NDArray[np.float64], steps: int) -> None:
        before = self._nodes.copy() if self._is_pushed else None
        status = self._stepper(self._plant, mode, set_points, self.time_step, steps)
        if status == COMPLETED and before is None:
            self._steps += steps
            return
        if status == BAD_SET_POINT:
            bad = int(np.argwhere(~np.isfinite(set_points))[0, 0])
            raise TensegrityError(f"command to actuator {self._names[bad]} is {set_points[bad]}; give a finite number.")
        if status != COMPLETED:
            self._raise(status)
        if before is not None:
            self._force_work += float(np.sum((self._network.load - self._network.weight) * (self._nodes - before)))
        self._steps += steps

    def _raise(self, status: int) -> NoReturn:
        # out of bounds or not finite: in diverged states, bars can also appear to be dependent
        near = (np.abs(self._nodes) < LOST).all() and (np.abs(self._stages.nodes) < LOST).all()
        if status == DEPENDENT_BARS and near:
            raise self._dependence()
        instead = "" if self.integrator == "implicit" else ", or integrator 'implicit'"
        raise TensegrityError(
            f"the simulation diverged with steps of {self.time_step:.3g} s (shortest period "
            f"{self.shortest_period:.3g} s, from {self.step_limit}); take shorter steps{instead}."
        )

    def _contacts(self) -> dict[str, NDArray[np.float64]]:
        """(3,) ground forces [N] by node that touches the ground, from the last `accelerations`."""
        if self.structure.ground is None:
            return {}
        touched = np.flatnonzero(self._work.ground[:, NORMAL_FORCE] > 0.0)
        return {self.structure.node_names[i]: self._work.ground[i, CONTACT:AWAY].copy() for i in touched}

    def observe(self) -> Observation:
        self._work.horizon[FRICTION_STEP] = 0.0
        accelerations(self._network, self._nodes, self._velocities, self._rest, self._work)
        names, pose, twist = self.structure.member_names, None, None
        if self.output is not None:
            pose, twist = self.output.motion(self._nodes, self._velocities)
        driven = self._spools.member
        return Observation(
            self.time,
            dict(zip(names, self._work.lengths.tolist(), strict=True)),
            dict(zip(names, self._rest.tolist(), strict=True)),
            dict(zip(names, self._work.tensions.tolist(), strict=True)),
            dict(zip(self._names, self._rest[driven].tolist(), strict=True)),
            dict(zip(self._names, self._spools.speed.tolist(), strict=True)),
            dict(zip(self._names, self._work.tensions[driven].tolist(), strict=True)),
            pose,
            twist,
            contacts=self._contacts(),
            imus=self._imus(),
        )

    def _imus(self) -> dict[str, NDArray[np.float64]]:
        readings = {}
        for imu in self.structure.imus:
            i, j = self.structure.members[self.structure.member(imu.bar)]
            axis = self._nodes[j] - self._nodes[i]
            readings[imu.bar] = read_imu(imu, axis / math.sqrt(axis @ axis), self._gravity, self._steps)
        return readings

    def energy(self) -> Energy:
        network = self._network
        elastic = stored_energy(self._nodes, network.members, network.stiffness, self._rest, network.laws)
        wound, lost, rubbed = self._stages.work.tolist()
        stored = 0.0
        if self.structure.ground is not None:
            stored = float(ground_energy(network.ground, self._nodes, network.position, np.zeros(3)))
        return Energy(
            kinetic=float(kinetic_energy(network, self._velocities)), elastic=float(elastic),
            gravity=float(-np.sum(network.weight * self._nodes)), actuators=wound, damping=lost - rubbed,
            forces=self._force_work, ground=stored, friction=rubbed,
            collisions=float(collision_energy(network.collisions, self._nodes)),
        )  # fmt: skip

    def linearise(self, inputs: str = "", *, reduced: bool = False) -> LinearModel:
        """Linear model at the present nodes, velocities and rest lengths, with the last rates of the spools."""
        kind = inputs or "rates"
        if kind not in self._linearisations:
            self._linearisations[kind] = StructureLinearisation(
                self.structure, [each.drives for each in self.actuators] or None, inputs=kind, **self._model_options
            )
        linear = self._linearisations[kind]
        linear.take_masses(self._network)
        rates = None
        if self.actuators and kind != "lengths":
            rates = self._spools.speed.copy()
        return linear.model(self._nodes, self._velocities, self._rest, rates, self._network.load, reduced=reduced)

    def reset(self) -> None:
        self._nodes[:], self._rest[:], self._steps = self._start_nodes, self._start_rest, 0
        self._network.bar_lengths[:] = self._rest[self._network.bars]
        if self.rods is not None:
            self.rods.uses[:] = 0
        self._payloads = {}
        self._weigh(self.structure.lumped_masses(), np.array(self.structure.gravity))
        self.apply_forces(None)
        self._force_work = 0.0
        self._velocities[:] = 0.0
        self._spools.mode[:] = POSITION
        self._spools.target[:] = self._rest[self._spools.member]
        self._stages.work[:] = 0.0
        self._work.rest_rates[:] = 0.0
        self._spools.speed[:] = self._spools.lead[:] = 0.0
        self._forget()

    def hold(self) -> None:
        self._spools.mode[:] = POSITION
        self._spools.target[:] = self._rest[self._spools.member]
        self._spools.lead[:] = 0.0

    @property
    def note(self) -> str:
        """Note on too long explicit steps, rods near singular axes of minimal coordinates, and crossing members."""
        notes = [] if self.rods is None else [report_uses(self.rods, self._rod_names)]
        longest = STABLE_PART.get(self.integrator, np.inf) * self.shortest_period
        if self.time_step > longest:
            notes.append(
                f"steps of {self.time_step:.3g} s may be too long for {self.integrator}: only up to {longest:.2g} s no "
                f"vibration can grow (shortest period {self.shortest_period:.3g} s, from {self.step_limit}); take "
                "shorter ones, or integrator 'implicit'"
            )
        if self.structure.collision is not None:
            notes.append(describe_crossings(self.structure, self._nodes))
        return "; ".join(each for each in notes if each)

    def _forget(self) -> None:
        """Mark the next step as the first one after a start."""
        self._stages.has_former[:], self._stages.bar_forces[:] = 0, 0.0
        self._work.ground[:, HELD:] = 0.0
        if self.rods is not None:
            stretch_rods(self.rods, self._rest, self._work.rest_rates)
            read_rods(self.rods, self._nodes, self._velocities)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _start(self, start: StructureEquilibrium | ArrayLike | None) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        structure = self.structure
        if start is None:
            try:
                start = StructureEquilibriumSolver(structure, rigid_bars=self.rigid_bars).solve()
            except NoEquilibriumError:
                start = structure.nodes
        rest = start.rest_lengths if isinstance(start, StructureEquilibrium) else structure.rest_lengths
        try:
            nodes = np.array(start.nodes if isinstance(start, StructureEquilibrium) else start, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TensegrityError(
                f"start is {start!r}; give nodes {structure.nodes.shape} in m, or a shape."
            ) from error
        if nodes.shape != structure.nodes.shape or not np.isfinite(nodes).all():
            raise TensegrityError(f"start must be finite nodes of shape {structure.nodes.shape}.")
        if np.shape(rest) != structure.rest_lengths.shape:
            raise TensegrityError(f"start is a shape of {np.size(rest)} members, the robot has {len(structure.kinds)}.")
        nodes[structure.supports] = structure.nodes[structure.supports]
        self._close(nodes)
        return nodes, np.array(rest)

    def _close(self, nodes: NDArray) -> None:
        """Bring bars to their lengths with the least change, so that any rough start can be simulated."""
        network, work = self._network, self._work
        for _ in range(100):
            if not couple_bars(network, nodes, work):
                raise self._dependence(nodes)
            missing = close_bars(network, nodes, self._stages.totals, work)
            if not np.isfinite(nodes).all():
                break
            if missing < 1e-12:
                return
        raise TensegrityError("the bars cannot reach their lengths from the start; start nearer.")

    def _dependence(self, nodes: NDArray | None = None) -> PartError:
        """Error on dependent rigid bars, with a remedy."""
        rows = dependent_bars(self._network, self._nodes if nodes is None else nodes)
        names = [self.structure.member_names[k] for k in rows]
        return PartError(
            f"rigid bars depend on each other here ({', '.join(names) or 'some'}): the length of one follows from the "
            "others, so that their forces are not determined. Take one out, or simulate with rigid_bars=False.",
            "members",
            *names[:1],
        )

    def _default_step(self) -> float:
        """Default step [s]: a twentieth of the shortest period, less for fast damping; friction never limits the
        step."""
        network, ground = self._network, self.structure.ground
        step = self.shortest_period / 20.0
        rates = [("the damping", self._largest(network.damping, np.zeros(network.damping.size)))]
        lightest = _largest_inverse_mass(network)
        rates.append(("the air", float(np.max(network.drag, initial=0.0)) * lightest))
        if ground is not None:
            rates.append(("the ground's damping", ground.damping * lightest))
        if self.structure.collision is not None:
            rates.append(("the damping of collisions", 2.0 * self.structure.collision.damping * lightest))
        for what, rate in rates:
            if rate > 0.0 and 0.5 / rate < step:
                step, self.step_limit = 0.5 / rate, what
        return max(step, IMPLICIT_STEP) if self.integrator == "implicit" else step

    def _shortest_period(self) -> float:
        """Shortest period [s] from the stiffness at the start without rigid bar constraints, which only increase it."""
        network, count = self._network, self.structure.members.shape[0]
        lengths, tensions = np.zeros(count), np.zeros(count)
        member_tensions(self._nodes, network.members, network.stiffness, self._rest, network.laws, lengths, tensions)
        # slack strings can become taut later, and nodes in the air can touch the ground: both are always included
        ground = 0.0 if self.structure.ground is None else self.structure.ground.stiffness
        largest = self._largest(network.stiffness, tensions, ground)
        self.step_limit = "the stiffest member"
        if largest > 0.0 and ground > 0.0 and self._largest(network.stiffness, tensions) < 0.7 * largest:
            self.step_limit = "the ground's stiffness"
        if network.collisions.size:
            # two rods in contact, each with its largest inverse mass
            pressed = 2.0 * network.collisions[0, 0] * _largest_inverse_mass(network)
            if pressed > largest:
                self.step_limit = "the stiffness of collisions"
            largest += pressed
        return 2.0 * np.pi / np.sqrt(largest) if largest > 0.0 else 1.0

    def _largest(self, stiffness: NDArray, tensions: NDArray, ground: float = 0.0) -> float:
        """Largest eigenvalue of M^-1/2 K M^-1/2 over the free coordinates, for stiffness, tensions (m,) and ground."""
        network, free = self._network, self.structure.free
        if not free.size or not (stiffness.any() or tensions.any() or ground):
            return 0.0
        lengths = np.linalg.norm(self._nodes[network.members[:, 0]] - self._nodes[network.members[:, 1]], axis=1)
        if free.size > MAX_DENSE_COORDINATES:
            return self._largest_sparse(stiffness, tensions, lengths) + ground * _largest_inverse_mass(network)
        if self.structure.rollers.any():
            inverse = np.zeros((self._nodes.size, self._nodes.size))
            for axis in range(3):
                inverse[axis::3, axis::3] = inverse_mass_matrix(network, axis)
            root = np.linalg.cholesky(inverse[np.ix_(free, free)])
        else:
            moving = np.flatnonzero(~self.structure.fixed)
            root = np.kron(np.linalg.cholesky(inverse_mass_matrix(network)[np.ix_(moving, moving)]), np.eye(3))
        matrix = np.zeros((free.size, free.size))
        never_slack = np.zeros(lengths.size)
        tangent_stiffness(
            self._nodes, network.members, stiffness, never_slack, lengths, tensions, self._rest,
            free_positions(self.structure.supports), matrix,
        )  # fmt: skip
        matrix[np.diag_indices(free.size)] += ground
        return float(np.linalg.eigvalsh(root.T @ matrix @ root)[-1])

    def _largest_sparse(self, stiffness: NDArray, tensions: NDArray, lengths: NDArray) -> float:
        """As `_largest`, for large structures; the result is rather 0.1 % too large than too small."""
        from scipy.sparse import coo_matrix, diags, identity, kron
        from scipy.sparse.linalg import eigsh

        network = self._network
        first, second = network.members[:, 0], network.members[:, 1]
        units = (self._nodes[first] - self._nodes[second]) / lengths[:, None]
        density = tensions / lengths
        blocks = (stiffness - density)[:, None, None] * units[:, :, None] * units[:, None, :]
        blocks += density[:, None, None] * np.eye(3)
        rows, columns, values = [], [], []
        position = free_positions(self.structure.supports)
        for i, j, sign in ((first, first, 1.0), (second, second, 1.0), (first, second, -1.0), (second, first, -1.0)):
            p, q = np.broadcast_arrays(position[i][:, :, None], position[j][:, None, :])
            both = (p >= 0) & (q >= 0)
            rows.append(p[both])
            columns.append(q[both])
            values.append(sign * blocks[both])
        entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
        size = int(self.structure.free.size)
        matrix = coo_matrix(entries, shape=(size, size)).tocsr()
        if not network.spread.any():
            root = diags(np.sqrt(1.0 / np.repeat(network.node_masses, 3)[self.structure.free]))
            matrix, masses = root @ matrix @ root, None
        else:
            moving = ~self.structure.fixed
            spread = self._mass_matrix_sparse()[moving][:, moving]
            masses = kron(spread, identity(3)).tocsc()
            if self.structure.rollers.any():
                kept = np.flatnonzero(~self.structure.supports[moving].ravel())
                masses = masses[kept][:, kept]
        largest = eigsh(matrix, k=1, M=masses, which="LA", v0=np.random.default_rng(0).normal(size=size), tol=1e-4)
        return 1.001 * float(largest[0][0])

    def _mass_matrix_sparse(self) -> Any:
        """(n, n) mass matrix [kg]."""
        from scipy.sparse import coo_matrix, diags

        network, count = self._network, self._network.node_masses.size
        rods = np.flatnonzero(network.spread)
        i, j, part = network.members[rods, 0], network.members[rods, 1], network.spread[rods]
        rows, columns = np.concatenate((i, j, i, j)), np.concatenate((i, j, j, i))
        values = np.concatenate((-part, -part, part, part))
        return (diags(network.node_masses) + coo_matrix((values, (rows, columns)), shape=(count, count))).tocsr()


def _check_stabilisation(gains: tuple[float, float], integrator: str, model: str) -> None:
    """Raise TensegrityError if the gains are not two finite numbers, or there is nothing to stabilise."""
    if np.shape(gains) != (2,) or not np.isfinite(gains).all():
        raise TensegrityError(f"stabilisation is {gains!r}; give two finite numbers, k_s in 1/s^2 and k_d in 1/s.")
    if integrator != "rk4" or model != "point_masses":
        raise TensegrityError(
            "stabilisation by k_s and k_d is for model 'point_masses' with integrator rk4; the others close the bars."
        )


def _largest_inverse_mass(network: Any) -> float:
    """Upper bound of the largest inverse mass of a motion of the rods [1/kg] (Gershgorin)."""
    if not network.inverse_value.size:
        return 0.0
    rows = network.inverse_first[:-1][np.diff(network.inverse_first) > 0]
    return float(np.add.reduceat(np.abs(network.inverse_value), rows, axis=1).max())
