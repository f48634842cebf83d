"""How tendons are homed: the `homing` block of a robot file."""

from __future__ import annotations

from pydantic import ValidationInfo, field_validator

from tensegrity_dynamics.robots.file_errors import worded_error
from tensegrity_dynamics.robots.schema import Count, PositiveForce, PositiveLength, PositiveSpeed, SettingsBlock


class HomingSettings(SettingsBlock):
    """Thresholds and speeds of homing; times in bus cycles, the rest in SI units.

    Args:
        threshold: N above the friction of the idling spool at which the tendon counts as tight. Raising it needs a
            more tense tendon and is less easily deceived by friction.
        ceiling: N that homing never exceeds, above the threshold; None takes half of the actuator's effort.
        speed: m/s of winding, lowered where a stiff tendon asks for it.
        nudge: m paid out first. back_off: m paid out at the end.
        travel: m that may be wound in at most before it is clear that there is no tendon.
        look: cycles of looking before anything moves. confirm: cycles for which tension must stay.
        lag: cycles by which a servo may follow its command. silent: cycles without an answer that end the homing.
        still: m that a sensor may move while nothing is commanded.
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
