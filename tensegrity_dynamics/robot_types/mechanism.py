"""`kind: mechanism`: bodies, joints, loops and elastic cables."""

from __future__ import annotations

from typing import Any

from ..errors import TensegrityError
from ..mechanisms.estimation.kalman_observer import MechanismObserver, Noise
from ..mechanisms.estimation.quasi_static_estimator import MechanismEstimator
from ..mechanisms.file_builder import build_mechanism
from ..mechanisms.file_schema import MechanismFile, motions
from ..mechanisms.mechanism_model import MechanismModel
from ..mechanisms.mjcf import mechanism_mjcf
from ..mechanisms.report import MechanismReport
from ..mechanisms.simulation.mechanism_simulator import INTEGRATORS, MechanismSimulator
from ..mechanisms.state_codec import MechanismCodec
from ..robots.robot import Robot
from ..robots.robot_types import RobotType
from ..visualization.mechanism_picture import MechanismPicture


def _simulator(
    robot: Robot,
    time_step: float | None,
    integrator: str,
    *,
    start: Any,
    gravity: Any,
    rigid_bars: bool = True,
    air_damping: float = 0.0,
) -> MechanismSimulator:
    """Simulator of a mechanism; elastic bars and air damping are refused: bars are bodies, and cables have the
    damping."""
    if not rigid_bars or air_damping:
        raise TensegrityError(
            f"{robot.name} is a mechanism: elastic bars and air_damping are for structures; give its joints and cables "
            "damping in the robot file."
        )
    return MechanismSimulator(robot, time_step, integrator, start=start, gravity=gravity)


MECHANISM = RobotType(
    name="mechanism",
    model=MechanismModel,
    schema=MechanismFile,
    builder=build_mechanism,
    motions=motions,
    simulator=_simulator,
    integrators=INTEGRATORS,
    estimators={
        "rest": lambda robot, **_: MechanismEstimator(robot),
        "observer": lambda robot, unknown_loads=True, **_: MechanismObserver(
            robot, None if unknown_loads else Noise(load=0.0, elasticity=0.0, friction=0.05)
        ),
    },
    codec=MechanismCodec,
    report=MechanismReport,
    picture=MechanismPicture,
    exports={"mjcf": mechanism_mjcf},
)
