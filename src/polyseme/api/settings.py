"""Keyword arguments from settings: a public function takes the settings of its configs by their plain names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from polyseme.base.config import Config
from polyseme.base.errors import UsageError
from polyseme.base.imports import import_object
from polyseme.base.options import build

R = TypeVar("R")


def with_settings(**homes: str) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Let a function take the settings of configs as keyword arguments.

    Each keyword names a parameter of the function and the class of its config, `module:Class`, which is imported when it is
    first needed. The type stubs list the settings one by one; `called.configs()` gives the configs with their defaults.
    """

    def defaults() -> dict[str, Config]:
        return {name: import_object(home)() for name, home in homes.items()}

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        signature = inspect.signature(function)
        names = [name for name in signature.parameters if name not in homes]
        unnamed = [name for name in names if signature.parameters[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]

        @functools.wraps(function)
        def called(*arguments: Any, **keywords: Any) -> R:
            if len(arguments) > len(unnamed):
                example = next((name for name in names if name not in {*unnamed, *keywords}), "NAME")
                only = f"only {' and '.join(unnamed)}" if unnamed else "no argument"
                raise UsageError(
                    f"{function.__name__} takes {only} without a name: give the others by name, such as "
                    f"{example}={arguments[len(unnamed)]!r:.40}"
                )
            given = {name: keywords.pop(name) for name in list(keywords) if name not in names}
            return function(*arguments, **build(defaults(), given, function.__name__), **keywords)

        kept = [parameter for name, parameter in signature.parameters.items() if name in names]
        called.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[*kept, inspect.Parameter("settings", inspect.Parameter.VAR_KEYWORD, annotation="Any")]
        )
        called.configs = defaults  # type: ignore[attr-defined]
        return called

    return decorate


def configs_of(function: Callable[..., Any]) -> Mapping[str, Config]:
    """The configs whose settings a function takes, with their defaults; none for a plain function."""
    defaults = getattr(function, "configs", None)
    return defaults() if defaults is not None else {}
