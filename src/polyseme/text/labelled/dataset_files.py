"""Labelled tables as files in the format of a task: Hugging Face datasets, data frames, and folders of saved datasets.

The readers of files check and repair what they read, so a table goes the same way: texts, with marked spans or without, become
JSON lines with the columns of the table, words and tags JSON lines of these alone, questions become SQuAD's JSON. Roles and
coreference have no common columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from polyseme.base.errors import UsageError, arg, nearest
from polyseme.base.files import write_text
from polyseme.text.files.data_tables import Row, is_dataset_folder, is_parquet, is_table, table_rows, to_json_line
from polyseme.text.labelled.field_names import TAGS, WORDS

TABLE_FOLDER = "polyseme-"
"""Begins the names of temporary folders for tables."""
_TABLES = ("classification", "pairs", "choices", "generation")


def is_table_file(path: Path) -> bool:
    """Whether a file was written for a table, in a folder that is there only for the time of a call."""
    return path.parent.name.startswith(TABLE_FOLDER)


def is_dataset(data: object) -> bool:
    """Whether data is a table in memory, the folder of a saved dataset, or a Parquet file."""
    if isinstance(data, str | Path):
        path = Path(data).expanduser()
        return is_dataset_folder(path) or is_parquet(path)
    return is_table(data)


def write_dataset(
    data: Any, task: str, folder: Path, name: str, column: str | None = None, word_column: str | None = None
) -> Path:
    """Write a table as a file of a task, by its name in the registry; `column`: that of the tags, `word_column`: the words."""
    from polyseme.text.labelled.marked_texts import has_words, is_marked  # imports NumPy, which --help does without

    rows = list(table_rows(data))
    if not rows:
        raise UsageError(f"{arg(name)} has no rows: give a table with labelled examples")
    first = next((row for row in rows if has_words(row) or is_marked(row)), rows[0])
    marked = task == "tagging" and is_marked(first) and not has_words(first) and word_column is None
    if task in _TABLES or marked:
        path, text = folder / f"{name}.jsonl", "".join(f"{to_json_line(row)}\n" for row in rows)
    elif task == "tagging":
        path, text = folder / f"{name}.jsonl", _tagged(rows, column, word_column)
    elif task == "reading":
        path, text = folder / f"{name}.json", _squad(rows)
    else:
        known = ", ".join((*_TABLES, "tagging", "reading"))
        raise UsageError(f"{task} is trained from files, because tables have no common columns for it; allowed: {known}")
    write_text(path, text)
    return path


def _tagged(rows: list[Row], column: str | None, word_column: str | None) -> str:
    words, tags = _column(rows[0], WORDS, word_column, "words"), _column(rows[0], TAGS, column, "tags")
    sentences = []
    for number, row in enumerate(rows):
        if len(row[words]) != len(row[tags]):
            raise UsageError(f"row {number} has {len(row[words])} {words} and {len(row[tags])} {tags}; each word needs a tag")
        sentences.append({WORDS[0]: list(map(str, row[words])), TAGS[0]: list(map(str, row[tags]))})
    return "".join(f"{to_json_line(sentence)}\n" for sentence in sentences)


def _column(row: Row, usual: Iterable[str], given: str | None, what: str) -> str:
    lists = [name for name, value in row.items() if isinstance(value, list | tuple) or hasattr(value, "tolist")]
    if given is not None and given not in lists:
        raise UsageError(f"the table has no list of {what} in column {given!r}{nearest(given, lists)}")
    found = given or next((name for name in usual if name in lists), None)
    if found is None:
        hint = f": give {arg('column' if what == 'tags' else 'word_column')}"
        raise UsageError(f"no column of the table is known to have {what} (lists: {', '.join(lists) or 'none'}){hint}")
    return found


def _squad(rows: Iterable[Row]) -> str:
    paragraphs: dict[str, list[Mapping[str, Any]]] = {}
    for number, row in enumerate(rows):
        if missing := [name for name in ("context", "question", "answers") if name not in row]:
            raise UsageError(f"row {number} lacks {', '.join(missing)}; questions have the columns of SQuAD")
        answers = row["answers"] or {"text": [], "answer_start": []}
        both = zip(answers["text"], answers["answer_start"], strict=True)
        found = [{"text": text, "answer_start": int(start)} for text, start in both]
        question = {"id": str(row.get("id", number)), "question": row["question"], "answers": found}
        paragraphs.setdefault(row["context"], []).append(question | {"is_impossible": not found})
    data = [{"context": context, "qas": questions} for context, questions in paragraphs.items()]
    return json.dumps({"version": "v2.0", "data": [{"title": "", "paragraphs": data}]}, ensure_ascii=False)
