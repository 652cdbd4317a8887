"""Options that say which text is read, and how it is split; and how verbs open it."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.options import Splitter

if TYPE_CHECKING:
    from polyseme.text.corpus import Corpus


class Sentences(StrEnum):
    """Ways to split sentences."""

    english = "english"
    chinese = "chinese"
    lines = "lines"


_TEXT = "Text"

TextSplitter = Annotated[
    Splitter,
    typer.Option(
        "--splitter", help="How words are split; whitespace where they are divided by blanks already.", rich_help_panel=_TEXT
    ),
]
SentencesOption = Annotated[
    Sentences,
    typer.Option(
        "--sentences", help="How sentences are split; lines where each stands on a line already.", rich_help_panel=_TEXT
    ),
]
Field = Annotated[
    str,
    typer.Option(
        "--field", metavar="NAME", help="The field of JSON lines, or column of Parquet, with text.", rich_help_panel=_TEXT
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=0,
        help="Processes that split text; not given: one for each core.",
        rich_help_panel=_TEXT,
    ),
]
SkipBad = Annotated[
    bool,
    typer.Option("--skip-bad-lines", help="Leave out lines that are not UTF-8 instead of stopping.", rich_help_panel=_TEXT),
]


def open_corpus(
    source: list[str],
    splitter: Splitter,
    sentences: Sentences,
    field: str = "text",
    workers: int | None = None,
    *,
    skip_bad: bool = False,
) -> Corpus:
    """The text that the options name, ready to be read."""
    from polyseme.text.corpus import Corpus

    bad = "skip" if skip_bad else "stop"
    return Corpus(source, words=splitter.value, sentences=sentences.value, workers=workers, field=field, bad=bad)  # type: ignore[arg-type]
