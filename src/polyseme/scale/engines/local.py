"""Processes of this machine. One that dies (killed, out of memory) is replaced, and its task is given to another.

Chosen against `concurrent.futures`, whose pool is broken as a whole when one of its processes dies, without saying at which
task. Processes are spawned, not forked: a fork copies the locks of all threads and can hang.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from polyseme.base.errors import PolysemeError
from polyseme.scale.engines.base import MAX_DEATHS, THREAD_VARIABLES, Outcome, Result, Task, Work, attempt
from polyseme.text.files.parallel_map import cpu_count, end_with_parent


class LocalEngine:
    """`workers` processes of `threads` threads each; 0: this process itself."""

    def __init__(self, workers: int | None = None, threads: int = 1) -> None:
        self.workers = max(cpu_count() // threads, 1) if workers is None else workers
        self.threads = threads

    def map(self, work: Work[Task, Result], tasks: Iterable[Task]) -> Iterator[Outcome[Result]]:
        """Yield the outcome of each task as soon as it is known."""
        if self.workers == 0:
            function = work.start()
            for number, task in enumerate(tasks):
                yield attempt(function, number, task)
            return
        pool = _Pool(work, self.workers, self.threads)
        try:
            yield from pool.run(enumerate(tasks))
        finally:
            pool.stop()


@dataclass
class _Worker:
    """A process, the connection to it, and the task that it works on."""

    process: Any
    connection: Connection
    task: tuple[int, Any] | None = None
    served: bool = False
    """Whether it has completed a task."""


class _Pool:
    """The processes of one call of `map`."""

    def __init__(self, work: Any, size: int, threads: int) -> None:
        self._work, self._size, self._threads = work, size, threads
        self._context = multiprocessing.get_context("spawn")
        self._workers: list[_Worker] = []
        self._again: deque[tuple[int, Any]] = deque()
        self._deaths: dict[int, int] = {}
        self._lost_at_start = 0

    def run(self, tasks: Iterator[tuple[int, Any]]) -> Iterator[Outcome[Any]]:
        while True:
            self._give(tasks)
            busy = [worker for worker in self._workers if worker.task is not None]
            if not busy:
                return
            ready = set(wait([worker.connection for worker in busy]))
            for worker in busy:
                if worker.connection in ready and (outcome := self._receive(worker)) is not None:
                    yield outcome

    def stop(self) -> None:
        """End all processes; what they were writing does not appear."""
        for worker in self._workers:
            worker.connection.close()
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()
        self._workers = []

    def _give(self, tasks: Iterator[tuple[int, Any]]) -> None:
        """Give tasks to all idle workers, of which there are as many as the tasks need."""
        idle = deque(worker for worker in self._workers if worker.task is None)
        while idle or len(self._workers) < self._size:
            task = self._again.popleft() if self._again else next(tasks, None)
            if task is None:
                return
            worker = idle.popleft() if idle else self._spawn()
            worker.task = task
            try:
                worker.connection.send(task)
            except OSError:  # it died while idle
                worker.task = None
                self._again.appendleft(task)
                self._remove(worker)

    def _spawn(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        with _environment(self._threads):
            process = self._context.Process(target=_serve, args=(theirs, self._work, self._threads), daemon=True)
            process.start()
        theirs.close()
        self._workers.append(_Worker(process, ours))
        return self._workers[-1]

    def _remove(self, worker: _Worker) -> int | None:
        worker.connection.close()
        worker.process.join()
        self._workers.remove(worker)
        return worker.process.exitcode

    def _receive(self, worker: _Worker) -> Outcome[Any] | None:
        """Return the outcome of a worker; None: it died, and its task waits for another."""
        assert worker.task is not None
        number = worker.task[0]
        try:
            outcome: Outcome[Any] | _StartError = worker.connection.recv()
        except (EOFError, OSError):
            code = self._remove(worker)
            return self._died(worker, code)
        if isinstance(outcome, _StartError):
            raise PolysemeError(outcome.text)
        worker.task, worker.served = None, True
        self._deaths.pop(number, None)
        return outcome

    def _died(self, worker: _Worker, code: int | None) -> Outcome[Any] | None:
        assert worker.task is not None
        number = worker.task[0]
        self._deaths[number] = self._deaths.get(number, 0) + 1
        if not worker.served and code is not None and code > 0:
            raise PolysemeError(
                f"a worker process ended at its start (exit code {code}). If a script starts it, put the script's code under "
                "`if __name__ == '__main__':`"
            )
        if self._deaths[number] < MAX_DEATHS:
            self._again.append(worker.task)
            return None
        return Outcome(number, error=f"its worker died {MAX_DEATHS} times, last with {_reason(code)}: is there enough memory?")


@dataclass(frozen=True)
class _StartError:
    """Why a worker could not start."""

    text: str


def _serve(connection: Connection, work: Any, threads: int) -> None:
    """Do tasks until the parent closes the connection or ends. Ctrl-C is the parent's affair."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    try:
        function = work.start()
    except PolysemeError as error:
        connection.send(_StartError(str(error)))
        return
    while True:
        try:
            number, task = connection.recv()
        except EOFError:
            return
        connection.send(attempt(function, number, task))


@contextlib.contextmanager
def _environment(threads: int) -> Iterator[None]:
    """Let the processes that are started in this block have so many threads: only the environment limits all libraries."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _reason(code: int | None) -> str:
    return f"signal {signal.Signals(-code).name}" if code is not None and code < 0 else f"exit code {code}"
