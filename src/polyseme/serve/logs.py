"""The log of the service on stderr: one line for each request and event, as text or JSON, never with the texts of users.

The message of an exception may hold a text, so of an exception the log has its type and the lines of code that it came from.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from polyseme.base.display import count

log = logging.getLogger("polyseme.serve")


class TextLines(logging.Formatter):
    """`2026-11-17T04:50:01Z 127.0.0.1 POST /v1/words 200 2 texts 8 words 12.3 ms`."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", None)
        if fields is None:
            return f"{_time(record)} {record.levelname.lower()}: {_message(record)}"
        address = fields.get("path", fields.get("endpoint", "-"))
        parts = [
            str(each) for each in (fields.get("client", "-"), fields.get("method", "-"), address, fields.get("status", "-"))
        ]
        parts += [count(fields[name], name.removesuffix("s")) for name in ("texts", "words") if name in fields]
        return f"{_time(record)} {' '.join(parts)} {fields['milliseconds']} ms"


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, "fields", {})
        return json.dumps({"time": _time(record), "level": record.levelname.lower(), "message": _message(record), **fields})


def _message(record: logging.LogRecord) -> str:
    """What is said, on one line."""
    error = record.exc_info[1] if record.exc_info else None
    return " ".join(record.getMessage().split()) + (f": {error_without_texts(error)}" if error else "")


def error_without_texts(error: BaseException) -> str:
    """Return the type of an exception with file, line and function of each frame, and those of its causes.

    >>> error_without_texts(ValueError("a text of a user"))
    'ValueError'
    """
    parts: list[str] = []
    seen = set[int]()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        frames = [f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in traceback.extract_tb(each.__traceback__)]
        parts.append(f"{type(each).__name__} at {', '.join(frames)}" if frames else type(each).__name__)
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
    return ", caused by ".join(parts)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


@contextmanager
def write_logs(*, json: bool) -> Iterator[None]:
    """Within this block the service and the HTTP server write their log on stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if json else TextLines())
    loggers = {log: logging.INFO, logging.getLogger("uvicorn"): logging.WARNING}
    before = [(each, each.level, each.propagate) for each in loggers]
    for each, level in loggers.items():
        each.addHandler(handler)
        each.setLevel(level)
        each.propagate = False
    try:
        yield
    finally:
        for each, level, propagate in before:
            each.removeHandler(handler)
            each.setLevel(level)
            each.propagate = propagate
