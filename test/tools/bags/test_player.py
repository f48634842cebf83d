"""The parameters of a player steer it while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

rclpy = pytest.importorskip("rclpy", reason="ROS 2 is not installed")
pytest.importorskip("tensegrity.msg", reason="the interfaces are not built")

from bag_examples import sample, write_samples  # noqa: E402
from rclpy.parameter import Parameter  # noqa: E402

from tensegrity_dynamics.errors import TensegrityError  # noqa: E402
from tensegrity_tools.ros.player_node import PlayerNode  # noqa: E402


def test_its_parameters_seek_pause_and_set_the_rate(tmp_path: Path) -> None:
    write_samples(tmp_path / "bag", [("/a", k, sample(k)) for k in range(3)])
    rclpy.init(args=["--ros-args", "--log-level", "FATAL", "-p", f"bag:={tmp_path / 'bag'}", "-p", "lockstep:=false"])
    node = PlayerNode()
    try:
        for name, value in (("position", 1.5), ("paused", True), ("rate", 0.25), ("loop", True)):
            assert node.set_parameters([Parameter(name, value=value)])[0].successful
        assert (node.sought, node.paused, node.rate, node.loop) == (1.5, True, 0.25, True)
        assert node.stays
        assert not node.set_parameters([Parameter("position", value=-1.0)])[0].successful
        assert node.sought == 1.5
    finally:
        node.close()
        node.destroy_node()
        rclpy.try_shutdown()


def test_a_start_beyond_the_end_of_the_bag_is_refused(tmp_path: Path) -> None:
    write_samples(tmp_path / "bag", [("/a", k, sample(k)) for k in range(3)])
    rclpy.init(
        args=["--ros-args", "--log-level", "FATAL", "-p", f"bag:={tmp_path / 'bag'}", "-p", "lockstep:=false",
              "-p", "position:=1000.0"]
    )  # fmt: skip
    node = PlayerNode()
    try:
        with pytest.raises(TensegrityError, match=r"start at 1000 s, but .* ends at 0\.00 s"):
            node._play()
    finally:
        node.close()
        node.destroy_node()
        rclpy.try_shutdown()
