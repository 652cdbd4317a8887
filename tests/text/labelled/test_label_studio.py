"""Exports of Label Studio: texts with marked spans, and texts with a choice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from polyseme.text.labelled.conll import read_conll
from polyseme.text.labelled.tables import read_usable_rows


def write(path: Path, *tasks: dict[str, Any]) -> Path:
    path.write_text(json.dumps(tasks, ensure_ascii=False, indent=2), encoding="utf-8")
    return path


def annotated(text: str, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    parts = [{"id": "x", "from_name": "label", "to_name": "text", **result} for result in results]
    return {
        "id": 1,
        "data": {"text": text, "url": "https://example.org/a/long/address/of/the/text"},
        "annotations": [{"result": parts, **more}],
    }


def span(begin: int, end: int, kind: str, text: str) -> dict[str, Any]:
    return {"type": "labels", "value": {"start": begin, "end": end, "text": text, "labels": [kind]}}


def choice(*names: str) -> dict[str, Any]:
    return {"type": "choices", "value": {"choices": list(names)}}


def test_spans(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.json",
        annotated("Ann saw New York.", span(0, 3, "PER", "Ann"), span(8, 16, "LOC", "New York")),
        annotated("Nobody came."),
        {"id": 3, "data": {"text": "Not looked at."}, "annotations": []},
    )
    sentences = read_conll(path, strict=False)
    assert [each.words for each in sentences] == [["Ann", "saw", "New", "York", "."], ["Nobody", "came", "."]]
    assert sentences[0].tags == ["B-PER", "O", "B-LOC", "I-LOC", "O"] and set(sentences[1].tags) == {"O"}


def test_choices(tmp_path: Path) -> None:
    second = annotated("bad", choice("bad"))
    second["annotations"].insert(0, {"result": [choice("good")], "was_cancelled": True})
    first = {
        "id": 1,
        "data": {"review": "a good film", "id": "7", "link": "https://example.org/films/7"},
        "annotations": [{"result": [choice("good")]}],
    }
    path = write(
        tmp_path / "a.json", first, second, annotated("dull", choice("bad")), {"data": {"text": "?"}, "annotations": []}
    )
    rows = read_usable_rows(path, strict=False)
    assert [(row.first, row.label) for row in rows] == [("a good film", "good"), ("bad", "bad"), ("dull", "bad")]


def test_spans_and_choices_of_the_same_texts(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.json",
        annotated("Ann came", span(0, 3, "PER", "Ann"), choice("good")),
        annotated("Nobody left", {"type": "choices", "value": {"choices": "bad"}}),
        annotated("So what", {"type": "choices", "value": {"choices": None}}),
    )
    assert [(row.first, row.label) for row in read_usable_rows(path, strict=False)] == [
        ("Ann came", "good"),
        ("Nobody left", "bad"),
    ]
    assert [each.tags for each in read_conll(path, strict=False)] == [["B-PER", "O"], ["O", "O"], ["O", "O"]]
