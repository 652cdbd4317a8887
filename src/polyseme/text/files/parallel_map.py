"""One function over a stream, in several processes, results in the order of the stream.

Processes are spawned and not forked: a fork copies the threads' locks of whatever is loaded (torch, BLAS) and can hang.
At most three items a worker are under way, so that memory is bounded however fast the reader is.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from polyseme.base.errors import PolysemeError

Item = TypeVar("Item")
Given = TypeVar("Given")
Result = TypeVar("Result")


def cpu_count() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(
    job: Callable[[Given], Result], items: Iterable[Item], given: Callable[[Item], Given], workers: int
) -> Iterator[tuple[Item, Result]]:
    """Every item with `job(given(item))`; with 0 workers in this process, else in that many others."""
    if workers == 0:
        for item in items:
            yield item, job(given(item))
        return
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"), initializer=_begin, initargs=(job,))
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            waiting.append((item, pool.submit(_run, given(item))))
            if len(waiting) >= 3 * workers:
                yield _take(waiting)
        while waiting:
            yield _take(waiting)
    except BrokenProcessPool as error:
        raise PolysemeError(
            "a worker process died: too little memory, or a script that starts workers when it is imported; "
            "put its code under `if __name__ == '__main__':`, or use workers=0"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _take(waiting: deque[tuple[Item, Future[Result]]]) -> tuple[Item, Result]:
    item, future = waiting.popleft()
    return item, future.result()


_job: Callable[..., Any] | None = None
"""Of this worker: sent once, since it may bring a long list of words."""


def _run(given: Any) -> Any:
    assert _job is not None
    return _job(given)


def _begin(job: Callable[..., Any]) -> None:
    """A worker leaves Ctrl-C to its parent, and ends with it: a killed parent cannot tell its workers to stop."""
    global _job
    _job = job
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
