"""Access control of the browser view: only its own pages, opened with the token in the printed address, are admitted.

Any web page may open a websocket to any address that its browser reaches, including 127.0.0.1. Therefore every request
needs the token, in the address or in the cookie that the page receives with it. A websocket must also come from a page
of this server (`Origin`). Every incoming frame is checked before viser reads it: only messages of user input (dragging,
typing, pressing) with finite numbers are accepted. In particular, no message can open the tunnel of viser.

viser has no interface for this. Its server is created by `websockets.asyncio.server.serve`, a public function, which is
wrapped while viser starts. Afterwards the guard connects to the server itself, and raises an error if the server admits
connections that it must refuse.
"""

from __future__ import annotations

import gzip
import hmac
import http
import http.cookies
import ipaddress
import secrets
import socket
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import msgspec
import viser
import websockets.asyncio.server
import websockets.sync.client
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.http11 import Request, Response
from websockets.typing import Data, Origin, Subprotocol

from tensegrity_dynamics.errors import TensegrityError

MAX_BROWSERS, MAX_CONNECTIONS = 16, 64
"""Largest number of pages served at the same time, and of open connections including requests."""
MAX_FRAME, MAX_TEXT = 16384, 1000
"""Largest size of an incoming frame [bytes], and of one text in it [characters]. User input needs some hundred
bytes."""
ANSWER_TIME = 10.0
"""Time within which a server that has just started has checked a frame [s]."""
LARGEST = 1e9
"""Largest absolute number in a message; pixels, metres and degrees are far below."""
TEXT, NUMBER, VALUE = "text", 1, "value"
FIELDS: dict[str, dict[str, str | int]] = {
    "GuiUpdateMessage": {"uuid": TEXT, "updates": VALUE},
    "TransformControlsUpdateMessage": {"name": TEXT, "wxyz": 4, "position": 3, "owner": TEXT},
    "TransformControlsDragStartMessage": {"name": TEXT, "owner": TEXT},
    "TransformControlsDragEndMessage": {"name": TEXT, "owner": TEXT},
    "ViewerCameraMessage": {
        "wxyz": 4, "position": 3, "look_at": 3, "up_direction": 3,
        "fov": NUMBER, "near": NUMBER, "far": NUMBER, "image_height": NUMBER, "image_width": NUMBER,
    },
}  # fmt: skip
"""Allowed messages of a browser and their fields: text, a count of finite numbers, or the value of a panel field."""
OPTIONAL = {"owner"}
PAGE_HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",  # no other page may embed this page
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
REFUSED = "Open the address that was printed when the view started, with its token.\n"
UNKNOWN = "The view has no such page.\n"
FULL = f"{MAX_BROWSERS} browsers look at this robot already; close one of them.\n"
EXPOSED = (
    "whoever has its address with the token, from any machine that reaches this one, sees the robot, sends goals, "
    "moves its actuators, holds and stops it; nothing is encrypted, so that whoever reads along on the network has the "
    "token too"
)
"""Text about the consequences of a view that is open to other computers."""
UNGUARDED = (
    "the browser view cannot be guarded with the installed version of viser{}, so that any web page could "
    "drive the robot; install the version of the set-up (pyproject.toml), or run without the view."
)
_starting = threading.Lock()


def problem_of(frame: Any, fields_of_panel: Mapping[str, Any] = MappingProxyType({})) -> str:
    """Problem of a frame from a browser; "" if there is none.

    Args:
        fields_of_panel: by identifier, the fields with their present `value`, and their `options` if only these can be
            chosen. Values of another kind are a problem: viser would turn texts into numbers, "nan" too.
    """
    if not isinstance(frame, bytes):
        return "text instead of bytes"
    try:
        message = msgspec.msgpack.decode(frame)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        return f"no message: {error}"
    if not isinstance(message, dict) or message.get("type") not in FIELDS:
        return "a kind of message that no page of the view sends"
    kind = message.pop("type")
    fields = FIELDS[kind]
    if not fields.keys() - OPTIONAL <= message.keys() <= fields.keys():
        return f"{kind} with other fields than {', '.join(fields)}"
    for name, value in message.items():
        if not _fits(fields[name], value):
            return f"{kind}: {name} is out of range"
    field = fields_of_panel.get(message.get("uuid", ""))
    if field is not None and not _is_of(field, message["updates"]["value"]):
        return f"{kind}: a value that its field does not take"
    return ""


def _fits(kind: str | int, value: Any) -> bool:
    if kind == TEXT:
        return isinstance(value, str) and len(value) <= MAX_TEXT
    if kind == VALUE:  # value of a panel field, no other property
        return isinstance(value, dict) and list(value) == ["value"] and _is_input(value["value"])
    if kind == NUMBER:
        return _is_number(value)
    return isinstance(value, list) and len(value) == kind and all(_is_number(each) for each in value)


def _is_input(value: Any) -> bool:
    """Whether a value is allowed for a field: a boolean, a short text, a finite number or three finite numbers."""
    return isinstance(value, bool) or _is_number(value) or _fits(TEXT, value) or _fits(3, value)


def _is_of(field: Any, value: Any) -> bool:
    """Whether a value is of the kind of the present one of a field, and among its options."""
    if isinstance(field.value, str):
        return isinstance(value, str) and value in getattr(field, "options", (value,))
    if isinstance(field.value, tuple):
        return isinstance(value, list) and len(value) == len(field.value)
    return isinstance(value, bool) if isinstance(field.value, bool) else _is_number(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return -LARGEST <= value <= LARGEST  # false for NaN, too


class Guard:
    """Access control of one view.

    Args:
        host: address on which the server listens. addition: HTML that is added to the end of pages.

    Attributes:
        token: 192 random bits, new for every view.
        refused: number of refused requests: without token, from foreign pages, or above the limits.
        dropped: number of rejected frames. problem: problem of the last one. browsers: number of open websockets.
        fields_of_panel: by identifier, the fields whose values are checked (`problem_of`).
    """

    def __init__(self, host: str, addition: str = "") -> None:
        self.host, self.port = host, 0
        self._addition = addition.encode()
        self.token = secrets.token_urlsafe(24)
        self.refused = self.dropped = self.browsers = self.connections = 0
        self.problem = ""
        self.fields_of_panel: Mapping[str, Any] = {}

    @property
    def is_local(self) -> bool:
        """Whether only this computer can reach the view."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        """Address of the view, with its token."""
        name = self.host
        if self.is_local:
            name = "localhost"
        elif name in ("0.0.0.0", "::", ""):
            name = socket.gethostname()
        return f"http://{f'[{name}]' if ':' in name else name}:{self.port}/?token={self.token}"

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Context in which a server that viser starts receives this guard."""
        with _starting:
            serve = websockets.asyncio.server.serve

            def guarded(handler: Any, *positions: Any, process_request: Any = None, **options: Any) -> Any:
                connection = type("GuardedConnection", (GuardedConnection,), {"guard": self})
                options.update(create_connection=connection, max_size=MAX_FRAME)
                return serve(handler, *positions, process_request=self._asked(process_request), **options)

            websockets.asyncio.server.serve = guarded  # type: ignore[assignment, misc]
            try:
                yield
            finally:
                websockets.asyncio.server.serve = serve  # type: ignore[misc]

    def watch_fields(self, panel: viser.GuiApi) -> None:
        """Check the values of the fields of a panel from now on.

        viser has no public list of its fields; a field that is added for a moment shows that this one still holds them.

        Raises:
            TensegrityError: this version of viser keeps no such list.
        """
        fields = getattr(panel, "_gui_input_handle_from_uuid", None)
        field = panel.add_checkbox("", False, visible=False)
        known = fields if isinstance(fields, Mapping) and any(each is field for each in fields.values()) else None
        field.remove()
        if known is None:
            raise TensegrityError(UNGUARDED.format(" (it does not tell the fields of its panel)"))
        self.fields_of_panel = known

    def check(self, port: int, protocol: str) -> None:
        """Test connections that must be refused.

        Args:
            port: port of the server. protocol: protocol of its websockets.

        Raises:
            TensegrityError: the server admits a connection without token or from a foreign page, or does not check
            frames.
        """
        self.port = port
        name = "127.0.0.1" if self.host in ("0.0.0.0", "") else "::1" if self.host == "::" else self.host
        address = f"ws://{f'[{name}]' if ':' in name else name}:{port}/"
        origin, key = self.own_origin(f"{name}:{port}"), f"?token={self.token}"
        unasked = self._opens(address, origin, protocol) or self._opens(address + key, "http://other", protocol)
        if unasked or not self._opens(address + key, origin, protocol, drops=b"\x80"):
            raise TensegrityError(UNGUARDED.format(""))
        self.refused, self.dropped, self.problem = 0, 0, ""

    def _opens(self, address: str, origin: str, protocol: str, drops: bytes | None = None) -> bool:
        """Whether a websocket opens and, if a frame is given, that frame is dropped."""
        subprotocols = [Subprotocol(protocol)]
        try:
            with websockets.sync.client.connect(
                address, origin=Origin(origin), subprotocols=subprotocols, proxy=None, max_size=None
            ) as visitor:
                if drops is None:
                    return True
                before, end = self.dropped, time.monotonic() + ANSWER_TIME
                visitor.send(drops)  # a ping would be answered before viser reads the frame
                while self.dropped == before and time.monotonic() < end:
                    time.sleep(0.001)
                return self.dropped > before
        except InvalidStatus:
            return False
        except (InvalidHandshake, ConnectionClosed, OSError) as error:
            raise TensegrityError(f"the browser view does not answer at its own address {address}: {error}") from error

    # -- requests -------------------------------------------------------------------------------------------------

    def _asked(self, serve_page: Callable[..., Any] | None) -> Callable[[ServerConnection, Request], Any]:
        """Handler of requests: pages and websockets for requests with the token, a refusal for all others."""

        def answer(connection: ServerConnection, request: Request) -> Response | None:
            if not self.has_token(request):
                return self._refuse(http.HTTPStatus.FORBIDDEN, REFUSED)
            if request.headers.get_all("Upgrade"):
                host = ", ".join(request.headers.get_all("Host"))
                if request.headers.get_all("Origin") != [self.own_origin(host)]:
                    return self._refuse(http.HTTPStatus.FORBIDDEN, REFUSED)
                if self.browsers >= MAX_BROWSERS:
                    return self._refuse(http.HTTPStatus.SERVICE_UNAVAILABLE, FULL)
                return None
            try:
                page: Response | None = serve_page(connection, request) if serve_page is not None else None
            except (OSError, ValueError):  # invalid path of a file
                return self._refuse(http.HTTPStatus.NOT_FOUND, UNKNOWN)
            if page is not None:
                for name, text in PAGE_HEADERS.items():
                    page.headers[name] = text
                self._add_to(page)
                page.headers["Set-Cookie"] = f"{self._cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict"
            return page

        return answer

    def _add_to(self, page: Response) -> None:
        if not self._addition or not page.headers.get("Content-Type", "").startswith("text/html"):
            return
        zipped = page.headers.get("Content-Encoding") == "gzip"
        page.body = (gzip.decompress(page.body) if zipped else page.body) + self._addition
        for name, text in (("Content-Encoding", "identity"), ("Content-Length", str(len(page.body)))):
            del page.headers[name]
            page.headers[name] = text

    def _refuse(self, status: http.HTTPStatus, text: str) -> Response:
        self.refused += 1
        body = text.encode()
        headers = Headers({"Content-Type": "text/plain; charset=utf-8", "Content-Length": str(len(body))})
        headers["Connection"] = "close"
        return Response(status.value, status.phrase, headers, body)

    @property
    def _cookie(self) -> str:
        return f"tensegrity_view_{self.port}"  # cookies of one host are shared by all its ports

    def has_token(self, request: Request) -> bool:
        try:
            query = urllib.parse.urlsplit(request.path).query
            shown = urllib.parse.parse_qs(query, max_num_fields=20).get("token", []) if len(query) < MAX_TEXT else []
        except ValueError:  # invalid address, or too many fields
            shown = []
        for line in request.headers.get_all("Cookie"):
            try:
                morsel = http.cookies.SimpleCookie(line).get(self._cookie)
            except http.cookies.CookieError:
                continue
            shown += [morsel.value] if morsel is not None else []
        return any(hmac.compare_digest(each.encode(errors="replace"), self.token.encode()) for each in shown)

    def own_origin(self, host: str) -> str:
        """Origin of the pages of this server, by the host name in the request of the browser.

        For a view that is open to this computer only, only local names are valid, since the host name of a foreign page
        may have been redirected to this computer.
        """
        local = (f"localhost:{self.port}", f"127.0.0.1:{self.port}", f"[::1]:{self.port}", f"{self.host}:{self.port}")
        return f"http://{host}" if not self.is_local or host in local else "none"


class GuardedConnection(ServerConnection):
    """A connection that counts, and gives viser only the frames that pass."""

    guard: Guard
    _counted = False

    async def recv(self, decode: bool | None = None) -> Data:  # type: ignore[override]
        while True:
            frame = await super().recv(decode)
            problem = problem_of(frame, self.guard.fields_of_panel)
            if not problem:
                return frame
            self.guard.dropped += 1
            self.guard.problem = problem

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.guard.connections += 1
        if self.guard.connections > MAX_CONNECTIONS:
            self.guard.refused += 1
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.connections -= 1
        if self._counted:
            self.guard.browsers -= 1
        super().connection_lost(exc)

    async def handshake(self, *positions: Any, **options: Any) -> None:
        await super().handshake(*positions, **options)
        if self.protocol.handshake_exc is None and self.response is not None and self.response.status_code == 101:
            self._counted = True
            self.guard.browsers += 1
