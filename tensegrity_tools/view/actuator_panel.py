"""Table of the actuators (position, limits, tension, strain), and fields that move a single one.

Document 001, section 7.3, sets the lengths of single tendons in this way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from typing import NamedTuple

import viser

from tensegrity_dynamics.robots.actuator import Actuator
from tensegrity_dynamics.robots.robot import Robot

from .callbacks import one_at_a_time
from .display_units import LengthUnit, numbers
from .goal_panel import LONGEST, duration_problem, paragraph
from .state import Answer, ViewState

MAX_ROWS = 24
"""Largest number of rows; of more actuators those are shown that are nearest to a limit."""
NEAR = 0.01
"""Fraction of a range within which an actuator counts as at its limit."""
LIMIT_COLOUR = "#b3261e"

# Called with the name of an actuator, its new position [m or rad], and the duration [s], 0 for the shortest.
MoveCallback = Callable[[str, float, float], Answer]


class Row(NamedTuple):
    """State of one actuator: position [m or rad]; tension [N] and strain of the tendon that it winds, the loosest one
    where it winds several. NaN: unknown, or it winds none."""

    position: float = math.nan
    tension: float = math.nan
    strain: float = math.nan


class ActuatorPanel:
    """Table and fields of the actuators.

    Args:
        server: viser server; the parts are added to its open container.
        robot: robot with at least one actuator. tension_names: (m,) names of tensions and strains in its states.
        unit: unit of lengths.
        on_move: function that moves one actuator and returns when it has arrived, or None without fields.
    """

    def __init__(
        self, server: viser.ViserServer, robot: Robot, tension_names: Sequence[str], unit: LengthUnit,
        on_move: MoveCallback | None,
    ) -> None:  # fmt: skip
        gui, self._unit, self._on_move = server.gui, unit, on_move
        self._actuators = {each.name: each for each in robot.actuators}
        places = {name: place for place, name in enumerate(tension_names)}
        self._wound = {
            each.name: [places[name] for name in robot.model.tension_floors([each]) if name in places]
            for each in robot.actuators
        }
        self._pulls = ("tension [N]", "strain [%]") if any(self._wound.values()) else ()
        self._rows: dict[str, Row] = {}
        self._table = gui.add_html(self._html())
        if on_move is None:
            return
        first = robot.actuators[0]
        self._choice = gui.add_dropdown(
            "Actuator", tuple(self._actuators), initial_value=first.name, hint="the one to move"
        )
        unit_name = self._scale(first)[0]
        self._position = gui.add_number(
            f"To [{unit_name}]", 0.0, step=0.1, hint="its new position; for a tendon, the rest length"
        )
        self._duration = gui.add_number(
            "In [s]", 0.0, min=0.0, max=LONGEST, step=0.1, hint="duration; 0: the shortest within its limits"
        )
        self._move = gui.add_button("Move actuator", icon=viser.Icon.ARROWS_HORIZONTAL, color="teal")
        self._answer = gui.add_html("", visible=False)
        self._chosen = ""
        self._choice.on_update(lambda event: self._choose() if event.client is not None else None)
        self._position.on_update(lambda event: self._forget_answer() if event.client is not None else None)
        self._move.on_click(one_at_a_time(lambda _: self.move()))

    def update(self, state: ViewState) -> None:
        """Show a state."""
        for name, rows in self._wound.items():
            pulls = [math.nan if state.tensions is None else float(state.tensions[row]) for row in rows]
            loosest = min(range(len(rows)), key=lambda k: (math.isnan(pulls[k]), pulls[k]), default=None)
            self._rows[name] = Row(
                state.positions.get(name, math.nan),
                math.nan if loosest is None else pulls[loosest],
                math.nan if loosest is None or state.strains is None else float(state.strains[rows[loosest]]),
            )
        self._table.content = self._html()
        if self._on_move is not None and not self._chosen and state.positions:
            self._choose()

    def move(self) -> Answer:
        """Move the chosen actuator to the position of the field."""
        assert self._on_move is not None
        actuator = self._actuators[self._choice.value]
        name, scale, decimals = self._scale(actuator)
        position, duration = float(self._position.value) * scale, float(self._duration.value)
        low, high = actuator.position
        words = f"{actuator.name} to {position / scale:.{decimals}f} {name}"
        if not low <= position <= high:  # true for NaN, too
            answer = Answer(False, f"its limits are {low / scale:.{decimals}f} to {high / scale:.{decimals}f} {name}")
        elif problem := duration_problem(duration):
            answer = Answer(False, problem)
        else:
            self._move.disabled = True
            self._show_answer(f"Moving {words} ...", "#555")
            try:
                answer = self._on_move(actuator.name, position, duration)
            except Exception as error:  # any exception is shown to the user
                answer = Answer(False, f"{type(error).__name__}: {error}")
            finally:
                self._move.disabled = False
        if answer.accepted:
            self._show_answer(f"Moved {words}. {answer.text}".rstrip(), "#1b7f5f")
        else:
            self._show_answer(f"Not moved: {words}: {answer.text}", LIMIT_COLOUR)
        return answer

    def _choose(self) -> None:
        """Write the present position of the chosen actuator into the field."""
        actuator = self._actuators[self._choice.value]
        self._chosen = actuator.name
        name, scale, decimals = self._scale(actuator)
        row = self._rows.get(actuator.name)
        self._position.label = f"To [{name}]"
        if row is not None and math.isfinite(row.position):
            self._position.value = round(row.position / scale, decimals) + 0.0
        self._forget_answer()

    def _scale(self, actuator: Actuator) -> tuple[str, float, int]:
        """Unit of the positions of an actuator: name, size [m or rad], decimals."""
        if actuator.motion == "revolute":
            return "°", math.pi / 180.0, 1
        return self._unit.name, self._unit.metres, self._unit.decimals

    def _show_answer(self, text: str, colour: str) -> None:
        self._answer.content = paragraph(text, colour)
        self._answer.visible = True

    def _forget_answer(self) -> None:
        self._answer.visible = False

    def _html(self) -> str:
        names = (
            sorted(self._actuators, key=self._room)[:MAX_ROWS] if len(self._actuators) > MAX_ROWS else self._actuators
        )
        lines = "".join(self._line(self._actuators[name]) for name in names)
        left = len(self._actuators) - len(names)
        rest = f"<div>{left} more, farther from their limits</div>" if left > 0 else ""
        head = "".join(f"<th>{text}</th>" for text in ("", "position", "limits", *self._pulls))
        return (
            '<div style="font-size:0.78em;padding:0.2em 0.6em 0.4em;overflow-x:auto">'
            '<table style="width:100%;border-spacing:0.3em 0.1em;text-align:right;white-space:nowrap">'
            f'<tr style="color:#777">{head}</tr>{lines}</table>{rest}</div>'
        )

    def _line(self, actuator: Actuator) -> str:
        name, scale, decimals = self._scale(actuator)
        row = self._rows.get(actuator.name, Row())
        low, high = actuator.position
        room = self._room(actuator.name)
        place = 0.0 if math.isnan(row.position) else min(max((row.position - low) / (high - low), 0.0), 1.0)
        colour = LIMIT_COLOUR if room <= NEAR else "#1b7f5f"
        dot = (
            f'<i style="position:absolute;left:{100.0 * place:.0f}%;top:-0.15em;width:0.4em;height:0.7em;'
            f'margin-left:-0.2em;border-radius:0.2em;background:{colour}"></i>'
        )
        hint = f"{low / scale:.{decimals}f} to {high / scale:.{decimals}f} {name}"
        bar = (
            f'<div title="{hint}" style="position:relative;width:3em;height:0.4em;border-radius:0.2em;'
            f'background:#ddd">'
            f"{'' if math.isnan(row.position) else dot}</div>"
        )
        tension = _number(row.tension, 1)
        if row.tension < actuator.minimum_tension * (1.0 - NEAR):
            tension = f'<b style="color:{LIMIT_COLOUR}">{tension}</b>'
        position = f"{_number(row.position / scale, decimals)} {name}"
        cells = (position, bar, tension, _number(100.0 * row.strain, 2))[: 2 + len(self._pulls)]
        return (
            f'<tr><td style="text-align:left">{escape(actuator.name)}</td>'
            + "".join(f"<td>{cell}</td>" for cell in cells)
            + "</tr>"
        )

    def _room(self, name: str) -> float:
        """Distance of an actuator to its nearer limit, as a fraction of its range; infinite if unknown."""
        low, high = self._actuators[name].position
        row = self._rows.get(name)
        if row is None or math.isnan(row.position):
            return math.inf
        return min(row.position - low, high - row.position) / (high - low)


def _number(value: float, decimals: int) -> str:
    return "" if math.isnan(value) else numbers((value,), decimals)
