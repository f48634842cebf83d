"""Nothing that is stuck costs a whole run: it prints where every thread stands and ends its process, which fails.

The limits are so far above what anything takes that no busy machine meets them. A worker of pytest-xdist that ends so
is named with its test, and the run goes on in another one. The process that hands out the tests ends, too, where no
result comes any more; and so does any process that does not come to its end after its last test.
"""

from __future__ import annotations

import faulthandler
import os
from collections.abc import Generator
from typing import Any

import pytest

LIMIT_S = float(os.environ.get("TEST_LIMIT_S", "900"))
"""s of one phase of a test: fixtures made, the test itself, fixtures ended."""
LONG = 8.0
"""Times as much of a test that is marked `long`, and of the time without any result while such ones run."""
START_S = 900.0
"""s more that a worker may take to begin its first test, which imports everything and may compile."""
ENDING_S = 300.0
"""s from the last test to the end of the process."""


class Stderr:
    """The process's own, which pytest exchanges while tests run."""

    file = -1


def pytest_configure(config: pytest.Config) -> None:
    Stderr.file = os.dup(2)


def end_after(seconds: float) -> None:
    """Print all stacks and end the process unless this is called again, or off, before."""
    faulthandler.dump_traceback_later(seconds, exit=True, file=Stderr.file)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from limited(item))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, Any, Any]:
    return (yield from limited(item))


def limited(item: pytest.Item) -> Generator[None, Any, Any]:
    end_after(LIMIT_S * (LONG if item.get_closest_marker("long") else 1.0))
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


class Distribution:
    """The process that hands out the tests: results must go on coming."""

    def __init__(self, limit: float) -> None:
        self._limit = limit

    def pytest_runtest_logreport(self) -> None:
        end_after(self._limit)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    config = session.config
    if config.pluginmanager.hasplugin("dsession"):
        short = "not long" in config.option.markexpr
        config.pluginmanager.register(Distribution(START_S + 3.0 * LIMIT_S * (1.0 if short else LONG)))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers wait for each other, and are ended by the process above
        end_after(ENDING_S)
