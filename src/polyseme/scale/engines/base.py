"""What an engine is: it runs work on tasks in many workers, and gives outcomes in any order.

`Work` travels to each worker once, where `start` loads what it needs (a model). Its call gets one task at a time. An error that
it raises becomes a failed outcome and does not stop the others. A task whose worker dies is given to another worker, so a task
may run twice: work must leave the same result however often it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from polyseme.base.errors import PolysemeError

Task = TypeVar("Task")
Result = TypeVar("Result")
TaskIn = TypeVar("TaskIn", contravariant=True)
ResultOut = TypeVar("ResultOut", covariant=True)
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
"""Of the environment: only these limit the threads of all libraries."""
MAX_DEATHS = 3
"""A task fails after this many of its workers have died."""


class Work(Protocol[TaskIn, ResultOut]):
    """What is done with a task; it can be pickled."""

    def start(self) -> Callable[[TaskIn], ResultOut]:
        """Return the function of one worker, with all that it needs loaded."""


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """What became of a task."""

    number: int
    """Of the task, from 0."""
    result: Result | None = None
    error: str | None = None
    """Why it failed, in one sentence; None: it did not."""


class Engine(Protocol):
    """Runs work."""

    def map(self, work: Work[Task, Result], tasks: Iterable[Task]) -> Iterator[Outcome[Result]]:
        """Yield the outcome of each task as soon as it is known."""


def attempt(function: Callable[[Any], Any], number: int, task: Any) -> Outcome[Any]:
    """Return the outcome of one task."""
    try:
        return Outcome(number, function(task))
    except PolysemeError as error:
        return Outcome(number, error=str(error))
    except Exception as error:
        return Outcome(number, error=f"{type(error).__name__}: {error}")
