"""Settings of homing: the `homing` block of a robot file."""

from __future__ import annotations

from pydantic import ValidationInfo, field_validator

from tensegrity_dynamics.robots.file_errors import worded_error
from tensegrity_dynamics.robots.schema import Count, PositiveForce, PositiveLength, PositiveSpeed, SettingsBlock


class HomingSettings(SettingsBlock):
    """Thresholds and speeds of homing; times in bus cycles, the rest in SI units.

    Args:
        threshold: tension above the friction of the idling spool at which the tendon counts as tight [N]. A higher
            value is less sensitive to friction, but tensions the tendon more.
        ceiling: upper limit of the tension during homing, above the threshold [N]; None: half of the effort of the
        actuator.
        speed: speed of winding [m/s], reduced for stiff tendons.
        nudge: length paid out first [m]. back_off: length paid out at the end [m].
        travel: largest length wound in before homing fails because no tendon becomes tight [m].
        look: cycles of observation before any motion. confirm: cycles for which the tension must persist.
        lag: largest delay of a servo after its command [cycles]. silent: cycles without an answer that end the homing.
        still: largest motion of a sensor without a command [m].
    """

    threshold: PositiveForce = 15.0
    ceiling: PositiveForce | None = None
    speed: PositiveSpeed = 4.0e-3
    nudge: PositiveLength = 3.0e-3
    back_off: PositiveLength = 1.0e-3
    travel: PositiveLength = 60.0e-3
    look: Count = 10
    confirm: Count = 10
    lag: Count = 3
    silent: Count = 3
    still: PositiveLength = 0.5e-3

    @field_validator("ceiling")
    @classmethod
    def _above_the_threshold(cls, ceiling: float | None, info: ValidationInfo) -> float | None:
        threshold = info.data.get("threshold", 0.0)
        if ceiling is not None and ceiling <= threshold:
            message = f"{ceiling:g} N is not above the threshold of {threshold:g} N; raise it."
            raise worded_error(((), message))
        return ceiling
