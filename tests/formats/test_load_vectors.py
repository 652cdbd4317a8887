"""Files of word vectors through `polyseme.load`: every form, and what is neither vectors nor a model."""

from __future__ import annotations

import gzip
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pytest

from polyseme.base.errors import FormatError, UsageError
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.formats.load import load
from polyseme.formats.word_vectors import is_vectors, read_vectors
from tests.formats.test_word_vectors import FORMS, ROWS, WRONG, binary, text, write
from tests.oracle.make import write_allennlp_archive, write_bilm

PACKINGS = {"": lambda data: data, ".gz": gzip.compress, ".xz": lzma.compress}
EXPECTED = np.array(list(ROWS.values()), dtype=np.float32)


@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form(tmp_path: Path, form: str, packing: str) -> None:
    path = write(tmp_path / f"vectors{packing}", PACKINGS[packing](FORMS[form]))
    model = load(path)
    assert isinstance(model, WordVectorTable) and model.source == str(path) and not model.training
    assert list(model.vocabulary) == list(ROWS) and model.splitter.name == "whitespace"
    np.testing.assert_array_equal(model.embed([list(ROWS)])[0], EXPECTED[None])
    assert load(path, splitter="english").words("isn't") == ["is", "n't"]


@pytest.mark.parametrize("name", ["v.vec", "v.txt", "v.bin", "v"])
def test_names_do_not_matter(tmp_path: Path, name: str) -> None:
    assert load(write(tmp_path / name, FORMS["glove"])).dim == load(write(tmp_path / name, FORMS["binary"])).dim == 3


def test_a_folder_or_a_zip_with_one_file_of_vectors(tmp_path: Path) -> None:
    folder = tmp_path / "glove"
    folder.mkdir()
    write(folder / "vectors.txt", FORMS["glove"])
    (folder / "LICENSE").write_text("Public domain.\n")
    with zipfile.ZipFile(tmp_path / "glove.zip", "w") as archive:
        archive.write(folder / "vectors.txt", "vectors.txt")
    for path in (folder, tmp_path / "glove.zip"):
        assert list(load(path).vocabulary) == list(ROWS)
    write(folder / "more.txt", FORMS["binary"])
    with pytest.raises(FormatError, match=r"has 2 files of word vectors \(more.txt, vectors.txt\): give one"):
        load(folder)


def test_files_for_other_kinds_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "v", FORMS["glove"])
    with pytest.raises(UsageError, match="vocabulary does not apply to a file of word vectors"):
        load(path, vocabulary=path)


def test_what_is_not_of_vectors(tmp_path: Path) -> None:
    others = {
        "prose": b"It was late.\nThe bank.\n",
        "counts": b"the 1061396\nof 593677\n",
        "json": b'{"a": [1, 2]}\n',
        "one long line": b"x" * (5 << 20),
        "numbers in a tar": bytes(600) + b"a 1 2 3\n",
        "packed prose": gzip.compress(b"It was late.\n"),
    }
    for name, data in others.items():
        assert not is_vectors(write(tmp_path / name, data)), name
    assert not is_vectors(write_bilm(tmp_path / "elmo") / "weights.hdf5")
    assert not is_vectors(write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False))
    for name in ("prose", "counts", "json"):
        with pytest.raises(FormatError, match=r"has no known format; expected .* or word vectors \(word2vec, GloVe"):
            load(tmp_path / name)


def test_damage_is_told_by_its_place(tmp_path: Path) -> None:
    told = {
        "too few": ":2: has 1 numbers; expected a word and 2 numbers",
        "nan": ":2: has a number for 'bank' that is not finite",
        "fewer than promised": "has 2 vectors; its first line announces 3",
        "binary, cut in numbers": "vector 4 of 4: has 8 bytes of numbers; expected 12",
        "fastText": "is a fastText model: give its vectors as text",
    }
    for name, said in told.items():
        with pytest.raises(FormatError) as error:
            load(write(tmp_path / "v", WRONG[name][0]))
        assert said in str(error.value)
    with pytest.raises(FormatError, match="damaged gzip file"):
        load(write(tmp_path / "v", gzip.compress(FORMS["glove"] * 9999)[:-9]))


# ---- reading all words


@pytest.mark.parametrize("form", FORMS)
def test_all_words(tmp_path: Path, form: str) -> None:
    found = read_vectors(write(tmp_path / "v", FORMS[form]))
    assert found.words == list(ROWS) and found.total == 4 and found.lowercased == 0
    assert found.vectors.dtype == np.float32
    np.testing.assert_array_equal(found.vectors, EXPECTED)


@pytest.mark.parametrize("name", sorted(WRONG))
def test_all_words_of_wrong_files(tmp_path: Path, name: str) -> None:
    data, said = WRONG[name]
    with pytest.raises(FormatError) as error:
        read_vectors(write(tmp_path / "v", data))
    assert said in str(error.value)


def test_all_words_as_the_array_grows(tmp_path: Path) -> None:
    numbers = np.random.default_rng(0).normal(size=(1000, 300)).astype(np.float32)
    rows = {f"w{row}": numbers[row].tolist() for row in range(1000)}
    for data in (text(rows, header=False), binary(rows, line_ends=True)):
        found = read_vectors(write(tmp_path / "v", data))
        assert found.words == list(rows)
        np.testing.assert_array_equal(found.vectors, numbers)
        assert found.vectors.base is None or found.vectors.base.nbytes == numbers.nbytes  # nothing left over


def test_words_twice_and_a_byte_order_mark(tmp_path: Path) -> None:
    found = read_vectors(write(tmp_path / "v", b"\xef\xbb\xbfthe 1 2\n. . . 3 4\nthe 7 8\n"))
    assert found.words == ["the", ". . ."] and found.vectors.tolist() == [[1, 2], [3, 4]] and found.total == 3
    assert load(tmp_path / "v").lookup(["the"]).known.all()
    assert read_vectors(write(tmp_path / "v", b"\xef\xbb\xbf1 2\nthe 1 2\n")).words == ["the"]


def test_numbers_too_long_for_a_first_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError):
        load(write(tmp_path / "v", b"9" * 5000 + b" " + b"9" * 5000 + b"\n"))
