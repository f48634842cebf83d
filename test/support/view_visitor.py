"""What tests of the browser view need: a free port, patience, and a visitor that does what a browser does."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import viser
from websockets.sync.client import ClientConnection, connect

from tensegrity_tools.view import View


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


class Visitor:
    """What a browser is to the server: a websocket that has a camera, listens, and sends what people do."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.send(
            "ViewerCameraMessage", wxyz=(1, 0, 0, 0), position=(1, 0, 0), fov=0.7, near=0.01, far=100.0,
            image_height=600, image_width=800, look_at=(0, 0, 0), up_direction=(0, 0, 1),
        )  # fmt: skip

    def send(self, kind: str, **fields) -> None:
        self._connection.send(msgspec.msgpack.encode({"type": kind, **fields}))

    def press(self, button) -> None:
        self.send("GuiUpdateMessage", uuid=button._impl.uuid, updates={"value": True})

    def type(self, field, value) -> None:
        self.send("GuiUpdateMessage", uuid=field._impl.uuid, updates={"value": value})

    def drag_goal(self, position, quaternion) -> None:
        self.send("TransformControlsUpdateMessage", name="/goal", wxyz=quaternion, position=position, owner="")

    def hears(self, timeout: float = 10.0) -> bool:
        return bool(self._connection.recv(timeout=timeout))


@contextmanager
def visit(view: View) -> Iterator[Visitor]:
    address = f"ws://127.0.0.1:{view.port}"
    protocol = f"viser-v{viser.__version__}"
    with connect(address, subprotocols=[protocol], max_size=2**26) as connection:
        before = view.clients
        visitor = Visitor(connection)
        assert wait(lambda: view.clients > before)
        yield visitor
