"""Bags that are cut, flipped, overwritten or of another schema: read as far as they go, or refused in words."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bag_examples import NAME, TEXT, sample, write_samples

from tensegrity_dynamics.errors import TensegrityError
from tensegrity_tools.bags.comparison import compare_bags
from tensegrity_tools.bags.message_types import SEPARATOR, Definition
from tensegrity_tools.bags.reader import Bag, storage_files
from tensegrity_tools.bags.repair import NO_DIGEST, repair_bag
from tensegrity_tools.bags.writer import BagWriter
from tensegrity_tools.cli import app
from tensegrity_tools.runtime.replay_graph import replay_graph

WORDS = (
    (b"float64", b"float32"),
    (b"string", b"uint16"),
    (b"Header", b"Heeder"),
    (b"cdr", b"xdr"),
    (b"int32", b"int99"),
)


def attacked(data: bytes, random: np.random.Generator) -> bytes:
    """The bytes of a file after something has happened to them."""
    size, kind = int(random.integers(1, 400)), random.integers(6)
    start = int(random.integers(len(data)))
    if kind == 0:
        return data[:start]
    if kind == 1:
        return data[:start] + bytes([data[start] ^ int(random.integers(1, 256))]) + data[start + 1 :]
    if kind == 2:
        return data[:start] + random.bytes(size) + data[start + size :]
    if kind == 3:
        return data[:start] + data[start + size :]
    if kind == 4:
        return data[: start + size] + data[start:]
    old, new = WORDS[random.integers(len(WORDS))]
    return data.replace(old, new, int(random.integers(1, 4)))


def answers(call: Callable[[], Any]) -> Any:
    """What a call returns; None where it is refused in words."""
    try:
        return call()
    except TensegrityError as error:
        said = str(error)
    assert 20 < len(said) < 1000, said
    return None


def read_all(path: Path) -> int:
    with Bag(path) as bag:
        count = 0
        for message in bag.messages():
            count += answers(lambda message=message: bag.decoder(message.topic)(message.data)) is not None
        return count


def compare(path: Path, whole: Path) -> None:
    with Bag(path) as one, Bag(whole) as two:
        compare_bags(one, two)


@pytest.mark.parametrize("many", [12, pytest.param(150, marks=pytest.mark.long)])
@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_whatever_happened_to_a_bag_it_is_read_repaired_compared_or_refused(
    storage: str, many: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, random = tmp_path / "whole", np.random.default_rng(many + len(storage))
    messages = [
        (topic, 20 * k + j, sample(k, np.sin([k, j]), f"word {k}"))
        for k in range(40)
        for j, topic in enumerate(("/a", "/b", "/latched"))
    ]
    write_samples(whole, messages, storage)
    assert read_all(whole) == len(messages)
    fewer = 0
    for k in range(many):
        path = tmp_path / f"bag_{k}"
        shutil.copytree(whole, path)
        file = path / "metadata.yaml" if random.random() < 0.2 else storage_files(path)[0]
        file.write_bytes(attacked(file.read_bytes(), random))
        count = answers(lambda path=path: read_all(path))
        assert count is None or count <= 2 * len(messages)
        fewer += count != len(messages)
        answers(lambda path=path: compare(path, whole))
        answers(lambda path=path: replay_graph(path, tmp_path))
        if answers(lambda path=path: repair_bag(path)) is not None:
            with Bag(path) as bag:
                assert bag.whole and sum(1 for _ in bag.messages()) == bag.count
        else:
            assert file.exists() or (tmp_path / f"bag_{k}.broken").exists()
        if k % 4 == 0:
            with pytest.raises(SystemExit):
                app(["bag", "info", str(path)])
        assert not any("repairing" in each.name for each in tmp_path.iterdir())
    assert "Traceback" not in capsys.readouterr().err
    assert fewer > many // 6


def test_messages_whose_type_lost_its_hash_and_a_nested_type_are_kept_by_a_repair(tmp_path: Path) -> None:
    path, lost = tmp_path / "bag", TEXT[: TEXT.rindex(SEPARATOR)]
    with BagWriter(path, "sqlite3") as writer:
        writer.add_topic("/lost", Definition(NAME, lost, NO_DIGEST))
        for k in range(20):
            writer.write("/lost", k, sample(k))
    (path / "metadata.yaml").unlink()
    with sqlite3.connect(storage_files(path)[0]) as file:
        file.execute("UPDATE topics SET type_description_hash = ''")
    file.close()
    assert repair_bag(path).count == 20
    with Bag(path) as bag:
        assert bag.whole and sum(1 for _ in bag.messages()) == 20


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_rate_or_a_start_that_no_replay_can_have_is_refused_before_a_node_starts(
    value: float, tmp_path: Path
) -> None:
    with pytest.raises(TensegrityError, match=r"--rate is .*; give 0.01 to 100, or 0"):
        replay_graph(tmp_path / "bag", tmp_path, rate=value)
    if not 0.0 <= value < np.inf:
        with pytest.raises(TensegrityError, match=r"--start is .*; give a time in the bag from 0 s on"):
            replay_graph(tmp_path / "bag", tmp_path, rate=1.0, start=value)


@pytest.mark.parametrize(("value", "words"), [("nan", "the number must be finite"), ("-1", "give a number from 0 on")])
def test_a_tolerance_that_nothing_exceeds_is_refused(
    value: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, size in (("one", 1.0), ("two", 2.0)):
        write_samples(tmp_path / name, [("/a", k, sample(k, [size])) for k in range(3)])
    with pytest.raises(SystemExit) as end:
        app(["bag", "compare", str(tmp_path / "one"), str(tmp_path / "two"), "--tolerance", value])
    assert end.value.code == 1 and words in capsys.readouterr().err
