"""Threads with work of their own, in place of OpenMP threads that share every operation.

OpenMP threads meet at a barrier after each operation, and an LSTM has thousands of small ones. On a quiet machine that works.
Beside other busy processes one thread is often not running when the other waits for it, and a wait can take a whole time
slice of the scheduler: with 8 sentences and all cores busy, two threads took 30 times as long as one. Threads that meet only at
the end of a batch lose no more than their share of the machine. Each of them must then run its operations alone.
`torch.set_num_threads` is not enough for that: on ARM the kernels of oneDNN (Arm Compute Library) ignore it. They follow
OpenMP's own limit on nested parallel regions, so both are set.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

T = TypeVar("T")
_local = threading.local()


def run_parallel(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Run tasks at the same time and return their results; the threads of PyTorch are divided among them.

    With one thread, or within another `run_parallel`, they run one after another. Modes that PyTorch keeps by thread
    (`no_grad`, autocast) are the tasks' own affair.

    >>> run_parallel([lambda: 1, lambda: 2])
    [1, 2]
    """
    threads = torch.get_num_threads()
    if threads < len(tasks) or len(tasks) < 2:
        return [task() for task in tasks]
    share, cancel = threads // len(tasks), threading.Event()
    others = [_pool(os.getpid()).submit(_with_threads, task, share, cancel) for task in tasks[1:]]
    try:
        return [_with_threads(tasks[0], share), *(each.result() for each in others)]
    except BaseException:  # also Ctrl-C, which only the main thread gets
        cancel.set()
        wait(others)
        raise


class CancelledTask(Exception):
    """Another task that ran at the same time has failed."""


def check_cancelled() -> None:
    """Stop here if another task of the same `run_parallel` has failed; long loops call it at each turn."""
    cancel = getattr(_local, "cancel", None)
    if cancel is not None and cancel.is_set():
        raise CancelledTask


def _with_threads(task: Callable[[], T], count: int, cancel: threading.Event | None = None) -> T:
    _local.cancel = cancel
    with intra_op_threads(count):
        return task()


@contextmanager
def intra_op_threads(count: int) -> Iterator[None]:
    """A block in which the operations that this thread starts run on so many threads each."""
    before, openmp = torch.get_num_threads(), _openmp()
    levels = openmp.omp_get_max_active_levels() if openmp is not None else 0
    if before != count:
        torch.set_num_threads(count)
    if openmp is not None and count == 1:
        openmp.omp_set_max_active_levels(0)
    try:
        yield
    finally:
        if before != count:
            torch.set_num_threads(before)
        if openmp is not None and count == 1:
            openmp.omp_set_max_active_levels(levels)


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process; a forked one does not have those of its parent."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="polyseme")


@functools.cache
def _openmp() -> Any:
    """The OpenMP library that PyTorch has loaded; None: there is none, or it cannot be found."""
    try:
        library = ctypes.CDLL(torch._C.__file__)  # finds the functions of all libraries that this one needs
        return library if hasattr(library, "omp_set_max_active_levels") else None
    except OSError:
        return None
