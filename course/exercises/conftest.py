"""Gives each check the learner's file: `check_01.py` checks the functions of `01_*.py` in this folder."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def answers(request: pytest.FixtureRequest) -> ModuleType:
    """The functions that the learner wrote."""
    number = request.path.stem.removeprefix("check_")
    (path,) = Path(__file__).parent.glob(f"{number}_*.py")
    spec = importlib.util.spec_from_file_location(f"exercises_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
