"""Files that a person names: read whole, or refused where they have no end; written, or refused with the way out."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from tensegrity_dynamics.bounded_file import read_bounded
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.saved_file import save_file
from tensegrity_tools.commands.servo.measurement_files import read_rows


def test_a_file_is_read_up_to_its_bound_and_refused_beyond(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(bytes(100))
    assert read_bounded(path, 100) == bytes(100)
    for each, bound in ((path, 99), (Path("/dev/zero"), 1000)):
        with pytest.raises(OSError, match=str(bound)) as refusal:
            read_bounded(each, bound)
        assert refusal.value.errno == errno.EFBIG


def test_points_from_a_device_that_never_ends_are_an_error_in_words() -> None:
    with pytest.raises(TensegrityError, match=r"/dev/zero cannot be read .larger than"):
        read_rows(Path("/dev/zero"), ("mass", "length"))


def test_space_is_asked_for_only_where_it_helps(tmp_path: Path) -> None:
    with pytest.raises(TensegrityError, match="choose another file") as refusal:
        save_file(tmp_path, "text")
    assert "free some space" not in str(refusal.value)
    with pytest.raises(TensegrityError, match="free some space, or choose another file"):
        save_file(Path("/dev/full"), "text")
