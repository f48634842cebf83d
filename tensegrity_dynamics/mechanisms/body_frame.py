"""The output frame of a mechanism: a frame on a body."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..robots.output_frame import AXES, OutputFrame
from .frame import Frame


@dataclass(frozen=True, eq=False)
class BodyFrame(OutputFrame):
    """Output frame (end effector) on a body of a mechanism.

    Args:
        name: name of the frame in ROS.
        body: name of the body.
        frame: pose of the output frame on the body.
        controlled: see `OutputFrame`.

    Raises:
        TensegrityError: an axis is unknown or named twice.
    """

    name: str
    body: str
    frame: Frame = field(default_factory=Frame)
    controlled: tuple[str, ...] = AXES

    def __post_init__(self) -> None:
        self._check_controlled()
