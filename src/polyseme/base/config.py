"""Configs: frozen, keyword-only dataclasses whose settings are declared once.

A setting is one line: name, type, default, help, range, group. From it come the checks of its value, the options of the
command line with their help, the keyword arguments in Python and the strict reading from JSON. Chosen against a
configuration library: all of it is a walk over type hints. All problems are reported at once, and an unknown key comes with
the nearest known one, because a misspelt option that is silently ignored costs a training run.
"""

from __future__ import annotations

import contextlib
import dataclasses
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from polyseme.base import format1
from polyseme.base.errors import FormatError, PolysemeError, arg, nearest


class ConfigError(PolysemeError):
    """A config that cannot be used; the text lists every problem."""


@contextlib.contextmanager
def config_errors_of(path: str | Path) -> Iterator[None]:
    """Turn config errors into format errors that name a file."""
    try:
        yield
    except ConfigError as error:
        raise FormatError(path, str(error)) from error


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What is declared of a setting besides its name, type and default.

    `min` and `max` are allowed values themselves; `above` and `below` are not. `group`: panel of the help page. `metavar`: what
    stands for the value in the help. `flags`: short ones, such as `-n`.
    """

    help: str = ""
    """One or two sentences for `--help` and the documentation; without the default, which is added."""
    min: float | None = None
    max: float | None = None
    above: float | None = None
    below: float | None = None
    group: str | None = None
    metavar: str | None = None
    flags: tuple[str, ...] = ()
    option: str | bool | None = None
    """Name as a keyword argument and flag, where it is not the field's; False: internal, no option."""
    also: str | None = None
    """Another option that sets this field too, unless its own is given."""
    default_text: str | None = None
    """What the default means, where it is None."""
    one_of: str | None = None
    """Name of a set of settings of which one is given: to give one as an option clears the defaults of the others."""
    repeat: bool = False
    """Whether the option is given once for each entry of a list, whose text may have commas."""
    parse: Callable[[str], Any] | None = None
    """Reads the value from text, of a command line or of Python, where its type does not say how."""

    def range(self) -> str:
        """The allowed numbers in words; empty where all are allowed.

        >>> Setting(min=1).range(), Setting(above=0, max=1).range(), Setting(min=0, below=1).range()
        ('1 or more', 'above 0, at most 1', '0 or more, below 1')
        """
        if self.min is not None and self.max is not None:
            return f"{self.min:g} to {self.max:g}"
        ends = {"{:g} or more": self.min, "above {:g}": self.above, "at most {:g}": self.max, "below {:g}": self.below}
        return ", ".join(text.format(end) for text, end in ends.items() if end is not None)

    def allows(self, value: float) -> bool:
        """Whether a number lies in the range; NaN never does."""
        return (
            value == value
            and (self.min is None or value >= self.min)
            and (self.above is None or value > self.above)
            and (self.max is None or value <= self.max)
            and (self.below is None or value < self.below)
        )


def setting(
    default: Any = dataclasses.MISSING, help: str = "", *, factory: Callable[[], Any] | None = None, **declared: Any
) -> Any:
    """Declare a setting of a `Config`: its default, its help, and the fields of `Setting`.

    >>> @dataclasses.dataclass(frozen=True, kw_only=True)
    ... class FitConfig(Config):
    ...     batch_size: int = setting(32, "Examples per batch.", min=1)
    >>> FitConfig(batch_size=0)
    Traceback (most recent call last):
    polyseme.base.config.ConfigError: batch_size is 0; allowed: 1 or more
    """
    metadata = {"setting": Setting(help=help, **declared)}
    if factory is not None:
        return dataclasses.field(default_factory=factory, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def setting_of(field: dataclasses.Field[Any]) -> Setting:
    return field.metadata.get("setting", Setting())


_HINTS: dict[type, dict[str, Any]] = {}


def hints_of(config: type) -> dict[str, Any]:
    if config not in _HINTS:
        _HINTS[config] = typing.get_type_hints(config)
    return _HINTS[config]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config:
    """The base of all configs.

    A subclass is a frozen keyword-only dataclass whose fields are plain JSON values, tuples, or further `Config`s. Ranges
    and choices are checked from the declarations; `problems` checks what depends on several fields.
    """

    def __post_init__(self) -> None:
        problems = list(_declared_problems(self)) or list(self.problems())
        if problems:
            raise ConfigError("; ".join(problems))

    def problems(self) -> Iterable[str]:
        """What is wrong with the fields together, a sentence each."""
        return ()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "config", *, format: int = 2) -> Self:
        """Build a config from parsed JSON, or raise one `ConfigError` that names every problem.

        `format`: of the folder that it comes from; the names of format 1 are in `polyseme.base.format1`.
        """
        problems: list[str] = []
        result = _build(cls, values, where, problems, format)
        if problems:
            raise ConfigError("; ".join(problems))
        return typing.cast(Self, result)

    def to_dict(self, *, format: int = 2) -> dict[str, Any]:
        """Plain JSON values; `from_dict(to_dict())` gives an equal config. `format=1`: under the old names, for hashes."""
        values = {field.name: _plain(getattr(self, field.name), format) for field in dataclasses.fields(self)}
        return format1.restore(type(self).__name__, values) if format == 1 else values

    def replace(self, **changes: Any) -> Self:
        return dataclasses.replace(self, **changes)


def check_value(name: str, value: Any, hint: Any, declared: Setting) -> str | None:
    """What is wrong with the value of a setting; None: nothing.

    >>> check_value("epochs", 0, int, Setting(min=1))
    'epochs is 0; allowed: 1 or more'
    """
    choices = choices_of(hint)
    for each in value if isinstance(value, tuple | list) else (value,):
        if choices and isinstance(each, str) and each not in choices:
            return f"{arg(name)} is {each!r}; allowed: {', '.join(map(str, choices))}"
        if isinstance(each, int | float) and not isinstance(each, bool) and not declared.allows(each):
            return f"{arg(name)} is {each}; allowed: {declared.range() or 'numbers'}"
    return None


def choices_of(hint: Any) -> tuple[Any, ...]:
    """The allowed names where the type is a `Literal`, or a tuple or an optional of one; nothing for other types.

    >>> choices_of(typing.Literal["a", "b"] | None)
    ('a', 'b')
    """
    if typing.get_origin(hint) is typing.Literal:
        return typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType, tuple):
        inner = [choices_of(each) for each in typing.get_args(hint) if each not in (type(None), Ellipsis)]
        return sum(inner, ()) if all(inner) else ()
    return ()


def is_optional_number(hint: Any) -> bool:
    """Whether a type is a number or None: on the command line None is `none`."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return union and set(typing.get_args(hint)) in ({int, type(None)}, {float, type(None)})


def _declared_problems(config: Config) -> Iterator[str]:
    hints = hints_of(type(config))
    for field in dataclasses.fields(config):
        declared = setting_of(field)
        name = declared.option if isinstance(declared.option, str) else field.name
        problem = check_value(name, getattr(config, field.name), hints[field.name], declared)
        if problem is not None:
            yield problem


def _plain(value: Any, format: int) -> Any:
    if isinstance(value, Config):
        return value.to_dict(format=format)
    if isinstance(value, tuple):
        return [_plain(item, format) for item in value]
    return value


def _build(cls: type, values: Any, where: str, problems: list[str], format: int) -> Any:
    if not isinstance(values, Mapping):
        problems.append(f"{where or cls.__name__} is {values!r}; expected an object with the fields of {cls.__name__}")
        return None
    if format == 1:
        values = format1.translate(cls.__name__, values)
    fields = {field.name: field for field in dataclasses.fields(cls)}
    hints = hints_of(cls)
    known = len(problems)
    for name in values:
        if name not in fields:
            table = "; the names of format 1 are in polyseme.base.format1" if format == 1 else ""
            problems.append(f"{where} has an unknown field {name!r}{nearest(str(name), fields)}{table}".lstrip())
    given: dict[str, Any] = {}
    for name, field in fields.items():
        if name in values:
            given[name] = convert(hints[name], values[name], _location(where, field, hints[name]), problems, format)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            problems.append(f"{where} lacks the field {name!r}".lstrip())
    if len(problems) > known:
        return None
    try:
        return cls(**given)
    except ConfigError as error:
        problems.append(f"{where}: {error}" if where else str(error))
        return None


def _location(where: str, field: dataclasses.Field[Any], hint: Any) -> str:
    """How a message names a field: by its path in a file; by its option where there is no file.

    A nested config without a file has no name: its fields are options themselves.
    """
    if where:
        return f"{where}.{field.name}"
    if any(isinstance(each, type) and issubclass(each, Config) for each in (hint, *typing.get_args(hint))):
        return ""
    option = setting_of(field).option
    return arg(option if isinstance(option, str) else field.name)


def convert(hint: Any, value: Any, where: str, problems: list[str], format: int = 2) -> Any:
    """A JSON value as a type; what does not fit is added to `problems`, with `where` it stands."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(hint, value, where, problems, format)
    if origin is typing.Literal:
        if value not in arguments:
            problems.append(f"{where} is {value!r}; allowed: {', '.join(map(str, arguments))}")
        return value
    if origin is tuple:
        return _convert_tuple(arguments, value, where, problems, format)
    if isinstance(hint, type) and issubclass(hint, Config):
        return _build(hint, value, where, problems, format)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (isinstance(value, bool) and hint is not bool):
        problems.append(f"{where} is {value!r}; expected {_TYPES.get(hint, hint.__name__)}")
    return value


_TYPES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _convert_union(hint: Any, value: Any, where: str, problems: list[str], format: int) -> Any:
    """The first of several types that a value fits; where it fits none, the problems of the first."""
    arguments = typing.get_args(hint)
    if value is None and type(None) in arguments:
        return None
    first: list[str] | None = None
    for each in (each for each in arguments if each is not type(None)):
        found: list[str] = []
        result = convert(each, value, where, found, format)
        if not found:
            return result
        first = found if first is None else first
    problems += [f"{each} or none" if is_optional_number(hint) else each for each in first or []]
    return value


def _convert_tuple(arguments: tuple[Any, ...], value: Any, where: str, problems: list[str], format: int) -> Any:
    if not isinstance(value, list | tuple):
        problems.append(f"{where} is {value!r}; expected a list")
        return value
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(arguments) != len(value):
        problems.append(f"{where} has {len(value)} entries; expected {len(arguments)}")
        return value
    return tuple(
        convert(hint, item, f"{where}[{i}]", problems, format)
        for i, (hint, item) in enumerate(zip(arguments, value, strict=True))
    )
