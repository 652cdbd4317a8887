"""Objects by their place in the package, so that a table can name them and what is not used is not imported."""

from __future__ import annotations

import importlib
from typing import Any


def import_object(place: str) -> Any:
    """Import what `module:name` names.

    >>> import_object("polyseme.base.config:Config").__name__
    'Config'
    """
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)
