"""Run the service: one process, or several that share the weights in memory.

`serve` is what `polyseme serve` calls. One process listens, answers health checks at once and loads in a thread. With several
workers, a first process loads, and forks the workers when it has: on Linux they share the pages of the weights until someone
writes to them, which nobody does. While it loads, a small process answers the health checks. A worker that dies is replaced.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from polyseme.api.arguments import AnyCorpus, Device, Precision
from polyseme.api.settings import with_settings
from polyseme.base.config import Setting
from polyseme.base.errors import MissingExtraError, PolysemeError, UsageError, arg, flags_in_messages

if TYPE_CHECKING:
    from polyseme.serve.config import ServeConfig
    from polyseme.serve.models import ServedModels

KEY_VARIABLE = "POLYSEME_API_KEY"
_BACKLOG = 2048
_KEEP_ALIVE = 75  # seconds; longer than the 60 of nginx and of cloud load balancers, so that they close a connection first
_RESTART_PAUSE = 1.0  # seconds until a worker that died is replaced
# Every operation of the thread that computes gives the interpreter away, and gets it back after this time if others want it.
# With Python's default of 5 ms, a flood of requests that are refused cut the answers of those that are not to a third.
_SWITCH_SECONDS = 0.0005
_SIGNALS = (signal.SIGTERM, signal.SIGINT)

Models = Annotated[
    Sequence[str],
    Setting(
        help="Models to load, as MODEL or NAME=MODEL: shipped names, folders, files or Hub ids. Without NAME=, the name "
        "is the last part of the path. The first is the default of requests. Without any: en and zh.",
        metavar="MODEL",
    ),
]
Tasks = Annotated[
    Sequence[str],
    Setting(
        help="Folder of a trained task, as TASK or NAME=TASK; without NAME=, its name is that of the folder (may be repeated).",
        metavar="TASK",
    ),
]
SearchedCorpus = Annotated[
    AnyCorpus | None,
    Setting(
        help="Text that `neighbours` searches: a file, folder or glob (may be repeated).",
        default_text="the sample sentences of the package",
        metavar="SOURCE",
        flags=("-c",),
    ),
]


@with_settings(config="polyseme.serve.config:ServeConfig")
def serve(
    models: Models = (),
    *,
    task: Tasks = (),
    corpus: SearchedCorpus = None,
    device: Device = None,
    precision: Precision = "fp32",
    config: ServeConfig,
) -> None:
    """Serve models and trained tasks over HTTP, until stopped.

    Vectors of words (`/v1/words`), vectors of texts as in OpenAI's API (`/v1/embeddings`), neighbours, substitutes, scores,
    masked words and predictions. `/openapi.json` describes all of it. Only this machine can reach the service unless `host`
    says otherwise. SIGTERM and Ctrl-C finish what is in flight.
    """
    check_installed()
    from polyseme.serve.models import load_models, names_of

    _check_paths(names_of(models, "models").values(), names_of(task, "task").values())
    sources: Any = [] if corpus is None else [corpus] if isinstance(corpus, str | os.PathLike) else list(corpus)
    load = partial(load_models, models, task, sources, device=device, precision=precision)
    config = config.replace(api_key=config.api_key or os.environ.get(KEY_VARIABLE) or None)
    if config.workers > 1 and (not hasattr(os, "fork") or (device or "cpu") != "cpu"):
        raise UsageError(f"{arg('workers', config.workers)} needs Linux or macOS and {arg('device', 'cpu')}: leave it out")
    listener = listen(config.host, config.port)
    with flags_in_messages(False), listener:
        if config.workers == 1:
            run_server(config, load, listener)
        else:
            _Supervisor(config, load, listener).run()


def _check_paths(models: Iterable[str], tasks: Iterable[str]) -> None:
    """Report a folder that is missing, before the service says that it listens."""
    from polyseme.encoders.shipped import resolve_path
    from polyseme.tasks.folder_check import check_task

    for task in tasks:
        check_task(Path(task).expanduser())
    for model in models:
        is_hub_id = model.count("/") == 1  # or a path, of which loading says the same
        if not is_hub_id and not Path(f"{model}.index").exists():  # that of a TensorFlow checkpoint
            resolve_path(model)


def check_installed() -> None:
    """Report the missing extra."""
    for name in ("fastapi", "uvicorn", "prometheus_client"):
        if importlib.util.find_spec(name) is None:
            raise MissingExtraError(f"polyseme serve needs {name}", "serve")


def listen(host: str, port: int) -> socket.socket:
    """Open the address."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        message = f"cannot listen on {host}, port {port}: {error.strerror or error}"
        raise PolysemeError(f"{message}; choose another {arg('port')} or {arg('host')}") from error


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def run_server(
    config: ServeConfig, load: Callable[[], ServedModels], listener: socket.socket, threads: int | None = None
) -> None:
    """Answer requests in this process until a signal comes; raise if the models cannot be loaded."""
    import uvicorn

    from polyseme.serve.app import create_app
    from polyseme.serve.connections import guarded_protocol
    from polyseme.serve.logs import log, write_logs

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            """Finish what is in flight and return, so that the process exits with 0; a second Ctrl-C does not wait."""
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self.should_exit = True

    failures: list[Exception] = []
    loading = threading.Event()

    def failed(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    def loaded() -> ServedModels:
        begin = time.monotonic()
        loading.set()
        try:
            models = load()
        finally:
            loading.clear()
        gc.collect()
        gc.freeze()  # what is loaded stays: full collections look at requests only, take less time and come sooner
        names = ", ".join([*models.models, *models.tasks])
        log.info("loaded %s in %.1f s", names, time.monotonic() - begin)
        return models

    sys.setswitchinterval(_SWITCH_SECONDS)
    with write_logs(json=config.log_json):
        log.info("loading; listening at %s", address_of(listener))
        app = create_app(config, loaded, failed, threads)
        settings: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False, "ws": "none"}
        settings["http"] = guarded_protocol(config.read_timeout)
        timeouts: dict[str, Any] = {"timeout_keep_alive": _KEEP_ALIVE, "timeout_graceful_shutdown": config.shutdown_timeout}
        server = Server(uvicorn.Config(app, proxy_headers=False, lifespan="on", backlog=_BACKLOG, **settings, **timeouts))
        server.run(sockets=[listener])
        log.info("stopped")
    if loading.is_set():  # it was stopped: Python cannot end while another thread computes in PyTorch, and would abort
        sys.stderr.flush()
        os._exit(0)
    if failures:
        raise failures[0]


class _Supervisor:
    """Loads once, forks the workers, replaces those that die, and stops them."""

    def __init__(self, config: ServeConfig, load: Callable[[], ServedModels], listener: socket.socket) -> None:
        self._config, self._load, self._listener = config, load, listener
        self._children: set[int] = set()
        self._stopping = False

    def run(self) -> None:
        from polyseme.nn.threads import intra_op_threads

        folder = tempfile.mkdtemp(prefix="polyseme-metrics-")
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # read when prometheus_client is imported, and not before
        before = {number: signal.signal(number, self._stop) for number in _SIGNALS}
        try:
            waiting = self._fork(_load_for_ever)
            with intra_op_threads(1):  # a fork does not have the threads that others have started
                models = self._load()
            gc.collect()
            gc.freeze()  # the collector would write to all objects, and so copy their pages
            for _ in range(0 if self._stopping else self._config.workers):
                self._fork(lambda: models)
            self._end(waiting)
            self._watch(lambda: models)
        finally:
            self._end(*self._children)
            while self._children:
                self._children.discard(os.wait()[0])
            for number, handler in before.items():
                signal.signal(number, handler)
            shutil.rmtree(folder, ignore_errors=True)

    def _watch(self, load: Callable[[], ServedModels]) -> None:
        """Wait for the children to end, and replace a worker that nobody has stopped."""
        from prometheus_client.multiprocess import mark_process_dead

        expected = len(self._children) - self._config.workers  # the one that answered while we loaded
        while self._children:
            child, status = os.wait()
            self._children.discard(child)
            mark_process_dead(child)
            if self._stopping:
                continue
            if status == 0 and expected > 0:
                expected -= 1
                continue
            time.sleep(_RESTART_PAUSE)
            if not self._stopping:
                self._fork(load)

    def _fork(self, load: Callable[[], ServedModels]) -> int:
        child = os.fork()
        if child == 0:
            self._work(load)
        self._children.add(child)
        return child

    def _work(self, load: Callable[[], ServedModels]) -> NoReturn:
        """The life of a child."""
        code = 1
        try:
            for number in _SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            threads = max((os.cpu_count() or 1) // self._config.workers, 1)
            run_server(self._config, load, self._listener, threads)
            code = 0
        finally:
            os._exit(code)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self._stopping = True
        self._end(*self._children)

    def _end(self, *children: int) -> None:
        for child in children:
            try:
                os.kill(child, signal.SIGTERM)
            except ProcessLookupError:
                self._children.discard(child)


def _load_for_ever() -> ServedModels:
    """What the process loads that only answers health checks."""
    while True:
        time.sleep(3600)
