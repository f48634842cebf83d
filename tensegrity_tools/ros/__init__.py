"""ROS 2 nodes of the tools: browser view, recorder, player, and several nodes in one process; launch support."""

from __future__ import annotations

import tensegrity_dynamics  # noqa: F401  first of all, as it makes nodes end quietly while they import the rest
