"""The last command of a controller, which goes on where a period brings no state to answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tensegrity_dynamics.errors import TensegrityError

from ....controller import Command
from .pending_commands import PendingCommands


class LastCommand:
    """The last command, and how it goes on without a state.

    Attributes:
        command: None before the first. time: of the state that it answers [s]. acts: from which it acts [s].
    """

    def __init__(self, pending: PendingCommands) -> None:
        self._pending = pending
        self.command: Command | None = None
        self.time = self.acts = 0.0

    def forget(self, time: float) -> None:
        """Forget the command; the next one follows `time` [s]."""
        self.command, self.time, self.acts = None, time, time

    def keep(self, command: Command, time: float, acts: float) -> None:
        """Keep a command; see the attributes."""
        self.command, self.time, self.acts = command, time, acts

    def repeated(self, time: float) -> Command:
        """The command at a time [s]: set points move on at their rates.

        Raises:
            TensegrityError: there is none.
        """
        last = self.command
        if last is None:
            raise TensegrityError("the controller has had no state since its reset; there is nothing to go on with.")
        if last.position is None or last.velocity is None:
            return last
        return replace(last, position=last.position + (time - self.time) * last.velocity)

    def braked(self, time: float, acts: float) -> Command:
        """The command for a state of `time` [s] that is so old that the actuators brake already: they continue.

        Late feedback destabilises, missing feedback does not: the next fresh state finds the actuators nearly
        unchanged.
        """
        last = self.command
        if last is None or last.position is None or last.velocity is None:
            return self.repeated(time)
        gone, pace = self._pending.gone(acts - self.acts)
        position = last.position + (self.acts - self.time + gone) * last.velocity
        velocity = np.asarray(pace * last.velocity)
        return replace(last, position=position - (acts - time) * pace * last.velocity, velocity=velocity)
