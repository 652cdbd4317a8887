"""Options of a comparison, for all experiments or for some.

    epochs=5                                all experiments
    ner:epochs=15                           those of a data set
    finetune:encoder_lr_multiplier=0.2      those with fine-tuned encoders; likewise frozen
    bert:batch_size=16                      those of a row of the table
    ner:finetune:epochs=4                   those that match both

The option with the most scopes wins.
"""

from __future__ import annotations

import typing
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyseme.base.errors import UsageError, arg, nearest
from polyseme.base.options import parsed
from polyseme.studies.finetuning import FINETUNE, FROZEN
from polyseme.tasks.base import Task
from polyseme.tasks.registry import FINETUNING, configure_task, task_options


def options_for(options: Mapping[str, Any], scopes: Collection[str]) -> dict[str, Any]:
    """Return the options of an experiment in some scopes, by their plain names.

    >>> options_for({"ner:epochs": 15, "epochs": 5, "nli:batch_size": 8}, {"ner", "none"})
    {'epochs': 15}
    """
    result: dict[str, Any] = {}
    for scoped in sorted(options, key=lambda scoped: scoped.count(":")):
        *scope, name = scoped.split(":")
        if set(scope) <= set(scopes):
            result[name] = options[scoped]
    return result


def check_scopes(options: Mapping[str, Any], scopes: Collection[str]) -> None:
    """Raise an error for an option with an unknown scope."""
    for scoped in options:
        *scope, _ = scoped.split(":")
        for each in scope:
            if each not in scopes:
                raise UsageError(f"{arg('option', scoped)}: there is no {each!r} in this comparison{nearest(each, scopes)}")


@dataclass(frozen=True)
class OptionUse:
    """The options of the experiments of a data set and a row."""

    set: str
    kind: type[Task]
    own: Mapping[str, Any]
    given: Mapping[str, Any]


def option_problems(uses: Sequence[OptionUse]) -> list[str]:
    """Return unknown names and refused values, each once, with the data sets that they are for."""
    known = {use.set: task_options(use.kind.kind) for use in uses}
    unknown: dict[str, dict[str, None]] = {}
    refused: dict[str, dict[str, None]] = {}
    hints: dict[str, set[str]] = {}
    for use in uses:
        for name in (name for name in use.given if name not in known[use.set]):
            unknown.setdefault(name, {})[use.set] = None
        try:
            configure_task(
                use.kind.kind, {**use.own, **{name: value for name, value in use.given.items() if name in known[use.set]}}
            )
        except UsageError as error:
            problem = str(error).removeprefix(use.kind.kind).lstrip(".: ")  # equal problems of several tasks are reported once
            refused.setdefault(problem, {})[use.set] = None
            hints.setdefault(problem, set()).add(_hint(use))
    problems = [_unknown(name, sets, known) for name, sets in unknown.items()]
    for problem, sets in refused.items():
        hint = hints[problem].pop() if len(hints[problem]) == 1 else ""  # the same in frozen and fine-tuned rows needs none
        problems.append(f"{', '.join(sets)}: {problem}{hint}")
    return problems


def _unknown(name: str, sets: Collection[str], known: Mapping[str, Collection[str]]) -> str:
    having = [each for each in known if name in known[each]]
    every = {each for names in known.values() for each in names}
    hint = f"; for a data set that has it: {having[0]}:{name}=VALUE" if having else nearest(name, every)
    return f"there is no option {name!r} for {', '.join(sets)}{hint}"


def _hint(use: OptionUse) -> str:
    """How an option is given to those rows alone that take it."""
    if use.given.get("mode") == FINETUNE:
        return f" (for frozen rows only: {FROZEN}:NAME=VALUE)"
    tuning = [name for name in FINETUNING if name in use.given]
    return f" (for fine-tuned rows only: {FINETUNE}:{tuning[0]}=VALUE)" if tuning else ""


def parse_lists(task: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with lists where the task has lists, which may be given as one value or divided by commas.

    >>> parse_lists("ner", {"positions": "input,output", "hidden_size": 5})
    {'positions': ['input', 'output'], 'hidden_size': 5}
    """
    known = task_options(task)
    return {
        name: parsed(value, known[name].hint) if name in known and typing.get_origin(known[name].hint) is tuple else value
        for name, value in options.items()
    }
