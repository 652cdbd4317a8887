"""Options of a comparison, for every experiment or for some.

    epochs=5                    every experiment
    ner:epochs=15               those of one labelled set
    finetune:encoder_lr_multiplier=0.2   those whose encoders are fine-tuned; likewise frozen
    bert:batch_size=16          those of one row of the table
    ner:finetune:epochs=4       those that go by all these words

Where several say something of one option, the one with most words counts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from polyseme.base.errors import UsageError, nearest
from polyseme.studies.finetuning import FROZEN, TUNED
from polyseme.studies.train import configured, option_names
from polyseme.tasks.base import Task
from polyseme.tasks.registry import FINETUNING


def parse_option(text: str) -> tuple[str, Any]:
    """A name with the words before it, and a value as JSON has it; what is no JSON is a string.

    >>> parse_option("ner:epochs=15"), parse_option("norm=bilm")
    (('ner:epochs', 15), ('norm', 'bilm'))
    """
    name, equals, value = text.partition("=")
    if not equals or not all(name.split(":")):
        raise UsageError(f"--option is {text!r}; expected a name and a value, such as epochs=5 or ner:epochs=5")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def options_for(options: Mapping[str, Any], words: Collection[str]) -> dict[str, Any]:
    """The options of an experiment that goes by some words, by their plain names.

    >>> options_for({"ner:epochs": 15, "epochs": 5, "nli:batch_size": 8}, {"ner", "none"})
    {'epochs': 15}
    """
    found: dict[str, Any] = {}
    for scoped in sorted(options, key=lambda scoped: scoped.count(":")):
        *scope, name = scoped.split(":")
        if set(scope) <= set(words):
            found[name] = options[scoped]
    return found


def check_scopes(options: Mapping[str, Any], words: Collection[str]) -> None:
    """Complain about options for experiments that there are not."""
    for scoped in options:
        *scope, _ = scoped.split(":")
        for word in scope:
            if word not in words:
                raise UsageError(f"--option {scoped}: there is no {word!r} in this comparison{nearest(word, words)}")


@dataclass(frozen=True)
class OptionUse:
    """Options as the experiments of a set and a row have them."""

    set: str
    kind: type[Task]
    own: Mapping[str, Any]
    """The set's."""
    given: Mapping[str, Any]
    """That differ from them."""


def option_problems(uses: Sequence[OptionUse]) -> list[str]:
    """What is wrong with options: names that a task lacks, and values that it refuses; each told once, with its sets."""
    known = {use.set: option_names(use.kind) for use in uses}
    lacking: dict[str, dict[str, None]] = {}
    refused: dict[str, dict[str, None]] = {}
    for use in uses:
        for name in (name for name in use.given if name not in known[use.set]):
            lacking.setdefault(name, {})[use.set] = None
        try:
            configured(use.kind, {**use.own, **{name: value for name, value in use.given.items() if name in known[use.set]}})
        except UsageError as error:
            refused.setdefault(_without_kind(use, error), {})[use.set] = None
    told = [_lacking(name, sets, known) for name, sets in lacking.items()]
    return told + [f"{', '.join(sets)}: {what}" for what, sets in refused.items()]


def _lacking(name: str, sets: Collection[str], known: Mapping[str, Collection[str]]) -> str:
    having = [each for each in known if name in known[each]]
    hint = (
        f"; for a set that has it: {having[0]}:{name}=VALUE"
        if having
        else nearest(name, {n for each in known.values() for n in each})
    )
    return f"there is no option {name!r} for {', '.join(sets)}{hint}"


def _without_kind(use: OptionUse, error: UsageError) -> str:
    """What a config complains of, without the task's name, so that tasks that complain of the same are told together."""
    hint = ""
    if use.given.get("mode") == TUNED:
        hint = f" (for frozen rows alone: {FROZEN}:NAME=VALUE)"
    elif tuning := [name for name in FINETUNING if name in use.given]:
        hint = f" (for fine-tuned rows alone: {TUNED}:{tuning[0]}=VALUE)"
    return str(error).removeprefix(use.kind.kind).lstrip(".: ") + hint
