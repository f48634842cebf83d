"""The ROS 2 node of the browser view."""

from __future__ import annotations

import tensegrity_dynamics  # noqa: F401  first of all, as it makes nodes end quietly while they import the rest
