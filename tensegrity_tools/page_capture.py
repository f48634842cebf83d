"""Images and videos of the content of a page, made in the browser (`page_capture.js`)."""

from __future__ import annotations

import json
from importlib import resources

SCRIPT = (resources.files(__package__) / "page_capture.js").read_text(encoding="utf-8")
"""Script that defines `addCapture(element, findCanvas, nameOf, begun)`, which adds the two buttons to an element."""

STYLE = """<style>
#capture { position: fixed; bottom: 8px; left: 8px; z-index: 5; display: flex; gap: 6px; }
#capture button { font: 13px system-ui, sans-serif; padding: 4px 10px; border: 1px solid #cfd5de; border-radius: 6px;
  background: rgba(255, 255, 255, 0.85); color: #1d2430; cursor: pointer; }
#capture button.recording { background: #b3261e; color: #fff; }
@media (max-width: 36em) {
  #capture { top: 8px; right: 8px; bottom: auto; left: auto; flex-direction: column; }
  #capture button { min-height: 40px; min-width: 64px; }
}
</style>
"""


def view_addition(name: str) -> str:
    """HTML that is added to the end of pages of the browser view: two buttons, whose files have the prefix `name`."""
    text = json.dumps(name).replace("<", "\\u003c")
    return f"""{STYLE}<script>(() => {{
{SCRIPT}
const bar = document.createElement("div");
bar.id = "capture";
document.body.append(bar);
const size = canvas => canvas.width * canvas.height;
const largest = () => [...document.querySelectorAll("canvas")].sort((a, b) => size(b) - size(a))[0];
addCapture(bar, largest, () => {text});
}})();</script>
"""
