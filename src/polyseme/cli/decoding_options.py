"""Options that say how a task that writes text makes its answers: the fields of `DecodingConfig`, by their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.base.errors import UsageError

if TYPE_CHECKING:
    from polyseme.tasks.base import Task

PANEL = "Decoding, of generation; not given: as trained"


class Way(StrEnum):
    """How answers are found."""

    beam = "beam"
    sample = "sample"


ONLY = {
    "beam": ("num_beams", "length_penalty"),
    "sample": ("temperature", "top_k", "top_p", "sampling_seed"),
}
"""Options that one way alone has."""


def _option(name: str, *, help: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=help, metavar=metavar, rich_help_panel=PANEL, show_default=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """How an answer is made; what is None stays as it was. The ranges are the config's to check."""

    strategy: Annotated[
        Way | None, _option("--strategy", help="The likeliest that a beam search finds, or drawn at random.")
    ] = None
    num_beams: Annotated[int | None, _option("--num-beams", help="Beam: answers followed at a time; 1: greedy.")] = None
    length_penalty: Annotated[
        float | None, _option("--length-penalty", help="Beam: 0 prefers short answers, above 1 long ones.")
    ] = None
    temperature: Annotated[float | None, _option("--temperature", help="Samples: below 1 the likely becomes likelier.")] = None
    top_k: Annotated[
        int | None, _option("--top-k", metavar="WORDS", help="Samples: draw from so many of the likeliest words; 0: all.")
    ] = None
    top_p: Annotated[
        float | None,
        _option("--top-p", metavar="SHARE", help="Samples: draw from the fewest words that together have this probability."),
    ] = None
    sampling_seed: Annotated[
        int | None, _option("--sampling-seed", metavar="SEED", help="Samples: the same text and seed give the same answers.")
    ] = None
    max_length: Annotated[int | None, _option("--max-length", metavar="WORDS", help="Words of an answer, at most.")] = None

    def set_on(self, task: Task) -> None:
        """Let the task decode so."""
        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        if not given:
            return
        from polyseme.base.config import ConfigError
        from polyseme.tasks.generation import Generation

        if not isinstance(task, Generation):
            writers = f"of tasks that write text ({Generation.kind}), but this one is {task.kind}"
            raise UsageError(f"{_named(given)}: {writers}; leave it out")
        try:
            decoding = task.decoding.replace(**given)
        except ConfigError as error:
            raise UsageError(str(error)) from error
        for way, names in ONLY.items():
            if way != decoding.strategy and (idle := [name for name in names if name in given]):
                found = f"of --strategy {way}, but the strategy is {decoding.strategy}"
                raise UsageError(f"{_named(idle)}: {found}; give --strategy {way}, or leave it out")
        task.decoding = decoding


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnswersOptions(DecodingOptions):
    """The same where several answers to a text can be shown."""

    num_return_sequences: Annotated[
        int | None,
        _option("--num-return-sequences", help="Answers to each text, a line each; of a beam search at most --num-beams."),
    ] = None


def _named(fields: Iterable[str]) -> str:
    """As options: --num-beams, --length-penalty."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in fields)
