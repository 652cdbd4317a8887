"""`polyseme predict`: what a trained task says of text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from polyseme.base.errors import FormatError, UsageError
from polyseme.cli import show
from polyseme.cli.lines import TextLines, lines_of
from polyseme.cli.options import Device, Input, Json, SplitOnSpaces, Texts

AT_A_TIME = 4096  # lines that stand in memory; among them, texts of like length go together

Folder = Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a trained task, as polyseme train wrote it.")]


def predict(
    folder: Folder,
    texts: Texts = None,
    input: Input = None,
    split_on_spaces: SplitOnSpaces = False,
    json: Json = False,
    device: Device = None,
) -> None:
    """Ask a trained task: tags of words, labels of texts, labels or scores of pairs.

    One text a line. A tagger gives a word and its tag on each line, and a blank line between texts; a classifier gives the
    label, its probability and the text, divided by tabs. For pairs, a line holds two texts divided by a tab, or TEXT is
    given twice.

    Examples:

        polyseme predict my-tagger "Ann lives in Paris."

        polyseme predict my-classifier --input reviews.txt --json
    """
    lines = lines_of(texts, input)
    from polyseme.studies.train import load_task

    task = load_task(folder, device=device)
    paired = task.kind == "pairs"
    if paired and texts:
        lines = TextLines(_paired(texts))
    name = "TEXT" if texts else str(input or "standard input")
    done = 0
    for some in _chunks(lines):
        questions = [_texts(line, f"{name}:{done + place}", paired, split_on_spaces) for place, line in enumerate(some, 1)]
        for place, (line, answer) in enumerate(zip(some, task.predict(questions), strict=True), done):
            _show(line, answer, place, json)
        done += len(some)


def _chunks(lines: Iterable[str]) -> Iterator[list[str]]:
    source = iter(lines)
    while some := list(itertools.islice(source, AT_A_TIME)):
        yield some


def _paired(texts: list[str]) -> list[str]:
    """Arguments as lines of two texts."""
    if all("\t" in text for text in texts):
        return texts
    if len(texts) != 2 or any("\t" in text for text in texts):
        raise UsageError(
            f"this task judges pairs: give TEXT twice, or each pair as one TEXT with a tab between; got {len(texts)}"
        )
    return ["\t".join(texts)]


def _texts(line: str, where: str, paired: bool, split_on_spaces: bool) -> Any:
    """What the task is asked of a line."""
    texts = line.split("\t") if paired else [line]
    if paired and len(texts) != 2:
        raise FormatError(where, f"holds {show.count(len(texts), 'text')}; this task judges pairs: two texts divided by a tab")
    found = [text.split() if split_on_spaces else text for text in texts]
    return tuple(found) if paired else found[0]


def _show(line: str, answer: Any, place: int, json: bool) -> None:
    if json:
        show.as_json(_values(line, answer))
    elif hasattr(answer, "tags"):
        if place:
            show.line()
        for word, tag in zip(answer.words, answer.tags, strict=True):
            show.line(f"{word}\t{tag}")
    elif hasattr(answer, "score"):
        show.line(f"{answer.score:.4f}\t{line}")
    else:
        show.line(f"{answer.label}\t{answer.probability:.4f}\t{line}")


def _values(line: str, answer: Any) -> dict[str, Any]:
    if hasattr(answer, "tags"):
        return {"words": answer.words, "tags": answer.tags}
    if hasattr(answer, "score"):
        return {"text": line, "score": answer.score}
    return {"text": line, "label": answer.label, "probability": answer.probability, "probabilities": answer.probabilities}
