"""Shape of a mechanism over time from where its actuators are: body poses, strains and tensions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import NoEquilibriumError, TensegrityError, unknown_name
from ...estimation_interface import Estimate, QuasiStaticEstimator, check_readings
from ...robots.robot import Robot
from ..body_poses import BodyPoses
from ..dynamics.equations_of_motion import evaluate
from ..dynamics.rigid_tensions import RigidTensions, pushing
from ..kinematics.configuration_space import difference
from ..loads import Payload
from ..mechanism_model import MechanismModel
from ..statics.equilibrium_solver import MechanismEquilibrium, MechanismEquilibriumSolver
from ..workspace import make_workspace
from .unknown_loads import UnknownLoad


@dataclass(frozen=True, eq=False, repr=False)
class MechanismEstimate(Estimate):
    """An `Estimate` whose `equilibrium` is a `MechanismEquilibrium`.

    Attributes:
        unknown: what acts on the mechanism beside what is known; None where nobody looks.
    """

    unknown: UnknownLoad | None = None

    @property
    def q(self) -> NDArray[np.float64]:
        """(nq,) positions."""
        return self.configuration

    @property
    def v(self) -> NDArray[np.float64]:
        """(nv,) velocities."""
        return self.velocity


class MechanismEstimator(QuasiStaticEstimator):
    """Quasi-static estimator: every reading of the actuators is solved for its equilibrium, from the last one.

    What routed cables that rub have slipped goes on from reading to reading, so that the path counts by which the
    actuators came, from the start of the file.

    Args:
        robot: a mechanism.

    Raises:
        NoEquilibriumError: the robot has no shape with its actuators at their start.
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
        """A payload that a body carries from now on, as `Simulation.attach` takes it; `reset` takes all of them off.

        Raises:
            TensegrityError: numbers that are not finite or below zero, or an inertia that no body has.
        """
        about = np.zeros((3, 3)) if inertia is None else np.array(inertia, dtype=np.float64)
        self._carry({**self._payloads, name: Payload(name, body, float(mass), np.array(at, dtype=np.float64), about)})

    def detach(self, name: str) -> None:
        """The payload of that name is there no more."""
        self._carry({key: each for key, each in self._payloads.items() if key != name})

    def _carry(self, payloads: dict[str, Payload]) -> None:
        mechanism = self._model.mechanism
        carrying = replace(mechanism, payloads=(*mechanism.payloads, *payloads.values()))
        self._solver, self._payloads = MechanismEquilibriumSolver(carrying, tuple(self._joints.values())), payloads

    def solve(self, positions: Mapping[str, float], method: str = "newton") -> MechanismEstimate:
        """The shape at rest for positions [rad or m] by actuator; what is not named stays at the start.

        Raises:
            TensegrityError: an actuator or the method is unknown, or a position is none. NoEquilibriumError: there is
            no shape.
        """
        check_readings(positions)
        if method != "newton":
            raise TensegrityError(unknown_name("method for mechanisms", method, ("newton",)))
        shape = self._solver.solve(self._home.q, self._by_joint(positions))
        self._refuse_pushing(shape)
        return self._estimate(0.0, shape, np.zeros(self._model.mechanism.velocity_count))

    def _next(self, positions: Mapping[str, float], last: MechanismEstimate) -> MechanismEquilibrium:
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
        if reason := pushing(self._rigid_tensions(shape)):
            raise NoEquilibriumError(f"in the only shape found {reason}.")

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
