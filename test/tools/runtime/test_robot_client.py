"""What a program that watches a robot concludes from what its nodes publish."""

from __future__ import annotations

from types import SimpleNamespace

from controller_cell import cell
from node_messages import give, published_by
from tensegrity.msg import TendonState

from tensegrity_dynamics.ros.geometry_messages import time_message
from tensegrity_tools.runtime.robot_client import Watcher


def answered(status) -> bool:
    return Watcher.answered.fget(SimpleNamespace(diagnostics={"controller": status}))


def test_a_controller_that_begins_with_a_broken_floor_has_answered():
    with cell("tensebot") as made:
        reports = published_by(made.node, "/diagnostics")
        for _ in range(200):  # a floor counts as broken only after a while
            made.give_state()
            names = list(made.seen.tensions)
            slack = TendonState(name=names, tension=[0.0] * len(names))
            slack.header.stamp = time_message(made.stamp)
            give(made.node, "tendon_states", slack)
        made.give_state()
        made.node.report()
        status = reports[-1].status[0]
        assert "tension floor broken" in status.message
        assert answered(status)


def test_a_controller_without_a_state_has_not_answered():
    assert not answered(None)
    assert not answered(SimpleNamespace(message="waiting for structure_state", values=[]))
