"""Predictions as a table: all columns of the input, then the prediction, as CSV, TSV or JSON lines by the name of the file."""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.base.display import count, html_table, json_text
from polyseme.base.errors import UsageError, arg
from polyseme.base.files import atomic, starts_with
from polyseme.base.out_paths import check_out_file
from polyseme.tasks.predictions import main_value
from polyseme.text.empty_texts import has_text
from polyseme.text.files.lines import TableLines
from polyseme.text.labelled.tables import WholeTable, read_whole_table

if TYPE_CHECKING:
    from polyseme.api.predicting import LinePrediction

_SUFFIXES = (".csv", ".tsv", ".jsonl")
_BOMS = (codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PREDICTION, PROBABILITY = "prediction", "probability"
"""The columns that are added."""


@dataclass(frozen=True)
class PredictedFile:
    """A table of predictions that was written."""

    out: Path
    rows: int

    def to_json(self) -> dict[str, Any]:
        return {"out": str(self.out), "rows": self.rows}

    def __str__(self) -> str:
        return f"{self.out}: {count(self.rows, 'row')}"

    def _repr_html_(self) -> str:
        return html_table(["file", "rows"], [[self.out, self.rows]])


def check_out_table(out: Path, source: str) -> None:
    """Refuse an output that is no table by its name, or is the input."""
    if out.suffix.lower() not in _SUFFIXES:
        raise UsageError(f"{arg('out')} is {str(out)!r}; allowed: a name that ends in {', '.join(_SUFFIXES)}")
    check_out_file(out)
    if out.exists() and Path(source).exists() and out.samefile(source):
        raise UsageError(f"{arg('out', str(out))} is the input itself: give another file")


def write_predictions(predictions: Iterable[LinePrediction], lines: Any, out: Path) -> PredictedFile:
    """Write a row for each prediction to a file, which is complete or absent; `lines`: the input.

    The columns are those of the table, or `text`. A text without a word has an empty prediction.
    """
    is_table, is_json = isinstance(lines, TableLines), out.suffix.lower() == ".jsonl"
    table = read_whole_table(lines.name, **lines.columns) if is_table else WholeTable(["text"], {}, ",")
    _check_names(lines.name, table.names, is_json=is_json)
    has_bom = is_table and out.suffix.lower() == ".csv" and any(starts_with(lines.name, bom) for bom in _BOMS)
    added, number = [PREDICTION], 0
    with (
        atomic(out) as part,
        part.open("w", encoding="utf-8-sig" if has_bom else "utf-8", newline="", errors="replace") as file,
    ):
        row_text = _json_row if is_json else _csv_row("\t" if out.suffix.lower() == ".tsv" else table.separator)
        for number, each in enumerate(predictions, start=1):
            values = each.to_json()
            main = main_value(values)
            if main is None:
                advice = f"write {arg('json', True)} into a file instead"
                raise UsageError(
                    f"{arg('out')} has one prediction in a row, and {each.task.kind} has several of a text: {advice}"
                )
            if number == 1:
                added += [PROBABILITY] if PROBABILITY in values else []
                file.write("" if is_json else row_text(table.names, [*table.names, *added]))
            found = [values[main], values.get(PROBABILITY)] if has_text(each.line) else [None, None]
            cells = table.rows[lines.numbers[number - 1]] if is_table else [each.line]
            file.write(row_text([*table.names, *added], [*cells, *found[: len(added)]]))
        if not number and not is_json:
            file.write(row_text(table.names, [*table.names, *added]))
    return PredictedFile(out, number)


def _check_names(path: str, names: Sequence[str], *, is_json: bool) -> None:
    """Refuse columns that the file could not tell apart."""
    if taken := {PREDICTION, PROBABILITY} & set(names):
        raise UsageError(f"{path} has a column {min(taken)!r}, and {arg('out')} adds one of this name: rename it in {path}")
    twice = next((name for name in names if names.count(name) > 1), None)
    if is_json and twice is not None:
        raise UsageError(
            f"{path} has two columns {twice!r}, which JSON lines cannot hold: give a file that ends in .csv or .tsv"
        )


def _json_row(names: Sequence[str], cells: Sequence[object]) -> str:
    return f"{json_text(dict(zip(names, cells, strict=True)))}\n"


def _csv_row(separator: str) -> Callable[[Sequence[str], Sequence[object]], str]:
    """Return how a row is written; values of JSON that are no texts stay JSON."""

    def row_text(names: Sequence[str], cells: Sequence[object]) -> str:
        texts = (
            cell if isinstance(cell, str) else "" if cell is None else json.dumps(cell, ensure_ascii=False) for cell in cells
        )
        row = io.StringIO(newline="")
        csv.writer(row, delimiter=separator, lineterminator="\r\n").writerow(texts)  # so that "\r" in a cell is quoted
        return f"{row.getvalue()[:-2]}\n"

    return row_text
