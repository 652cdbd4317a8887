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
from polyseme.base.options import Option

Functions = Mapping[str, Sequence[public.Variant]]
STUB = Path(__file__).parents[1] / "src" / "polyseme" / "__init__.pyi"
MODULES = ("polyseme.nn.config",)
"""Modules of configs that are one option as a whole."""
HEAD = '''"""Types of the public functions. Written by scripts/write_stub.py (`make stub`); do not edit."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, overload

'''


def stub() -> str:
    """The text of the stub."""
    functions = public.overloads()
    lines = [f"from {home.partition(':')[0]} import {home.partition(':')[2]} as {name}" for name, home in _plain(functions)]
    taken = {name for name, _ in _plain(functions)}
    needed = {name: module for module, name in _needed(functions) if name not in taken}
    lines += sorted(f"from {module} import {name}" for name, module in needed.items())
    lines += [f"import {module}" for module in MODULES]
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
            for name in re.findall(r"[A-Z]\w+", "" if parameter.name in variant.types else str(parameter.annotation)):
                if name in vars(module) and name not in ("Any", "Iterable", "Path", "Literal"):
                    yield module.__name__, name
        home, name = re.search(r"([\w.]+):(\w+)", variant.returns).groups()  # type: ignore[union-attr]
        yield home, name


def _parameters(variant: public.Variant) -> list[inspect.Parameter]:
    every = inspect.signature(variant.function).parameters.values()
    return [each for each in every if each.kind is not inspect.Parameter.VAR_KEYWORD]


def _function(name: str, variant: public.Variant) -> str:
    """One signature."""
    positional, keywords = [variant.leading] if variant.leading else [], list[str]()
    for each in _parameters(variant):
        needed = each.default is inspect.Parameter.empty or each.name in variant.required
        default = "" if needed else f" = {each.default!r}"
        text = f"{each.name}: {variant.types.get(each.name, each.annotation)}{default}"
        (keywords if each.kind is inspect.Parameter.KEYWORD_ONLY else positional).append(text)
    own = {each.name for each in _parameters(variant)}
    for option in variant.options.values():
        if option.name not in own:
            keywords.append(f"{option.name}: {_option_type(option)} = {_default(option)}")
    if variant.required:
        keywords.append("**settings: Any")
    inner = "".join(f"    {each},\n" for each in [*positional, "*", *keywords])
    returns = re.sub(r"[\w.]+:", "", variant.returns)
    return f"def {name}(\n{inner}) -> {returns}: ..."


def _option_type(option: Option) -> str:
    """The type of an option; a number with a unit may be given as text."""
    kind = _type(option.hint)
    return f"{kind} | str" if option.declared.parse is not None and kind in ("int", "float") else kind


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
    if isinstance(hint, type) and issubclass(hint, Config):
        return f"{hint.__module__}.{hint.__name__}"
    return "str | Path" if hint is Path else str(hint.__name__)


def _default(option: Option) -> str:
    """A default as source text; dots where it is a config, or depends on the model."""
    optional = type(None) in typing.get_args(option.hint)
    hidden = isinstance(option.default, Config) or (option.default is None and not optional)
    return "..." if hidden else repr(option.default)


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
