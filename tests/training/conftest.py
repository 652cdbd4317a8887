"""One thread for this process and for those that the tests start, so that sums have one order."""

import multiprocessing
import os
from pathlib import Path
from typing import Any

import pytest

os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """New processes that need not import torch each time; its dynamo is what the first optimizer imports."""
    root = Path(__file__).parents[2]
    monkeypatch.setenv("PYTHONPATH", f"{root}{os.pathsep}{root / 'src'}")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.training.program", "torch._dynamo"])
    return context
