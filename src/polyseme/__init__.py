"""polyseme: contextual word representations that anyone can train on their own text and use today.

    import polyseme
    model = polyseme.load()
    vectors = model.embed(["The bank of the river .", "Money in the bank ."])

Names are imported when they are first used, so that `import polyseme` costs nothing. Their types are in `__init__.pyi`.
"""

from __future__ import annotations

import importlib
from typing import Any

from polyseme.api.public import HOMES

__version__ = "0.1.0"
__all__ = [*HOMES, "__version__"]


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module 'polyseme' has no attribute {name!r}")
    module, _, attribute = HOMES[name].partition(":")
    return getattr(importlib.import_module(module), attribute)


def __dir__() -> list[str]:
    return __all__
