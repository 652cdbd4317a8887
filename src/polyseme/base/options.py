"""Options: the settings of nested configs as one flat list of names.

Whoever trains a task thinks of one list of options; the settings belong to the configs of several parts. The name of an
option is the name of its field, unless the declaration says otherwise (`option=`). The command line, the keyword arguments
of `polyseme.train` and `polyseme.pretrain` and the type stubs all come from here.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

from polyseme.base.config import Config, ConfigError, Setting, hints_of, is_optional_number, setting_of
from polyseme.base.errors import UsageError, arg, nearest


@dataclasses.dataclass(frozen=True)
class Option:
    """One option, and the settings that it sets."""

    name: str
    """Keyword argument in Python; as a flag with dashes."""
    hint: Any
    default: Any
    declared: Setting
    paths: tuple[str, ...]
    """The fields that it sets: `task.features.dropout`."""


def options_of(configs: Mapping[str, Config]) -> dict[str, Option]:
    """All options of some configs, whose values are the defaults.

    >>> from polyseme.base.config import setting
    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class FitConfig(Config):
    ...     epochs: int = setting(50, "Passes over the data.")
    >>> options_of({"fit": FitConfig()})["epochs"].paths
    ('fit.epochs',)
    """
    found: dict[str, Option] = {}
    followers: list[tuple[str, str]] = []
    for path, hint, default, declared in _fields(configs):
        if declared.option is False:
            continue
        name = declared.option if isinstance(declared.option, str) else path.rpartition(".")[2]
        if name in found:
            found[name] = dataclasses.replace(found[name], paths=(*found[name].paths, path))
        else:
            found[name] = Option(name, hint, default, declared, (path,))
        if declared.also is not None:
            followers.append((declared.also, path))
    for name, path in followers:
        if name in found:
            found[name] = dataclasses.replace(found[name], paths=(*found[name].paths, path))
    return found


def _fields(configs: Mapping[str, Config]) -> Iterator[tuple[str, Any, Any, Setting]]:
    for above, config in configs.items():
        hints = hints_of(type(config))
        for field in dataclasses.fields(config):
            path, value = f"{above}.{field.name}", getattr(config, field.name)
            if isinstance(value, Config) and setting_of(field).option is None:  # else it is one option, as a whole
                yield from _fields({path: value})
            else:
                yield path, hints[field.name], value, setting_of(field)


def build(configs: Mapping[str, Config], given: Mapping[str, Any], what: str) -> dict[str, Config]:
    """The configs with the given options set; an option with its own name wins over one that sets it too.

    `what` the options belong to, for errors: the name of a task or a method.
    """
    known = options_of(configs)
    if unknown := [name for name in given if name not in known]:
        raise UsageError("; ".join(f"{what} has no option {arg(name)}{nearest(name, known)}" for name in unknown))
    values = {name: config.to_dict() for name, config in configs.items()}
    sets = {known[name].declared.one_of for name, value in given.items() if value is not None} - {None}
    given = {**{name: None for name, option in known.items() if option.declared.one_of in sets}, **given}
    for name in sorted(given, key=lambda name: -len(known[name].paths)):
        for path in known[name].paths:
            *above, last = path.split(".")
            inside: Any = values
            for step in above:
                inside = inside[step]
            inside[last] = _read(given[name], known[name])
    try:
        return {name: type(config).from_dict(values[name], "") for name, config in configs.items()}
    except ConfigError as error:
        raise UsageError(str(error)) from error


def _read(value: Any, option: Option) -> Any:
    """A value as JSON has it, from what Python or a command line gave."""
    if option.declared.parse is not None and isinstance(value, str):
        return option.declared.parse(value)
    return parsed(value, option.hint)


def parsed(value: Any, hint: Any) -> Any:
    """A value as JSON has it. Text for a list is divided at commas, and pairs in it at colons; "none" may stand for a number.

    >>> parsed("input,output", tuple[str, ...]), parsed("1:32,2:64", tuple[tuple[int, int], ...]), parsed("7", int | None)
    (['input', 'output'], [[1, 32], [2, 64]], 7)
    >>> parsed("0.9,0.95", tuple[float, float])
    [0.9, 0.95]
    >>> parsed("none", float | None), parsed("none", float), parsed("none", str | None)
    (None, 'none', 'none')
    """
    if isinstance(value, Config):
        return value.to_dict()
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        if is_optional_number(hint) and isinstance(value, str) and value.strip().lower() == "none":
            return None
        kinds = [each for each in typing.get_args(hint) if each is not type(None)]
        return parsed(value, kinds[0]) if len(kinds) == 1 and value is not None else value
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)
        if isinstance(value, str):
            value = value.split(":" if ":" in value and Ellipsis not in inner else ",")
        elif not isinstance(value, list | tuple):
            value = [value]
        kinds = [inner[0]] * len(value) if len(inner) == 2 and inner[1] is Ellipsis else [*inner, *[str] * len(value)]
        return [parsed(each, kind) for each, kind in zip(value, kinds, strict=False)]
    if typing.get_origin(hint) is typing.Literal:
        return next((each for each in typing.get_args(hint) if str(each) == str(value).strip()), value)
    if isinstance(value, str) and hint in (int, float):
        return _number(value.strip(), hint)
    if isinstance(value, int) and not isinstance(value, bool) and hint is str:
        return str(value)  # the number of a column
    return value.strip() if isinstance(value, str) else value


def _number(text: str, kind: type) -> Any:
    """Text as a number; text that is none stays, and the config refuses it."""
    try:
        return kind(text)
    except ValueError:
        return text
