"""Each line of a code block in an element of its own, so that the style sheet can indent what wraps.

Long shell commands and lines of Python wrap below their own indentation, which the element tells the style sheet. The line
break stays outside of the element: copied text has the lines of the page's source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pygments.formatters import HtmlFormatter
from sphinx.highlighting import PygmentsBridge


class LineFormatter(HtmlFormatter[str]):
    def wrap(self, source: Any) -> Iterator[tuple[int, str]]:
        return super().wrap(_lines(source))


TAG = re.compile(r"<[^>]*>")


def _lines(source: Any) -> Iterator[tuple[int, str]]:
    for is_code, line in source:
        text = line.rstrip("\n")
        shown = TAG.sub("", text)
        indent = len(shown) - len(shown.lstrip(" "))
        style = f' style="--indent: {indent}ch"' if indent else ""
        yield is_code, f'<span class="line"{style}>{text}</span>\n' if is_code and text else line


def setup(app: Any) -> dict[str, Any]:
    PygmentsBridge.html_formatter = LineFormatter
    return {"parallel_read_safe": True, "parallel_write_safe": True}
