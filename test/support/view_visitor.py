"""What tests of the browser view need: a free port, and a visitor that sees and does what a browser does.

The visitor speaks viser's protocol on the websocket: it keeps the scene and the panel that the server sends, and sends
what a user does with mouse and keyboard. Buttons and fields are found by their labels.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import numpy as np
import viser
import zstandard
from patience import PATIENCE_S, until
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tensegrity_tools.view import View

CAMERA = {"SetCameraPositionMessage": "position", "SetCameraLookAtMessage": "look_at", "SetCameraFovMessage": "fov"}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def decode(data: bytes) -> list[dict[str, Any]]:
    """The messages of one packet: sizes, compressed msgpack, then the arrays that placeholders point to."""
    size = int.from_bytes(data[8:16], "little")
    content = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(data[16 : 16 + size]))
    start, buffers = 16 + size, []
    for length in content["binaryBufferLengths"]:
        start += -start % 8
        buffers.append(data[start : start + length])
        start += length

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            if "__binary_index" in value:
                return np.frombuffer(buffers[value["__binary_index"]], dtype=value["dtype"])
            return {key: filled(item) for key, item in value.items()}
        return [filled(item) for item in value] if isinstance(value, list) else value

    return [filled(message) for message in content["messages"]]


class Visitor:
    """A browser without a screen.

    Attributes:
        scene: by name, the properties of everything in the three-dimensional scene.
        panel: by identifier, the properties of every part of the panel.
        camera: position, look_at, fov as the server sets them.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.scene: dict[str, dict[str, Any]] = {}
        self.panel: dict[str, dict[str, Any]] = {}
        self.camera: dict[str, np.ndarray] = {}
        self.has_all = False  # that was there when it came
        self._connection = connection
        self.send(
            "ViewerCameraMessage", wxyz=(1, 0, 0, 0), position=(1, 0, 0), fov=0.7, near=0.01, far=100.0,
            image_height=600, image_width=800, look_at=(0, 0, 0), up_direction=(0, 0, 1),
        )  # fmt: skip
        self._thread = threading.Thread(target=self._listen, name="visitor", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        try:
            for packet in self._connection:
                for message in decode(packet):
                    self._take(message.pop("type"), message)
        except ConnectionClosed:
            pass

    def _take(self, kind: str, message: dict[str, Any]) -> None:
        if kind == "ReplayDoneMessage":
            self.has_all = True
        elif kind == "GuiUpdateMessage":
            self.panel[message["uuid"]].update(message["updates"])
        elif kind == "SceneNodeUpdateMessage":
            self.scene[message["name"]].update(message["updates"])
        elif kind in ("SetPositionMessage", "SetOrientationMessage", "SetSceneNodeVisibilityMessage"):
            self.scene.setdefault(message["name"], {}).update(message)
        elif kind == "RemoveSceneNodeMessage":
            self.scene.pop(message["name"], None)
        elif kind in CAMERA:
            self.camera[CAMERA[kind]] = np.array(message[CAMERA[kind]])
        elif kind.startswith("Gui") and "props" in message:
            value = {"value": message["value"]} if "value" in message else {}
            self.panel[message["uuid"]] = {"uuid": message["uuid"], **message["props"], **value}
        elif "name" in message and "props" in message:
            self.scene[message["name"]] = {"visible": True, **message["props"]}

    # -- what a user sees -----------------------------------------------------------------------------------------

    def text(self) -> str:
        """All texts of the panel that are visible, as HTML."""
        return "\n".join(
            part["content"] for part in list(self.panel.values()) if part.get("visible", True) and "content" in part
        )

    def row(self, name: str) -> str:
        """The value beside a name in the status table, without its style; "" where there is no such row."""
        match = re.search(rf">{re.escape(name)}</td><td>(.*?)</td>", self.text())
        return re.sub("<[^>]*>", "", match[1]) if match else ""

    def labels(self) -> list[str]:
        """Labels of the buttons, fields and folders that are visible."""
        return [part["label"] for part in list(self.panel.values()) if part.get("visible", True) and part.get("label")]

    def part(self, label: str) -> dict[str, Any]:
        """The button, field or folder with this label."""
        (part,) = [part for part in list(self.panel.values()) if part.get("label") == label]
        return part

    def full_scale(self) -> float:
        """The largest number at the colour scale of tension [N]."""
        return float(re.findall(r"<span>([0-9.e+-]+)</span>", self.text())[-1])

    def array(self, name: str, key: str, width: int = 3) -> np.ndarray:
        """An array of a thing in the scene, in rows of `width`."""
        return np.array(self.scene[name][key], dtype=np.float64).reshape(-1, width)

    def names_in_scene(self) -> set[str]:
        """The names that are written beside the parts of the robot."""
        return {props["text"] for props in list(self.scene.values()) if "text" in props and props.get("visible", True)}

    # -- what a user does -----------------------------------------------------------------------------------------

    def send(self, kind: str, **fields: Any) -> None:
        self._connection.send(msgspec.msgpack.encode({"type": kind, **fields}))

    def press(self, label: str) -> None:
        part = self._enabled(label)
        self.send("GuiUpdateMessage", uuid=part["uuid"], updates={"value": True})

    def type(self, label: str, value: Any) -> None:
        part = self._enabled(label)
        part["value"] = value  # the server tells the others only
        self.send("GuiUpdateMessage", uuid=part["uuid"], updates={"value": value})

    def _enabled(self, label: str) -> dict[str, Any]:
        """The part as soon as a user can do something with it: a button waits for the answer to the last press."""
        part = self.part(label)
        until(lambda: part["visible"] and not part["disabled"], f"nobody can use {label}")
        return part

    def drag_goal(self, position: Any, quaternion: Any = (1.0, 0.0, 0.0, 0.0)) -> None:
        """Drag the handle until the fields show where it is: where the robot moves it meanwhile, the hand goes on."""
        label = next(label for label in self.labels() if label.startswith("Position ["))
        metres = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}[label[len("Position [") : -1]]

        def there() -> bool:
            self.move_handle(list(position), list(quaternion))
            return np.allclose(metres * np.array(self.part(label)["value"]), position, atol=1e-6)

        until(there)

    def move_handle(self, position: Any, quaternion: Any) -> None:
        self.scene["/goal"].update(position=position, wxyz=quaternion)
        self.send("TransformControlsUpdateMessage", name="/goal", wxyz=quaternion, position=position, owner="")

    def let_go(self) -> None:
        """Of the handle that it dragged."""
        self.send("TransformControlsDragEndMessage", name="/goal", owner="")


def knock(view: View, *, token: str | None = None, origin: str | None = "", **options: Any) -> ClientConnection:
    """A websocket as a page of the view opens it, or with another token ("" for none) or origin (None for none)."""
    query = f"?token={view.guard.token if token is None else token}" if token != "" else ""
    origin = f"http://127.0.0.1:{view.port}" if origin == "" else origin
    return connect(
        f"ws://127.0.0.1:{view.port}/{query}", origin=origin, subprotocols=[f"viser-v{viser.__version__}"],
        max_size=2**26, open_timeout=PATIENCE_S, ping_interval=None, **options,
    )  # fmt: skip


@contextmanager
def visit(view: View) -> Iterator[Visitor]:
    with knock(view) as connection:
        visitor = Visitor(connection)
        until(lambda: visitor.has_all and visitor.text(), "the server sent no panel")
        until(lambda: view.clients > 0)
        yield visitor
