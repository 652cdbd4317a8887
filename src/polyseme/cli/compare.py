"""`polyseme compare`: tasks times encoders times seeds, and the table of what each encoder buys."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.base.errors import UsageError
from polyseme.cli import show

if TYPE_CHECKING:
    from polyseme.studies.compare import Study

Tasks = Annotated[str, typer.Option("--tasks", metavar="NAME,...", help="Labelled sets, by their names.")]
EncodersOption = Annotated[
    str,
    typer.Option(
        "--encoders",
        metavar="ROW,...",
        help="Rows of the table: none, or encoders joined by +; word2vec and elmo stand for those of the set's language.",
    ),
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where cells and tables go, or a study to go on with.")
]
Seeds = Annotated[str, typer.Option("--seeds", metavar="N,...", help="A cell is trained with each.")]
Vectors = Annotated[
    list[str] | None,
    typer.Option("--vectors", metavar="LANGUAGE=FILE", help="Word vectors of a language, for word2vec (may be given again)."),
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
        metavar="NAME=VALUE",
        help="An option of training for every cell, by its plain name, such as epochs=5 (may be given again). Not given: those "
        "of each set.",
    ),
]
Plot = Annotated[bool, typer.Option("--plot", help="Draw table.png, or for several shares a curve of each set (extra plots).")]


def compare(
    tasks: Tasks,
    out: Out,
    encoders: EncodersOption = "none,word2vec,word2vec+elmo",
    seeds: Seeds = "1,2,3",
    vectors: Vectors = None,
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
    and CSV at the end, and also where it was stopped or a cell failed.

    Example:

        polyseme compare --tasks ner,nli --vectors en=vectors.bin --out study --jobs 4
    """
    from polyseme.analysis.plots import check_plot
    from polyseme.studies.compare import Study

    rows = _names("--encoders", encoders)
    if baseline is not None and baseline not in rows:
        raise UsageError(f"--baseline is {baseline!r}, which is no row; the rows are {', '.join(rows)}")
    study = Study(
        out,
        _names("--tasks", tasks),
        rows,
        tuple(_number(seed) for seed in _names("--seeds", seeds)),
        vectors=dict(_vectors(each) for each in vectors or []),
        shares=tuple(_share(each) for each in _names("--shares", shares)),
        options=dict(_option(each) for each in option or []),
    )
    if plot:
        check_plot("table.png")
    try:
        study.run(jobs=jobs, device=device, tell=show.note)
    finally:  # of what is done, also where some cells failed or it was stopped
        _write(study, baseline or next((row for row in rows if row != "none"), rows[0]), plot=plot)


def _write(study: Study, baseline: str, *, plot: bool) -> None:
    """The tables and pictures of what is done."""
    from polyseme.base.files import write_text
    from polyseme.studies.pictures import bars, curve
    from polyseme.studies.table import as_csv, as_markdown, table

    out, found = study.out, table(study.cells(), baseline)
    if not found:
        return
    write_text(out / "table.md", as_markdown(found))
    write_text(out / "table.csv", as_csv(found))
    if plot and len(study.shares) > 1:
        for name in study.sets:
            curve([row for row in found if row.set == name], out / f"curve-{name}.png")
    elif plot:
        bars(found, out / "table.png")
    show.line(as_markdown(found).rstrip())


def _names(option: str, text: str) -> tuple[str, ...]:
    """What stands between the commas, each once: two cells in one folder would get in each other's way."""
    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not names:
        raise UsageError(f"{option} is {text!r}; expected at least one name, or several divided by commas")
    return names


def _number(text: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"--seeds holds {text!r}; expected whole numbers divided by commas, such as 1,2,3")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f"--shares holds {text!r}; expected shares above 0 and up to 1 divided by commas, such as 0.1,0.5,1")
    return share


def _option(text: str) -> tuple[str, Any]:
    """A name, and a value as JSON has it; what is no JSON is a string."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise UsageError(f"--option is {text!r}; expected a name and a value, such as epochs=5")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _vectors(text: str) -> tuple[str, str]:
    language, equals, path = text.partition("=")
    if not equals or not Path(path).expanduser().exists():
        raise UsageError(f"--vectors is {text!r}; expected a language and a file that is there, such as en=vectors.bin")
    return language, str(Path(path).expanduser())
