"""`polyseme predict`: what a trained task says of text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from polyseme.base.errors import FormatError, UsageError
from polyseme.cli import show
from polyseme.cli.lines import TextLines, lines_of
from polyseme.cli.options import Device, Input, Json, SplitOnSpaces, Texts

AT_A_TIME = 4096  # lines that stand in memory; among them, texts of like length go together
_TWO_TEXTS = {"pairs": "judges pairs", "reading": "reads a question and a paragraph"}
_NUMBERED = re.compile(r"(\d+(?:,\d+)*)[ \t]+(.*)")

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained task, as polyseme train wrote it.")]


def predict(
    folder: Folder,
    texts: Texts = None,
    input: Input = None,
    split_on_spaces: SplitOnSpaces = False,
    json: Json = False,
    device: Device = None,
) -> None:
    """Ask a trained task: tags of words, labels of texts, labels or scores of pairs, answers to questions, roles of words.

    One text a line. A tagger gives a word and its tag on each line, and a blank line between texts; a classifier gives the
    label, its probability and the text, divided by tabs. For pairs, a line holds two texts divided by a tab, or TEXT is
    given twice; for a reader these are a question and a paragraph, and it gives the answer, its score and the line. For
    roles, a line begins with the numbers of its predicates, from 0 and divided by commas, then a blank and the text; each
    word comes with one tag for each predicate.

    Examples:

        polyseme predict my-tagger "Ann lives in Paris."

        polyseme predict my-classifier --input reviews.txt --json

        polyseme predict my-reader "Who left?" "Ann saw Bob leave."

        polyseme predict my-roles "1,3 Ann saw Bob leave"
    """
    lines = lines_of(texts, input)
    from polyseme.studies.train import load_task

    task = load_task(folder, device=device)
    if task.kind in _TWO_TEXTS and texts:
        lines = TextLines(_paired(texts, _TWO_TEXTS[task.kind]))
    name = "TEXT" if texts else str(input or "standard input")
    done = 0
    for some in _chunks(lines):
        questions = [_asked(task, line, f"{name}:{done + place}", split_on_spaces) for place, line in enumerate(some, 1)]
        for place, (line, answer) in enumerate(zip(some, task.predict(questions), strict=True), done):
            _show(line, answer, place, json)
        done += len(some)


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    source = iter(lines)
    while some := list(itertools.islice(source, AT_A_TIME)):
        yield some


def _paired(texts: list[str], wants: str) -> list[str]:
    """Arguments as lines of two texts."""
    if all("\t" in text for text in texts):
        return texts
    if len(texts) != 2 or any("\t" in text for text in texts):
        raise UsageError(f"this task {wants}: give TEXT twice, or both as one TEXT with a tab between; got {len(texts)}")
    return ["\t".join(texts)]


def _asked(task: Any, line: str, where: str, split_on_spaces: bool) -> Any:
    """What the task is asked of a line."""
    if task.kind == "roles":
        return _with_places(task, line, where, split_on_spaces)
    wants = _TWO_TEXTS.get(task.kind)
    texts = line.split("\t") if wants else [line]
    if wants and len(texts) != 2:
        raise FormatError(where, f"holds {show.count(len(texts), 'text')}; this task {wants}: two texts divided by a tab")
    found = [text.split() if split_on_spaces else text for text in texts]
    if task.kind == "reading":
        return found[0], found[1:]  # a question, and a list of paragraphs
    return tuple(found) if wants else found[0]


def _with_places(task: Any, line: str, where: str, split_on_spaces: bool) -> tuple[list[str], list[int]]:
    """The words of a line for roles, and the places of its predicates."""
    match = _NUMBERED.fullmatch(line)
    if match is None:
        what = f"begins with {line[:20]!r}; this task tells roles for given predicates: first their numbers, from 0"
        raise FormatError(where, f"{what}, then the text, such as 1,3 Ann saw Bob leave")
    words = match[2].split() if split_on_spaces else task.words(match[2])
    places = [int(number) for number in match[1].split(",")]
    if max(places) >= len(words):
        raise FormatError(where, f"has no word {max(places)}: its words are {' '.join(words)!r}, counted from 0")
    return words, places


def _show(line: str, answer: Any, place: int, json: bool) -> None:
    if json:
        show.as_json(_values(line, answer))
    elif hasattr(answer, "tags") or hasattr(answer, "predicates"):
        if place:
            show.line()
        columns = [one.tags for one in answer.predicates] if hasattr(answer, "predicates") else [answer.tags]
        for row in zip(answer.words, *columns, strict=True):
            show.line("\t".join(row))
    elif hasattr(answer, "span"):
        show.line(f"{answer.text}\t{answer.score:.4f}\t{line}")
    elif hasattr(answer, "score"):
        show.line(f"{answer.score:.4f}\t{line}")
    else:
        show.line(f"{answer.label}\t{answer.probability:.4f}\t{line}")


def _values(line: str, answer: Any) -> dict[str, Any]:
    if hasattr(answer, "predicates"):
        return {"words": answer.words, "predicates": [{"index": one.place, "tags": one.tags} for one in answer.predicates]}
    if hasattr(answer, "tags"):
        return {"words": answer.words, "tags": answer.tags}
    if hasattr(answer, "span"):
        place = None if answer.span is None else [answer.span.begin, answer.span.end]
        return {"text": line, "answer": answer.text, "place": place, "score": answer.score}
    if hasattr(answer, "score"):
        return {"text": line, "score": answer.score}
    return {"text": line, "label": answer.label, "probability": answer.probability, "probabilities": answer.probabilities}
