"""Lines of a data file with their numbers, so that a message can name the line; and what most formats need of a line.

Files are plain, gzip, xz or zstd, recognised by content. Lines end at "\\n" or "\\r\\n", in files without these at "\\r".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeGuard

from polyseme.base.errors import FormatError
from polyseme.text.files.lines import FileLines

Line = tuple[int, str]
"""The number of a line, and the line."""
_CELL = re.compile(r"[^ \t]+")  # a no-break space belongs to its word
_WIDE_BLANKS = re.compile("\u3000+")  # the blank of Chinese input methods, which may also be a word


def numbered_lines(path: str | Path) -> Iterator[Line]:
    """Yield (number, line) from line 1 on, without line ends; a line that is not UTF-8 is an error.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.txt"); _ = file.write_bytes(b"one\\r\\ntwo")
    >>> list(numbered_lines(file))
    [(1, 'one'), (2, 'two')]
    """
    file = Path(path).expanduser()
    if file.is_dir():
        what = "one file with all examples and their labels, or the folder of a Dataset, as save_to_disk writes it"
        classes = "; for classification also a folder with a folder of text files (.txt) for each class"
        raise FormatError(path, f"is a folder; expected {what}{classes}")
    lines = iter(FileLines(file))
    head = list(islice(lines, 2))
    if len(head) == 1:
        head = head[0].split("\r")  # as on old Macs; the end of the last line is no line
        head = head if head[-1] or len(head) == 1 else head[:-1]
    yield from enumerate(chain(head, lines), start=1)


def first_line(path: str | Path) -> str | None:
    """Return the first line that is not blank."""
    return next((line for _, line in numbered_lines(path) if line.strip()), None)


def cells(line: str) -> list[str]:
    """Return the columns of a line that are separated by spaces or tabs; where it has neither, by ideographic spaces.

    A line of nothing but white space has none.

    >>> cells("患\\u3000O"), cells("\\u3000 O"), cells("\\u3000")
    (['患', 'O'], ['\\u3000', 'O'], [])
    """
    if not line.strip():
        return []
    found: list[str] = _CELL.findall(line)
    if len(found) == 1 and "\u3000" in line and line == found[0]:
        word, *tags = _WIDE_BLANKS.split(line.rstrip("\u3000"))
        return [word or "\u3000", *tags] if tags else found
    return found


def json_object(where: str, line: str, expected: str = "one object {...} per line") -> dict[str, Any]:
    """Return the JSON object of a line; half of a surrogate pair in its texts is an error too."""
    line = without_comma(line)
    try:
        values = json.loads(line)
        if "\\u" in line:
            json.dumps(values, ensure_ascii=False).encode()  # UTF-8 rejects half of a surrogate pair
    except UnicodeEncodeError:
        raise FormatError(where, "has half of a surrogate pair (one of \\ud800 to \\udfff alone); fix the text") from None
    except (ValueError, RecursionError) as error:
        raise FormatError(where, f"is not JSON ({error}); expected {expected}") from None
    if not isinstance(values, dict):
        raise FormatError(where, f"is {line[:20]!r}; expected {expected}")
    return values


def without_comma(line: str) -> str:
    """Return a line without a comma behind its object, as lines that were cut out of a JSON array have it.

    >>> without_comma('{"text": "a"}, '), without_comma("one, two,")
    ('{"text": "a"}', 'one, two,')
    """
    short = line.rstrip(" \t,")
    return short if short.endswith("}") else line


def is_object(line: str) -> bool:
    """Whether a line is a JSON object."""
    try:
        return isinstance(json.loads(without_comma(line)), dict)
    except (ValueError, RecursionError):
        return False


def are_strings(values: Any) -> TypeGuard[list[str]]:
    """Whether a value of JSON is a list of strings."""
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def shown(value: Any) -> str:
    """Return a value of JSON for a message."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:40]}..."
