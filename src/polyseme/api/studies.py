"""Compare encoders on labelled data, and pre-training methods on one text."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from polyseme.api.arguments import FilePath
from polyseme.base.config import Config, Setting
from polyseme.base.options import build
from polyseme.base.out_paths import check_out_folder
from polyseme.studies.config import CompareConfig, LineageConfig

if TYPE_CHECKING:
    from polyseme.studies.report import ComparisonResult

    Names: TypeAlias = str | Sequence[str]
    TextSources: TypeAlias = str | Path | Sequence[str | Path]
else:
    Names = tuple[str, ...]
    TextSources = list[str]

DataSets = Annotated[
    Names,
    Setting(
        help="Labelled data sets by name (coref is the mean of two), or your own files as TASK:TRAIN:DEV[:TEST], such as "
        "tagging:train.conll:dev.conll.",
        metavar="NAME,...",
        group="Data",
    ),
]
OutStudy = Annotated[
    FilePath,
    Setting(help="Folder for models and tables. A study that is there already is resumed.", metavar="FOLDER", flags=("-o",)),
]
LineageText = Annotated[
    TextSources, Setting(help="Text file, folder or glob (may be repeated).", metavar="SOURCE", flags=("-c",))
]
_log = logging.getLogger(__name__)


def compare_configs() -> dict[str, Config]:
    """The config whose settings `compare` takes."""
    return {"config": CompareConfig(tasks=("ner",))}


def compare(tasks: DataSets, *, out: OutStudy, **settings: Any) -> ComparisonResult:
    """Train every task with every row of encoders and every seed, and return the table: scores, gains, intervals.

    Run again after a stop, finished experiments stay. Labelled data sets are found under $POLYSEME_DATA/tasks; a wrong name
    lists them all, and a missing file is reported with its source. The table of finished experiments is written to the folder
    as Markdown and CSV, with what each encoder's training cost.

    >>> import polyseme                                                                             # doctest: +SKIP
    >>> polyseme.compare("tagging:train.conll:dev.conll", encoders=["none", "en"], out="study")     # doctest: +SKIP
    """
    check_out_folder(out)
    config = build(compare_configs(), {"tasks": tasks, **settings}, "compare")["config"]  # before PyTorch is imported
    from polyseme.studies.compare import run_comparison

    return run_comparison(config, out, notify=_log.warning)  # type: ignore[arg-type]


def run_compare(*, tasks: DataSets, out: OutStudy, **settings: Any) -> ComparisonResult:
    """As `compare`, with the data sets as an option."""
    return compare(tasks, out=out, **settings)


def lineage_configs() -> dict[str, Config]:
    """The config whose settings `lineage` takes."""
    return {"config": LineageConfig()}


def lineage(corpus: LineageText, *, out: OutStudy, **settings: Any) -> ComparisonResult:
    """Pre-train n-grams, NNLM, word2vec, fastText, GloVe, TagLM, ELMo, ULMFiT, GPT and BERT on one text, and compare them.

    Each method has the same text and budget and a process of its own, one after another; then every labelled data set is
    trained with each of them. Run again after a stop, finished methods stay. A method that fails is reported and stops no
    other. The folder gets `models/`, table.md, table.csv and plots, with what each model cost.

    >>> import polyseme                                                                 # doctest: +SKIP
    >>> polyseme.lineage("texts/", out="study", methods=["ngram", "elmo"], minutes=10)  # doctest: +SKIP
    """
    from polyseme.studies.lineage import run_lineage as run

    check_out_folder(out)
    config: LineageConfig = build(lineage_configs(), settings, "lineage")["config"]  # type: ignore[assignment]
    sources = [str(corpus)] if isinstance(corpus, str | Path) else [str(each) for each in corpus]
    return run(config, sources, out, notify=_log.warning)


def run_lineage(*, corpus: LineageText, out: OutStudy, **settings: Any) -> ComparisonResult:
    """As `lineage`, with the text as an option."""
    return lineage(corpus, out=out, **settings)


run_compare.__doc__, run_lineage.__doc__ = compare.__doc__, lineage.__doc__
