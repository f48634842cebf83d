"""The control table of one servo as memory: EEPROM that stays, RAM that a power cycle resets."""

from __future__ import annotations

from collections.abc import Iterable

from ..bus.control_tables import Field, ServoModel


class RegisterFile:
    """Memory of one servo, as delivered.

    Args:
        model: its control table.
    """

    def __init__(self, model: ServoModel) -> None:
        self.model = model
        self.size = max(each.end for each in model.fields.values())
        self.memory = bytearray(self.size)
        self.factory_reset()

    def __contains__(self, name: str) -> bool:
        return name in self.model.fields

    def covered(self, address: int, size: int) -> list[Field]:
        """Fields of which these bytes hold a part."""
        end = address + size
        return [each for each in self.model.fields.values() if each.address < end and address < each.end]

    def raw(self, name: str, default: int = 0) -> int:
        """The unsigned number in a field, or `default` where the model has no such field."""
        if name not in self.model.fields:
            return default
        field = self.model.fields[name]
        return int.from_bytes(self.memory[field.address : field.end], "little")

    def set_raw(self, name: str, value: int) -> None:
        """Put an unsigned number into a field; nothing happens where the model has no such field."""
        if name in self.model.fields:
            field = self.model.fields[name]
            self.memory[field.address : field.end] = value.to_bytes(field.size, "little")

    def value(self, name: str, default: float = 0.0) -> float:
        """What a field says in SI units, or `default` where the model has no such field."""
        return self.model.fields[name].decode(self.raw(name)) if name in self.model.fields else default

    def set(self, name: str, value: float) -> None:
        """Put the nearest value [SI] that a field can hold into it; nothing happens where there is no such field."""
        if name in self.model.fields:
            field = self.model.fields[name]
            self.set_raw(name, field.encode(field.nearest(value)))

    def power_up(self) -> None:
        """RAM as after a power cycle; the EEPROM stays."""
        for field in self.model.fields.values():
            if not field.eeprom:
                self.set_raw(field.name, field.initial or 0)
        for name in ("torque_limit", "goal_current"):  # their ceiling in EEPROM is what they start with
            self.set_raw(name, self.raw("torque_ceiling"))

    def factory_reset(self, keep: Iterable[str] = ()) -> None:
        """Everything as delivered, but for the fields to keep."""
        kept = {name: self.raw(name) for name in keep}
        for field in self.model.fields.values():
            if field.eeprom:
                self.set_raw(field.name, kept.get(field.name, field.initial or 0))
        self.power_up()
