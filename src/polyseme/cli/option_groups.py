"""Groups of options: a command takes one dataclass for many of them, and `command` shows typer its fields.

Ten commands that read and train would repeat fifteen options each by hand; as a group they are written once, with what they
mean: `TextOptions` in `text_options.py`, `TrainingOptions` in `training_options.py`, and one for each task.
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

from polyseme.cli import decoding_options, part_options

PANELS = [
    *(None, "Model", "Data", "Encoders", "Masking", "Subwords", "Text", "Budget", "Training", "Computing"),
    *(decoding_options.PANEL, part_options.PANEL),
]
"""Parts of a help text, from top to bottom."""


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function as typer takes it: the fields of its groups are parameters among its own, in the order of panels."""
    hints = typing.get_type_hints(function)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}

    def called(**values: Any) -> None:
        for name, kind in groups.items():
            fields = {field.name for field in dataclasses.fields(kind)}
            values[name] = kind(**{field: values.pop(field) for field in fields & values.keys()})
        function(**values)

    called.__name__, called.__doc__ = function.__name__, function.__doc__
    called.__signature__ = inspect.Signature(sorted(_parameters(function), key=_place))  # type: ignore[attr-defined]
    return called


def _parameters(owner: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Those of a function or a dataclass, with groups opened."""
    hints = typing.get_type_hints(owner, include_extras=True)
    for name, parameter in inspect.signature(owner).parameters.items():
        if dataclasses.is_dataclass(hints[name]):
            yield from _parameters(hints[name])
        else:
            yield parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY)


def _place(parameter: inspect.Parameter) -> int:
    (option, *_) = getattr(parameter.annotation, "__metadata__", (None,))  # typer's context is no option
    panel = getattr(option, "rich_help_panel", None)
    if panel not in PANELS:
        raise ValueError(
            f"the option {parameter.name} is in the panel {panel!r}, which PANELS in {__name__} lacks: put it there"
        )
    return PANELS.index(panel)
