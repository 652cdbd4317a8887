"""Write `src/polyseme/__init__.pyi`, the type stub of the public functions: `make stub`.

The functions that take settings (`train`, `pretrain`, ...) get one overload for each task or method, with every keyword
argument, its type and its default, so that editors complete them and type checkers check them. A test compares the file with
what this writes.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path

from polyseme.api import public
from polyseme.base.options import options_of

STUB = Path(__file__).parents[1] / "src" / "polyseme" / "__init__.pyi"
HEAD = '''"""Types of the public functions. Written by scripts/write_stub.py (`make stub`); do not edit."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, overload

'''


def stub() -> str:
    """The text of the stub."""
    parts = [*_imports(), "", "__version__: str", "__all__: list[str]", ""]
    for name, variants in public.overloads().items():
        several = len(variants) > 1
        for variant in variants:
            parts += (["@overload"] if several else []) + [_function(name, variant)]
    return HEAD + "\n".join(parts) + "\n"


def _imports() -> Iterable[str]:
    overloaded = public.overloads()
    for name, home in sorted(public.HOMES.items()):
        module, _, attribute = home.partition(":")
        if name not in overloaded:
            yield f"from {module} import {attribute} as {name}"
    for module in sorted({variant.function.__module__ for variants in overloaded.values() for variant in variants}):
        names = sorted(_aliases(module, overloaded))
        yield f"from {module} import {', '.join(names)}" if names else f"import {module}"
    yield from sorted({f"from {home} import {name} as {name}" for home, name in _results(overloaded)})


def _function(name: str, variant: public.Variant) -> str:
    parameters, star = [], False
    for each in inspect.signature(variant.function).parameters.values():
        if each.kind is inspect.Parameter.VAR_KEYWORD or each.name in variant.hidden:
            continue
        if each.kind is inspect.Parameter.KEYWORD_ONLY and not star:
            parameters, star = [*parameters, "*"], True
        annotation = variant.literals.get(each.name, each.annotation)
        default = "" if each.default is inspect.Parameter.empty else f" = {each.default!r}"
        parameters.append(f"{each.name}: {annotation}{default}")
    own = set(inspect.signature(variant.function).parameters)
    options = [option for option in options_of(variant.configs).values() if option.name not in own]
    if options and not star:
        parameters.append("*")
    parameters += [f"{option.name}: {hint_text(option.hint)} = {_default(option)}" for option in options]
    inner = "".join(f"    {each},\n" for each in parameters)
    return f"def {name}(\n{inner}) -> {variant.returns}: ..."
