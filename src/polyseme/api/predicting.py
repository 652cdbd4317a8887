"""`polyseme predict`: predictions for texts, for lines of a file, and for a column of a table."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from polyseme.api.arguments import Device, FilePath, SplitOnSpaces, Texts
from polyseme.api.tasks import TaskFolder, loaded_task
from polyseme.base.config import Setting
from polyseme.base.display import short
from polyseme.base.errors import UsageError, arg
from polyseme.text.empty_texts import PREDICTION, about_empty, caller_names_empty_texts, has_text
from polyseme.text.files.lines import FileLines, TableLines, TextLines, not_plain_text

if TYPE_CHECKING:
    from polyseme.api.prediction_file import PredictedFile
    from polyseme.tasks.base import Task

LINES_AT_ONCE = 4096
"""Lines in memory; among them, texts of similar length go into one batch."""
_HEAD = 100  # lines that show a table
_MOST = 0.9  # of the lines are tagged words, where a file is labelled
_SPAN_TAG = re.compile(r"[BIESML]-\S+")
_log = logging.getLogger(__name__)
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

PredictionsOut = Annotated[
    FilePath | None,
    Setting(
        help="Table for the predictions: all columns of INPUT, or the text, then prediction and probability; .csv, .tsv or "
        ".jsonl. An empty text has an empty prediction.",
        metavar="FILE",
        flags=("-o",),
    ),
]


@dataclasses.dataclass(frozen=True)
class LinePrediction:
    """A prediction for one line of input."""

    task: Task = dataclasses.field(repr=False)
    line: str
    prediction: Any
    first: bool = dataclasses.field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """Plain values for programs."""
        return self.task.prediction_json(self.line, self.prediction)

    def to_lines(self) -> list[str]:
        """What is printed; a blank line is between predictions of several lines."""
        blank = [""] if self.task.multi_line and not self.first else []
        return [*blank, *self.task.prediction_lines(self.line, self.prediction)]

    def __str__(self) -> str:
        return "\n".join(self.task.prediction_lines(self.line, self.prediction))


def predict(
    task: TaskFolder, texts: Texts, *, split_on_spaces: SplitOnSpaces = False, device: Device = None, **decoding: Any
) -> Iterator[LinePrediction]:
    """Predict with a trained task: tags of words, labels of texts, labels or scores of pairs, answers, roles, texts.

    One text per line. A tagger prints a word and its tag per line, and a blank line between texts; one trained with
    --document-context reads the lines as one document, which an empty line ends. A classifier prints the label, its probability
    and the text, separated by tabs. For pairs, a line has two texts separated by a tab, or TEXT is given twice; for reading
    these are a question and a paragraph; for choices, a question and two or more choices. For roles, a line begins with the
    positions of its predicates, from 0 and separated by commas, then a space and the text. Coreference marks and lists the
    mentions of an entity. Generation prints the generated text.

    >>> import polyseme                                                  # doctest: +SKIP
    >>> list(polyseme.predict("my-tagger", ["Ann lives in Paris ."]))    # doctest: +SKIP
    """
    trained = loaded_task(task, device).sharing_weights()  # the options are for this call alone
    trained.set_decoding(decoding)
    lines: Iterable[Any] = [texts] if isinstance(texts, str) else texts
    if isinstance(lines, list | tuple | TextLines) and not isinstance(lines, TableLines):
        lines = TextLines(trained.lines_from_arguments(list(lines)))
    return _predictions(trained, lines, split_on_spaces)


def _predictions(task: Task, lines: Iterable[str], split_on_spaces: bool) -> Iterator[LinePrediction]:
    """Predict some lines at a time; lines of one document wait for its end."""
    done, read, name = 0, 0, getattr(lines, "name", "texts")
    waiting: list[tuple[str, Any]] = []
    empty: list[int] = []
    for some in _chunks(lines):
        if some and not read:
            _warn_of_scripts(task, some, name)
        if some and not read and not isinstance(lines, TextLines):
            _refuse_tables(some, name)
            _warn_if_labelled(task, some, name)
        numbers = lines.numbers[read:] if isinstance(lines, TableLines) else itertools.count(read + 1)
        numbered = list(zip(some, numbers, strict=False))
        if not task.multi_line:
            empty += [number for line, number in numbered if not _has_text(line)]
        for line, number in numbered:
            waiting.append((line, task.parse_line(line, f"{name}:{number}", split_on_spaces=split_on_spaces)))
        read += len(some)
        inputs = [each for _, each in waiting]
        final = task.num_final(inputs) if some else len(inputs)
        with caller_names_empty_texts():
            predictions = task.predict(inputs[:final]) if final else []
        for (line, _), prediction in zip(waiting[:final], predictions, strict=True):
            yield LinePrediction(task, line, prediction, first=done == 0)
            done += 1
        del waiting[:final]
    if not read:
        _log.warning("%s: no lines, so nothing is predicted", name)
    if empty:
        _log.warning("%s: %s", name, about_empty(empty, PREDICTION))


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Some lines at a time, and none at the end."""
    source = iter(lines)
    while some := list(itertools.islice(source, LINES_AT_ONCE)):
        yield some
    yield []


def _are_words(line: Any) -> bool:
    """Whether an input in Python is the words of a text; a document, for coreference, is a list of these."""
    return isinstance(line, list | tuple) and all(isinstance(each, str) for each in line)


def _has_text(line: Any) -> bool:
    return not (isinstance(line, str) or _are_words(line)) or has_text(line)


def _warn_of_scripts(task: Task, lines: list[Any], name: str) -> None:
    """Warn if the encoders of a task cannot read the texts well."""
    from polyseme.encoders.script_check import sample, task_warnings
    from polyseme.text.script import ScriptProfile

    seen = sample([line for line in lines if isinstance(line, str) or _are_words(line)])
    profile = ScriptProfile.of(seen)
    for encoder in task.features.contextual:
        for why in task_warnings(encoder, profile, seen):
            _log.warning("%s: %s", name, why)


def _refuse_tables(lines: list[Any], name: str) -> None:
    """Raise an error if the first lines are JSON objects, or CSV with a header."""
    from polyseme.text.labelled.column_names import is_header
    from polyseme.text.labelled.numbered_lines import is_object

    first = [line for line in lines[:_HEAD] if isinstance(line, str) and line.strip()]
    if first and all(line.startswith("{") for line in first) and is_object(first[0]):
        raise UsageError(not_plain_text(name, "JSON lines"))
    names = first[0].split(",") if first else []
    if len(first) > 1 and len(names) > 1 and all("," in line for line in first) and is_header(names):
        raise UsageError(not_plain_text(name, f"CSV (it begins with {short(first[0])!r})"))


def _warn_if_labelled(task: Task, lines: list[Any], name: str) -> None:
    """Warn if lines look like labelled data, and the task takes each as a text."""
    from polyseme.tasks.base import Task
    from polyseme.text.labelled.tagged_lines import tagged_line

    texts = (line for line in lines if isinstance(line, str))
    full = [line for line in texts if line.strip() and not line.startswith("#")]  # CoNLL-U has comments
    if type(task).lines_from_arguments is not Task.lines_from_arguments or not full:
        return
    what, tagged = "", [line for line in full if task.kind == "tagging" and _ends_with(line, task.labels)]
    if all("\t" in line for line in full):
        what = "every line has a tab, as in labelled data, and is read as one text"
    elif len(tagged) >= _MOST * len(full) or tagged_line(full):
        what = "the lines are words and a tag, as in labelled data, and each is read as one text"
    if what:
        _log.warning("%s: %s; give the texts alone, one per line, or score the data with `polyseme evaluate`", name, what)


def _ends_with(line: str, tags: Sequence[str]) -> bool:
    """Whether a line is words and a tag at its end, known or of a scheme of spans."""
    *words, last = line.split()
    return bool(words) and (last in tags or _SPAN_TAG.fullmatch(last) is not None)


def run_prediction(
    task: TaskFolder,
    texts: Texts,
    *,
    text: TextColumn = None,
    second: SecondColumn = None,
    out: PredictionsOut = None,
    split_on_spaces: SplitOnSpaces = False,
    device: Device = None,
    **decoding: Any,
) -> Iterator[LinePrediction] | PredictedFile:
    """Predict with a trained task: tags of words, labels of texts, labels or scores of pairs, answers, roles, texts.

    One text per line, or per row of a table: --text names its column. A tagger prints a word and its tag per line, and a blank
    line between texts; one trained with --document-context reads the lines as one document, which an empty line ends. A
    classifier prints the label, its probability and the text, separated by tabs. For pairs, a line has two texts separated by a
    tab, or TEXT is given twice; for reading these are a question and a paragraph; for choices, a question and two or more
    choices. For roles, a line begins with the positions of its predicates, from 0 and separated by commas, then a space and the
    text. Coreference marks and lists the mentions of an entity. Generation prints the generated text.
    """
    lines: Any = texts
    if out is not None:
        from polyseme.api.prediction_file import check_out_table, write_predictions

        check_out_table(Path(out).expanduser(), lines.name)
    trained = loaded_task(task, device)
    if isinstance(lines, FileLines):
        from polyseme.tasks.predicted_tables import lines_of_table

        lines = lines_of_table(trained, Path(lines.name), text, second) or lines
    elif text is not None or second is not None:
        column = arg("text" if text is not None else "second")
        raise UsageError(f"{column} names a column of a file: give {arg('input', 'FILE')}")
    predictions = predict(trained, lines, split_on_spaces=split_on_spaces, **decoding)
    return predictions if out is None else write_predictions(predictions, lines, Path(out).expanduser())
