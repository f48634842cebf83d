"""The panel on a phone: as wide as the page, in its lower half, with parts that a finger can hit."""

from __future__ import annotations

PANEL = 0.5
"""Part of a phone's page that the panel takes at most; the robot is shown above it (`camera`)."""
FINGER = 40
"""px, of whatever is pressed."""

STYLE = f"""<style>
@media (max-width: 36em) {{
  div[style*="max-height: 60%"] {{ width: 100% !important; max-height: {PANEL:.0%} !important; }}
  div[style*="max-height: 60%"] div[style*="width: 20em"] {{ width: 100% !important; }}
  div[style*="max-height: 60%"] .mantine-Button-root {{ height: {FINGER}px !important; }}
  div[style*="max-height: 60%"] .mantine-Slider-root {{
    padding-top: 14px !important; padding-bottom: 14px !important; box-sizing: content-box !important;
  }}
  div[style*="max-height: 60%"] .mantine-Slider-thumb {{ width: 22px !important; height: 22px !important; }}
  div[style*="max-height: 60%"] .mantine-Checkbox-input {{ width: 26px !important; height: 26px !important; }}
  div[style*="max-height: 60%"] input.mantine-NumberInput-input {{
    min-height: 34px !important; height: 34px !important; font-size: 16px !important;
  }}
  div[style*="max-height: 60%"] .mantine-NumberInput-root[style*="width: 3rem"] {{ width: 4.5rem !important; }}
}}
</style>"""
"""Rules for narrow pages, from the same width on at which viser puts its panel at the bottom (36 em).

viser has no setting for these sizes. The panel is found by the style that it has there; a viser that changes it keeps
its own sizes, and everything works as before.
"""
