"""`polyseme predict`: what a trained task says of text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.cli import show
from polyseme.cli.decoding_options import AnswersOptions
from polyseme.cli.option_groups import command
from polyseme.cli.options import Device, Input, Json, SplitOnSpaces, Texts
from polyseme.text.files.lines import TextLines, lines_of

if TYPE_CHECKING:
    from polyseme.tasks.base import Task

AT_A_TIME = 4096  # lines that stand in memory; among them, texts of like length go together

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained task, as polyseme train wrote it.")]


@command
def predict(
    folder: Folder,
    decoding: AnswersOptions,
    texts: Texts = None,
    input: Input = None,
    split_on_spaces: SplitOnSpaces = False,
    json: Json = False,
    device: Device = None,
) -> None:
    """Ask a trained task: tags of words, labels of texts, labels or scores of pairs, answers to questions, roles of words.

    One text a line. A tagger gives a word and its tag on each line, and a blank line between texts; one that was trained
    with --document-context reads the lines as one document, which an empty line ends. A classifier gives the label, its
    probability and the text, divided by tabs. For pairs, a line holds two texts divided by a tab, or TEXT is given twice;
    for a reader these are a question and a paragraph, and it gives the answer, its score and the line; for choices, a
    question and two choices or more. For roles, a line begins with the numbers of its predicates, from 0 and divided by
    commas, then a blank and the text; each word comes with one tag for each predicate. Coreference marks and lists what
    means the same; generation gives the text that it makes of each, with
    --num-return-sequences several, and a blank line between texts.

    Examples:

        polyseme predict my-tagger "Ann lives in Paris."

        polyseme predict my-classifier --input reviews.txt --json

        polyseme predict my-reader "Who left?" "Ann saw Bob leave."

        polyseme predict my-roles "1,3 Ann saw Bob leave"

        polyseme predict my-translator --input sentences.txt --strategy sample --top-p 0.9 --num-return-sequences 3
    """
    lines = lines_of(texts, input)
    from polyseme.studies.train import load_task

    task = load_task(folder, device=device)
    decoding.set_on(task)
    if texts:
        lines = TextLines(task.lines_from_arguments(texts))
    name = "TEXT" if texts else str(input or "standard input")
    done, read = 0, 0
    waiting: list[tuple[str, Any]] = []  # lines and what they ask
    for some in _chunks(lines):
        if some and not texts and not read:
            _tell_labelled(task, some, folder, name)
        for number, line in enumerate(some, read + 1):
            waiting.append((line, task.parse_line(line, f"{name}:{number}", split_on_spaces=split_on_spaces)))
        read += len(some)
        questions = [question for _, question in waiting]
        count = task.num_final(questions) if some else len(questions)
        for (line, _), answer in zip(waiting[:count], task.predict(questions[:count]) if count else [], strict=True):
            if json:
                show.as_json(task.prediction_values(line, answer))
            else:
                _show(task.prediction_lines(line, answer), apart=task.multi_line and done > 0)
            done += 1
        del waiting[:count]


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    """Some lines at a time, and none at the end."""
    source = iter(lines)
    while some := list(itertools.islice(source, AT_A_TIME)):
        yield some
    yield []


def _tell_labelled(task: Task, lines: list[str], folder: Path, name: str) -> None:
    """A note where the first lines of an input look like labelled data, and the task takes each for a text.

    Tasks whose lines are divided by tabs make them of their arguments in a way of their own (`lines_from_arguments`).
    """
    from polyseme.tasks.base import Task

    full = [line for line in lines if line.strip() and not line.startswith("#")]  # CoNLL-U has comments
    if type(task).lines_from_arguments is Task.lines_from_arguments and full and all("\t" in line for line in full):
        found = f"{name}: line after line has a tab, as in labelled data"
        way = f"give the texts alone, one a line, or score the data with polyseme evaluate {folder} FILE"
        show.note(f"{found}, and each whole line is taken for a text; {way}")


def _show(lines: Iterable[str], *, apart: bool) -> None:
    """An answer; `apart` from the one before."""
    if apart:
        show.line()
    for line in lines:
        show.line(line)
