"""Write `src/polyseme/__init__.pyi`, the type stub of the public functions: `make stub`.

The functions that take settings (`train`, `pretrain`, ...) get one overload for each task or method, with every keyword
argument, its type and its default, so that editors complete them and type checkers check them. A test compares the file with
what this writes.
"""

from __future__ import annotations

import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from polyseme.api import public
from polyseme.base.config import Config
from polyseme.base.options import Option, options_of

Functions = Mapping[str, Sequence[public.Variant]]
STUB = Path(__file__).parents[1] / "src" / "polyseme" / "__init__.pyi"
HEAD = '''"""Types of the public functions. Written by scripts/write_stub.py (`make stub`); do not edit."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, overload

'''


def stub() -> str:
    """The text of the stub."""
    functions = public.overloads()
    lines = [f"from {home.partition(':')[0]} import {home.partition(':')[2]} as {name}" for name, home in _plain(functions)]
    lines += sorted({f"from {module} import {name}" for module, name in _needed(functions)})
    lines += ["", "__version__: str", "__all__: list[str]"]
    for name, variants in functions.items():
        for variant in variants:
            lines += ["", *(["@overload"] if len(variants) > 1 else []), _function(name, variant)]
    return HEAD + "\n".join(lines) + "\n"


def _plain(functions: Functions) -> list[tuple[str, str]]:
    """The public names whose own definition has all types."""
    return sorted((name, home) for name, home in public.HOMES.items() if name not in functions)


def _needed(functions: Functions) -> Iterable[tuple[str, str]]:
    """The types that the signatures name, and where they are defined."""
    for variant in (each for variants in functions.values() for each in variants):
        module = importlib.import_module(inspect.unwrap(variant.function).__module__)
        for parameter in _parameters(variant):
            for name in re.findall(r"[A-Z]\w+", "" if parameter.name in variant.literals else str(parameter.annotation)):
                if name in vars(module) and name not in ("Any", "Iterable", "Path", "Literal"):
                    yield module.__name__, name
        yield tuple(variant.returns.split(":"))  # type: ignore[misc]


def _parameters(variant: public.Variant) -> list[inspect.Parameter]:
    every = inspect.signature(variant.function).parameters.values()
    return [each for each in every if each.kind is not inspect.Parameter.VAR_KEYWORD]


def _function(name: str, variant: public.Variant) -> str:
    """One signature."""
    positional, keywords = [], []
    for each in _parameters(variant):
        default = "" if each.default is inspect.Parameter.empty else f" = {each.default!r}"
        text = f"{each.name}: {variant.literals.get(each.name, each.annotation)}{default}"
        (keywords if each.kind is inspect.Parameter.KEYWORD_ONLY else positional).append(text)
    own = {each.name for each in _parameters(variant)}
    for option in options_of(variant.configs).values():
        if option.name not in own:
            keywords.append(f"{option.name}: {_type(option.hint)} = {_default(option)}")
    inner = "".join(f"    {each},\n" for each in [*positional, "*", *keywords])
    return f"def {name}(\n{inner}) -> {variant.returns.partition(':')[2]}: ..."


def _type(hint: Any) -> str:
    """A type as source text; lists may be given as text with commas, paths as text.

    >>> _type(tuple[str, ...] | None)
    'str | Sequence[str] | None'
    """
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_type(each) for each in inner)
    if origin is typing.Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    if origin is tuple and inner[1:] == (Ellipsis,):
        return f"str | Sequence[{_type(inner[0])}]"
    if origin is tuple:
        return f"tuple[{', '.join(map(_type, inner))}]"
    if hint is type(None):
        return "None"
    return "str | Path" if hint is Path else str(hint.__name__)


def _default(option: Option) -> str:
    """A default as source text."""
    return "..." if isinstance(option.default, Config) else repr(option.default)


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
