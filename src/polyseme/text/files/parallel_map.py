"""A map over a stream in several processes, with results in the order of the stream.

Processes are spawned and not forked: a fork copies the locks of all threads (torch, BLAS) and can hang. At most three items
per worker are in flight, so memory is bounded however fast the reader is.
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

from polyseme.base.errors import PolysemeError, arg

Item = TypeVar("Item")
Given = TypeVar("Given")
Result = TypeVar("Result")


def cpu_count() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parallel_map(
    function: Callable[[Given], Result], items: Iterable[Item], argument: Callable[[Item], Given], workers: int
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with `function(argument(item))`, computed in `workers` other processes; 0: in this one."""
    if workers == 0:
        for item in items:
            yield item, function(argument(item))
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start, initargs=(function,))
    waiting: deque[tuple[Item, Future[Result]]] = deque()
    try:
        for item in items:
            waiting.append((item, pool.submit(_call, argument(item))))
            if len(waiting) >= 3 * workers:
                yield _next(waiting)
        while waiting:
            yield _next(waiting)
    except BrokenProcessPool as error:
        raise PolysemeError(
            "a worker process died. Either memory ran out, or a script starts workers at import: put its code under "
            f"`if __name__ == '__main__':`, or use {arg('workers', 0)}"
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


def _next(waiting: deque[tuple[Item, Future[Result]]]) -> tuple[Item, Result]:
    item, future = waiting.popleft()
    return item, future.result()


_function: Callable[..., Any] | None = None
"""What this worker computes: sent once, because it may hold a long word list."""


def _call(given: Any) -> Any:
    assert _function is not None
    return _function(given)


def _start(function: Callable[..., Any]) -> None:
    """Leave Ctrl-C to the parent, and end with it: a killed parent cannot stop its workers."""
    global _function
    _function = function
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()


def end_with_parent() -> None:
    """End this process as soon as its parent ends, however that ends."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    multiprocessing.connection.wait([sentinel])
    os._exit(1)
