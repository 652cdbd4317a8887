"""Files of word vectors that we write: gensim reads them to the last bit, and so do we; and those that gensim writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyseme.base.errors import PolysemeError
from polyseme.formats.word_vectors import read_vectors, write_vectors
from polyseme.text.word_vectors import WordVectors

WORDS = ["the", "naïve", "漢字", "1", "it's", "\u00a0", "#"]
NUMBERS = np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
NUMBERS[0] = [0.0, -0.0, 1e-38, 3.4e38, 1 / 3]
VECTORS = WordVectors(WORDS, NUMBERS, 7)


@pytest.mark.parametrize("binary", [False, True])
def test_we_read_what_we_write(tmp_path: Path, binary: bool) -> None:
    found = read_vectors(write_vectors(VECTORS, tmp_path / "v", binary=binary))
    assert found.words == WORDS and found.vectors.tobytes() == NUMBERS.tobytes()


@pytest.mark.slow  # gensim takes three seconds to import
@pytest.mark.parametrize("binary", [False, True])
def test_gensim_reads_what_we_write(tmp_path: Path, binary: bool) -> None:
    keyed = pytest.importorskip("gensim.models", reason="gensim is the oracle here").KeyedVectors
    found = keyed.load_word2vec_format(write_vectors(VECTORS, tmp_path / "v", binary=binary), binary=binary)
    assert found.index_to_key == WORDS
    np.testing.assert_array_equal(found.vectors, NUMBERS)
    found.save_word2vec_format(str(tmp_path / "back"), binary=binary, sort_attr=None)
    again = read_vectors(tmp_path / "back")
    assert again.words == WORDS
    np.testing.assert_array_equal(again.vectors, NUMBERS)


@pytest.mark.parametrize("word", ["", "two words", "a\nb", "a\tb", "\ud800"])
def test_words_that_no_file_can_hold(tmp_path: Path, word: str) -> None:
    with pytest.raises(PolysemeError, match="it cannot be in a file of word vectors"):
        write_vectors(WordVectors(["a", word], NUMBERS[:2], 2), tmp_path / "v")
    assert list(tmp_path.iterdir()) == []
