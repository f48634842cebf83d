"""Style of the panel on a phone: full width, in the lower half of the page, with controls large enough for fingers."""

from __future__ import annotations

PANEL = 0.5
"""Largest height of the panel relative to a phone page; the robot is shown above it (`camera`)."""
FINGER = 40
"""Size of controls [px]."""

STYLE = f"""<style>
@media (max-width: 36em) {{
  div[style*="max-height: 60%"] {{ width: 100% !important; max-height: {PANEL:.0%} !important; }}
  div[style*="max-height: 60%"] div[style*="width: 20em"] {{ width: 100% !important; }}
  div[style*="max-height: 60%"] .mantine-Button-root {{ height: {FINGER}px !important; }}
  div[style*="max-height: 60%"] .mantine-Slider-root {{
    padding-top: 14px !important; padding-bottom: 14px !important; box-sizing: content-box !important;
  }}
  div[style*="max-height: 60%"] .mantine-Slider-thumb {{ width: 22px !important; height: 22px !important; }}
  div[style*="max-height: 60%"] .mantine-Checkbox-root {{ --checkbox-size: 26px !important; }}
  div[style*="max-height: 60%"] input.mantine-NumberInput-input {{
    min-height: 34px !important; height: 34px !important; font-size: 16px !important;
  }}
  div[style*="max-height: 60%"] .mantine-NumberInput-root[style*="width: 3rem"] {{ width: 4.5rem !important; }}
}}
</style>"""
"""CSS rules for narrow pages, below the same width at which viser puts its panel at the bottom (36 em).

viser has no setting for these sizes. The panel is selected by its style attribute; if another version of viser changes
this attribute, the rules have no effect, and the panel has the default sizes.
"""
