"""`polyseme compare`: tasks times encoders times seeds, and the table of what each encoder buys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import UsageError
from polyseme.base.options import parsed
from polyseme.cli import show

C = TypeVar("C", bound=Config)

Tasks = Annotated[
    str, typer.Option("--tasks", metavar="NAME,...", help="Labelled sets, by their names; coref is the mean of two.")
]
EncodersOption = Annotated[
    str,
    typer.Option(
        "--encoders",
        metavar="ROW,...",
        help="Rows of the table: none, or encoders joined by +, and :finetune behind those to be fine-tuned; word2vec and "
        "elmo stand for those of the set's language.",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where experiments and tables go, or a study to go on with.")
]
Seeds = Annotated[str, typer.Option("--seeds", metavar="N,...", help="An experiment is trained with each.")]
Vectors = Annotated[
    list[str] | None,
    typer.Option("--vectors", metavar="LANGUAGE=FILE", help="Word vectors of a language, for word2vec (may be given again)."),
]
Models = Annotated[
    list[str] | None,
    typer.Option("--model", metavar="NAME=FOLDER", help="A short name of a model, for the rows (may be given again)."),
]
Baseline = Annotated[str | None, typer.Option("--baseline", help="The row to compare with. Not given: the first but `none`.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Cells that are trained side by side.")]
Device = Annotated[str | None, typer.Option("--device", help="cpu or cuda; a GPU is taken where there is one.")]
Shares = Annotated[
    str,
    typer.Option("--train-fractions", metavar="P,...", help="Fractions of the training data; several give a learning curve."),
]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="[WHICH:]NAME=VALUE",
        help="An option of training by its plain name, such as epochs=5, for all, or for those of a set (ner:epochs=5), "
        "of a row, or of fine-tuned rows (finetune:epochs=5). May be given again. Not given: those of each set.",
    ),
]
Plot = Annotated[
    bool, typer.Option("--plot", help="Draw table.png and cost.png, or for several shares a curve of each set (extra plots).")
]


def compare(
    tasks: Tasks,
    out: Out,
    encoders: EncodersOption = "none,word2vec,word2vec+elmo",
    seeds: Seeds = "1,2,3",
    vectors: Vectors = None,
    model: Models = None,
    baseline: Baseline = None,
    jobs: Jobs = 1,
    device: Device = None,
    shares: Shares = "1",
    option: Options = None,
    plot: Plot = False,
) -> None:
    """Train every task with every row of encoders and every seed, and write the table: score, spread, gain, interval.

    Stopped and started again, what is done stays done. Labelled sets are found under $POLYSEME_DATA/tasks; a wrong name
    lists them all, and a missing file is told with its source. The table of what is done is written to FOLDER as Markdown
    and CSV at the end, and also where it was stopped or an experiment failed, with what each encoder's training cost.

    Example:

        polyseme compare --tasks ner,nli --vectors en=vectors.bin --out study --jobs 4

        polyseme compare --tasks ner --model bert=my-bert --encoders none,bert,bert:finetune --out study --plot
    """
    from polyseme.studies.compare import run_comparison
    from polyseme.studies.config import CompareConfig

    config = configured(
        CompareConfig,
        tasks=divided(tasks),
        encoders=divided(encoders),
        seeds=divided(seeds, int),
        vectors=tuple(vectors or ()),
        models=tuple(model or ()),
        baseline=baseline,
        jobs=jobs,
        device=device,
        train_fractions=divided(shares, float),
        options=tuple(option or ()),
        plot=plot,
    )
    show.line(str(run_comparison(config, out, notify=show.note)))


def configured(config: type[C], **values: Any) -> C:
    """The config of these values; a problem is one of the call."""
    try:
        return config.from_dict(values, config.__name__.removesuffix("Config").lower())
    except ConfigError as error:
        raise UsageError(str(error)) from error


def divided(text: str, kind: type = str) -> tuple[Any, ...]:
    """What stands between commas, each once; what is no number stays text, which the config refuses."""
    return tuple(dict.fromkeys(parsed(text, tuple[kind, ...]))) if text.strip(", ") else ()
