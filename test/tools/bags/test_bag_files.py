"""Bags keep what was written, whatever becomes of the one who writes them."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from bag_examples import SAMPLE, sample, write_samples
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.bags.reader import Bag
from tensegrity_tools.bags.repair import repair_bag
from tensegrity_tools.bags.writer import BagWriter, Quality

STORAGES = ("mcap", "sqlite3")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@pytest.mark.parametrize("storage", STORAGES)
def test_what_is_written_is_read_with_its_topics_types_and_qualities(tmp_path: Path, storage: str) -> None:
    messages = [("/latched" if k % 3 == 0 else "/other", 1000 + k, sample(k, [k, 0.5])) for k in range(20)]
    write_samples(tmp_path / "bag", messages, storage)
    with Bag(tmp_path / "bag") as bag:
        assert bag.whole
        assert bag.storage == storage
        assert (bag.start, bag.end) == (1000, 1019)
        assert list(bag.messages()) == messages
        assert bag.topics["/latched"].quality == Quality(reliable=True, latched=True, depth=1)
        assert not bag.topics["/other"].quality.latched
        assert bag.topics["/other"].digest == SAMPLE.digest
        decoded = bag.decoder("/other")(messages[1][2])
        assert decoded.value.tolist() == [1.0, 0.5]


def test_a_message_is_read_in_the_order_of_its_time(tmp_path: Path) -> None:
    write_samples(tmp_path / "bag", [("/a", time, sample(time)) for time in (30, 10, 20)])
    with Bag(tmp_path / "bag") as bag:
        assert [each.time for each in bag.messages()] == [10, 20, 30]


@pytest.mark.parametrize("kept", [0, 3, 5, 30])
def test_bytes_that_are_no_message_of_their_type_are_an_error_in_words(tmp_path: Path, kept: int) -> None:
    write_samples(tmp_path / "bag", [("/a", 10, sample(10, [1.0, 2.0])[:kept])])
    with Bag(tmp_path / "bag") as bag:
        with pytest.raises(TensegrityError, match=r"on /a is no examples/msg/Sample"):
            bag.decoder("/a")(next(bag.messages()).data)


def test_there_is_no_bag_where_something_is_already(tmp_path: Path) -> None:
    (tmp_path / "bag").mkdir()
    with pytest.raises(TensegrityError, match="exists already"):
        BagWriter(tmp_path / "bag")


@pytest.mark.parametrize("name", ["missing", "empty", "text.mcap"])
def test_what_is_no_bag_is_refused_or_empty_and_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.mcap").write_text("no bag at all")
    if name == "text.mcap":
        with Bag(tmp_path / name) as bag:
            assert not bag.whole
            assert bag.count == 0
        with pytest.raises(TensegrityError, match="holds nothing"):
            repair_bag(tmp_path / name)
    else:
        with pytest.raises(TensegrityError, match=r"no bag|does not exist"):
            Bag(tmp_path / name)


class Recording:
    """A bag whose writer flushes now and then, and never closes it."""

    def __init__(self, path: Path, storage: str, flushes: list[int]) -> None:
        self.written: list[tuple[str, int, bytes]] = []
        self.kept: list[tuple[int, int]] = []  # size of the file and messages in it after each flush
        self.writer = BagWriter(path, storage)
        self.file = next(each for each in path.iterdir() if each.suffix in (".mcap", ".db3"))
        for k, count in enumerate(flushes):
            for _ in range(count):
                number = len(self.written)
                topic = f"/topic_{number % (k + 2)}"
                if topic not in self.writer:
                    self.writer.add_topic(topic, SAMPLE)
                message = topic, number, sample(number, [number] * (number % 7), "word" * (number % 40))
                self.writer.write(*message)
                self.written.append(message)
            self.writer.flush()
            self.kept.append((self.file.stat().st_size, len(self.written)))


def _check(recording: Recording, broken: Path, at_least: int) -> None:
    """What is read of a broken bag, and what is in it after its repair."""
    with Bag(broken) as bag:
        assert not bag.whole
        read = list(bag.messages())
        has_topics = bool(bag.topics)
    assert read == recording.written[: len(read)]
    assert len(read) >= at_least
    if has_topics:
        repaired = repair_bag(broken)
        assert repaired.count == len(read)
        with Bag(broken) as bag:
            assert bag.whole
            assert list(bag.messages()) == read
        with AnyReader([broken]) as reader:
            assert sum(1 for _ in reader.messages()) == len(read)


@settings(max_examples=40)
@given(flushes=st.lists(st.integers(0, 60), min_size=1, max_size=5), part=st.floats(0.0, 1.0))
def test_of_a_file_that_ends_anywhere_everything_flushed_before_is_kept(
    folder: Path, flushes: list[int], part: float
) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "bag"
        recording = Recording(path, "mcap", flushes)
        size = int(part * recording.file.stat().st_size)
        with recording.file.open("r+b") as file:
            file.truncate(size)
        _check(recording, path, max((count for end, count in recording.kept if end <= size), default=0))


@pytest.mark.parametrize("storage", STORAGES)
def test_of_a_writer_that_dies_everything_flushed_is_kept(tmp_path: Path, storage: str) -> None:
    recording = Recording(tmp_path / "bag", storage, [30, 10])
    recording.writer.write("/topic_0", 41, sample(41))  # never flushed
    shutil.copytree(tmp_path / "bag", tmp_path / "killed")  # what the disk holds at this instant
    _check(recording, tmp_path / "killed", 40)


@settings(max_examples=40)
@given(data=st.data())
def test_a_file_with_foreign_bytes_in_it_is_read_without_failing(folder: Path, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        path = Path(name) / "bag"
        recording = Recording(path, "mcap", [20, 20])
        raw = bytearray(recording.file.read_bytes())
        at = data.draw(st.integers(0, len(raw) - 1))
        patch = data.draw(st.binary(min_size=1, max_size=40))
        raw[at : at + len(patch)] = patch
        recording.file.write_bytes(raw)
        with Bag(path) as bag:
            assert sum(1 for _ in bag.messages()) == bag.count


def test_a_whole_bag_is_left_as_it_is(tmp_path: Path) -> None:
    write_samples(tmp_path / "bag", [("/a", 1, sample(1))])
    before = {each.name: each.read_bytes() for each in (tmp_path / "bag").iterdir()}
    assert repair_bag(tmp_path / "bag").broken is None
    assert {each.name: each.read_bytes() for each in (tmp_path / "bag").iterdir()} == before


FULL = """
import resource, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from bag_examples import SAMPLE, sample
from tensegrity_tools.bags.writer import BagWriteError, BagWriter
import numpy as np
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))  # beyond it the system refuses, as for a full disk
writer = BagWriter(Path(sys.argv[1]), sys.argv[3])
writer.add_topic("/a", SAMPLE)
noise, kept = np.random.default_rng(1), 0
try:
    for k in range(2000):
        writer.write("/a", k, sample(k, noise.normal(size=100)))
        if k % 10 == 9:
            writer.flush()
            kept = k + 1
except BagWriteError as error:
    print(kept, error)
"""


@pytest.mark.sampled(1)
@pytest.mark.parametrize("storage", STORAGES)
def test_a_full_disk_is_said_and_what_was_flushed_stays(tmp_path: Path, storage: str) -> None:
    support = str(Path(__file__).parents[2] / "support")
    run = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "bag"), support, storage], capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    kept, _, words = run.stdout.partition(" ")
    assert "what came before stays" in words
    assert int(kept) > 50
    with Bag(tmp_path / "bag") as bag:
        assert [each.time for each in bag.messages()][: int(kept)] == list(range(int(kept)))
    assert repair_bag(tmp_path / "bag").count >= int(kept)
