"""Kills at random moments, with both engines; the full run is `python -m benchmarks.scale_kills`."""

from __future__ import annotations

import importlib.util

import pytest

from benchmarks import scale_kills


@pytest.mark.slow
def test_local_processes() -> None:
    assert scale_kills.main(["--engine", "local", "--kills", "5", "--lines", "40000", "--longest", "8"])["equal"]


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (extra ray)")
def test_ray() -> None:
    assert scale_kills.main(["--engine", "ray", "--kills", "4", "--lines", "40000"])["equal"]
