"""Tables of other libraries as rows: in memory, and in a folder that is written here as `save_to_disk` writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from polyseme.api.table_files import folder_for_tables
from polyseme.base.errors import FormatError, UsageError
from polyseme.text.corpus import Corpus
from polyseme.text.files.data_tables import is_dataset_folder, is_table, table_rows, to_json_line
from polyseme.text.labelled.conll import read_conll
from polyseme.text.labelled.dataset_files import is_dataset, write_dataset

pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow (extra parquet)")
TABLE = {"text": ["a cat", "the bank"], "label": [0, -1], "tokens": [["a", "cat"], ["the", "bank"]], "tags": [[0, 1], [0, 1]]}


def saved(folder: Path) -> Path:
    folder.mkdir()
    table = pyarrow.table(TABLE)
    for number in range(2):
        path = str(folder / f"data-{number}.arrow")
        with pyarrow.OSFile(path, "wb") as file, pyarrow.ipc.new_stream(file, table.schema) as out:
            out.write_table(table.slice(number, 1))
    names = [{"filename": "data-0.arrow"}, {"filename": "data-1.arrow"}]
    (folder / "state.json").write_text(json.dumps({"_data_files": names}))
    label = {"names": ["D", "N"], "_type": "ClassLabel"}
    features = {"text": {"dtype": "string", "_type": "Value"}, "label": label, "tags": {"feature": label, "_type": "List"}}
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    (folder / "cache-1234.arrow").write_bytes(b"not part of it")
    return folder


def test_a_folder_is_read_with_names_of_labels(tmp_path: Path) -> None:
    folder = saved(tmp_path / "saved")
    assert is_dataset_folder(folder) and not is_dataset_folder(tmp_path)
    assert [row["label"] for row in table_rows(folder)] == ["D", None]
    sentences = read_conll(write_dataset(folder, "tagging", tmp_path, "data"))
    assert [(each.words, each.tags) for each in sentences] == [(["a", "cat"], ["D", "N"]), (["the", "bank"], ["D", "N"])]
    assert list(Corpus(folder)) == [["a", "cat"], ["the", "bank"]]
    with pytest.raises(FormatError, match="no column 'texts'"):
        list(Corpus(folder, field="texts"))


def test_a_table_in_memory(tmp_path: Path) -> None:
    table = pyarrow.table(TABLE)
    assert is_table(table) and not is_table(["a", "b"]) and not is_table("text") and not is_table({"a": 1})
    assert list(Corpus(table)) == [["a", "cat"], ["the", "bank"]]
    with pytest.raises(UsageError, match="list of tags"):
        write_dataset(table, "tagging", tmp_path, "data", "tag")


def test_a_column_of_words_of_a_table(tmp_path: Path) -> None:
    table = pyarrow.table({"surface": [["Dogs", "ran"]], "tokens": [["dog", "run"]], "tags": [["N", "V"]]})
    (sentence,) = read_conll(write_dataset(table, "tagging", tmp_path, "data", word_column="surface"))
    assert (sentence.words, sentence.tags) == (["Dogs", "ran"], ["N", "V"])
    with folder_for_tables() as folder:
        given = folder.files("tagging", {"data": table}, {"word_column": "surface", "epochs": 1})
        assert given == {"data": folder.path / "data.jsonl", "epochs": 1}
        with pytest.raises(UsageError, match="data are tables, dev files, which have columns of their own"):
            folder.files("tagging", {"data": table, "dev": "dev.conll", "test": None}, {"word_column": "surface"})
        both = folder.files("tagging", {"data": table, "dev": "dev.conll"}, {"column": None})
        assert both == {"data": folder.path / "data.jsonl", "dev": "dev.conll"}


def test_a_table_of_marked_texts(tmp_path: Path) -> None:
    spans = [[{"start": 0, "end": 3, "label": "PER"}], []]
    path = write_dataset(pyarrow.table({"text": ["Ann ran", "so what"], "spans": spans}), "tagging", tmp_path, "data")
    assert [each.tags for each in read_conll(path)] == [["B-PER", "O"], ["O", "O"]]


def test_paths_out_of_a_folder_are_refused(tmp_path: Path) -> None:
    folder = saved(tmp_path / "saved")
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": "../secret.arrow"}]}))
    with pytest.raises(FormatError, match="names no files"):
        list(table_rows(folder))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    folder = saved(tmp_path / "saved")
    (folder / "data-1.arrow").write_bytes(b"\xff\xff\xff\xff\x10\x00\x00\x00damaged")
    with pytest.raises(FormatError, match="damaged Arrow file"):
        list(table_rows(folder))


def test_missing_numbers_are_no_values() -> None:
    assert json.loads(to_json_line({"text": "a", "label": float("nan")})) == {"text": "a", "label": None}


def test_a_parquet_file_is_read_with_names_of_labels(tmp_path: Path) -> None:
    features = {"label": {"names": ["D", "N"], "_type": "ClassLabel"}}
    table = pyarrow.table({name: TABLE[name] for name in ("text", "label")})
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table, tmp_path / "plain.bin")
    assert is_dataset(tmp_path / "plain.bin") and not is_dataset(Path(__file__)) and not is_dataset(tmp_path / "none")
    assert list(table_rows(tmp_path / "plain.bin")) == [{"text": "a cat", "label": 0}, {"text": "the bank", "label": -1}]
    saved = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    parquet.write_table(saved, tmp_path / "a.parquet")
    assert [row["label"] for row in table_rows(tmp_path / "a.parquet")] == ["D", None]
    data = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:-20])
    with pytest.raises(FormatError, match="is a damaged Parquet file"):
        list(table_rows(tmp_path / "a.parquet"))
