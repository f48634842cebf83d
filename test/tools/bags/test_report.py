"""The page of a bag is small, needs no network, and shows what the bag holds."""

from __future__ import annotations

import base64
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensegrity.msg", reason="the ROS interfaces are not built")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from headless_browser import HeadlessBrowser, find_chromium
from rclpy.serialization import serialize_message
from std_msgs.msg import String
from tensegrity.msg import CarriedPayloads, Goal, TendonState

from tensegrity_dynamics import load_robot
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.robots.robot_types import type_of
from tensegrity_dynamics.ros.geometry_messages import time_message
from tensegrity_dynamics.ros.state_encoding import state_message
from tensegrity_dynamics.simulation import Simulation
from tensegrity_tools.bags.decoding import without_surplus
from tensegrity_tools.bags.message_types import MessageTypes
from tensegrity_tools.bags.report import LARGEST_PAGE, write_report
from tensegrity_tools.bags.writer import BagWriter

TYPES = MessageTypes()
STEPS = 12


def write(writer: BagWriter, topic: str, kind: str, time: int, message: Any) -> None:
    if topic not in writer:
        writer.add_topic(topic, TYPES[kind])
    writer.write(topic, time, without_surplus(TYPES[kind], serialize_message(message)))


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundredths of a second of a robot that sags, a refused goal, and a fault with words that look like HTML."""
    path: Path = tmp_path_factory.mktemp("bags") / "sagging"
    robot = load_robot("three_prism")
    simulation, codec, names = Simulation(robot), type_of(robot).codec(robot), robot.model.tension_names
    with BagWriter(path) as writer:
        text = Path(str(robot.path)).read_text("utf-8")
        write(writer, "/robot_file", "std_msgs/msg/String", 0, String(data=text))
        for k in range(STEPS):
            stamp, seen = time_message(k * 2_000_000), simulation.observe()
            state = state_message(codec.encode(simulation.state, seen.pose, seen.twist), stamp, "simulator")
            tendons = TendonState(name=list(names), tension=[10.0 + k] * len(names))
            tendons.header.stamp = stamp
            write(writer, "/tendon_states", "tensegrity/msg/TendonState", 10 * k, tendons)
            write(writer, "/simulator/truth", "tensegrity/msg/StructureState", 10 * k + 1, state)
            simulation.advance(1)
        carried = CarriedPayloads(name=[robot.model.load_names[0]], mass=[0.25], centre=[0.0] * 3)
        write(writer, "/carried_payloads", "tensegrity/msg/CarriedPayloads", 60, carried)
        goal = Goal(reason="too far", waypoint=[state.output_pose])
        write(writer, "/goal", "tensegrity/msg/Goal", 200, goal)
        status = DiagnosticStatus(name="driver", level=DiagnosticStatus.ERROR, message="</script><b>loose</b>")
        write(writer, "/diagnostics", "diagnostic_msgs/msg/DiagnosticArray", 201, DiagnosticArray(status=[status] * 3))
    return path


@pytest.fixture(scope="module")
def page(bag: Path) -> Path:
    target = bag.with_suffix(".html")
    assert write_report(bag, target) == target.stat().st_size < LARGEST_PAGE
    return target


def test_the_page_needs_nothing_from_elsewhere(page: Path) -> None:
    text = page.read_text("utf-8")
    assert not re.search(r"(src|href|url)\s*[=(]|https?://|@import|fetch\(", text)


def test_the_page_holds_the_states_and_tensions_of_the_bag(page: Path) -> None:
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page.read_text("utf-8"))[1])  # type: ignore[index]
    tensions = np.frombuffer(base64.b64decode(data["tensions"]), "<f4").reshape(STEPS, -1)
    column = data["tension_names"].index(load_robot("three_prism").model.tension_names[0])
    assert tensions[:, column].tolist() == [10.0 + k for k in range(STEPS)]
    points = np.frombuffer(base64.b64decode(data["points"]), "<u2").reshape(STEPS, data["count"], 3)
    nodes = np.array(data["low"]) + np.array(data["step"]) * points[0]
    robot = load_robot("three_prism")
    start = type_of(robot).codec(robot).encode(Simulation(robot).state, None, None).node_position
    gaps = np.linalg.norm(nodes[:, None] - start[None], axis=2)
    assert gaps.min(axis=0).max() < 1e-4  # every node is drawn where the first state has it
    assert [(each["level"], each["text"]) for each in data["events"]][-1] == ("error", "</script><b>loose</b>")
    assert "refused. too far" in data["events"][1]["text"]
    assert "carries" in data["events"][0]["text"] and "0.25 kg" in data["events"][0]["text"]
    assert len(data["events"]) == 3
    loads = np.frombuffer(base64.b64decode(data["loads"]), "<f4").reshape(STEPS, 5)
    assert np.isfinite(loads[:, 4]).tolist() == [k >= 5 for k in range(STEPS)]  # from the state on after which it came
    assert loads[-1, 4] == 0.25


@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="no Chromium is installed")
def test_a_browser_shows_the_page_without_an_error(page: Path) -> None:
    with HeadlessBrowser() as browser:
        browser.open(page.as_uri())
        assert browser.wait(lambda: "0.00 of 0.02 s" in browser.text())
        shown = browser.run("document.body.innerHTML")
        browser.run("document.querySelector('#events').scrollIntoView({block: 'end'})")
        box = "document.querySelector('tr.event').getBoundingClientRect()"
        seen = f"(r => document.elementFromPoint(r.x + 20, r.y + r.height / 2).closest('tr.event') !== null)({box})"
        assert browser.run(seen)  # nothing covers the goals and faults
        assert browser.errors == []
        assert [each for each in browser.requests if not each.startswith("file:")] == []
    assert shown.count('class="event"') == 3
    assert shown.count('class="plot"') >= 1
    assert "&lt;b&gt;loose" in shown


@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="no Chromium is installed")
def test_a_browser_saves_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    saved.mkdir()
    with HeadlessBrowser() as browser:
        browser.send("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(saved))
        browser.open(page.as_uri())
        assert browser.wait(lambda: "0.00 of 0.02 s" in browser.text())
        assert browser.press("picture")
        assert browser.wait(lambda: {each.suffix for each in saved.iterdir()} == {".png"})
        assert browser.press("video")
        assert browser.wait(lambda: "end video" in browser.text() or "play" in browser.text())
        assert browser.errors == []
    (picture,) = saved.glob("*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
@pytest.mark.skipif(find_chromium() is None, reason="no Chromium is installed")
def test_words_beside_loads_are_never_cut_at_an_edge(page: Path) -> None:
    with HeadlessBrowser(390, 844, phone=True) as browser:
        browser.open(f"{page.as_uri()}?t=0.02")
        assert browser.wait(lambda: "of 0.02 s" in browser.text())
        browser.run(
            "window.cut = []; window.written = 0;"
            "{ const write = context.fillText; context.fillText = (text, x, y) => { written++;"
            "if (x < 0 || x + context.measureText(text).width > canvas.width) cut.push(text);"
            "write.call(context, text, x, y); }; }"
            "for (let side = -1; side <= 1; side += 0.02) { shown = [side * canvas.width, 0]; draw(); }"
        )
        assert browser.run("written") > 10
        assert browser.run("written") < 101  # one whose load is outside the picture is left out
        assert browser.run("cut") == []
        assert browser.errors == []


def test_no_word_of_a_bag_and_no_name_of_one_changes_the_page_around_it(bag: Path, tmp_path: Path) -> None:
    named = tmp_path / "{{data}}{{capture}}<!--<script>"
    shutil.copytree(bag, named)
    write_report(named, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "{{data}}{{capture}}&lt;!--&lt;script&gt;</title>" in text
    (data,) = re.findall(r'type="application/json">(.*?)</script>', text)
    assert "<" not in data and json.loads(data)["title"] == "three_prism"


def test_a_bag_without_a_robot_has_no_page(tmp_path: Path) -> None:
    with BagWriter(tmp_path / "bag") as writer:
        write(writer, "/clock", "std_msgs/msg/String", 0, String(data="x"))
    with pytest.raises(TensegrityError, match="does not name its robot"):
        write_report(tmp_path / "bag", tmp_path / "page.html")
