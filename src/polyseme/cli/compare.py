"""`polyseme compare`: tasks times encoders times seeds, and the table of what each encoder buys."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.base.errors import UsageError
from polyseme.cli import show

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
    str, typer.Option("--shares", metavar="P,...", help="Shares of the training data to train on: several make a curve.")
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
    from polyseme.analysis.plots import check_plot
    from polyseme.studies.compare import Study
    from polyseme.studies.options import parse_option
    from polyseme.studies.report import write_report

    rows = names_in("--encoders", encoders)
    if baseline is not None and baseline not in rows:
        raise UsageError(f"--baseline is {baseline!r}, which is no row; the rows are {', '.join(rows)}")
    study = Study(
        out,
        names_in("--tasks", tasks),
        rows,
        seeds_in(seeds),
        vectors=dict(_vectors(each) for each in vectors or []),
        shares=tuple(dict.fromkeys(_share(each) for each in names_in("--shares", shares))),
        options=dict(parse_option(each) for each in option or []),
        models=dict(_model(each) for each in model or []),
    )
    study.check()
    if plot:
        check_plot("table.png")
    try:
        study.run(jobs=jobs, device=device, notify=show.note)
    finally:  # of what is done, also where some experiments failed or it was stopped
        if written := write_report(study, baseline, plot=plot):
            show.line(written.rstrip())


def names_in(option: str, text: str) -> tuple[str, ...]:
    """What stands between the commas, each once: two experiments in one folder would get in each other's way."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError(f"{option} is {text!r}; expected at least one name, or several divided by commas")
    return names


def seeds_in(text: str) -> tuple[int, ...]:
    """The numbers of `--seeds`."""
    names = names_in("--seeds", text)
    for name in names:
        if not name.isdecimal():
            raise UsageError(f"--seeds holds {name!r}; expected whole numbers divided by commas, such as 1,2,3")
    return tuple(dict.fromkeys(map(int, names)))


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f"--shares holds {text!r}; expected shares above 0 and up to 1 divided by commas, such as 0.1,0.5,1")
    return share


def _vectors(text: str) -> tuple[str, str]:
    language, equals, path = text.partition("=")
    if not equals or not Path(path).expanduser().exists():
        raise UsageError(f"--vectors is {text!r}; expected a language and a file that is there, such as en=vectors.bin")
    return language, str(Path(path).expanduser())


def _model(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not name or set(name) & set("+:,/"):
        raise UsageError(f"--model is {text!r}; expected a short name and a model, such as bert=my-bert")
    if name == "none":
        raise UsageError("--model none: that is the name of no encoder; choose another")
    if not Path(path).expanduser().exists():
        raise UsageError(f"--model is {text!r}, but {path} is not there: give a folder or a file")
    return name, str(Path(path).expanduser())
