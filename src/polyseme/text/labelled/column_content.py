"""What the first rows of a table tell about its columns: which has texts, labels, numbers or dates."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence

from polyseme.text.labelled.column_names import LABEL_HINTS, MAX_NAME, TEXT_HINT, Request, may_be_names

_DECIMAL = re.compile(r"[+-]?\d+(?:[.,]\d+)?")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d|\d{1,2}[-/.]\d{1,2}[-/.]\d{2}")
_CLASSES = (
    *({"0", "1"}, {"-1", "1"}, {"true", "false"}, {"yes", "no"}, {"positive", "negative", "neutral"}, {"pos", "neg"}),
    *({"entailment", "neutral", "contradiction"}, {"entailment", "not_entailment"}, {"spam", "ham"}),
)
"""Values of well-known labels, in lower case."""
_FILLED = 0.9  # of the rows have a label
_MIN_ROWS = 4  # rows from which columns are guessed
_MOST_REPEATED = 0.1  # of the rows repeat a header
_LONGER = 2.0  # times as long as other columns is a text


def with_decimal_point(cell: str) -> str:
    """Return a number whose decimals stand behind a comma, as spreadsheets of many countries write them, with a point.

    >>> with_decimal_point("3,5"), with_decimal_point("3.5"), with_decimal_point("1,2,3")
    ('3.5', '3.5', '1,2,3')
    """
    return cell.replace(",", ".") if _DECIMAL.fullmatch(cell.strip()) else cell


class ColumnContent:
    """The first rows of a table, by columns."""

    def __init__(self, first: list[str], rows: list[list[str]]) -> None:
        self.first, self.rows = first, rows

    def has_header(self) -> bool:
        """Whether the first row has names: its cells occur nowhere else in columns of one or few values, numbers, or dates."""
        if len(self.rows) < _MIN_ROWS or not may_be_names([cell.strip() for cell in self.first]):
            return False
        if any(len(cell) > MAX_NAME for cell in self.first):
            return False
        others = ColumnContent(self.first, [row for row in self.rows if row != self.first])
        repeated = len(self.rows) - len(others.rows)  # by joined files
        if repeated > _MOST_REPEATED * len(self.rows):
            return False
        named = [number for number, cell in enumerate(self.first) if cell.strip()]
        telling = [n for n in named if others._is_label(n) or others._is_number(n) or (not repeated and self.is_constant(n))]
        telling += [number for number in named if others._is_date(number) and not _DATE.match(self.first[number].strip())]
        return bool(telling) and all(self.first[number] not in others._column(number) for number in telling)

    def guess(self, found: dict[str, int], asked: Request, *, header: bool) -> dict[str, int]:
        """Return the columns that are not found yet, where the content makes them clear."""
        if len(self.rows) < _MIN_ROWS:
            return {}
        free = [number for number in range(len(self.first)) if number not in found.values()]
        count = 2 if asked.pairs else 1
        texts = [] if "text" in found else self._longest(free, count)
        guessed: dict[str, int] = {}
        if asked.labelled and "label" not in found:
            labels = self.labels({**found, **dict(zip(("text", "second"), texts, strict=False))}, asked)
            if len(labels) > 1:
                labels = (self._named(labels, LABEL_HINTS.__contains__) or labels) if header else self._clearest(labels)
            if len(labels) == 1:
                guessed["label"] = labels[0]
        if "text" not in found:
            free = [number for number in free if number not in guessed.values()]
            texts = self._longest(free, count)
            if header and not texts and count == 1:
                could = [number for number in free if self.may_be_text(number) and not self._is_label(number)]
                texts = self._named(could, TEXT_HINT.search)
            guessed |= dict(zip(("text", "second"), texts, strict=False))
        return guessed

    def labels(self, found: dict[str, int], asked: Request) -> list[int]:
        """Return the columns that may be the label; numbers with decimals only where nothing else may be."""
        free = [number for number in range(len(self.first)) if number not in found.values()]
        labels = [number for number in free if self._is_label(number)]
        if not labels and asked.pairs:  # scores have many values
            return [number for number in free if self._is_number(number) and self._is_varied(number)]
        return labels if asked.pairs else [number for number in labels if not self.has_decimals(number)] or labels

    def has_better_label(self, found: dict[str, int], asked: Request) -> bool:
        """Whether the label of a single text is a number with decimals, and another column may be the label."""
        if asked.pairs or "second" in found or "label" not in found or not self.has_decimals(found["label"]):
            return False
        return len(self.rows) >= _MIN_ROWS and not all(map(self.has_decimals, self.labels(found, asked)))

    def has_no_label(self, found: Mapping[str, int], asked: Request) -> bool:
        """Whether each free column has dates, or long values that are nearly all different: no label of single texts."""
        if asked.pairs or len(self.rows) < _MIN_ROWS:
            return False
        free = [number for number in range(len(self.first)) if number not in found.values() and not self.is_empty(number)]
        return all(self._is_date(number) or self._is_long(number) for number in free)

    def may_be_text(self, number: int) -> bool:
        """Whether a column has content that is neither dates nor numbers."""
        return not (self.is_empty(number) or self._is_date(number) or self._is_number(number))

    def kind(self, number: int) -> str:
        """Return what a column has, where it is no label."""
        return "dates" if self._is_date(number) else "long values that are nearly all different"

    def by_length(self) -> list[int]:
        """Return the columns, that with the longest values first."""
        return sorted(range(len(self.first)), key=self._length, reverse=True)

    def has_decimals(self, number: int) -> bool:
        """Whether a column has numbers that are not all whole."""
        return self._is_number(number) and any(
            not float(with_decimal_point(cell)).is_integer() for cell in self._column(number) if cell
        )

    def single_class(self, found: dict[str, int]) -> int | None:
        """Return the only free column in which all rows have the same short value; None if there is none, or several."""
        free = [number for number in range(len(self.first)) if number not in found.values()]
        alike = [number for number in free if len(set(self._column(number))) == 1 and 0 < len(self.value(number)) <= MAX_NAME]
        return alike[0] if len(self.rows) > 1 and len(alike) == 1 else None

    def value(self, number: int) -> str:
        """Return the first value of a column."""
        return self._column(number)[0]

    def is_constant(self, number: int) -> bool:
        """Whether all rows have the same value in a column."""
        return len(set(self._column(number))) == 1

    def is_empty(self, number: int) -> bool:
        """Whether a column has no content."""
        return not any(self._column(number))

    def _clearest(self, columns: Sequence[int]) -> list[int]:
        """Return the columns among several that are most like labels."""
        scattered = [number for number in columns if not self._is_in_blocks(number)]
        columns = scattered or columns
        values = {number: {cell.lower() for cell in self._column(number) if cell} for number in columns}
        known = [number for number in columns if any(values[number] <= each for each in _CLASSES)]
        return known if len(columns) > 1 and known else list(columns)

    def _named(self, columns: Sequence[int], is_hint: Callable[[str], object]) -> list[int]:
        """Return the only column whose name is a hint; none where there are several, or none."""
        named = [number for number in columns if is_hint(self.first[number].strip().lower())]
        return named if len(named) == 1 else []

    def _is_in_blocks(self, number: int) -> bool:
        """Whether equal values of a column follow each other, such as the source of each text."""
        cells = self._column(number)
        blocks = 1 + sum(one != other for one, other in itertools.pairwise(cells))
        return blocks <= 2 * len(set(cells)) and len(cells) > 4 * blocks

    def _longest(self, columns: Sequence[int], count: int) -> list[int]:
        """Return the `count` columns that are much longer than all others, in their order; none where there are none."""
        ordered = sorted(columns, key=self._length, reverse=True)
        shortest = self._length(ordered[count - 1]) if len(ordered) >= count else 0.0
        clear = all(shortest >= _LONGER * self._length(number) for number in ordered[count:])
        return sorted(ordered[:count]) if shortest and clear else []

    def _column(self, number: int) -> list[str]:
        return [row[number].strip() for row in self.rows]

    def _length(self, number: int) -> float:
        return sum(map(len, self._column(number))) / max(len(self.rows), 1)

    def _is_label(self, number: int) -> bool:
        """Whether a column has few values, at least two, each short and most of them repeated."""
        cells = [cell for cell in self._column(number) if cell]
        values = set(cells)
        if self._is_date(number):
            return False
        if len(cells) < _FILLED * len(self.rows):
            return False
        return 1 < len(values) <= len(cells) / 2 and max(map(len, values)) <= MAX_NAME

    def _is_date(self, number: int) -> bool:
        cells = [cell for cell in self._column(number) if cell]
        return bool(cells) and all(_DATE.match(cell) for cell in cells)

    def _is_long(self, number: int) -> bool:
        """Whether most values of a column are longer than names, and nearly all are different."""
        cells = [cell for cell in self._column(number) if cell]
        return len(set(cells)) >= _FILLED * len(cells) and self._length(number) > MAX_NAME / 2

    def _is_number(self, number: int) -> bool:
        cells = [cell for cell in self._column(number) if cell]
        return bool(cells) and all(_DECIMAL.fullmatch(cell) for cell in cells)

    def _is_varied(self, number: int) -> bool:
        """Whether numbers are no whole ones, such as counters."""
        return any("." in cell or "," in cell for cell in self._column(number))
