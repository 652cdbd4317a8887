"""`polyseme evaluate`: how well a trained task answers, and where it goes wrong."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli import show
from polyseme.cli.decoding_options import DecodingOptions
from polyseme.cli.option_groups import command
from polyseme.cli.options import Device, Json
from polyseme.cli.predict import Folder
from polyseme.cli.train import print_scores

if TYPE_CHECKING:
    from polyseme.tasks.errors import Report
    from polyseme.tasks.mistakes import Mistake

WIDTH = 100  # columns of a table that is still read with ease
PAIRS = 20  # confused labels that are shown instead of a wider one

Data = Annotated[Path, typer.Argument(metavar="DATA", help="Labelled data, in the form of the training data.")]
Errors = Annotated[int, typer.Option("--errors", min=0, metavar="N", help="How many of the worst errors are shown.")]


@command
def evaluate(
    folder: Folder, data: Data, decoding: DecodingOptions, errors: Errors = 10, json: Json = False, device: Device = None
) -> None:
    """Score a trained task on a file, and show what it takes for what, and its worst errors.

    Of a classifier these are the wrong answers that it is surest of, of a tagger the texts with the most wrong spans or
    tags, of roles the predicates with the most wrong arguments, of a reader the answers that share least with the right
    ones. A label that the task never learned is told with its line, and counts as wrong.

    Example:

        polyseme evaluate my-tagger test.conll --errors 5
    """
    from polyseme.studies.train import load_task
    from polyseme.tasks.errors import report

    task = load_task(folder, device=device)
    decoding.set_on(task)
    found = report(task, data, errors=errors)
    for strange in found.strange:
        show.note(f"{strange}, which {folder} has not learned; it counts as wrong")
    if json:
        show.as_json(_values(found))
    else:
        _print(found, data)


def _values(found: Report) -> dict[str, Any]:
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
        "unknown_labels": [{"where": each.where, "label": each.label, "times": each.times} for each in found.strange],
    }


def _print(found: Report, data: Path) -> None:
    show.line(f"{data}: {show.count(found.examples, 'example')}")
    print_scores({"": found.scores})
    if found.confusion is not None:
        _print_confusion(found)
    if found.worst:
        show.line("\nworst errors")
    for mistake in found.worst:
        _print_mistake(mistake)


def _print_confusion(found: Report) -> None:
    from rich.cells import cell_len

    table = str(found.confusion)
    if max(map(cell_len, table.splitlines())) <= WIDTH:
        show.line(f"\n{table}")
        return
    pairs = found.confused(PAIRS)
    show.line("\nmost often confused" if pairs else "\nnothing was confused")
    show.columns([(f"{truth} taken for {answer}", f"{count:,}") for truth, answer, count in pairs])


def _print_mistake(mistake: Mistake) -> None:
    show.line(f"\n{mistake.where}")
    show.line(f"  {show.short(mistake.text, WIDTH - 2)}")
    sure = "" if mistake.probability is None else f" ({mistake.probability:.3f})"
    told = [(wrong.text, f"truth {wrong.truth}, answer {wrong.answer}{sure}") for wrong in mistake.wrong]
    for text, what in told:
        if text == mistake.text:
            show.line(f"  {what}")
    show.columns([(show.short(text), what) for text, what in told if text != mistake.text])
