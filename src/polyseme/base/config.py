"""Configurations: frozen, keyword-only dataclasses that read themselves strictly from JSON.

Chosen against a configuration library: the whole of it is a walk over type hints. All mistakes are reported at once, and
an unknown key comes with the nearest known one, because a misspelt option that is silently ignored costs a training run.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, Self

from polyseme.base.errors import PolysemeError, nearest


class ConfigError(PolysemeError):
    """A configuration that cannot be used; the text lists every mistake."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """The base of all configurations.

    A subclass is a frozen keyword-only dataclass whose fields are plain JSON values, tuples, or further `Config`s.
    """

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "config") -> Self:
        """Build it from parsed JSON, or raise one `ConfigError` that names every mistake in it."""
        mistakes: list[str] = []
        result = _build(cls, values, where, mistakes)
        if mistakes:
            raise ConfigError("; ".join(mistakes))
        return typing.cast(Self, result)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `from_dict(to_dict())` gives an equal config."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return dataclasses.replace(self, **changes)


def _plain(value: Any) -> Any:
    if isinstance(value, Config):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value


def _build(cls: type, values: Any, where: str, mistakes: list[str]) -> Any:
    if not isinstance(values, Mapping):
        mistakes.append(f"{where} is {values!r}; expected an object with the fields of {cls.__name__}")
        return None
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    known = len(mistakes)
    for name in values:
        if name not in fields:
            mistakes.append(f"{where} has an unknown field {name!r}{nearest(str(name), fields)}")
    given: dict[str, Any] = {}
    for name, field in fields.items():
        if name in values:
            given[name] = _convert(hints[name], values[name], f"{where}.{name}", mistakes)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            mistakes.append(f"{where} lacks the field {name!r}")
    if len(mistakes) > known:
        return None
    try:
        return cls(**given)
    except ConfigError as error:
        mistakes.append(f"{where}: {error}")
        return None


def _convert(hint: Any, value: Any, where: str, mistakes: list[str]) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(next(part for part in arguments if part is not type(None)), value, where, mistakes)
    if origin is typing.Literal:
        if value not in arguments:
            mistakes.append(f"{where} is {value!r}; allowed: {', '.join(map(repr, arguments))}")
        return value
    if origin is tuple:
        return _convert_tuple(arguments, value, where, mistakes)
    if isinstance(hint, type) and issubclass(hint, Config):
        return _build(hint, value, where, mistakes)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        mistakes.append(f"{where} is {value!r}; expected {hint.__name__}")
    return value


def _convert_tuple(arguments: tuple[Any, ...], value: Any, where: str, mistakes: list[str]) -> Any:
    if not isinstance(value, list | tuple):
        mistakes.append(f"{where} is {value!r}; expected a list")
        return value
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(arguments) != len(value):
        mistakes.append(f"{where} has {len(value)} entries; expected {len(arguments)}")
        return value
    return tuple(
        _convert(hint, item, f"{where}[{i}]", mistakes) for i, (hint, item) in enumerate(zip(arguments, value, strict=True))
    )
