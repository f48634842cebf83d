"""The time bar of a replay follows it, and what a hand does there goes to the player and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from headless_browser import HeadlessBrowser, find_chromium
from patience import until
from view_robots import prism_robot
from view_visitor import free_port, visit

from tensegrity_tools.view import Answer, View, replay_panel
from tensegrity_tools.view.replay_panel import Playback
from tensegrity_tools.view.state import ViewState


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
        assert not {"Hold here", "Stop", "Goal", "Goal handle"} & set(visitor.labels())  # nobody is commanded
        view.show_playback(Playback(position=5.0, end=20.0, rate=0.5))
        until(lambda: "Time [s]" in visitor.labels())
        until(lambda: abs(visitor.part("Time [s]")["value"] - 5.0) < 0.02)
        assert visitor.part("Time [s]")["max"] == 20.0 and visitor.part("Rate")["value"] == 0.5
        until(lambda: "Pause" in visitor.labels() and "Play" not in visitor.labels())

        visitor.press("Pause")
        until(lambda: asked == [("paused", True)])
        until(lambda: "Play" in visitor.labels())
        visitor.type("Time [s]", 12.5)
        visitor.type("Rate", 2.0)
        until(lambda: asked[1:] == [("position", 12.5), ("rate", 2.0)])
        visitor.press("Play")
        until(lambda: asked[3:] == [("paused", False)])
        visitor.type("Loop", True)
        until(lambda: asked[4:] == [("loop", True)])

    assert len(asked) == 5  # what the replay itself moves asks for nothing


def test_a_field_that_was_just_moved_is_not_taken_back_by_the_replay(steered, monkeypatch) -> None:
    view, asked = steered
    monkeypatch.setattr(replay_panel, "QUIET", 1e9)
    with visit(view) as visitor:
        view.show_playback(Playback(position=5.0, end=20.0))
        until(lambda: "Time [s]" in visitor.labels())
        visitor.type("Time [s]", 15.0)
        until(lambda: asked == [("position", 15.0)])
        assert view.replay is not None
        view.replay.update(Playback(position=5.1, end=20.0, rate=3.0))  # said before it went there
        assert view.replay.bar.value == 15.0 and view.replay.rate.value == 3.0
        view.replay.touched.clear()
        view.replay.update(Playback(position=99.0, end=20.0))
        assert view.replay.bar.value == 20.0


@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="no Chromium on this machine")
def test_on_a_phone_fingers_hit_the_time_bar_and_the_robot_stands_above_the_panel(steered) -> None:
    view, asked = steered
    still = ViewState(time=1.0, configuration=view.robot.model.nodes, mode="moving")
    box = "(e => {const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]})"
    with HeadlessBrowser(390, 844, phone=True) as browser:
        browser.open(view.url)
        view.show(still)
        view.show_playback(Playback(position=5.0, end=20.0))
        assert browser.wait(lambda: "Pause" in browser.text() and "moving" in browser.text(), 120.0)
        pause = f"[...document.querySelectorAll('button')].filter(b => b.innerText.trim() === 'Pause').map({box})[0]"
        assert browser.wait(lambda: browser.run(pause)[3] >= 40 and browser.run(pause)[1] < 844 - 40)  # once laid out
        x, y, width, height = browser.run(pause)
        assert 0.5 * 844 < y < 844 - height and x >= 0.0 and 0.8 * 390 < width <= 390 - x
        assert browser.run("document.documentElement.scrollWidth") <= 390
        (client,) = view.server.get_clients().values()
        away = np.linalg.norm(view.server.initial_camera.position - view.server.initial_camera.look_at)
        fitted = lambda: np.linalg.norm(client.camera.position - client.camera.look_at) > 1.5 * away  # noqa: E731
        assert browser.wait(fitted)
        bar = browser.box("document.querySelector('.mantine-Slider-root')")
        assert bar[2] > 150 and bar[3] >= 30
        browser.drag((bar[0] + 0.25 * bar[2], bar[1] + 0.4 * bar[3]), (bar[0] + 0.5 * bar[2], bar[1] + 0.4 * bar[3]))
        assert browser.wait(lambda: bool(asked))
    assert all(name == "position" for name, _ in asked)
