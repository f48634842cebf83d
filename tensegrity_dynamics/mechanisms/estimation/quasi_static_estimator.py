"""Quasi-static estimation of a mechanism from the positions of its actuators: body poses, strains and tensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import TensegrityError, unknown_name
from ...estimation_interface import Estimate, QuasiStaticEstimator, check_readings
from ...robots.robot import Robot
from ..body_poses import BodyPoses
from ..dynamics.equations_of_motion import evaluate
from ..dynamics.rigid_tensions import RigidTensions
from ..kinematics.configuration_space import difference
from ..loads import Payload
from ..mechanism_model import MechanismModel
from ..statics.equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from ..statics.standing_motion import follow
from ..workspace import make_workspace
from .unknown_loads import UnknownLoad


@dataclass(frozen=True, eq=False, repr=False)
class MechanismEstimate(Estimate):
    """An `Estimate` whose `equilibrium` is a `MechanismEquilibrium`.

    Attributes:
        unknown: estimated unknown loads on the mechanism; None if they are not estimated.
    """

    unknown: UnknownLoad | None = None

    @property
    def q(self) -> NDArray[np.float64]:
        """(nq,) configuration."""
        return self.configuration

    @property
    def v(self) -> NDArray[np.float64]:
        """(nv,) velocities."""
        return self.velocity


class MechanismEstimator(QuasiStaticEstimator):
    """Quasi-static estimator: for every reading of the actuators, the equilibrium is computed from the last one.

    The slip of routed cables with friction is accumulated from reading to reading, so that the estimate depends on the
    path of the actuators since the start of the file.

    Args:
        robot: robot with a mechanism as its model.

    Raises:
        NoEquilibriumError: the robot has no equilibrium with its actuators at their start.
    """

    takes_payloads = True

    last: MechanismEstimate

    def __init__(self, robot: Robot) -> None:
        model = robot.model_as(MechanismModel)
        self.robot, self._model = robot, model
        self._joints = {each.name: model.joint_of(each.drives) for each in robot.actuators}
        self._payloads: dict[str, Payload] = {}
        self._solver = MechanismEquilibriumSolver(model.mechanism, tuple(self._joints.values()))
        self._poses = BodyPoses(model)
        self._cable_order = tuple(cable.name for cable in model.mechanism.cables)
        self._rigid, self._work = RigidTensions(model), make_workspace(model.mechanism.flat)
        self._home = self._solver.solve(model.start)
        self._refuse_pushing(self._home)
        self.reset()

    @property
    def actuators(self) -> tuple[str, ...]:
        return tuple(self._joints)

    def reset(self) -> None:
        if self._payloads:
            self._carry({})
        self.last = self._estimate(-np.inf, self._home, np.zeros(self._model.mechanism.velocity_count))

    def attach(
        self, name: str, body: str, mass: float, at: ArrayLike = (0.0, 0.0, 0.0), inertia: ArrayLike | None = None
    ) -> None:
        """Attach a payload to a body, with the arguments of `Simulation.attach`; `reset` removes all of them.

        Raises:
            TensegrityError: a number is not finite or negative, or the inertia is not physically possible.
        """
        about: ArrayLike = np.zeros((3, 3)) if inertia is None else inertia
        self._carry({**self._payloads, name: Payload(name, body, mass, at, about)})  # type: ignore[arg-type]

    def detach(self, name: str) -> None:
        """Remove the payload with this name."""
        self._carry({key: each for key, each in self._payloads.items() if key != name})

    def _carry(self, payloads: dict[str, Payload]) -> None:
        mechanism = self._model.mechanism
        carrying = replace(mechanism, payloads=(*mechanism.payloads, *payloads.values()))
        self._solver, self._payloads = MechanismEquilibriumSolver(carrying, tuple(self._joints.values())), payloads

    def solve(self, positions: Mapping[str, float], method: str = "newton") -> MechanismEstimate:
        """Equilibrium for positions by actuator [rad or m]; actuators that are not named stay at the start.

        Raises:
            TensegrityError: an actuator or the method is unknown, or a position is invalid.
            NoEquilibriumError: there is no equilibrium.
        """
        check_readings(positions)
        if method != "newton":
            raise TensegrityError(unknown_name("method for mechanisms", method, ("newton",)))
        if self._solver.stands and not self._payloads:
            shape = follow(self._solver, self._home, self._by_joint(positions))[0]
        else:
            shape = self._solver.solve(self._home.q, self._by_joint(positions))
        self._refuse_pushing(shape)
        return self._estimate(0.0, shape, np.zeros(self._model.mechanism.velocity_count))

    def _next(self, positions: Mapping[str, float], last: MechanismEstimate) -> MechanismEquilibrium:
        if self._solver.stands:
            shape = follow(self._solver, last.equilibrium, self._by_joint(positions))[0]
        else:
            shape = self._solver.solve(last.q, self._by_joint(positions), slip=last.equilibrium.slip)
        self._refuse_pushing(shape)
        return shape

    def _travel(self, last: MechanismEstimate, equilibrium: MechanismEquilibrium) -> NDArray[np.float64]:
        return difference(self._model.mechanism, last.q, equilibrium.q)

    def _by_joint(self, positions: Mapping[str, float]) -> dict[str, float]:
        for name in positions:
            if name not in self._joints:
                raise TensegrityError(unknown_name("actuator", name, self._joints))
        return {self._joints[name]: value for name, value in positions.items()}

    def _rigid_tensions(self, shape: MechanismEquilibrium) -> dict[str, float]:
        if not self._rigid.names:
            return {}
        still = np.zeros(shape.effort.size)
        evaluate(self._model.mechanism.flat, np.array(shape.q), still, self._work)
        return self._rigid.tensions(self._work, still, shape.effort)

    def _refuse_pushing(self, shape: MechanismEquilibrium) -> None:
        self._rigid.refuse_pushing_at_rest(self._work, shape.q, shape.effort)

    def _estimate(
        self, time: float, equilibrium: MechanismEquilibrium, velocity: NDArray[np.float64], reason: str = ""
    ) -> MechanismEstimate:
        pose, twist = None, None
        if self.robot.outputs:
            pose, twist = self._poses.update(equilibrium.q, velocity).output(self.robot.outputs[0])
        by_name = dict(zip(self._cable_order, equilibrium.tension.tolist(), strict=True))
        by_name |= self._rigid_tensions(equilibrium)
        by_name |= {name: reading.tension for name, reading in equilibrium.routes.items()}
        tensions = {name: by_name[name] for name in self._model.tension_names}
        return MechanismEstimate(
            time=time, configuration=equilibrium.q, velocity=velocity, pose=pose, twist=twist, tensions=tensions,
            slack=tuple(name for name, tension in tensions.items() if tension <= 0.0), residual=equilibrium.residual,
            softest=equilibrium.softest, stable=bool(equilibrium.stable), converged=not reason, reason=reason,
            equilibrium=equilibrium,
        )  # fmt: skip
