"""Memory of one emulated servo: registers in EEPROM, which persist, and in RAM, which a reboot resets."""

from __future__ import annotations

from collections.abc import Iterable

from ..bus.control_tables import Register, ServoModel


class RegisterFile:
    """Memory of one servo with the values of the factory.

    Args:
        model: with its control table.
    """

    def __init__(self, model: ServoModel) -> None:
        self.model = model
        self.size = max(each.end for each in model.registers.values())
        self.memory = bytearray(self.size)
        self.factory_reset()

    def __contains__(self, name: str) -> bool:
        return name in self.model.registers

    def covered(self, address: int, size: int) -> list[Register]:
        """Registers that overlap a block of bytes."""
        end = address + size
        return [each for each in self.model.registers.values() if each.address < end and address < each.end]

    def raw(self, name: str, default: int = 0) -> int:
        """Raw unsigned number of a register, or `default` where the model lacks it."""
        if name not in self.model.registers:
            return default
        register = self.model.registers[name]
        return int.from_bytes(self.memory[register.address : register.end], "little")

    def set_raw(self, name: str, value: int) -> None:
        """Set the raw unsigned number of a register; no effect where the model lacks it."""
        if name in self.model.registers:
            register = self.model.registers[name]
            self.memory[register.address : register.end] = value.to_bytes(register.size, "little")

    def value(self, name: str, default: float = 0.0) -> float:
        """Value of a register in SI units, or `default` where the model lacks it."""
        return self.model.registers[name].decode(self.raw(name)) if name in self.model.registers else default

    def set(self, name: str, value: float) -> None:
        """Set a register to the nearest possible value in SI units; no effect where the model lacks it."""
        if name in self.model.registers:
            register = self.model.registers[name]
            self.set_raw(name, register.encode(register.nearest(value)))

    def power_up(self) -> None:
        """Reset RAM as after a power cycle; EEPROM persists."""
        for register in self.model.registers.values():
            if not register.eeprom:
                self.set_raw(register.name, register.initial or 0)
        for name in ("torque_limit", "goal_current"):  # start at their ceiling in EEPROM
            self.set_raw(name, self.raw("torque_ceiling"))

    def factory_reset(self, keep: Iterable[str] = ()) -> None:
        """Reset EEPROM and RAM to the values of the factory, except the registers to keep."""
        kept = {name: self.raw(name) for name in keep}
        for register in self.model.registers.values():
            if register.eeprom:
                self.set_raw(register.name, kept.get(register.name, register.initial or 0))
        self.power_up()
