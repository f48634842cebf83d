"""A watcher of a running robot to whom no service is too slow: what is stuck is told by `PATIENCE_S` alone."""

from __future__ import annotations

from typing import Any

from patience import PATIENCE_S

from tensegrity_tools.runtime.robot_client import Watcher


class PatientWatcher(Watcher):
    """A watcher that waits for services as long as for anything else."""

    def call(self, name: str, request: Any | None = None, patience: float = PATIENCE_S) -> Any:
        """Answer of a service, as soon as somebody offers it."""
        assert self.wait_until(lambda: self.offered(name), PATIENCE_S), f"nobody offers {name}"
        return super().call(name, request, PATIENCE_S)
