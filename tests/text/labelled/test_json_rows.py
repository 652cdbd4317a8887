"""Rows of JSON in the shapes in which people have them: with commas, indented, as an array, one after another."""

import json

import pytest

from polyseme.base.errors import FormatError
from polyseme.text.corpus import Corpus
from polyseme.text.labelled.conll import read_conll
from polyseme.text.labelled.tables import read_table

TEXTS = [("a good day", "yes"), ("a bad, bad day", "no"), ("ends so },", "yes")]
ROWS = [{"text": text, "label": label} for text, label in TEXTS]
TAGGED = [{"words": ["Ann", "ran"], "tags": ["B-PER", "O"]}, {"words": ["Go", "on"], "tags": ["O", "O"]}]


def shapes(rows: list) -> dict[str, str]:
    lines = [json.dumps(row) for row in rows]
    return {
        "lines": "\n".join(lines),
        "commas": ",\n".join(lines) + ",\n",
        "commas and blanks": " ,\n".join(lines),
        "array": json.dumps(rows),
        "indented array": json.dumps(rows, indent=2),
        "array of lines": "[\n" + ",\n".join(lines) + "\n]\n",
        "indented objects": "\n".join(json.dumps(row, indent=2) for row in rows) + "\n",
    }


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
@pytest.mark.parametrize("shape", shapes(ROWS))
def test_texts_and_tags(tmp_path, suffix, shape):
    path = tmp_path / f"data.{suffix}"
    path.write_text(shapes(ROWS)[shape])
    assert [(row.first, row.label) for row in read_table(path, strict=False).rows] == TEXTS
    path.write_text(shapes(TAGGED)[shape])
    assert [(each.words, each.tags) for each in read_conll(path)] == [(row["words"], row["tags"]) for row in TAGGED]


def test_other_lines_are_still_bad(tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_text(shapes(ROWS)["commas"] + '{"text": "x", "label"\n')
    table = read_table(path, strict=False)
    assert len(table.rows) == 3 and len(table.bad) == 1
    path.write_text(shapes(ROWS)["indented objects"] + "and text\n")
    with pytest.raises(FormatError, match="is not JSON"):
        read_table(path)


def test_text_to_train_on(tmp_path):
    path = tmp_path / "text.jsonl"
    path.write_text(shapes(ROWS)["commas"])
    assert len(list(Corpus(path, splitter="whitespace", sentences="lines"))) == 3
    for shape in ("array", "indented array", "array of lines"):
        path.write_text(shapes(ROWS)[shape])
        with pytest.raises(FormatError, match=r"text.jsonl:1: begins a JSON array; expected JSON lines, .* jq -c '.\[\]' FILE"):
            list(Corpus(path, splitter="whitespace", sentences="lines"))
