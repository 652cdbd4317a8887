"""For all tests: one thread for each process, GPU kernels on the CPU where there is no GPU, and little to wait for."""

import gc
import logging
import os
import signal
import threading
from collections.abc import Iterator

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side, and threads that wait for each other crawl

# a program started in the background ignores Ctrl-C, and so would its children: the tests that send one need it heard
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def without_waiting() -> Iterator[None]:
    """A warm state after three readings: every save of an ELMo computes one, and fifty readings take 0.2 seconds.

    Nothing waits for the disk: no test cuts the power, and the tests write thousands of files.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyseme.encoders.elmo.WARM_UP", 3)
        patch.setattr("os.fsync", lambda file: None)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Collect no garbage among the tests and libraries that stay, neither while they come nor later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        for name, logger in logging.Logger.manager.loggerDict.items():
            if name.startswith("torch") and isinstance(logger, logging.Logger):
                logger.propagate = True  # pytest adds its handlers to all that do not, six times a test


def pytest_unconfigure() -> None:
    gc.unfreeze()  # or nanobind reports that its types were never deleted


LONG = ["test_readme.py", "test_contract.py", "test_adapt.py", "test_kills.py", "test_old_folders.py"]
"""Files that take longest: begun at the end, they would keep one process busy while the other waits."""


def pytest_configure(config: pytest.Config) -> None:
    """Choose how Triton runs, before it is imported; the process that only hands out tests does without torch."""
    if not config.getoption("numprocesses", None):
        import torch

        if not torch.cuda.is_available():
            os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported


def pytest_collection_modifyitems(items: list) -> None:
    items.sort(key=lambda item: LONG.index(item.path.name) if item.path.name in LONG else len(LONG))
