"""The engine of a config."""

from __future__ import annotations

from polyseme.scale.config import EngineConfig, TextEngineConfig
from polyseme.scale.engines.base import Engine
from polyseme.scale.engines.local import LocalEngine


def make_engine(config: TextEngineConfig) -> Engine:
    """Return the engine; an error says which package it lacks."""
    threads = config.threads if isinstance(config, EngineConfig) else 1
    if config.engine == "ray":
        from polyseme.scale.engines.ray import RayEngine

        return RayEngine(config, threads)
    return LocalEngine(config.workers, threads)
