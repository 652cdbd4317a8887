"""What people see of results: aligned columns for a terminal, small HTML for a notebook.

All functions return text. Columns count as a terminal shows them: a Chinese character takes two. HTML is escaped here and
nowhere else, so a result object cannot forget it; colours come with the text, because notebooks drop style sheets.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

COLOURS = ("#cfe8ff", "#ffe0b3", "#d5f5d0", "#f7d4ea", "#e4dbff", "#fff3a6", "#c9f0ee", "#f5d0c5")
"""Backgrounds of spans, by the order in which labels occur."""
_BLOCKS = " ▏▎▍▌▋▊▉█"


def short(text: str, width: int = 40) -> str:
    """Text on one line, cut to a number of terminal columns.

    >>> short("a\\tword", 5), short("河岸边的银行", 7)
    ('a wo…', '河岸边…')
    """
    from rich.cells import cell_len, set_cell_size

    text = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * width])
    return text if cell_len(text) <= width else set_cell_size(text, width - 1).rstrip() + "…"


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Text filled up with blanks to a width in terminal columns; `right`: aligned to the right.

    >>> padded("河", 4) + "|", padded("7", 3, right=True)
    ('河  |', '  7')
    """
    from rich.cells import cell_len

    blanks = " " * max(width - cell_len(text), 0)
    return blanks + text if right else text + blanks


def columns(rows: Sequence[Sequence[str]], *, indent: int = 2, right: Iterable[int] = (), gap: int = 2) -> str:
    """Rows with aligned columns, one line each; those whose numbers are in `right` are aligned to the right.

    >>> print(columns([("word", "n"), ("bank", "12")], right=[1], indent=0))
    word   n
    bank  12
    """
    from rich.cells import cell_len

    count = max((len(row) for row in rows), default=0)
    widths = [max((cell_len(row[i]) for row in rows if i < len(row)), default=0) for i in range(count)]
    lines = []
    for row in rows:
        cells = [padded(cell, widths[i], right=i in set(right)) for i, cell in enumerate(row)]
        lines.append(" " * indent + (" " * gap).join(cells).rstrip())
    return "\n".join(lines)


def count(number: int, thing: str) -> str:
    """A number of things.

    >>> count(1, "word"), count(1200, "line")
    ('1 word', '1,200 lines')
    """
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def plain(value: Any) -> str:
    """A value as a person writes it.

    >>> plain(True), plain(1200), plain("text")
    ('yes', '1,200', 'text')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


def named_values(values: Mapping[str, Any]) -> str:
    """Names and values in two columns, without those that are None.

    >>> print(named_values({"layers": 3, "card": None, "hidden_size": 1024}))
    layers       3
    hidden size  1,024
    """
    return columns([(name.replace("_", " "), plain(value)) for name, value in values.items() if value is not None], indent=0)


def bar(value: float, largest: float, width: int = 20) -> str:
    """A bar of block characters whose length shows a value.

    >>> bar(0.5, 1.0, 4), bar(0.0, 1.0, 4)
    ('██', '')
    """
    eighths = round(8 * width * max(value, 0.0) / largest) if largest > 0 else 0
    return (_BLOCKS[-1] * (eighths // 8) + _BLOCKS[eighths % 8]).rstrip()


def json_text(value: Any, *, indent: int | None = None) -> str:
    """A value as JSON; a lone surrogate, which has no UTF-8, as an escape."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = json.dumps(value, indent=indent)
    return text


def format_size(count: float) -> str:
    """Format a number of bytes.

    >>> format_size(812), format_size(1_940_000_000), format_size(56_300_000)
    ('812 bytes', '1.9 GB', '56 MB')
    """
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        count /= 1000
        if count < 999.5 or unit == "TB":
            break
    return f"{count:.1f} {unit}" if count < 9.95 else f"{count:,.0f} {unit}"


def two_digits(number: float) -> str:
    """Format a number that may be large or small by its two leading digits, a large one in full.

    >>> two_digits(0.0123), two_digits(2.5), two_digits(150), two_digits(23_456)
    ('0.012', '2.5', '150', '23,456')
    """
    return f"{number:,.0f}" if abs(number) >= 99.5 else f"{number:.2g}"


def format_score(score: float | None) -> str:
    """Format a score for a table; one that is missing or not defined is an empty cell.

    >>> format_score(0.12345), format_score(float("nan")), format_score(None)
    ('0.1235', '', '')
    """
    return "" if score is None or math.isnan(score) else f"{score:.4f}"


def format_duration(seconds: float) -> str:
    """Format seconds, in at most two units.

    >>> format_duration(0.31), format_duration(42), format_duration(12_001), format_duration(200_000)
    ('0.3 s', '42 s', '3 h 20 min', '2 d 8 h')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


# ---- notebooks


def html_table(header: Sequence[str], rows: Iterable[Sequence[Any]], *, caption: str = "") -> str:
    """An HTML table; every cell is escaped.

    >>> html_table(["word"], [["<b>"]])
    '<table><thead><tr><th>word</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(plain(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_spans(pieces: Iterable[tuple[str, str | None]], *, separator: str = " ") -> str:
    """Text in which some pieces have a label: coloured, with the label behind; every text is escaped.

    >>> "&lt;Ann&gt;" in html_spans([("<Ann>", "PER"), ("sat", None)])
    True
    """
    colours: dict[str, str] = {}
    shown = []
    for text, label in pieces:
        if label is None:
            shown.append(html.escape(text))
            continue
        colour = colours.setdefault(label, COLOURS[len(colours) % len(COLOURS)])
        style = f"background:{colour};color:#111;border-radius:3px;padding:1px 3px"
        shown.append(f'<span style="{style}">{html.escape(text)} <small><b>{html.escape(label)}</b></small></span>')
    return f'<div style="line-height:1.9">{html.escape(separator).join(shown)}</div>'


def html_bars(values: Mapping[str, float]) -> str:
    """Named numbers as horizontal bars; every name is escaped.

    >>> "width:100%" in html_bars({"layer 0": 0.25, "layer 1": 0.75})
    True
    """
    largest = max(values.values(), default=0.0)
    rows = []
    for name, value in values.items():
        share = 100 * max(value, 0.0) / largest if largest > 0 else 0.0
        strip = f'<div style="background:#4a90d9;height:0.8em;width:{share:.0f}%"></div>'
        number = f'<td style="width:15em">{strip}</td><td>{value:.3f}</td>'
        rows.append(f"<tr><td>{html.escape(name)}</td>{number}</tr>")
    return f"<table>{''.join(rows)}</table>"
