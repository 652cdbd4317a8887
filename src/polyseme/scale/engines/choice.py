"""The engine of a config."""

from __future__ import annotations

from polyseme.scale.config import EngineConfig
from polyseme.scale.engines.base import Engine
from polyseme.scale.engines.local import LocalEngine


def make_engine(config: EngineConfig) -> Engine:
    """Return the engine; an error says which package it lacks."""
    if config.engine == "ray":
        from polyseme.scale.engines.ray import RayEngine

        return RayEngine(config)
    return LocalEngine(config.workers, config.threads)
