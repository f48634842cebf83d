"""The time bar of a replay follows it, and what a hand does there goes to the player and nowhere else."""

from __future__ import annotations

import pytest
from view_robots import prism_robot
from view_visitor import free_port, visit, wait

from tensegrity_tools.view import Answer, View, replay_panel
from tensegrity_tools.view.replay_panel import Playback


@pytest.fixture
def steered():
    """A view of a replay of 20 s, and what was asked of the player."""
    asked: list[tuple[str, float | bool]] = []

    def steer(name: str, value: float | bool) -> Answer:
        asked.append((name, value))
        return Answer(name != "loop", "" if name != "loop" else "this player has no loop")

    with View(prism_robot(), free_port(), on_steer=steer) as view:
        yield view, asked


def test_the_time_bar_steers_the_player_and_follows_it(steered) -> None:
    view, asked = steered
    with visit(view) as visitor:
        assert "Hold here" not in visitor.labels() and "Stop" not in visitor.labels()  # nobody is commanded
        view.show_playback(Playback(position=5.0, end=20.0, rate=0.5))
        assert wait(lambda: "Time [s]" in visitor.labels())
        assert wait(lambda: abs(visitor.part("Time [s]")["value"] - 5.0) < 0.02)
        assert visitor.part("Time [s]")["max"] == 20.0 and visitor.part("Rate")["value"] == 0.5
        assert wait(lambda: "Pause" in visitor.labels() and "Play" not in visitor.labels())

        visitor.press("Pause")
        assert wait(lambda: asked == [("paused", True)])
        assert wait(lambda: "Play" in visitor.labels())
        visitor.type("Time [s]", 12.5)
        visitor.type("Rate", 2.0)
        assert wait(lambda: asked[1:] == [("position", 12.5), ("rate", 2.0)])
        visitor.press("Play")
        assert wait(lambda: asked[3:] == [("paused", False)])
        visitor.type("Loop", True)
        assert wait(lambda: asked[4:] == [("loop", True)])

    assert len(asked) == 5  # what the replay itself moves asks for nothing


def test_a_field_that_was_just_moved_is_not_taken_back_by_the_replay(steered, monkeypatch) -> None:
    view, asked = steered
    monkeypatch.setattr(replay_panel, "QUIET", 1e9)
    with visit(view) as visitor:
        view.show_playback(Playback(position=5.0, end=20.0))
        assert wait(lambda: "Time [s]" in visitor.labels())
        visitor.type("Time [s]", 15.0)
        assert wait(lambda: asked == [("position", 15.0)])
        assert view.replay is not None
        view.replay.update(Playback(position=5.1, end=20.0, rate=3.0))  # said before it went there
        assert view.replay._bar.value == 15.0 and view.replay._rate.value == 3.0
        view.replay._touched.clear()
        view.replay.update(Playback(position=99.0, end=20.0))
        assert view.replay._bar.value == 20.0
