"""Threads with work of their own, in place of OpenMP threads that share every operation.

OpenMP threads meet at a barrier after each operation, and an LSTM has thousands of small ones. On a quiet machine that works.
Beside other busy processes one thread is often not running when the other waits for it, and a wait can take a whole time
slice of the scheduler: with 8 sentences and all cores busy, two threads took 30 times as long as one. Threads that meet only at
the end of a batch lose no more than their share of the machine. Each of them must then run its operations alone.
On ARM `torch.set_num_threads` is not enough for that: the kernels of oneDNN (Arm Compute Library) ignore it. They follow
OpenMP's own limit on nested parallel regions, so there both are set. In newer versions of libgomp that limit belongs to the
thread, in older ones to the process, so every thread restores the value that it had before any block: where one kept the limit
and asked for two threads again, OpenBLAS would wait for the second one for ever. On x86 the limit must stay as it is: oneDNN's
LSTM divides its work among as many threads as it asks for, and with fewer it leaves numbers out and returns garbage.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar

import torch

from polyseme.nn.matmul import ARM

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
    before = torch.get_num_threads()
    if before != count:
        torch.set_num_threads(count)
    try:
        with _serial_kernels if ARM and count == 1 else contextlib.nullcontext():
            yield
    finally:
        if before != count:
            torch.set_num_threads(before)


class SerialKernels:
    """A block without parallel regions of OpenMP, which several threads may be in at the same time."""

    def __init__(self) -> None:
        self._depth = threading.local()

    def __enter__(self) -> None:
        depth = getattr(self._depth, "value", 0)
        if not depth and (openmp := _openmp()) is not None:
            _default_levels()  # read before the first change
            openmp.omp_set_max_active_levels(0)
        self._depth.value = depth + 1

    def __exit__(self, *_: object) -> None:
        self._depth.value -= 1
        if not self._depth.value and (openmp := _openmp()) is not None:
            openmp.omp_set_max_active_levels(_default_levels())


_serial_kernels = SerialKernels()


@functools.cache
def _pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process; a forked one does not have those of its parent."""
    return ThreadPoolExecutor(os.cpu_count() or 1, thread_name_prefix="polyseme")


@functools.cache
def _default_levels() -> int:
    """The limit on nested parallel regions before any block."""
    return int(_openmp().omp_get_max_active_levels())


@functools.cache
def _openmp() -> Any:
    """The OpenMP library that PyTorch has loaded; None: there is none, or it cannot be found."""
    try:
        library = ctypes.CDLL(torch._C.__file__)  # finds the functions of all libraries that this one needs
        return library if hasattr(library, "omp_set_max_active_levels") else None
    except OSError:
        return None
