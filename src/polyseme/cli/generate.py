"""Commands made from Python functions: parameters and settings become options, results are printed.

A function of `polyseme.api` says with `Annotated[type, Setting(...)]` what each parameter means; a config says it with
`setting(...)`. Nothing is declared twice: names, types, defaults and help all come from there. Positional parameters become
arguments, keyword-only ones options. Only options that were given are handed on, so the function's own defaults hold.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from polyseme.api.models import ModelRequest, load
from polyseme.api.settings import configs_of
from polyseme.base.config import Config, Setting, check_value, choices_of, convert
from polyseme.base.errors import UsageError, arg
from polyseme.base.options import Option, options_of, parsed
from polyseme.cli.show import show_result

PANELS = (
    *(
        None,
        "Data",
        "Text",
        "Filters",
        "Model",
        "Encoders",
        "Word features",
        "Subwords",
        "Masking",
        "Budget",
        "Training",
        "Decoding",
    ),
    *("Architecture", "Forecast", "Network", "Limits", "Dataset", "Many machines", "Computing", "Logs"),
)
"""Panels of a help page, from top to bottom."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Verb:
    """A command: the function that it calls, and what the command line adds to it."""

    function: Callable[..., Any]
    """Called with the options that were given."""
    name: str
    help: str = ""
    """First sentences of the help page; empty: those of the function."""
    examples: Sequence[str] = ()
    """Commands for the help page."""
    fixed: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Parameters that the command gives itself: the task of `train tagging`."""
    options: Callable[[], Mapping[str, Option]] | None = None
    """Settings that are options too; None: those of the function's configs."""
    loads: bool = False
    """Whether the parameter `model` is loaded; the keyword arguments of `load` are options too."""
    lines: Callable[[Sequence[str] | None, Path | None], Any] | None = None
    """Makes lines of TEXT arguments or of `--input`, for the parameter `texts`."""
    json: bool = True
    """Whether there is `--json`."""
    shown: int | None = None
    """How many lines of a file a terminal shows; None: all. Texts that are given as arguments are all shown."""
    hidden: bool = False
    """Whether the list of verbs leaves it out: another name of one."""

    def command(self, *, options: bool = True) -> Callable[..., None]:
        """The function that typer calls; without `options` only its help, for a list of verbs."""
        parameters = {parameter.name: parameter for parameter in self.parameters()} if options else {}

        def called(**values: Any) -> None:
            as_json = values.pop("json", False)
            given = {name: parameters[name].read(value) for name, value in values.items() if value not in (None, [], ())}
            problems = [parameters[name].problem(value) for name, value in given.items()]
            if any(problems):
                raise UsageError("; ".join(filter(None, problems)))
            most = None if given.get("texts") else self.shown
            if self.lines is not None:
                given["texts"] = self.lines(given.pop("texts", None), given.pop("input", None))
            if self.loads:
                options = {each.name: given.pop(each.name) for each in self._load_parameters() if each.name in given}
                named = "model" in given
                given["model"] = ModelRequest(given.pop("model", "en"), options, named)
            show_result(self.function(**self.fixed, **given), json=as_json, most=most)

        called.__name__, called.__doc__ = self.name, self.description()
        ordered = sorted(parameters.values(), key=lambda each: PANELS.index(each.declared.group))
        signature = [parameter.typed() for parameter in ordered]
        if self.json:
            signature.insert(0, JSON)
        called.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
        return called

    def parameters(self) -> Iterable[Parameter]:
        """Its arguments and options, for the help page and the reference of the site."""
        for parameter in _signature(self.function):
            if parameter.name not in self.fixed:
                yield (
                    parameter
                    if self.lines is None
                    else dataclasses.replace(parameter, required=parameter.required and parameter.name != "texts")
                )
        if self.lines is not None:
            yield Parameter("input", Path, None, _INPUT, argument=False)
        yield from self._load_parameters()
        yield from map(Parameter.of_option, self._options())

    def _load_parameters(self) -> list[Parameter]:
        """Those of `load`, except what the function itself has under the same name: the device to train on."""
        own = {each.name for each in _signature(self.function)} | {each.name for each in self._options()} | {"model"}
        return [each for each in _signature(load) if each.name not in own] if self.loads else []

    def _options(self) -> list[Option]:
        """The settings that are no parameters of the function."""
        options = self.options() if self.options is not None else options_of(configs_of(self.function))
        names = {each.name for each in _signature(self.function)} | set(self.fixed)
        return [each for each in options.values() if each.name not in names and not isinstance(each.default, Config)]

    def description(self) -> str:
        text = self.help or (inspect.getdoc(self.function) or "").partition("\n\n>>>")[0]
        if not self.examples:
            return text
        title = "Example" if len(self.examples) == 1 else "Examples"
        return "\n\n".join([text, f"{title}:", *(f"    {example}" for example in self.examples)])


@dataclasses.dataclass(frozen=True)
class Parameter:
    """One option or argument of a command."""

    name: str
    hint: Any
    default: Any
    declared: Setting
    argument: bool
    required: bool = False

    @classmethod
    def of_option(cls, option: Option) -> Parameter:
        return cls(option.name, option.hint, option.default, option.declared, argument=False)

    def read(self, value: Any) -> Any:
        """What the function gets for the text that typer read."""
        if isinstance(value, list):  # a repeated option: a comma is part of its text
            return value if self.declared.repeat else [self.read(each) for each in value]
        if self.declared.parse is not None and isinstance(value, str):
            return self.declared.parse(value)
        hint = _without_none(self.hint)
        return Path(value) if hint is Path else parsed(value, self.hint) if _is_plain(hint) else value

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value; None: nothing."""
        problems = list[str]()
        if self.declared.parse is None and _is_plain(_without_none(self.hint)):
            convert(self.hint, value, arg(self.name), problems)
        return check_value(self.name, value, self.hint, self.declared) or next(iter(problems), None)

    def typed(self) -> inspect.Parameter:
        """As typer takes it. Every option is None until it is given; the help says the default."""
        hint, declared = _without_none(self.hint), self.declared
        kind = list[str] if declared.repeat else _typer_type(hint)
        flag = self.name.replace("_", "-")
        metavar = declared.metavar if declared.metavar is not None else _metavar(hint)
        common: dict[str, Any] = {"help": self.description(), "metavar": metavar, "show_default": False}
        if self.argument:
            info: Any = typer.Argument(**{**common, "metavar": declared.metavar or self.name.upper()})
        else:
            switch = f"--{flag}/--no-{flag}" if kind is bool and self.default is not False else f"--{flag}"
            info = typer.Option(switch, *declared.flags, rich_help_panel=declared.group, **common)
        default = ... if self.required else None
        hinted = kind if self.required else kind | None
        return inspect.Parameter(self.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[hinted, info])

    def description(self) -> str:
        notes = [self.declared.range()]
        if self.default is None and self.declared.default_text is not None:
            notes.append(f"default: {self.declared.default_text}")
        elif not self.required and not (self.default is None or self.default is False or self.default in ((), "")):
            notes.append(f"default: {_text(self.default)}")
        shown = "; ".join(filter(None, notes))
        return _escaped(f"{self.declared.help} [{shown}]" if shown else self.declared.help)


JSON = inspect.Parameter(
    "json",
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[bool, typer.Option("--json", help="Print JSON, for programs.", metavar="")],
)
_INPUT = Setting(
    help="Text file with one sentence per line, plain or compressed; - is standard input.", metavar="FILE", flags=("-i",)
)
_LONG_NUMBER = 10_000
"""From here on a comma parts the thousands of a default; a port, 8000, has none."""
_METAVARS = {bool: "", int: "N", float: "NUMBER", str: "TEXT", Path: "FILE"}


@functools.cache
def _signature(function: Callable[..., Any]) -> list[Parameter]:
    """The parameters of a function that have a declaration."""
    function = inspect.unwrap(function)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        hint, *metadata = _annotated(_evaluated(parameter.annotation, function.__globals__))
        declared = next((each for each in metadata if isinstance(each, Setting)), None)
        if declared is None or declared.option is False:
            continue
        required = parameter.default is inspect.Parameter.empty
        positional = parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        found.append(Parameter(name, hint, None if required else parameter.default, declared, positional, required))
    return found


def _evaluated(annotation: Any, names: dict[str, Any]) -> Any:
    """The type of a parameter; None for one that only type checkers know, which is no option."""
    try:
        return eval(annotation, names) if isinstance(annotation, str) else annotation
    except NameError:
        return None


def _annotated(hint: Any) -> tuple[Any, ...]:
    """A type and its declarations, also where the declared type is optional."""
    if typing.get_origin(hint) is Annotated:
        return typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for each in typing.get_args(hint):
            if typing.get_origin(each) is Annotated:
                return typing.get_args(each)
    return (hint,)


def _without_none(hint: Any) -> Any:
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        kinds = [each for each in typing.get_args(hint) if each is not type(None)]
        return kinds[0] if len(kinds) == 1 else hint
    return hint


def _typer_type(hint: Any) -> Any:
    """The type that typer reads: switches, repeated options, and text, which `read` parses and `problem` checks."""
    if typing.get_origin(hint) in (list, Sequence, typing.get_origin(Sequence[str])):
        return list[str]
    return bool if hint is bool else str


def _is_plain(hint: Any) -> bool:
    """Whether a type is a number, a name, or a tuple of these."""
    if typing.get_origin(hint) is tuple:
        return all(_is_plain(each) for each in typing.get_args(hint) if each is not Ellipsis)
    return hint in (int, float, str) or typing.get_origin(hint) is typing.Literal


def _metavar(hint: Any, between: str = ",") -> str:
    """What the help shows for a value.

    >>> _metavar(typing.Literal["top", "mix"]), _metavar(tuple[float, float]), _metavar(tuple[tuple[int, int], ...])
    ('top|mix', 'NUMBER,NUMBER', 'N:N,...')
    """
    inner = typing.get_args(hint)
    if typing.get_origin(hint) is tuple:
        return f"{_metavar(inner[0], ':')},..." if Ellipsis in inner else between.join(map(_metavar, inner))
    return "|".join(map(str, choices_of(hint))) or _METAVARS.get(hint, "TEXT")


def _escaped(text: str) -> str:
    """Text for the help, which is rendered as markdown: `<unk>` would be a tag, and `:train:` a picture.

    >>> print(_escaped("Words are <unk>. TASK:TRAIN:DEV"))
    Words are \\<unk>. TASK\\:TRAIN\\:DEV
    """
    pieces = text.split("`")
    pieces[::2] = [re.sub(r"<|:(?=\S)", r"\\\g<0>", each) for each in pieces[::2]]
    return "`".join(pieces)


def _text(value: Any) -> str:
    """A default for the help: lists as they are given on the command line."""
    if isinstance(value, tuple | list):
        return ",".join(":".join(map(str, each)) if isinstance(each, tuple | list) else str(each) for each in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) and abs(value) >= _LONG_NUMBER else str(value)
