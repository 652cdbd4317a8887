"""A Ray cluster (extra `ray`): an actor pool of Ray Data, whose rows are tasks.

A row is a task and not a line of text: lines would come back unordered and be lost or repeated when a node dies. Actors write
parts themselves, and what comes back is small. Ray starts lost actors again and repeats their tasks, which find the parts that
are done. Errors of a task are returned as values, since Ray would stop or silently drop it.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import pickle
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from polyseme.base.errors import MissingExtraError, PolysemeError
from polyseme.scale.config import TextEngineConfig
from polyseme.scale.engines.base import THREAD_VARIABLES, Outcome, Result, Task, Work, attempt

_BLOCKS_PER_WORKER = 64  # a lost worker repeats no more than a block, and blocks cost time each


class RayEngine:
    """Workers of a cluster that is running, or of one that is started on this machine and ended with this process."""

    def __init__(self, config: TextEngineConfig, threads: int = 1) -> None:
        self._config, self._threads = config, threads
        try:
            self._ray: Any = importlib.import_module("ray")
            self._data: Any = importlib.import_module("ray.data")
        except ImportError as error:
            raise MissingExtraError("the engine ray needs Ray", "ray") from error

    def map(self, work: Work[Task, Result], tasks: Iterable[Task]) -> Iterator[Outcome[Result]]:
        """Yield the outcome of each task as soon as it is known."""
        rows = [{"number": number, "task": pickle.dumps(task)} for number, task in enumerate(tasks)]
        if not rows:
            return
        self._connect()
        workers = self._workers(len(rows))
        context = self._data.DataContext.get_current()
        context.enable_progress_bars = False
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        device = str(getattr(work, "load_options", {}).get("device") or "")
        outcomes = self._data.from_items(rows, override_num_blocks=min(len(rows), _BLOCKS_PER_WORKER * workers)).map_batches(
            _Actor,
            fn_constructor_args=(pickle.dumps(work),),
            batch_size=1,
            batch_format="numpy",
            compute=self._data.ActorPoolStrategy(min_size=1, max_size=workers),
            num_cpus=self._threads,
            num_gpus=1 if device.startswith("cuda") else 0,
            runtime_env={"env_vars": dict.fromkeys(THREAD_VARIABLES, str(self._threads))},
        )
        try:
            with contextlib.redirect_stdout(sys.stderr):  # Ray prints there that workers died; stdout is for results
                for row in outcomes.iter_rows():
                    yield pickle.loads(row["outcome"])
        except self._ray.exceptions.RayError as error:
            raise PolysemeError(f"Ray stopped: {_cause(error)}; the same command resumes the run") from error

    def _connect(self) -> None:
        if self._ray.is_initialized():
            return
        options: dict[str, Any] = {"address": self._config.address, "log_to_driver": False, "logging_level": logging.ERROR}
        if not self._config.address:
            cpus = None if self._config.workers is None else self._config.workers * self._threads
            options |= {"num_cpus": cpus, "include_dashboard": False}
        try:
            self._ray.init(**options)
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise PolysemeError(f"cannot reach the Ray cluster at {self._config.address}: {error}") from error

    def _workers(self, tasks: int) -> int:
        cpus = int(self._ray.cluster_resources().get("CPU", 1))
        return max(min(self._config.workers or cpus // self._threads, tasks), 1)


class _Actor:
    """One worker."""

    def __init__(self, work: bytes) -> None:
        self._function = pickle.loads(work).start()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        pairs = zip(batch["number"].tolist(), batch["task"], strict=True)
        return {"outcome": [pickle.dumps(attempt(self._function, number, pickle.loads(task))) for number, task in pairs]}


def _cause(error: BaseException) -> str:
    """Return the last line of what Ray says, which names the error itself."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
