"""A headless Chromium to look at the view with, driven through its debugging port; nothing to install but Chromium."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from patience import PATIENCE_S
from websockets.sync.client import connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu-sandbox",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--hide-scrollbars",
    "--mute-audio",
    # No name but this machine's resolves: what the page wants from elsewhere fails and is seen in `requests`.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE localhost , EXCLUDE 127.0.0.1",
)


def find_chromium() -> str | None:
    """Path of a Chromium, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class HeadlessBrowser:
    """One page of one Chromium.

    Attributes:
        requests: every address that the page asked for.
        errors: what the page's console called an error.
    """

    def __init__(self, width: int = 1280, height: int = 800, *, phone: bool = False) -> None:
        program = find_chromium()
        if program is None:
            raise RuntimeError("no Chromium found; install the package chromium")
        self.requests: list[str] = []
        self.errors: list[str] = []
        self._folder = tempfile.TemporaryDirectory(prefix="view_browser_", ignore_cleanup_errors=True)
        self._process = subprocess.Popen(
            [
                program, *FLAGS, f"--user-data-dir={self._folder.name}", "--remote-debugging-port=0",
                f"--window-size={width},{height}", "about:blank",
            ],
            stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            # no pings: a browser on a busy machine may be silent for long and live
            self._socket = connect(self._page_address(), max_size=2**26, open_timeout=PATIENCE_S, ping_interval=None)
            self._count = 0
            for domain in ("Page", "Network", "Runtime", "Log"):
                self.send(f"{domain}.enable")
            self.send(
                "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone
            )
            self.send("Emulation.setTouchEmulationEnabled", enabled=phone)
        except BaseException:
            self.close()
            raise

    def _page_address(self) -> str:
        import urllib.request

        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(r"DevTools listening on ws://([^/]+)/", line):
                with urllib.request.urlopen(f"http://{found[1]}/json/list", timeout=PATIENCE_S) as answer:
                    pages = [page for page in json.load(answer) if page["type"] == "page"]
                return pages[0]["webSocketDebuggerUrl"]
        raise RuntimeError("Chromium ended before it opened its debugging port")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE_S))
            self._note(message)
            if message.get("id") == self._count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def _note(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"][:200])
        elif method == "Network.webSocketCreated":
            self.requests.append(parameters["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(parameters["exceptionDetails"].get("text", "exception"))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"] + " " + parameters["entry"].get("url", ""))

    def open(self, url: str) -> None:
        """Go to an address."""
        self.send("Page.navigate", url=url)

    def run(self, script: str) -> Any:
        """Value of a JavaScript expression in the page."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        return result["result"].get("value")

    def text(self) -> str:
        """What the page reads."""
        return str(self.run("document.body ? document.body.innerText : ''"))

    def wait(self, condition: Callable[[], bool], timeout: float = PATIENCE_S) -> bool:
        """True as soon as the condition holds, False when the time is up."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            if condition():
                return True
            time.sleep(0.2)
        return False

    def press(self, label: str) -> bool:
        """Press the button with this label; False where there is none."""
        desired = json.dumps(label)
        buttons = f"[...document.querySelectorAll('button')].filter(b => b.innerText.trim() === {desired})"
        return bool(self.run(f"{buttons}.map(b => b.click()).length"))

    def box(self, element: str) -> list[float]:
        """x, y, width, height of an element (a JavaScript expression), in pixels, once it stands still."""
        script = f"(r => [r.x, r.y, r.width, r.height])({element}.getBoundingClientRect())"
        seen: list[Any] = [None]

        def still() -> bool:
            seen.append(self.run(script))
            return seen[-1] is not None and seen[-1] == seen[-2]

        if not self.wait(still):
            raise RuntimeError(f"{element} does not stand still: {seen[-2:]}")
        return seen[-1]

    def drag(self, start: tuple[float, float], end: tuple[float, float], steps: int = 8) -> None:
        """Drag with the left button between two positions of the page, in pixels."""
        self._mouse("mouseMoved", *start, button="none")
        time.sleep(0.3)
        self._mouse("mousePressed", *start)
        for k in range(1, steps + 1):
            share = k / steps
            self._mouse("mouseMoved", *(a + share * (b - a) for a, b in zip(start, end, strict=True)))
            time.sleep(0.05)
        self._mouse("mouseReleased", *end)

    def _mouse(self, kind: str, x: float, y: float, button: str = "left") -> None:
        self.send(
            "Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=int(button == "left"), clickCount=1
        )

    def picture(self, path: Path | None = None) -> bytes:
        """The page as PNG, also written to `path`."""
        data = base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def close(self) -> None:
        """End Chromium."""
        if hasattr(self, "_socket"):
            self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()
        self._folder.cleanup()

    def __enter__(self) -> HeadlessBrowser:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
