"""Look at a text before training on it, and make its vocabulary."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from polyseme.api.arguments import AnyCorpus, FilePath
from polyseme.api.settings import with_settings
from polyseme.api.texts import open_text
from polyseme.base.config import Setting
from polyseme.base.display import count, html_table, named_values, two_digits
from polyseme.base.errors import UsageError, arg
from polyseme.base.options import Option, options_of

if TYPE_CHECKING:
    from polyseme.pretraining.forecast import Forecast
    from polyseme.scale.cleaning import CleanedCorpus
    from polyseme.scale.config import CleaningConfig, TextEngineConfig
    from polyseme.text.config import TextConfig
    from polyseme.text.corpus_report import CorpusReport
    from polyseme.text.files.reader import TextEngine
    from polyseme.text.filtering.quality import FilterConfig

Sources = Annotated[
    AnyCorpus,
    Setting(
        help="Files, folders or quoted globs: text (plain, gzip, xz, zstd), JSON lines, Parquet; - is standard input.",
        metavar="SOURCE",
    ),
]
ModelSize = Annotated[
    Literal["tiny", "small", "medium", "original"] | None,
    Setting(help="Train an ELMo of this size for a few seconds, and estimate the time for the whole text.", group="Forecast"),
]
Epochs = Annotated[float | None, Setting(help="Passes over the text.", min=0, default_text="10", group="Forecast")]
Minutes = Annotated[
    float | None,
    Setting(help="Training time instead of epochs: estimate how many epochs it allows.", above=0, group="Forecast"),
]
ForecastDevice = Annotated[
    str | None, Setting(help="cpu or cuda.", default_text="a GPU if there is one", metavar="DEVICE", group="Forecast")
]
VocabularyOut = Annotated[FilePath, Setting(help="File for the vocabulary: one word per line.", metavar="FILE", flags=("-o",))]
VocabularySize = Annotated[
    int | None, Setting(help="Lines of the vocabulary, with the 3 special tokens.", default_text="50,000", min=4)
]
Documents = Annotated[
    list[str],
    Setting(
        help="Files, folders, quoted globs or addresses (s3://, gs://, hf://, https://): text, whose lines are documents, JSON "
        "lines, CSV or Parquet; plain or compressed.",
        metavar="SOURCE",
    ),
]
CleanedOut = Annotated[
    FilePath,
    Setting(help="Folder for the documents that are kept. A run that is there is resumed.", metavar="FOLDER", flags=("-o",)),
]
Threshold = Annotated[
    float,
    Setting(
        help="Drop documents with at least this Jaccard similarity (of word trigrams) to an earlier document; 1: equal words, "
        "without case and punctuation.",
        above=0,
        max=1,
    ),
]
MinCount = Annotated[int | None, Setting(help="Keep words that occur at least this often.", min=1)]


@dataclasses.dataclass(frozen=True)
class CorpusCheck:
    """What a text holds, and what training on it takes."""

    report: CorpusReport
    forecast: Forecast | None
    source: str
    skip_bad_lines: bool = False
    """Whether training would skip the lines that it cannot read."""
    minutes: float | None = None
    """The minutes of the forecast, where it is not for epochs."""

    @property
    def problem(self) -> str | None:
        """Why training could not read the text; None: it can."""
        bad = self.report.bad_lines
        if not self.report.words:
            lines = f"; {count(bad, 'bad line')}, not UTF-8 or without text in the field" if bad else ""
            return f"{self.source}: there are no words to train on{lines}"
        if bad and not self.skip_bad_lines:
            return f"{count(bad, 'bad line')}: training would stop there; skip them with {arg('skip_bad_lines', True)}"
        return None

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        forecast = {} if self.forecast is None else {"forecast": dataclasses.asdict(self.forecast)}
        return {**dataclasses.asdict(self.report), "problems": self.report.problems(self.source), **forecast}

    def __str__(self) -> str:
        return "\n".join([named_values(self._rows()), *self.report.problems(self.source)])

    def _repr_html_(self) -> str:
        return html_table(["", "text"], [(name.replace("_", " "), value) for name, value in self._rows().items()])

    def _rows(self) -> dict[str, Any]:
        values = dataclasses.asdict(self.report)
        rows: dict[str, Any] = {name: value for name, value in values.items() if type(value) is int}
        if not self.report.traditional_lines:
            del rows["traditional_lines"]
        about = "" if self.report.exact else "about "
        rows |= {name: f"{about}{rows[name]:,}" for name in ("distinct_words", "duplicate_lines")}
        rows |= {"empty_files": len(self.report.empty_files), "encoded_bytes": f"about {self.report.encoded_bytes:,}"}
        if self.forecast is None:
            return rows
        rows |= _forecast_rows(self.forecast)
        if self.minutes is not None:
            from polyseme.pretraining.defaults import TRAINED

            epochs = self.forecast.words_per_second * 60 * TRAINED * self.minutes / self.report.words
            rows["training_epochs"] = f"about {two_digits(epochs)}"
        return rows


_PROGRAM = "0.5 GB"
"""Memory of Python and PyTorch before a model is made: a training of the size `tiny` on a CPU has a peak of 521 MB."""


def _forecast_rows(forecast: Forecast) -> dict[str, Any]:
    from polyseme.base.display import format_duration, format_size

    where = "on the GPU" if forecast.on_gpu else f"besides about {_PROGRAM} of Python and PyTorch"
    return {
        "parameters": forecast.parameters,
        "training_speed": f"about {forecast.words_per_second:,.0f} words per second",
        "training_time": f"about {format_duration(forecast.seconds)}",
        "training_memory": f"about {format_size(forecast.memory_bytes)}, {where}",
        "training_disk": f"about {format_size(forecast.disk_bytes)}",
    }


@with_settings(text="polyseme.text.config:TextConfig", engine="polyseme.scale.config:TextEngineConfig")
def check_corpus(
    source: Sources,
    *,
    size: ModelSize = None,
    epochs: Epochs = None,
    minutes: Minutes = None,
    device: ForecastDevice = None,
    text: TextConfig,
    engine: TextEngineConfig,
) -> CorpusCheck:
    """Count what a text holds and report what is wrong with it, before hours of training go into it.

    Exits with 1 if training could not read it: a line that is not UTF-8, or no words at all.
    """
    if size is None and any(given is not None for given in (epochs, minutes, device)):
        names = f"{arg('epochs')}, {arg('minutes')} and {arg('device')}"
        raise UsageError(f"{names} are for the forecast of a training: add {arg('size')}")
    if epochs is not None and minutes is not None:
        raise UsageError(f"give either {arg('epochs')} or {arg('minutes')}")
    from polyseme.base.progress import progress

    files = [source] if isinstance(source, str | Path) else source
    with progress("checking", unit="words") as advance:
        report = open_text(files, text, engine=text_engine(engine)).check(advance)  # type: ignore[arg-type]
    budget = {"epochs": 10.0 if epochs is None else epochs} if minutes is None else {"minutes": minutes}
    forecast = _forecast(report, size, budget, device) if size is not None and report.words else None
    return CorpusCheck(report, forecast, shlex.join(map(str, files)), text.skip_bad_lines, minutes)


def text_options() -> dict[str, Option]:
    """The options of reading a text once: all but the folder that keeps it encoded."""
    from polyseme.scale.config import TextEngineConfig
    from polyseme.text.config import TextConfig

    return {
        name: option
        for name, option in options_of({"text": TextConfig(), "engine": TextEngineConfig()}).items()
        if name != "shards"
    }


def text_engine(config: TextEngineConfig) -> TextEngine | None:
    """What reads and splits the text: a chosen engine, or as always processes of this machine."""
    if config.engine is None:
        return None
    from polyseme.scale.chunk_map import EngineChunkMap
    from polyseme.scale.engines.choice import make_engine

    return EngineChunkMap(make_engine(config))


def _forecast(report: CorpusReport, size: str, budget: dict[str, float], device: str | None) -> Forecast:
    from polyseme.base.run import Run
    from polyseme.pretraining.forecast import forecast
    from polyseme.pretraining.methods import configure_method

    config: Any = configure_method("elmo", {"size": size, **budget})
    run = Run.from_environment(device=device)
    return forecast(config, report.words, report.distinct_words, report.sentences, run)


@dataclasses.dataclass(frozen=True)
class WrittenVocabulary:
    """A vocabulary file."""

    written: Path
    size: int
    words: int
    """Words of the text."""

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        return {"written": str(self.written), "size": self.size, "words": self.words}

    def __str__(self) -> str:
        return f"{self.written}: {count(self.size, 'line')}, from {count(self.words, 'word')} of text"


@with_settings(text="polyseme.text.config:TextConfig", engine="polyseme.scale.config:TextEngineConfig")
def write_vocabulary(
    source: Sources,
    *,
    out: VocabularyOut,
    size: VocabularySize = None,
    min_count: MinCount = None,
    text: TextConfig,
    engine: TextEngineConfig,
) -> WrittenVocabulary:
    """Write the most frequent words of a text to a file, most frequent first.

    The file begins with the special tokens `<S>`, `</S>` and `<UNK>`: begin and end of a sentence, and any other word.
    """
    from polyseme.base.files import write_text
    from polyseme.base.progress import progress
    from polyseme.text.counting.vocabulary_index import build_vocabulary

    corpus = open_text(source, text, engine=text_engine(engine))  # type: ignore[arg-type]
    with progress("counting", unit="words") as advance:
        size = 50_000 if size is None and min_count is None else size
        vocabulary, words = build_vocabulary(corpus, size=size, min_count=min_count or 1, progress=advance)
    write_text(Path(out), vocabulary.to_text())
    return WrittenVocabulary(Path(out), len(vocabulary), words)


@with_settings(filters="polyseme.text.filtering.quality:FilterConfig", config="polyseme.scale.config:CleaningConfig")
def filter_corpus(source: Documents, *, out: CleanedOut, filters: FilterConfig, config: CleaningConfig) -> CleanedCorpus:
    """Keep the documents of a crawl that are prose in the wanted languages, and say why the others were dropped.

    A document is a line of text, or a row. OUT gets one part per shard, and beside it `_dropped-*.jsonl`: file, line and reason
    of each document that was dropped. With many processes or a Ray cluster; the same command resumes.
    """
    from polyseme.scale.cleaning import filter_corpus as write

    return write(source, out, filters, config)


@with_settings(config="polyseme.scale.config:CleaningConfig")
def dedupe_corpus(source: Documents, *, out: CleanedOut, threshold: Threshold = 0.4, config: CleaningConfig) -> CleanedCorpus:
    """Drop documents that are nearly equal to an earlier one (MinHash), and say which.

    A document is a line of text, or a row. The default threshold finds copies of which a tenth of the words was changed;
    texts that follow a pattern may be as similar, and threshold 1 keeps them. OUT
    gets one part per shard, and beside it `_dropped-*.jsonl`: file and line of each document that was dropped, and of the
    earlier one that it is similar to. With many processes or a Ray cluster; the same command resumes.
    """
    from polyseme.scale.cleaning import dedupe_corpus as write

    return write(source, out, threshold, config)
