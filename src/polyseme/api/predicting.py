"""`polyseme predict`: predictions for texts, for lines of a file, and for a column of a table."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from polyseme.api.arguments import Device, SplitOnSpaces, Texts
from polyseme.api.tasks import LinePrediction, TaskFolder, loaded_task, predict
from polyseme.base.config import Setting
from polyseme.base.errors import UsageError, arg
from polyseme.text.files.lines import FileLines

_HOW = "by name or number from 0; INPUT is then read as a table (CSV, TSV, JSON lines)."
TextColumn = Annotated[
    str | None,
    Setting(
        help=f"Column of the text, {_HOW}",
        default_text="of a table, that of the training data or one with a common name",
        metavar="COLUMN",
    ),
]
SecondColumn = Annotated[
    str | None,
    Setting(help="Column of the second text, for tasks that read two texts, together with --text.", metavar="COLUMN"),
]


def run_prediction(
    task: TaskFolder,
    texts: Texts,
    *,
    text: TextColumn = None,
    second: SecondColumn = None,
    split_on_spaces: SplitOnSpaces = False,
    device: Device = None,
    **decoding: Any,
) -> Iterator[LinePrediction]:
    """Predict with a trained task: tags of words, labels of texts, labels or scores of pairs, answers, roles, texts.

    One text per line, or per row of a table: --text names its column. A tagger prints a word and its tag per line, and a blank
    line between texts; one trained with --document-context reads the lines as one document, which an empty line ends. A
    classifier prints the label, its probability and the text, separated by tabs. For pairs, a line has two texts separated by a
    tab, or TEXT is given twice; for reading these are a question and a paragraph; for choices, a question and two or more
    choices. For roles, a line begins with the positions of its predicates, from 0 and separated by commas, then a space and the
    text. Coreference marks and lists the mentions of an entity. Generation prints the generated text.
    """
    trained = loaded_task(task, device)
    lines: Any = texts
    if isinstance(lines, FileLines):
        from polyseme.tasks.predicted_tables import lines_of_table

        lines = lines_of_table(trained, Path(lines.name), text, second) or lines
    elif text is not None or second is not None:
        column = arg("text" if text is not None else "second")
        raise UsageError(f"{column} names a column of a file: give {arg('input', 'FILE')}")
    return predict(trained, lines, split_on_spaces=split_on_spaces, **decoding)
