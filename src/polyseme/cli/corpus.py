"""`polyseme corpus`: look at a text before training on it, and make its vocabulary."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.base.errors import PolysemeError
from polyseme.cli import show
from polyseme.cli.options import Json

if TYPE_CHECKING:
    from polyseme.text.corpus import Corpus
    from polyseme.text.report import Report


class Words(StrEnum):
    """Ways to split words."""

    english = "english"
    chinese = "chinese"
    characters = "characters"
    whitespace = "whitespace"


class Sentences(StrEnum):
    """Ways to split sentences."""

    english = "english"
    chinese = "chinese"
    lines = "lines"


corpus = typer.Typer(name="corpus", help="Check a text before training on it, and make its vocabulary.", no_args_is_help=True)

SourceArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        help="Files, folders or quoted globs: text (plain, gzip, xz, zstd), JSON lines, Parquet; - is standard input.",
    ),
]
WordsOption = Annotated[
    Words, typer.Option("--words", help="How words are split; whitespace where they are divided by blanks already.")
]
SentencesOption = Annotated[
    Sentences, typer.Option("--sentences", help="How sentences are split; lines where each stands on a line already.")
]
Field = Annotated[
    str, typer.Option("--field", metavar="NAME", help="The field of JSON lines, or column of Parquet, with text.")
]
Workers = Annotated[
    int | None,
    typer.Option("--workers", metavar="N", min=0, help="Processes that split text; not given: one for each core."),
]
SkipBad = Annotated[bool, typer.Option("--skip-bad-lines", help="Leave out lines that are not UTF-8 instead of stopping.")]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the vocabulary goes: one word a line.")]
Size = Annotated[
    int | None,
    typer.Option(
        "--size",
        metavar="N",
        help="Lines of the vocabulary, the 3 marks included; 50,000 where nothing is given.",
        show_default=False,
    ),
]
MinCount = Annotated[
    int | None, typer.Option("--min-count", metavar="N", help="Keep words that come N times or more.", show_default=False)
]


@corpus.command()
def check(
    source: SourceArgument,
    words: WordsOption = Words.english,
    sentences: SentencesOption = Sentences.english,
    field: Field = "text",
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Count what a text holds, and tell what is wrong with it, before hours of training go into it.

    Exits with 1 when training could not read it: a line that is not UTF-8, or no words at all.

    Examples:

        polyseme corpus check my-texts/

        polyseme corpus check 'dump/*.jsonl.zst' --field body --words chinese --sentences chinese
    """
    opened = _open(source, words, sentences, field, workers, skip_bad=False)
    from polyseme.base.progress import progress

    with progress("checking", unit="words") as advance:
        report = opened.check(advance)
    _print(report, json)
    if not report.words:
        raise PolysemeError(f"{' '.join(source)}: there are no words to train on")
    if report.bad_lines:
        raise PolysemeError(f"{show.count(report.bad_lines, 'bad line')}: training would stop there unless told to skip them")


@corpus.command()
def vocab(
    source: SourceArgument,
    out: Out,
    size: Size = None,
    min_count: MinCount = None,
    words: WordsOption = Words.english,
    sentences: SentencesOption = Sentences.english,
    field: Field = "text",
    workers: Workers = None,
    skip_bad_lines: SkipBad = False,
    json: Json = False,
) -> None:
    """Write the most frequent words of a text to a file, most frequent first.

    The file begins with the marks `<S>`, `</S>` and `<UNK>`: begin and end of a sentence, and any other word.

    Example:

        polyseme corpus vocab my-texts/ --out vocabulary.txt --size 50000
    """
    opened = _open(source, words, sentences, field, workers, skip_bad=skip_bad_lines)
    from polyseme.base.files import write_text
    from polyseme.base.progress import progress
    from polyseme.text.counts import build_vocabulary, count_words

    if size is None and min_count is None:
        size = 50_000
    with progress("counting", unit="words") as advance:
        counts = count_words(opened, progress=advance)
    vocabulary = build_vocabulary(counts, size=size, min_count=1 if min_count is None else min_count)
    write_text(out, vocabulary.to_text())
    if json:
        show.as_json({"written": str(out), "size": len(vocabulary), "words": counts.total})
    else:
        show.line(f"{out}: {show.count(len(vocabulary), 'line')}, from {show.count(counts.total, 'word')} of text")


def _open(source: list[str], words: Words, sentences: Sentences, field: str, workers: int | None, *, skip_bad: bool) -> Corpus:
    from polyseme.text.corpus import Corpus

    return Corpus(
        source, words=words.value, sentences=sentences.value, workers=workers, field=field, bad="skip" if skip_bad else "stop"
    )


def _print(report: Report, json: bool) -> None:
    import dataclasses

    facts = dataclasses.asdict(report)
    if json:
        show.as_json(facts | {"problems": report.problems()})
        return
    about = "" if report.exact else "about "
    rows: dict[str, int | str] = {
        name: value for name, value in facts.items() if isinstance(value, int) and not isinstance(value, bool)
    }
    rows |= {name: f"{about}{rows[name]:,}" for name in ("distinct_words", "duplicate_lines")}
    show.facts(rows | {"empty_files": len(report.empty_files), "shard_bytes": f"about {report.shard_bytes:,}"})
    for problem in report.problems():
        show.line(problem)
