"""Graded similarity of words in context."""

import math

import pytest

from polyseme.analysis.similarity import COLUMNS, probe_similarity, read_similarities
from polyseme.base.errors import FormatError
from tests.analysis.fake import Fake

HEADER = "\t".join(COLUMNS)


def vectors(words, position):
    """Layer 0 is the same everywhere; layer 1 turns by the number that the word spells."""
    angle = math.radians(float(words[position])) if words[position].isdecimal() else 0.0
    return [[1.0, 0.0], [math.cos(angle), math.sin(angle)]]


@pytest.fixture
def read(tmp_path):
    def call(*rows, header=HEADER):
        path = tmp_path / "pairs.tsv"
        path.write_text("\n".join([header, *rows]) + "\n")
        return read_similarities(path)

    return call


def row(angle, score):
    return f"zero\t0\t0 x\t{angle}\t1\tx {angle}\t{score}"


def test_correlation(read):
    table = probe_similarity(Fake(vectors), read(row(10, 9), row(20, 7.5), row(50, 8), row(80, 1)))
    assert math.isnan(table.rows["layer 0"]["Spearman"]) and table.to_json()["rows"]["layer 0"]["Spearman"] is None
    # cosines fall from pair to pair: ranks 4 3 2 1 against 4 2 3 1
    assert table.rows["layer 1"]["Spearman"] == pytest.approx(0.8)
    assert table.best == "layer 1" and table.facts == {"pairs": 4}


@pytest.mark.parametrize(
    ("bad", "what"),
    [
        ("a\t0\ta\tb\t0\tb", "has 6 columns; expected 7"),
        ("a\t0\ta\tb\t1\tb\t3", "asks for word '1' of a sentence of 1 words"),
        ("a\t-1\ta\tb\t0\tb\t3", "asks for word '-1'"),
        ("a\t0\ta\tb\t0\tb\thigh", "has the score 'high'; expected a number"),
        ("a\t0\ta\tb\t0\tb\tnan", "has the score 'nan'"),
    ],
)
def test_bad_lines(read, bad, what):
    with pytest.raises(FormatError, match=rf"pairs\.tsv:3: .*{what}"):
        read(row(10, 1), bad)


def test_bad_files(read):
    with pytest.raises(FormatError, match="expected the header word1 index1"):
        read(row(10, 1), header="word1\tword2")
    with pytest.raises(FormatError, match="has 1 pairs"):
        read(row(10, 1))
