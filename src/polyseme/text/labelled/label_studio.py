"""Tasks that Label Studio exports as JSON, as rows with a text and its label or its marked spans.

    [{"data": {"text": "Ann ran"}, "annotations": [{"result": [
        {"type": "labels", "value": {"start": 0, "end": 3, "labels": ["PER"]}},
        {"type": "choices", "value": {"choices": ["good"]}}]}]}]

A row has what the tasks have: spans, a label, or both. Of several annotations of a task the first that was not cancelled is
taken; a task without one has no label. The short form ("JSON-MIN") has rows as other tools write them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from polyseme.text.labelled.field_names import TEXT

Row = dict[str, Any]
_ADDRESS = re.compile(r"(?:https?|s3|gs|file)://\S+$")


def is_task(row: Any) -> bool:
    """Whether a row of a JSON document is a task of Label Studio."""
    return isinstance(row, dict) and isinstance(row.get("data"), dict) and isinstance(row.get("annotations"), list)


def plain_rows(tasks: Sequence[Row]) -> list[Row]:
    """Return tasks as rows.

    >>> result = [{"type": "choices", "value": {"choices": ["good"]}}]
    >>> plain_rows([{"data": {"text": "Ann ran"}, "annotations": [{"result": result}]}])
    [{'text': 'Ann ran', 'label': 'good'}]
    """
    marked, chosen = (any(_values(task, kind) for task in tasks) for kind in ("labels", "choices"))
    rows = list[Row]()
    for task in tasks:
        row: Row = {"text": _text(task)}
        if marked:
            row["spans"] = _values(task, "labels")
        if chosen or not marked:
            row["label"] = _choice(task)
        if _annotations(task) or not marked:  # else its words would all be outside of spans
            rows.append(row)
    return rows


def _annotations(task: Row) -> list[Row]:
    return [each for each in task["annotations"] if isinstance(each, dict) and not each.get("was_cancelled")]


def _values(task: Row, kind: str) -> list[Row]:
    """The values of one kind in the first annotation of a task."""
    results = next((each.get("result") for each in _annotations(task)), None)
    parts = [part for part in results if isinstance(part, dict)] if isinstance(results, list) else []
    return [part["value"] for part in parts if part.get("type") == kind and isinstance(part.get("value"), dict)]


def _choice(task: Row) -> Any:
    """The label of a task; several, which no task here has, are a list."""
    given = [value.get("choices") or [] for value in _values(task, "choices")]
    chosen = [name for names in given for name in ([names] if isinstance(names, str) else names)]
    return chosen if len(chosen) > 1 else chosen[0] if chosen else None


def _text(task: Row) -> str:
    """The text of a task: the field with a well-known name, else the longest that is no address."""
    data = {name: value for name, value in task["data"].items() if isinstance(value, str) and not _ADDRESS.match(value)}
    known = next((data[name] for name in TEXT if name in data), None)
    return known if known is not None else max(data.values(), key=len, default="")
