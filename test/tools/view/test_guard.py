"""Who may connect to the view, and what may be sent: the laws of `guard`, tried from outside as attackers would."""

from __future__ import annotations

import asyncio
import gc
import http.client
import math
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import viser
import viser.infra
import websockets.asyncio.server
from hypothesis import given
from hypothesis import strategies as st
from patience import PATIENCE_S, until
from view_robots import prism_robot
from view_visitor import free_port, knock, visit
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.view import Answer, View, ViewState
from tensegrity_tools.view.guard import FIELDS, LARGEST, MAX_BROWSERS, MAX_FRAME, Guard, GuardedConnection, problem_of


class Calls:
    """Counts what reaches the callbacks."""

    def __init__(self) -> None:
        self.goals: list[tuple[Any, ...]] = []
        self.pressed = 0

    def goal(self, *goal: Any) -> Answer:
        self.goals.append(goal)
        return Answer(True)

    def press(self) -> Answer:
        self.pressed += 1
        return Answer(True)


@pytest.fixture
def calls() -> Calls:
    return Calls()


@pytest.fixture
def view(calls: Calls) -> Iterator[View]:
    with View(
        prism_robot(), free_port(), on_goal=calls.goal, on_hold=calls.press, on_stop=calls.press,
        on_move=lambda *_: Answer(True),
    ) as opened:  # fmt: skip
        yield opened


def ask(view: View, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
    """Status, body and headers of a page."""
    connection = http.client.HTTPConnection("127.0.0.1", view.port, timeout=PATIENCE_S)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read(), {name.lower(): text for name, text in answer.getheaders()}


# -- who gets in --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "strange",
    [
        {"token": ""},
        {"token": "guessed"},
        {"token": "ä"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": None},
        {"origin": "http://localhost:1"},
        {"token": "", "origin": "http://evil.example"},
    ],
    ids=str,
)
def test_a_websocket_without_token_or_from_a_foreign_page_is_refused(view, calls, strange):
    with pytest.raises(InvalidStatus) as refused, knock(view, **strange):
        pass
    assert refused.value.response.status_code == 403
    assert b"address that was printed" in refused.value.response.body
    assert view.guard.refused == 1 and view.guard.browsers == 0 and calls.pressed == 0


def test_pages_are_given_out_with_the_token_alone_and_bring_it_along_as_a_cookie(view):
    for path in ("/", "/index.html", "/?token=", "/?token=x", f"/?toke={view.guard.token}", "/%2e%2e/secret"):
        status, body, headers = ask(view, path)
        assert status == 403 and b"<html" not in body and "set-cookie" not in headers
    status, body, headers = ask(view, f"/?token={view.guard.token}")
    assert status == 200 and b"<html" in body[:2000].lower()
    assert body.count(b"addCapture(bar") == 1  # the buttons for pictures and videos, also where the page comes zipped
    zipped, page, headers = ask(view, f"/?token={view.guard.token}", **{"Accept-Encoding": "gzip"})
    assert zipped == 200 and page == body
    assert {"HttpOnly", "SameSite=Strict"} <= set(headers["set-cookie"].split("; "))
    assert headers["content-security-policy"] == "frame-ancestors 'none'"
    cookie = headers["set-cookie"].split(";")[0]
    assert ask(view, "/", Cookie=cookie)[0] == 200
    with knock(view, token="", additional_headers={"Cookie": cookie}):
        until(lambda: view.guard.browsers == 1)
    # another server on this machine gets the browser's cookie sent along, but is another origin
    with pytest.raises(InvalidStatus), knock(view, token="", origin="http://localhost:1",
                                             additional_headers={"Cookie": cookie}):  # fmt: skip
        pass


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET //[ HTTP/1.1",
        b"GET /?" + b"&".join([b"a=1"] * 30) + b" HTTP/1.1",
        b"GET /?token=\xff\xfe HTTP/1.1",
        b'GET / HTTP/1.1\r\nCookie: tensegrity_view_PORT="\xff"',
        b"GET / HTTP/1.1\r\nCookie: tensegrity_view_PORT=wrong",
        b"GET /#?token=TOKEN HTTP/1.1",
        b"GET http://evil.example/ HTTP/1.1",
    ],
)
def test_a_request_that_is_odd_is_refused_like_any_other_and_is_no_error_of_the_server(view, request_line):
    refused = view.guard.refused
    assert answer_to(view, request_line).startswith(b"HTTP/1.1 403 ") and view.guard.refused == refused + 1


@pytest.mark.parametrize(
    "path", [b"/../../../../etc/passwd", b"/%2e%2e/%2e%2e/etc/passwd", b"//etc/passwd", b"/" + 7000 * b"a"]
)
def test_nobody_gets_a_file_that_is_no_page_of_the_view(view, path):
    answer = answer_to(view, b"GET " + path + b"?token=TOKEN HTTP/1.1")
    assert answer.startswith(b"HTTP/1.1 404 ") and b"root:" not in answer


def answer_to(view: View, request_line: bytes) -> bytes:
    """What a socket gets that sends this, with the token and the port in their places."""
    line = request_line.replace(b"TOKEN", view.guard.token.encode()).replace(b"PORT", str(view.port).encode())
    with socket.create_connection(("127.0.0.1", view.port), timeout=PATIENCE_S) as visitor:
        visitor.sendall(line + f"\r\nHost: localhost:{view.port}\r\n\r\n".encode())
        return b"".join(iter(lambda: visitor.recv(65536), b""))


def test_a_name_that_was_made_to_point_here_is_no_name_of_this_machine(view):
    for host in ("evil.example", f"evil.example:{view.port}"):
        with pytest.raises(InvalidStatus), socket.create_connection(("127.0.0.1", view.port)) as line:
            with knock_by(view, host, line):
                pass


def knock_by(view: View, host: str, line: socket.socket):
    """A websocket by another name of this machine, as after DNS rebinding, even with the token."""
    from websockets.sync.client import connect

    address = f"ws://{host if ':' in host else f'{host}:80'}/?token={view.guard.token}"
    return connect(address, sock=line, origin=f"http://{host}", subprotocols=[f"viser-v{viser.__version__}"])


def test_every_view_has_a_token_of_its_own_that_its_address_shows():
    with View(prism_robot(), free_port()) as first, View(prism_robot(), free_port()) as second:
        assert first.guard.token != second.guard.token
        assert first.url == f"http://localhost:{first.port}/?token={first.guard.token}"
        with pytest.raises(InvalidStatus), knock(second, token=first.guard.token):
            pass


def test_a_view_that_is_open_to_other_machines_needs_the_token_too():
    with View(prism_robot(), free_port(), host="0.0.0.0") as view:
        assert not view.guard.is_local and socket.gethostname() in view.url and view.guard.token in view.url
        assert ask(view, "/")[0] == 403
        for strange in ({"token": ""}, {"origin": "http://evil.example"}):
            with pytest.raises(InvalidStatus), knock(view, **strange):
                pass
        with visit(view):
            pass


@pytest.mark.parametrize("host", ["203.0.113.7", "no such name", "999.1.1.1"])
def test_an_address_that_is_none_of_this_machine_is_refused_with_what_to_give(host):
    with pytest.raises(TensegrityError, match=r"cannot listen on .*127\.0\.0\.1"):
        View(prism_robot(), free_port(), host=host)


def test_a_server_that_lets_everybody_in_is_not_used(monkeypatch):
    """As after a change of viser by which the guard is passed over."""
    serve = websockets.asyncio.server.serve
    monkeypatch.setattr(viser.infra._infra.websockets.asyncio.server, "serve", serve)
    monkeypatch.setattr(Guard, "has_token", lambda *_: True)
    monkeypatch.setattr(Guard, "own_origin", lambda *_: "http://other")
    with pytest.raises(TensegrityError, match="cannot be guarded"):
        View(prism_robot(), free_port())


@pytest.mark.parametrize("fields", [{}, {"_gui_input_handle_from_uuid": {}}, {"_gui_input_handle_from_uuid": []}])
def test_a_view_does_not_start_where_viser_does_not_tell_the_fields_of_its_panel(monkeypatch, fields):
    """As after a change of viser by which its private list has another name, stays empty, or is something else."""
    watch = Guard.watch_fields
    changed = lambda panel: SimpleNamespace(add_checkbox=panel.add_checkbox, **fields)  # noqa: E731
    monkeypatch.setattr(Guard, "watch_fields", lambda guard, panel: watch(guard, changed(panel)))
    port = free_port()
    with pytest.raises(TensegrityError, match=r"cannot be guarded.*\(it does not tell the fields of its panel\)"):
        View(prism_robot(), port)
    with socket.socket() as free:  # its server has ended
        until(lambda: free.connect_ex(("127.0.0.1", port)) != 0)


def test_a_server_that_is_slow_to_look_at_frames_is_not_taken_for_one_that_lets_everybody_in(monkeypatch):
    receive = GuardedConnection.recv

    async def slowly(*positions: Any, **options: Any) -> Any:
        await asyncio.sleep(0.1)
        return await receive(*positions, **options)

    monkeypatch.setattr(GuardedConnection, "recv", slowly)
    with View(prism_robot(), free_port()) as view:
        assert view.guard.dropped == 0


# -- what gets through --------------------------------------------------------------------------------------------


def all_message_kinds() -> list[str]:
    """Every message that viser knows, in either direction."""
    kinds, todo = set(), [viser.infra.Message]
    while todo:
        for kind in todo.pop().__subclasses__():
            kinds.add(kind.__name__)
            todo.append(kind)
    return sorted(kinds)


def test_no_message_but_those_of_a_users_hand_gets_through_and_none_opens_a_tunnel(view, calls, monkeypatch):
    opened = []
    monkeypatch.setattr(viser.ViserServer, "request_share_url", lambda *_, **__: opened.append(True))
    kinds = all_message_kinds()
    assert "ShareUrlRequest" in kinds and set(FIELDS) <= set(kinds) and len(kinds) > 80
    with visit(view) as visitor:
        for kind in kinds:
            visitor.send(kind)
            visitor.send(kind, uuid="x", name="/goal", updates={"value": 1.0}, source_component_uuid="x")
        visitor.press("Hold here")  # the last of them: what came before has been looked at
        until(lambda: calls.pressed == 1)
    assert view.guard.dropped >= 2 * (len(kinds) - len(FIELDS))
    assert not opened and not calls.goals


@pytest.mark.parametrize("property_name", ["disabled", "visible", "update_cb", "removed", "is_button", "sync_cb"])
def test_a_page_changes_values_and_nothing_else(view, property_name):
    with visit(view) as visitor:
        uuid = visitor.part("Duration [s]")["uuid"]
        visitor.send("GuiUpdateMessage", uuid=uuid, updates={property_name: True})
        visitor.send("GuiUpdateMessage", uuid=uuid, updates={"value": 1.0, property_name: True})
        until(lambda: view.guard.dropped == 2)
        visitor.type("Duration [s]", 2.5)
        until(lambda: view.goal.duration.value == 2.5)


OF_ANOTHER_KIND = {
    "Duration [s]": ("nan", "1e300", "12", "", True, [1.0, 2.0, 3.0]),
    "Position [mm]": ("123", "abc", 1.0, False),
    "Names of nodes": (1.0, "x", [0.0, 0.0, 0.0]),
    "Actuator": ("spool_9", "<script>", "", 1.0, True),
    "Hold here": ("x", 1.0),
}


@pytest.mark.parametrize("label", OF_ANOTHER_KIND)
def test_a_field_takes_no_value_of_another_kind_and_no_other_page_sees_it(view, calls, caplog, label):
    with visit(view) as visitor, visit(view) as other:
        before = other.part(label).get("value")
        for value in OF_ANOTHER_KIND[label]:
            visitor.send("GuiUpdateMessage", uuid=visitor.part(label)["uuid"], updates={"value": value})
        until(lambda: view.guard.dropped == len(OF_ANOTHER_KIND[label]))
        visitor.press("Stop")
        until(lambda: calls.pressed == 1)
        assert other.part(label).get("value") == before
    gc.collect()  # an error in viser's task would be logged now
    assert not caplog.records


def press_send(visitor: Any) -> None:
    """As a page does it that does not look whether the button is enabled."""
    visitor.send("GuiUpdateMessage", uuid=visitor.part("Send goal")["uuid"], updates={"value": True})


@pytest.mark.parametrize("duration", [1e300, 3e9, 601.0, -1e-9, -5.0, math.nan, math.inf, 2**64 - 1])
def test_a_duration_outside_its_limits_reaches_nobody(view, calls, duration):
    with visit(view) as visitor:
        visitor.type("Duration [s]", duration)
        visitor.press("Send goal")
        until(lambda: view.guard.dropped > 0 or bool(calls.goals) or "Refused: the duration" in visitor.text())
        assert all(0.0 <= goal[2] <= 600.0 for goal in calls.goals)
        visitor.type("Duration [s]", 3.0)
        until(lambda: press_send(visitor) or (bool(calls.goals) and calls.goals[-1][2] == 3.0))


@pytest.mark.parametrize("position", [[1e300, 0, 0], [math.nan, 0, 0], [1e8, 0, 0], [0, 0], [0, 0, 0, 0], "high", None])
def test_a_position_that_is_none_reaches_nobody(view, calls, position):
    unit = [1.0, 0.0, 0.0, 0.0]
    with visit(view) as visitor:
        label = next(label for label in visitor.labels() if label.startswith("Position"))
        visitor.send("TransformControlsUpdateMessage", name="/goal", wxyz=unit, position=position, owner="")
        visitor.send("GuiUpdateMessage", uuid=visitor.part(label)["uuid"], updates={"value": position})
        visitor.send("TransformControlsUpdateMessage", name="/goal", wxyz=[0, 0, 0, 0], position=[0, 0, 0.2], owner="")
        visitor.press("Send goal")
        # again and again: the answer to the goal before may put the handle back where the robot is
        good = [0.0, 0.0, 0.25]
        until(lambda: visitor.move_handle(good, unit) or np.allclose(view.goal.pose[0], good))
        until(
            lambda: (
                visitor.move_handle(good, unit)
                or press_send(visitor)
                or any(np.allclose(goal[0], [0.0, 0.0, 0.25]) for goal in calls.goals)
            )
        )
    for goal in calls.goals:
        assert np.abs(goal[0]).max() < 100.0 and abs(np.linalg.norm(goal[1]) - 1.0) < 1e-3


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip
NAMES = st.sampled_from(sorted({name for names in FIELDS.values() for name in names}))


@given(st.sampled_from(sorted(FIELDS)), st.dictionaries(NAMES, VALUES | st.builds(lambda v: {"value": v}, VALUES)))
def test_what_passes_holds_finite_numbers_and_short_texts_alone(kind, fields):
    frame = msgspec.msgpack.encode({"type": kind, **fields})
    if problem_of(frame):
        return
    values = [value for key, value in fields.items() if key != "updates"]
    values += [fields["updates"]["value"]] if "updates" in fields else []
    assert set(fields) <= set(FIELDS[kind])
    for value in values:
        for each in value if isinstance(value, list) else [value]:
            assert isinstance(each, (str, bool, int, float, type(None)))
            assert not isinstance(each, (int, float)) or abs(each) <= LARGEST


@given(st.binary(max_size=200) | st.text())
def test_no_frame_is_too_odd_to_be_looked_at(frame):
    assert problem_of(frame)


def test_deep_nesting_is_no_message():
    assert problem_of(b"\x91" * 10_000 + b"\xc0")


def test_a_thousand_hostile_frames_leave_the_view_as_it_was(view, calls):
    random = np.random.default_rng(4)
    with visit(view) as visitor:
        uuids = list(visitor.panel)
        for _ in range(1000):
            kind = str(random.choice(sorted(FIELDS)))
            value = [1e300, -1.0, None, "x", [], [1, 2, 3], True, {}, [[1]]][random.integers(9)]
            fields = {str(name): value for name in FIELDS[kind] if random.random() < 0.7}
            if kind == "GuiUpdateMessage":
                fields["uuid"] = uuids[random.integers(len(uuids))]
                fields["updates"] = {"value": value}
                if fields["uuid"] in {visitor.part(label)["uuid"] for label in ("Hold here", "Stop", "Send goal")}:
                    continue  # to press is allowed
            visitor.send(kind, **fields)
        assert view.show(ViewState(time=7.0, configuration=np.array(view.robot.structure.nodes), mode="moving"))
        until(lambda: "moving" in visitor.text())
        visitor.press("Stop")
        until(lambda: calls.pressed == 1)
    assert not calls.goals


def test_presses_that_wait_for_an_answer_keep_nobody_from_the_emergency_stop(view):
    asked: list[str] = []
    answered = threading.Event()

    def wait(name: str) -> Answer:
        asked.append(name)
        answered.wait(PATIENCE_S)
        return Answer(False, "no answer")

    names = ("Hold here", "Stop", "Send goal", "Move actuator")
    hold, stop, send, move = (lambda *_, name=name: wait(name) for name in names)
    with View(
        prism_robot(), free_port(), on_hold=hold, on_stop=stop, on_goal=send, on_move=move,
        on_emergency=lambda: asked.append("Emergency stop") or Answer(True),
    ) as view, visit(view) as visitor:  # fmt: skip
        positions = {each.name: 0.2 for each in view.robot.actuators}
        view.show(ViewState(time=1.0, configuration=np.array(view.robot.structure.nodes), positions=positions))
        until(lambda: visitor.part("To [mm]")["value"] == 200.0)
        for name in (*names * 20, "Emergency stop"):  # viser has 32 threads
            visitor.send("GuiUpdateMessage", uuid=visitor.part(name)["uuid"], updates={"value": True})
        try:
            until(lambda: "Emergency stop" in asked or len(asked) >= 32)
            assert sorted(asked) == sorted((*names, "Emergency stop"))
        finally:
            answered.set()


# -- how much gets through ----------------------------------------------------------------------------------------


def test_an_oversized_frame_ends_its_own_connection_alone(view, calls):
    with visit(view) as visitor:
        with knock(view) as attacker:
            attacker.send(b"\x00" * (MAX_FRAME + 1))
            with suppress(ConnectionClosed):
                while True:
                    attacker.recv(timeout=PATIENCE_S)
        assert attacker.close_code == 1009
        visitor.press("Stop")
        until(lambda: calls.pressed == 1)


def test_of_two_hundred_connections_a_stated_number_is_served_and_a_place_that_is_left_is_free(view):
    with ExitStack() as held:
        states = []
        for _ in range(200):
            try:
                held.enter_context(knock(view))
                states.append(101)
            except InvalidStatus as refused:
                states.append(refused.response.status_code)
        assert states.count(101) == MAX_BROWSERS and states.count(503) == 200 - MAX_BROWSERS
    until(lambda: view.guard.browsers == 0)
    with visit(view):
        assert view.guard.browsers == 1


def test_connections_that_say_nothing_are_bounded_too(view):
    with ExitStack() as held:
        silent = [
            held.enter_context(socket.create_connection(("127.0.0.1", view.port), PATIENCE_S)) for _ in range(200)
        ]
        until(lambda: view.guard.refused >= 200 - 64)
        closed = 0
        for each in silent:
            each.settimeout(0.05)
            with suppress(TimeoutError, ConnectionResetError):
                closed += each.recv(1) == b""
    until(lambda: view.guard.connections == 0)
    with visit(view):
        pass


@pytest.mark.long
def test_a_reader_who_never_reads_keeps_nobody_from_seeing_the_robot(view):
    nodes = np.array(view.robot.structure.nodes)
    with knock(view, max_queue=1) as slow, visit(view) as visitor:
        until(lambda: view.guard.browsers == 2)
        slow.recv_bufsize = 1  # never called again: its socket fills up
        drawn = view.drawn
        for k in range(60):
            view.show(ViewState(time=float(k), configuration=nodes + 1e-4 * k, mode="moving"))
            time.sleep(0.02)
        until(lambda: view.drawn > drawn + 5)
        until(lambda: visitor.row("Time").startswith("59"))
