"""Options that say which text is read, and how it is split; and how verbs open it."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.cli.options import Splitter

if TYPE_CHECKING:
    from polyseme.text.corpus import Corpus
    from polyseme.text.words import Splitter as Way


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
WordList = Annotated[
    Path | None,
    typer.Option(
        "--word-list",
        metavar="FILE",
        help="For the splitter likeliest: words, most frequent first, one a line (as corpus vocab writes them).",
        rich_help_panel=_TEXT,
    ),
]
SentencesOption = Annotated[
    Sentences | None,
    typer.Option(
        "--sentences",
        help="How sentences are split; lines: each stands on a line already. Not given: lines for words by whitespace, "
        "chinese for chinese, characters and likeliest, else english.",
        rich_help_panel=_TEXT,
    ),
]
OwnSentences = Annotated[
    Sentences | None,
    typer.Option(
        "--sentences",
        help="How sentences are split. Not given: by the language of the model; lines where that is not known.",
        rich_help_panel=_TEXT,
    ),
]
Field = Annotated[
    str | None,
    typer.Option(
        "--field",
        metavar="NAME",
        help="The field of JSON lines, or column of Parquet, with text; not given: text. Given, standard input and files "
        ".json are JSON lines, too.",
        rich_help_panel=_TEXT,
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


ShardsFolder = Annotated[
    Path | None,
    typer.Option(
        "--shards",
        metavar="FOLDER",
        help="Keep the encoded text here, where other runs find it. Not given: in --out.",
        rich_help_panel=_TEXT,
    ),
]


@dataclasses.dataclass(frozen=True, kw_only=True)
class TextOptions:
    """How text is read and split."""

    splitter: TextSplitter = Splitter.english
    word_list: WordList = None
    sentences: SentencesOption = None
    field: Field = None
    workers: Workers = None
    skip_bad_lines: SkipBad = False
    shards: ShardsFolder = None

    def open(self, source: list[str]) -> Corpus:
        """The text of these files, ready to be read."""
        return open_corpus(
            source,
            self.splitter,
            self.sentences,
            self.field,
            self.workers,
            word_list=self.word_list,
            skip_bad=self.skip_bad_lines,
            shards=self.shards,
        )


def open_corpus(
    source: list[str],
    splitter: Splitter | Way,
    sentences: Sentences | None = None,
    field: str | None = None,
    workers: int | None = None,
    *,
    word_list: Path | None = None,
    skip_bad: bool = False,
    shards: Path | None = None,
) -> Corpus:
    """The text that the options name, ready to be read; a splitter is an option or a model's own.

    Where nobody says how sentences are split, it is as usual for the splitter, in every verb alike.
    """
    from polyseme.text.corpus import Corpus

    return Corpus(
        source,
        splitter=named(splitter, word_list) if isinstance(splitter, Splitter) else splitter,
        sentences=sentences.value if sentences else None,
        workers=workers,
        field=field,
        errors="skip" if skip_bad else "strict",
        shards=shards,
    )


def named(splitter: Splitter, word_list: Path | None) -> Way:
    """The splitter that the options name."""
    from polyseme.text.words import get_splitter

    return get_splitter(splitter.value, word_list)
