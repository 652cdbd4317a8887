"""Where text lies and how it is read: packing by content, folders in order, bad files in one sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import sys
import threading
from pathlib import Path

import pytest

from polyseme.base.errors import FormatError, MissingExtraError, PolysemeError, UsageError
from polyseme.text.files import decompression, reader
from polyseme.text.files.sources import Source

TEXT = "first line\nzweite Zeile äöü\n\n第四行\n"


def lines(source: Source) -> list[str]:
    return [line for chunk in source.chunks() for line in chunk.text.split("\n") if line.strip()]


def packed(name: str, data: bytes) -> bytes:
    if name == "zstd":
        return pytest.importorskip("zstandard").ZstdCompressor().compress(data)
    return {"plain": bytes, "gzip": gzip.compress, "xz": lzma.compress}[name](data)


@pytest.mark.parametrize("kind", ["plain", "gzip", "xz", "zstd"])
def test_packing_is_told_by_content(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "any.name"
    path.write_bytes(packed(kind, TEXT.encode()))
    source = Source(path)
    assert lines(source) == lines(source) == ["first line", "zweite Zeile äöü", "第四行"]
    assert sum(chunk.lines for chunk in source.chunks()) == 4
    path.write_bytes(2 * packed(kind, TEXT.encode()))  # packed files may be put one behind the other
    assert len(lines(source)) == 6


@pytest.mark.parametrize("kind", ["gzip", "xz", "zstd"])
def test_a_cut_file_is_damaged_and_not_short(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(packed(kind, os.urandom(3000).hex().encode())[:-100])
    with pytest.raises(FormatError, match=f"a: is a damaged {kind} file"):
        lines(Source(path))


def test_many_blocks_of_any_line_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "BLOCK", 1 << 15)
    expected = [f"{'ä' * (number % 199)}{number}" for number in range(2000)] + ["é" * 70_000, "last"]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(expected), encoding="utf-8")
    chunks = list(Source(path).chunks())
    assert lines(Source(path)) == expected
    assert len(chunks) > 5 and sum(chunk.lines for chunk in chunks) == len(expected)


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 1 << 17)
    monkeypatch.setattr(decompression, "BLOCK", 1 << 16)
    for text in ("word äö " * 60_000, "漢字かな" * 60_000):
        path = tmp_path / "a.txt"
        path.write_text(text, encoding="utf-8")
        chunks = list(Source(path).chunks())
        assert len(chunks) > 3 and max(len(chunk.text) for chunk in chunks) < 1 << 18
        assert sum(chunk.lines for chunk in chunks) == 1
        assert " ".join(chunk.text for chunk in chunks).split() == text.split() or "".join(c.text for c in chunks) == text


def test_a_folder_is_walked_in_order_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/y.txt.gz", ".hidden", ".git/config", "a/.DS_Store", "_SUCCESS", "a/_b.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(gzip.compress(name.encode()) if name.endswith("gz") else name.encode())
    assert lines(Source(tmp_path)) == ["a/y.txt.gz", "a/z.txt", "b.txt"]
    assert lines(Source(f"{tmp_path}/**/*.txt")) == ["a/z.txt", "b.txt"]
    assert lines(Source([tmp_path / "b.txt", tmp_path])) == ["b.txt", "a/y.txt.gz", "a/z.txt"]
    assert lines(Source(f"{tmp_path}/*")) == ["a/y.txt.gz", "a/z.txt", "b.txt"]
    assert lines(Source(tmp_path / "_SUCCESS")) == lines(Source(f"{tmp_path}/_*")) == ["_SUCCESS"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "_SUCCESS").touch()
    with pytest.raises(PolysemeError, match=r"holds no files; those whose names begin with _ or \. are not read"):
        Source(tmp_path / "empty")


def test_names_to_publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was given, without the folders around it."""
    folder = tmp_path / "secret" / "texts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text(TEXT, encoding="utf-8")
    assert Source(folder).names == Source(f"{folder}/").names == ("texts",)
    assert Source([folder / "a.txt", f"{folder}/*.txt", folder / "a.txt"]).names == ("a.txt", "*.txt")
    monkeypatch.chdir(folder)
    assert Source(".").names == ("texts",) and Source("..").names == ("secret",)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"text")))
    assert Source("-").names == ("standard input",)


def test_standard_input_can_be_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lzma.compress(TEXT.encode()))))
    source = Source("-")
    assert lines(source) == lines(source) == ["first line", "zweite Zeile äöü", "第四行"]
    assert source.files[0].name == "standard input"
    spool = source.files[0].path
    del source
    assert not spool.exists()


@pytest.mark.parametrize(("name", "line"), [("pipe", "some words of a line\n"), ("pipe.jsonl", '{"text": "some words"}\n')])
def test_a_named_pipe_is_read_whole_and_again(tmp_path: Path, name: str, line: str) -> None:
    pipe, text = tmp_path / name, line * 5000
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(text,))
    writer.start()
    source = Source(pipe)
    writer.join()
    assert len(lines(source)) == len(lines(source)) == 5000 and source.files[0].name == str(pipe)
    assert {each.split()[0] for each in lines(source)} == {"some"}


def test_who_names_a_field_has_json_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row = '{"body": "one two"}\n'
    for name in ("a.json", "b.txt"):
        (tmp_path / name).write_text(row)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(row.encode())))
    assert lines(Source(["-", tmp_path / "a.json"], field="body")) == ["one two"] * 2
    assert lines(Source(tmp_path / "b.txt", field="body")) == lines(Source(tmp_path / "a.json")) == [row.strip()]


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (bz2.compress(b"text"), "is compressed with bzip2; use gzip"),
        (b"PK\x03\x04rest", "is a zip file; use gzip"),
    ],
)
def test_what_is_no_text_is_told_by_its_first_bytes(tmp_path: Path, data: bytes, what: str) -> None:
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(FormatError, match=what):
        lines(Source(tmp_path / "a", errors="skip"))


def test_json_lines(tmp_path: Path) -> None:
    rows = [{"text": "one\ntwo", "id": 1}, {"text": "drei ü"}]
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(("\ufeff" + "\n\n".join(map(json.dumps, rows))).encode()))
    assert lines(Source(path)) == ["one", "two", "drei ü"]
    path = tmp_path / "b.jsonl"
    path.write_text('{"body": "x"}\n{"boddy": 1}\nno json\n[1]\n{"body": "\\ud800"}\n')
    assert lines(Source(path, field="body", errors="skip")) == ["x"]
    assert sum(chunk.bad for chunk in Source(path, field="body", errors="skip").chunks()) == 4
    with pytest.raises(FormatError, match=r"b.jsonl:2: has no text in the field 'body' \(did you mean 'boddy'\?\)"):
        lines(Source(path, field="body"))


def test_parquet(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a"  # told by content
    rows = [f"row {number}" for number in range(1000)]
    pq.write_table(pa.table({"text": [*rows, None], "n": list(range(1001))}), path, row_group_size=100)
    assert lines(Source(path)) == rows
    assert sum(chunk.lines for chunk in Source(path).chunks()) == 1001
    with pytest.raises(FormatError, match=r"has no column 'txt' \(did you mean 'text'\?\)"):
        lines(Source(path, field="txt"))
    with pytest.raises(FormatError, match="has int64 in the column 'n'; expected text"):
        lines(Source(path, field="n"))
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FormatError, match="damaged Parquet"):
        lines(Source(path))
    (tmp_path / "b.parquet").write_text("text")
    with pytest.raises(FormatError, match="is not a Parquet file"):
        lines(Source(tmp_path / "b.parquet"))


def test_bad_utf8_is_told_by_line_or_skipped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbffine\n" * 40_000 + b"na\xefve\nfine\n\xff\n")
    with pytest.raises(FormatError, match=r"a.txt:40001: is not UTF-8 \(byte 0xef\); fix the line, or skip bad lines"):
        lines(Source(path))
    chunks = list(Source(path, errors="skip").chunks())
    assert sum(chunk.bad for chunk in chunks) == 2
    assert sum(chunk.lines for chunk in chunks) == 40_003
    assert len(lines(Source(path, errors="skip"))) == 40_001


def test_a_text_in_another_encoding_is_to_be_converted_and_not_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("Ala ma kota\nZażółć gęślą jaźń\nPójdź\n".encode("iso-8859-2"))
    with pytest.raises(
        FormatError, match=r"a.txt:2: is not UTF-8 \(byte 0xbf\), nor are most lines.*iconv -f OLD -t UTF-8"
    ) as told:
        lines(Source(path))
    assert "skip" not in str(told.value)
    path.write_bytes("Zażółć\ngęślą\njaźń\n".encode() + b"na\xefve\n\xff\n")  # most of it is UTF-8
    with pytest.raises(FormatError, match=r"a.txt:4: is not UTF-8 \(byte 0xef\); fix the line, or skip bad lines"):
        lines(Source(path))


def test_missing_packages_name_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    for magic, package, extra in ((b"\x28\xb5\x2f\xfd", "zstandard", "zst"), (b"PAR1", "pyarrow", "parquet")):
        path.write_bytes(magic + b"....")
        monkeypatch.setitem(sys.modules, package, None)
        with pytest.raises(MissingExtraError, match=rf"needs {package}.*pip install 'polyseme\[{extra}\]'"):
            lines(Source(path))


def test_places_that_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for place, sentence in (("none.txt", "no such file"), ("empty", "holds no files"), ("*.txt", "no file matches")):
        with pytest.raises(PolysemeError, match=sentence):
            Source(tmp_path / place)
    with pytest.raises(UsageError, match="no text given"):
        Source([])
    with pytest.raises(UsageError, match="errors='ignore' is unknown"):
        Source(tmp_path, errors="ignore")


def test_files_that_vanish_or_refuse(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("")
    source = Source(path)
    assert list(source.chunks()) == []
    path.unlink()
    with pytest.raises(PolysemeError, match=r"cannot read .*a.txt: No such file"):
        list(source.chunks())
    with pytest.raises(PolysemeError, match=r"cannot read .*a.txt: No such file"):
        source.size()
