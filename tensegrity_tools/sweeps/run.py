"""Execution of the chunks of a sweep by processes on this computer, or on a cluster with Dask."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from tensegrity_dynamics.ending import follow_parent
from tensegrity_dynamics.errors import TensegrityError
from tensegrity_dynamics.linear_algebra_threads import VARIABLES

from .samples import SweepPlan, sample_chunk

AHEAD = 4
"""Number of chunks assigned to each process in advance, so that none waits."""
THREAD_VARIABLES = (*VARIABLES, "NUMBA_NUM_THREADS")


def run_here(plan: SweepPlan, numbers: Sequence[int], workers: int | None = None) -> Iterator[tuple[int, Any]]:
    """Chunks in the order of completion, from processes on this computer (default: one per core).

    Raises:
        TensegrityError: a process died.
    """
    count = min(workers or len(os.sched_getaffinity(0)), max(len(numbers), 1))
    if count == 1:
        for number in numbers:
            yield number, sample_chunk(plan, number)
        return
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))  # one core per process, no additional threads
    try:
        pool = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_begin_worker)
        try:
            yield from _collected(pool, plan, numbers, AHEAD * count)
        except BrokenProcessPool:
            raise TensegrityError(
                "a process of the sweep died (out of memory, or killed). What was finished is kept: start it again, "
                "perhaps with fewer --workers."
            ) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _begin_worker() -> None:
    """Ignore Ctrl-C, since the main process handles it; it ends the others, even if it is killed.

    A sweep that was started with SIGTERM ignored passes this on, and its processes would wait for ever for a killed
    one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    follow_parent()


def _collected(pool: Any, plan: SweepPlan, numbers: Sequence[int], ahead: int) -> Iterator[tuple[int, Any]]:
    waiting, todo = {}, iter(numbers)
    while True:
        for number in todo:
            waiting[pool.submit(sample_chunk, plan, number)] = number
            if len(waiting) >= ahead:
                break
        if not waiting:
            return
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        for future in done:
            yield waiting.pop(future), future.result()


def run_on_cluster(plan: SweepPlan, numbers: Sequence[int], scheduler: str) -> Iterator[tuple[int, Any]]:
    """Chunks in the order of completion, from the workers of a Dask scheduler; these only need this package.

    Raises:
        TensegrityError: Dask is not installed, no scheduler answers at the address, or it has no workers.
    """
    try:
        from distributed import Client, as_completed
    except ModuleNotFoundError as error:
        raise TensegrityError(
            f"--scheduler needs Dask ({error.name} is not installed): pip install 'tensegrity-robotics[cluster]'."
        ) from None
    try:
        client = Client(scheduler, timeout=10)
    except (OSError, TimeoutError, ValueError) as error:
        raise TensegrityError(
            f"no Dask scheduler answers at {scheduler} ({error or type(error).__name__}); start one with "
            "`dask scheduler`, workers with `dask worker ADDRESS`, and give its address, such as tcp://host:8786."
        ) from None
    try:
        if not client.scheduler_info()["workers"]:
            raise TensegrityError(
                f"the scheduler at {scheduler} has no workers; start some: `dask worker {scheduler}`."
            )
        shared = client.scatter(plan, broadcast=True, hash=False)
        futures = {client.submit(sample_chunk, shared, number, pure=False): number for number in numbers}
        for future in as_completed(list(futures)):
            yield futures[future], future.result()
            future.release()
    finally:
        client.close()
