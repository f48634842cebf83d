"""What all tests share: a ROS domain for each worker, what runs in the short run, and in which order."""

from __future__ import annotations

import fcntl
import gc
import os
import random
import socket
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import stuck_tests

SIDE_BY_SIDE = 2  # tests that start processes, at a time
FEW = 10  # examples of a law in the short run
ORDER = ("system", "control", "dynamics", "driver", "house", "tools")  # what compiles first, many short files last
DOMAINS = range(20, 100)  # the numbers whose ports no Linux hands out to others


for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):  # several workers on few cores, before numpy is imported
    os.environ.setdefault(name, "1")

CLAIMS: list[socket.socket] = []  # of this process, with which they end


def claim_domain() -> int:
    """A ROS domain that no other test process uses, wherever that keeps its files: a claim is a name in the kernel's
    network, as the ports of a domain are."""
    for domain in DOMAINS:
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0tensegrity_test_domain_{domain}")
        except OSError:
            claim.close()
        else:
            CLAIMS.append(claim)
            return domain
    raise RuntimeError(f"all ROS domains from {DOMAINS[0]} to {DOMAINS[-1]} are in use by other tests")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(stuck_tests)
    # The first example compiles, and a busy machine takes its time: no example has a deadline. The short run tries the
    # same examples every time, so that it reports the change and not of chance; the long one looks for new ones.
    short = os.environ.get("TEST_EXAMPLES") != "all"
    hypothesis.settings.register_profile("patient", deadline=None, derandomize=short)
    hypothesis.settings.load_profile("patient")
    # Before anything imports rclpy, and inherited by every process that a test starts.
    os.environ["ROS_DOMAIN_ID"] = str(claim_domain())
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    # No shared memory: processes that a test kills would leave their segments and locks to the next ones.
    os.environ["FASTDDS_BUILTIN_TRANSPORTS"] = "UDPv4"
    os.environ.setdefault("MPLBACKEND", "Agg")


def leave_to_the_long_run(items: list[pytest.Item]) -> None:
    """Of a test marked `sampled(count)`, all cases but `count` of them are long ones; TEST_SEED chooses which."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("long"):
            cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    for name, group in cases.items():
        marker = group[0].get_closest_marker("sampled")
        assert marker is not None
        chance = random.Random(f"{os.environ.get('TEST_SEED', '0')} {name}")
        kept = chance.sample(range(len(group)), min(marker.args[0], len(group)))
        for k, item in enumerate(group):
            if k not in kept:
                item.add_marker(pytest.mark.long)


def take_few_examples(items: list[pytest.Item]) -> None:
    """Of a law that holds for everything the short run tries a few examples, as many as the mark `examples` says."""
    if os.environ.get("TEST_EXAMPLES") == "all":
        return
    for item in items:
        function = getattr(item, "function", None)
        settings = getattr(function, "_hypothesis_internal_use_settings", None)
        mark = item.get_closest_marker("examples")
        few = mark.args[0] if mark else FEW
        if function is not None and settings is not None and settings.max_examples > few:
            function._hypothesis_internal_use_settings = hypothesis.settings(settings, max_examples=few)


def rank(item: pytest.Item) -> int:
    """Order of the run: what starts processes waits more than it computes and comes first, small files come last."""
    if item.get_closest_marker("system"):
        return 0
    folder = item.nodeid.split("/")[1:2]
    return 1 + (ORDER.index(folder[0]) if folder and folder[0] in ORDER else len(ORDER))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, Any, Any]:
    """What is collected stays to the end: nobody need look through it for garbage, now or while the tests run.

    After a fresh clone collection takes more than twice as long as later, because the asserts of all files are
    rewritten and compiled. One worker does this; the others wait for it and read the result.
    """
    gc.disable()
    with open(__file__) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(lock, fcntl.LOCK_SH)
            fcntl.flock(lock, fcntl.LOCK_UN)  # collects at the same time as all others that have waited
        return (yield)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)  # before pytest leaves out what is long
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shorten what the short run takes, and order it."""
    leave_to_the_long_run(items)
    take_few_examples(items)
    items.sort(key=rank)  # stable: files stay together


def group_of(name: str, root: Path, short: bool) -> str:
    """Group of a test, which one worker runs: that of a file makes the file's fixtures once.

    Files that start processes share two groups, so that no more of them are side by side. The tests of the long run
    take minutes each and are spread one by one.

    The marks of pytest-xdist for groups do nothing with pytest 9, where it writes them into a name that nobody reads.
    """
    file = name.split("::")[0]
    starting = files_that_start_processes(root)
    if file in starting:
        return f"system {starting.index(file) % SIDE_BY_SIDE}"
    return file if short else name


@cache
def files_that_start_processes(root: Path) -> list[str]:
    """Names of the test files that use the mark `system`."""
    found = (path for path in root.glob("test/**/test_*.py") if "mark.system" in path.read_text(encoding="utf-8"))
    return sorted(path.relative_to(root).as_posix() for path in found)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """What spreads the groups over the workers, in the order in which they were collected."""
    from xdist.scheduler import LoadScopeScheduling

    short = "not long" in config.option.markexpr
    config.option.loadscopereorder = False

    class Groups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid, config.rootpath, short)

        def remove_node(self, node: Any) -> str | None:
            """The test that ended its worker has failed: only what its group still holds is run by others.

            Without this the crashed test is run again by every further worker, and the run does not end.
            """
            work = self.assigned_work.get(node, {})
            crashed = next((test for unit in work.values() for test, done in unit.items() if not done), None)
            if crashed is None:
                self.assigned_work.pop(node)
                return None
            for unit in work.values():
                if crashed in unit:
                    unit[crashed] = True
            for name in [name for name, unit in work.items() if all(unit.values())]:
                del work[name]
            super().remove_node(node)
            return crashed

        def _reschedule(self, node: Any) -> None:
            super()._reschedule(node)
            if not self.workqueue and not node.shutting_down:
                node.shutdown()  # a worker keeps its last test back until it hears that no more come

    return Groups(config, log)
