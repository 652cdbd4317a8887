"""For all tests: one thread for each process, and GPU kernels on the CPU where there is no GPU."""

import os
import signal
import threading

os.environ.setdefault("OMP_NUM_THREADS", "1")  # tests run side by side, and threads that wait for each other crawl

import torch

if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported

# a program started in the background ignores Ctrl-C, and so would its children: the tests that send one need it heard
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list) -> None:
    """Pages of documentation come first: each is one long test, and at the end one process would wait for the other."""
    items.sort(key=lambda item: "test_readme" not in item.nodeid)
