"""`polyseme corpus`: look at a text before training on it, and make its vocabulary."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.cli import show
from polyseme.cli.options import Json, Size, Splitter
from polyseme.cli.text_options import Field, SentencesOption, SkipBad, TextSplitter, WordList, Workers, open_corpus

if TYPE_CHECKING:
    from polyseme.pretraining.forecast import Forecast
    from polyseme.text.corpus_report import CorpusReport


corpus = typer.Typer(name="corpus", help="Check a text before training on it, and make its vocabulary.", no_args_is_help=True)

_FORECAST = "Time and memory of training"

SourceArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCE",
        help="Files, folders or quoted globs: text (plain, gzip, xz, zstd), JSON lines, Parquet; - is standard input.",
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where the vocabulary goes: one word a line.")]
ModelSize = Annotated[
    Size | None,
    typer.Option(
        "--size",
        help="Try to train a model of this size for some seconds, and tell what all the text would take.",
        rich_help_panel=_FORECAST,
    ),
]
Epochs = Annotated[
    float | None,
    typer.Option("--epochs", min=0, help="Passes over the text; not given: 10.", rich_help_panel=_FORECAST),
]
Device = Annotated[
    str | None,
    typer.Option("--device", help="cpu or cuda; a GPU is taken where there is one.", rich_help_panel=_FORECAST),
]
VocabularySize = Annotated[
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
    splitter: TextSplitter = Splitter.english,
    word_list: WordList = None,
    sentences: SentencesOption = None,
    field: Field = None,
    workers: Workers = None,
    size: ModelSize = None,
    epochs: Epochs = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Count what a text holds, and tell what is wrong with it, before hours of training go into it.

    Exits with 1 when training could not read it: a line that is not UTF-8, or no words at all.

    Examples:

        polyseme corpus check my-texts/

        polyseme corpus check my-texts/ --size small --epochs 5

        polyseme corpus check 'dump/*.jsonl.zst' --field body --splitter chinese --sentences chinese
    """
    if size is None and (epochs is not None or device is not None):
        raise UsageError("--epochs and --device are for the forecast of a training: add --size")
    opened = open_corpus(source, splitter, sentences, field, workers, word_list=word_list)
    from polyseme.base.progress import progress

    with progress("checking", unit="words") as advance:
        report = opened.check(advance)
    _print(report, _forecast(report, size, epochs, device) if size is not None and report.words else None, json)
    if not report.words:
        bad = (
            f"; {show.count(report.bad_lines, 'bad line')}, not UTF-8 or without text in the field" if report.bad_lines else ""
        )
        raise PolysemeError(f"{' '.join(source)}: there are no words to train on{bad}")
    if report.bad_lines:
        raise PolysemeError(f"{show.count(report.bad_lines, 'bad line')}: training would stop there unless told to skip them")


@corpus.command()
def vocab(
    source: SourceArgument,
    out: Out,
    size: VocabularySize = None,
    min_count: MinCount = None,
    splitter: TextSplitter = Splitter.english,
    word_list: WordList = None,
    sentences: SentencesOption = None,
    field: Field = None,
    workers: Workers = None,
    skip_bad_lines: SkipBad = False,
    json: Json = False,
) -> None:
    """Write the most frequent words of a text to a file, most frequent first.

    The file begins with the marks `<S>`, `</S>` and `<UNK>`: begin and end of a sentence, and any other word.

    Example:

        polyseme corpus vocab my-texts/ --out vocabulary.txt --size 50000
    """
    opened = open_corpus(source, splitter, sentences, field, workers, word_list=word_list, skip_bad=skip_bad_lines)
    from polyseme.base.files import write_text
    from polyseme.base.progress import progress
    from polyseme.text.counting.counts import build_vocabulary, count_words

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


def _forecast(report: CorpusReport, size: Size, epochs: float | None, device: str | None) -> Forecast:
    from polyseme.base.run import Run
    from polyseme.pretraining.elmo_config import ElmoPretraining
    from polyseme.pretraining.forecast import forecast
    from polyseme.training.config import TrainConfig

    config = ElmoPretraining(size=size.value, train=TrainConfig(epochs=10.0 if epochs is None else epochs))
    run = Run.from_environment(device=device)
    return forecast(config, report.words, report.distinct_words, report.sentences, run)


def _print(report: CorpusReport, forecast: Forecast | None, json: bool) -> None:
    import dataclasses

    facts = dataclasses.asdict(report)
    if json:
        estimated = {"forecast": dataclasses.asdict(forecast)} if forecast is not None else {}
        show.as_json(facts | {"problems": report.problems()} | estimated)
        return
    about = "" if report.exact else "about "
    rows: dict[str, int | str] = {
        name: value for name, value in facts.items() if isinstance(value, int) and not isinstance(value, bool)
    }
    rows |= {name: f"{about}{rows[name]:,}" for name in ("distinct_words", "duplicate_lines")}
    rows |= {"empty_files": len(report.empty_files), "shard_bytes": f"about {report.shard_bytes:,}"}
    show.facts(rows | (_estimates(forecast) if forecast is not None else {}))
    for problem in report.problems():
        show.line(problem)


def _estimates(forecast: Forecast) -> dict[str, int | str]:
    from polyseme.base.formatting import format_duration, format_size

    return {
        "parameters": forecast.parameters,
        "training_speed": f"about {forecast.words_per_second:,.0f} words a second",
        "training_time": f"about {format_duration(forecast.seconds)}",
        "training_memory": f"about {format_size(forecast.memory_bytes)}",
        "training_disk": f"about {format_size(forecast.disk_bytes)}",
    }
