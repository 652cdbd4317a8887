"""`polyseme evaluate`: how well a trained task answers, and where it goes wrong."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.base.errors import UsageError
from polyseme.cli import show
from polyseme.cli.decoding_options import DecodingOptions
from polyseme.cli.option_groups import command
from polyseme.cli.options import Device, Json
from polyseme.cli.predict import Folder
from polyseme.cli.task_choices import Kind
from polyseme.cli.train import print_scores

if TYPE_CHECKING:
    from polyseme.tasks.base import Task
    from polyseme.tasks.error_analysis import ExampleError
    from polyseme.tasks.errors import ErrorReport

WIDTH = 100  # columns of a table that is still read with ease
PAIRS = 20  # confused labels that are shown instead of a wider one

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Labelled data, in the form of the training data.")]
Errors = Annotated[int, typer.Option("--errors", min=0, metavar="N", help="How many of the worst errors are shown.")]


def _of_data(name: str, *, help: str, metavar: str | None = None) -> Any:
    return typer.Option(name, help=help, metavar=metavar, rich_help_panel="Data", show_default=False)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions:
    """How a table is read, where it is not laid out as the training data; what is None stays as it was."""

    text: Annotated[
        str | None,
        _of_data("--text", metavar="COLUMN", help="Column of the text, by name or number from 0; not given: as in training."),
    ] = None
    second: Annotated[
        str | None, _of_data("--second", metavar="COLUMN", help="Of pairs, column of the second text, together with --text.")
    ] = None
    label: Annotated[str | None, _of_data("--label", metavar="COLUMN", help="Column of the label, likewise.")] = None
    source: Annotated[
        str | None,
        _of_data(
            "--source",
            metavar="NAME",
            help="Of generation, ending of the source files or column of a table, by name or number from 0.",
        ),
    ] = None
    target: Annotated[str | None, _of_data("--target", metavar="NAME", help="The same of targets.")] = None
    header: Annotated[
        bool | None, _of_data("--header/--no-header", help="Whether the first row of a table names the columns.")
    ] = None
    format: Annotated[Kind | None, _of_data("--format", help="The kind of table, where content does not tell.")] = None
    strict: Annotated[
        bool | None, _of_data("--strict/--no-strict", help="Whether rows without a text, or with more columns, are errors.")
    ] = None

    def set_on(self, task: Task) -> None:
        """Let the task read files so."""
        from polyseme.base.config import ConfigError

        given = {name: value for name, value in dataclasses.asdict(self).items() if value is not None}
        known = {field.name for field in dataclasses.fields(task.config)}
        if idle := [name for name in given if name not in known]:
            options = ", ".join(f"--{name}" for name in idle)
            raise UsageError(f"{options}: the files of this task, {task.kind}, have no such thing; leave it out")
        try:
            task.config = task.config.replace(**given)
        except ConfigError as error:
            raise UsageError(str(error)) from error


@command
def evaluate(
    folder: Folder,
    data: Data,
    table: TableOptions,
    decoding: DecodingOptions,
    errors: Errors = 10,
    json: Json = False,
    device: Device = None,
) -> None:
    """Score a trained task on a file, and show what it takes for what, and its worst errors.

    Of a classifier these are the wrong answers that it is surest of, of a tagger the texts with the most wrong spans or
    tags, of roles the predicates with the most wrong arguments, of a reader the answers that share least with the right
    ones. A label that the task never learned is told with its line, and counts as wrong.

    Examples:

        polyseme evaluate my-tagger test.conll --errors 5

        polyseme evaluate my-classifier test-without-header.tsv --text 0 --label 1

        polyseme evaluate my-translator test-without-header.tsv --source 0 --target 1
    """
    from polyseme.studies.train import load_task
    from polyseme.tasks.errors import error_report

    task = load_task(folder, device=device)
    table.set_on(task)
    decoding.set_on(task)
    found = error_report(task, data, errors=errors)
    for strange in found.unknown_labels:
        show.note(f"{strange}, which {folder} has not learned; it counts as wrong")
    if json:
        show.as_json(_values(found))
    else:
        _print(found, data)


def _values(found: ErrorReport) -> dict[str, Any]:
    table = found.confusion
    return {
        "scores": found.scores,
        "main": found.main,
        "examples": found.examples,
        "confusion": table and {"labels": list(table.labels), "counts": table.counts.tolist()},
        "errors": [
            {
                "where": mistake.where,
                "text": mistake.text,
                "probability": mistake.probability,
                "wrong": [{"text": wrong.text, "truth": wrong.truth, "answer": wrong.answer} for wrong in mistake.wrong],
            }
            for mistake in found.worst
        ],
        "unknown_labels": [{"where": each.where, "label": each.label, "times": each.times} for each in found.unknown_labels],
    }


def _print(found: ErrorReport, data: Path) -> None:
    show.line(f"{data}: {show.count(found.examples, 'example')}")
    print_scores({"": found.scores})
    if found.confusion is not None:
        _print_confusion(found)
    if found.worst:
        show.line("\nworst errors")
    for mistake in found.worst:
        _print_mistake(mistake)


def _print_confusion(found: ErrorReport) -> None:
    from rich.cells import cell_len

    table = str(found.confusion)
    if max(map(cell_len, table.splitlines())) <= WIDTH:
        show.line(f"\n{table}")
        return
    pairs = found.confused(PAIRS)
    show.line("\nmost often confused" if pairs else "\nnothing was confused")
    show.columns([(f"{truth} taken for {answer}", f"{count:,}") for truth, answer, count in pairs])


def _print_mistake(mistake: ExampleError) -> None:
    show.line(f"\n{mistake.where}")
    show.line(f"  {show.short(mistake.text, WIDTH - 2)}")
    sure = "" if mistake.probability is None else f" ({mistake.probability:.3f})"
    told = [(wrong.text, f"truth {wrong.truth}, answer {wrong.answer}{sure}") for wrong in mistake.wrong]
    for text, what in told:
        if text == mistake.text:
            show.line(f"  {what}")
    show.columns([(show.short(text), what) for text, what in told if text != mistake.text])
