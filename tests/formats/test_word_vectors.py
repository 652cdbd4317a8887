"""Files of word vectors, made by hand: what is found in them, and every way in which they can be wrong."""

from __future__ import annotations

import gzip
import lzma
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.formats.word_vectors import read_vectors

ROWS = {"the": [0.5, -1.0, 2.0], "Bank": [1e-3, 4.0, -0.25], "bank": [7.0, 8.0, 9.0], "河岸": [1.0, 1.5, 2.5]}


def text(rows: dict[str, list[float]], *, header: bool, end: str = "\n") -> bytes:
    lines = [f"{len(rows)} {len(next(iter(rows.values())))}"] if header else []
    lines += [" ".join([word, *map(repr, numbers)]) for word, numbers in rows.items()]
    return "".join(line + end for line in lines).encode()


def binary(rows: dict[str, list[float]], *, line_ends: bool) -> bytes:
    found = f"{len(rows)} {len(next(iter(rows.values())))}\n".encode()
    for word, numbers in rows.items():
        found += word.encode() + b" " + struct.pack(f"<{len(numbers)}f", *numbers) + b"\n" * line_ends
    return found


FORMS = {
    "word2vec": text(ROWS, header=True),
    "word2vec.c, which ends lines in a blank": text(ROWS, header=True, end=" \n"),
    "glove": text(ROWS, header=False),
    "glove without a last line end": text(ROWS, header=False)[:-1],
    "carriage returns": text(ROWS, header=True, end="\r\n"),
    "tabs": text(ROWS, header=False).replace(b" ", b"\t"),
    "binary": binary(ROWS, line_ends=True),
    "gensim's binary": binary(ROWS, line_ends=False),
}


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same(tmp_path: Path, form: str) -> None:
    found = read_vectors(write(tmp_path / "v", FORMS[form]), ["bank", "river", "河岸", "The"])
    assert found.words == ["bank", "河岸", "The"] and found.total == 4 and found.dim == 3
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, np.array([ROWS["bank"], ROWS["河岸"], ROWS["the"]], dtype=np.float32))


@pytest.mark.parametrize("packing", ["gzip", "xz", "zstd"])
@pytest.mark.parametrize("form", ["glove", "binary"])
def test_packed(tmp_path: Path, form: str, packing: str) -> None:
    if packing == "zstd":
        data = pytest.importorskip("zstandard").ZstdCompressor().compress(FORMS[form])
    else:
        data = {"gzip": gzip.compress, "xz": lzma.compress}[packing](FORMS[form])
    assert read_vectors(write(tmp_path / "named.anyhow", data), ["bank"]).vectors.tolist() == [ROWS["bank"]]
    with pytest.raises(FormatError, match="damaged"):
        read_vectors(write(tmp_path / "cut", data[:-9]), ["bank"])


def test_case(tmp_path: Path) -> None:
    """A word as it is written comes before its lower case, wherever the two stand in the file."""
    found = read_vectors(write(tmp_path / "v", FORMS["glove"]), ["Bank", "bank", "BANK", "The", "the"])
    assert found.words == ["Bank", "bank", "BANK", "The", "the"] and found.lowercased == 2
    assert [row[1] for row in found.vectors.tolist()] == [4.0, 8.0, 8.0, -1.0, -1.0]
    assert found.summary(6) == "5 of 6 words found (2 in lower case)"
    lower = read_vectors(write(tmp_path / "marks", b"<unk> 1 2\n</s> 3 4\n"), ["<S>", "</S>", "<UNK>"])
    assert lower.words == ["</S>", "<UNK>"] and lower.summary(3) == "2 of 3 words found (2 in lower case)"


def test_words_with_blanks_and_words_twice(tmp_path: Path) -> None:
    data = b"the 1 2\n. . . 3 4\nat name@domain.com 5 6\nthe 7 8\n1 9 10\n"
    found = read_vectors(write(tmp_path / "v", data), ["the", ". . .", "at name@domain.com", "1"])
    assert found.vectors.tolist() == [[1, 2], [3, 4], [5, 6], [9, 10]] and found.total == 5


def test_nothing_found(tmp_path: Path) -> None:
    found = read_vectors(write(tmp_path / "v", FORMS["glove"]), ["zebra"])
    assert found.words == [] and found.vectors.shape == (0, 3) and found.summary(1) == "0 of 1 words found"


def test_fingerprint_is_of_words_and_numbers(tmp_path: Path) -> None:
    def fingerprint(data: bytes, *wanted: str) -> str:
        return read_vectors(write(tmp_path / "v", data), wanted).fingerprint()

    assert fingerprint(FORMS["glove"], "bank") == fingerprint(FORMS["binary"], "bank", "river")
    assert fingerprint(FORMS["glove"], "bank") != fingerprint(FORMS["glove"], "the")
    assert fingerprint(b"a 1 2\n", "a") != fingerprint(b"b 1 2\n", "b")


WRONG = {
    "too few": (b"the 1 2\nbank 1\n", ":2: has 1 numbers; expected a word and 2 numbers"),
    "too many": (b"the 1 2\nbank 1 2 3\n", ":2: has 3 numbers; expected a word and 2"),
    "a blank line": (b"the 1 2\n\nbank 1 2\n", ":2: has 0 numbers"),
    "ragged against the header": (b"2 3\nthe 1 2\nbank 1 2\n", ":2: has 2 numbers; expected a word and 3"),
    "no word": (b"the 1 2\n 1 2\n", ":2: has no word"),
    "not a number": (b"the 1 2\nbank 1 x\n", ":2: has a vector of 'bank' that is not a list of numbers ('x')"),
    "Python's own number": (b"the 1 2\nbank 1 2_0\n", "('2_0')"),
    "nan": (b"the 1 2\nbank 1 nan\n", ":2: has a number for 'bank' that is not finite"),
    "infinite in float32": (b"the 1 2\nbank 1 1e39\n", ":2: has a number for 'bank' that is not finite"),
    "bad UTF-8": (b"the 1 2\nna\xefve 1 2\n", ":2: has a word that is not UTF-8 (byte 0xef)"),
    "fewer than promised": (b"3 2\nthe 1 2\nbank 1 2\n", "has 2 vectors; its first line announces 3"),
    "more than promised": (b"1 2\nthe 1 2\nbank 1 2\n", "has 2 vectors; its first line announces 1"),
    "empty": (b"", "has no vectors"),
    "nothing but a promise": (b"0 300\n", ":1: announces 0 vectors"),
    "prose": (b"It was late.\nThe bank.\n", ":1: is not a row of word vectors"),
    "a pickle": (b"\x80\x04\x95gensim.models\n", ":1: is not a row of word vectors"),
    "zip": (b"PK\x03\x04rest", "is a zip archive: unpack it"),
    "fastText": (b"\xba\x16\x4f\x2f\x0c\0\0\0", "is a fastText model"),
    "binary, cut in numbers": (FORMS["binary"][:-5], "vector 4 of 4: has 8 bytes of numbers; expected 12"),
    "binary, cut in a word": (FORMS["gensim's binary"][:-15], "vector 4 of 4: ends inside its word"),
    "binary, one short": (binary(ROWS, line_ends=False).replace(b"4 3", b"5 3"), "vector 5 of 5: is missing"),
    "binary, one more": (binary(ROWS, line_ends=True).replace(b"4 3", b"3 3"), "continues after the 3 vectors"),
    "binary with nan": (binary(ROWS | {"bank": [1.0, float("nan"), 0.0]}, line_ends=True), "3 of 4: has a number for 'bank'"),
    "binary with bad UTF-8": (FORMS["binary"].replace(b"Bank", b"B\xffnk"), "2 of 4: has a word that is not UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_files(tmp_path: Path, name: str) -> None:
    data, said = WRONG[name]
    path = write(tmp_path / "v", data)
    with pytest.raises(FormatError) as error:
        read_vectors(path, ["the", "Bank", "bank"])
    assert said in str(error.value) and str(error.value).startswith(str(path))


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(PolysemeError, match="No such file"):
        read_vectors(tmp_path / "none", ["the"])


def test_a_file_without_line_ends_does_not_fill_the_memory(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="does not end"):
        read_vectors(write(tmp_path / "v", b"x" * (6 << 20)), ["the"])


def test_more_than_a_block(tmp_path: Path) -> None:
    """Rows that lie across the blocks in which files are read."""
    numbers = np.random.default_rng(0).normal(size=(500, 300)).astype(np.float32)
    rows = {f"w{row}": numbers[row].tolist() for row in range(500)}
    for data in (text(rows, header=False), text(rows, header=True), binary(rows, line_ends=True)):
        found = read_vectors(write(tmp_path / "v", data), rows)
        assert found.total == 500
        np.testing.assert_array_equal(found.vectors, numbers)


words = st.text(st.characters(blacklist_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=6).filter(lambda word: word.strip())
numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(
    st.integers(2, 4).flatmap(
        lambda dim: st.dictionaries(words, st.lists(numbers, min_size=dim, max_size=dim), min_size=1, max_size=5)
    )
)
def test_any_words_and_numbers(tmp_path_factory: pytest.TempPathFactory, rows: dict[str, list[float]]) -> None:
    expected = np.array(list(rows.values()), dtype=np.float32)
    # eight bytes that happen to be letters and digits are a line of text as well: no real file is so short
    assume(any(byte < 0x09 or byte > 0x7F for byte in expected[0].tobytes()) or not expected[0].any())
    folder = tmp_path_factory.mktemp("vectors")
    for data in (text(rows, header=True), binary(rows, line_ends=True), binary(rows, line_ends=False)):
        found = read_vectors(write(folder / "v", data), rows)
        assert found.words == list(rows) and found.lowercased == 0
        np.testing.assert_array_equal(found.vectors, expected)
