"""Processes to start and kill, with one thread each, so that sums have one order."""

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """New processes that need not import torch each time; its dynamo is what the first optimizer imports."""
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}{os.pathsep}{root / 'src'}")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.pretraining.program", "torch._dynamo"])
    return context
