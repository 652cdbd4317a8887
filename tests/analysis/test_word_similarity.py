"""Pairs of words with scores, and analogies: files, numbers, and what is left out."""

import math

import numpy as np
import pytest

from polyseme.analysis.analogies import SectionScore, probe_analogies, read_analogies
from polyseme.analysis.similarity import probe_words, read_scored_pairs
from polyseme.analysis.words import WordSpace
from polyseme.base.errors import FormatError, PolysemeError
from tests.analysis.fake import Fake
from tests.analysis.test_words import ROWS, nnlm, table


@pytest.fixture
def write(tmp_path):
    def call(text):
        path = tmp_path / "data.txt"
        path.write_text(text, encoding="utf-8")
        return path

    return call


@pytest.mark.parametrize(
    "text",
    [
        "king\tqueen\t8\nking\tzero\t1.5\n",
        "word1,word2,score\nking,queen,8\n\nking,zero,1.5\n",
        "# a note\nking queen 8 extra\nking zero 1.5\n",
        "Word 1;Word 2;Human (mean)\nking;queen;8\nking;zero;1.5\n",
        "# a note\nword1\tword2\tPOS\tSimLex999\tconc(w1)\nking\tqueen\tN\t8\t2.7\nking\tzero\tN\t1.5\t1\n",
    ],
)
def test_files(write, text):
    data = read_scored_pairs(write(text))
    assert data.pairs == [("king", "queen"), ("king", "zero")] and data.scores == [8.0, 1.5]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("king\tqueen\t8\nking\tzero\thigh\n", r":2: has 'king\\tzero\\thigh'; expected two words and a score"),
        ("king queen\n", ":1: has 'king queen'; expected"),
        ("one two three\nfour five six\nking queen 8\n", ":2: has 'four five six'; expected"),
        ("king\tqueen\t8\n", "has 1 pairs; a correlation needs at least 2"),
        ("", "has 0 pairs"),
    ],
)
def test_bad_files(write, text, what):
    with pytest.raises(FormatError, match=what):
        read_scored_pairs(write(text))


def test_correlation(write):
    # cosines: king man .71, king queen .5, king woman 0, man woman 0
    data = read_scored_pairs(write("king\tman\t9\nking\tqueen\t3\nKing\twoman\t4\nking\tnone\t5\nno\tzero\t1\n"))
    found = probe_words(table(), data)
    assert found.rows["layer 0"]["Spearman"] == pytest.approx(0.5) and list(found.rows) == ["layer 0"]
    assert found.facts == {"pairs": 5, "pairs_left_out": 2, "unknown_words": 2, "such_as": "none, no"}
    with pytest.raises(PolysemeError, match="knows both words of 0 pairs of 2"):
        probe_words(table(), read_scored_pairs(write("a\tb\t1\nc\td\t2\n")))


def test_no_pair_is_lost_by_capitals(write):
    plain, other = (
        "virus\tParis\t1\nParis\tPARIS\t2\nvirus\tPARIS\t3\n",
        "Virus\tparis\t1\nParis\tPARIS\t2\nVIRUS\tPARIS\t3\n",
    )
    model = nnlm()
    expected, found = (probe_words(model, read_scored_pairs(write(text))) for text in (plain, other))
    assert found.facts["pairs_left_out"] == 0 and found.rows == expected.rows


def test_each_layer(write):
    turned = {"a": 0, "b": 10, "c": 40}
    fake = Fake(lambda words, position: [[1, 0], [math.cos(turned[words[position]]), math.sin(turned[words[position]])]])
    rows = probe_words(fake, read_scored_pairs(write("a\tb\t9\na\tc\t1\n"))).rows
    assert list(rows) == ["layer 0", "layer 1", "mean", "concatenation"] and np.isnan(rows["layer 0"]["Spearman"])


QUESTIONS = ": family\nman king woman queen\nwoman queen man king\nman king woman Paris\n: cities\nman king Paris Rome\n"


def test_analogies(write):
    found = probe_analogies(WordSpace(table()), read_analogies(write(QUESTIONS)))
    assert found.sections == {"family": SectionScore(2, 3, 0), "cities": SectionScore(0, 0, 1)}
    assert found.total == SectionScore(2, 3, 1) and found.total.accuracy == pytest.approx(2 / 3) and found.unknown == ["Rome"]
    assert found.sections["cities"].to_json() == {"accuracy": None, "right": 0, "asked": 0, "left_out": 1}


def test_analogies_without_sections_and_capitals(write):
    sections = read_analogies(write("MAN\tKing\twoman\tQUEEN\n"))
    assert list(sections) == ["questions"]
    assert probe_analogies(WordSpace(table()), sections).total == SectionScore(1, 1, 0)


def test_bad_analogies(write):
    with pytest.raises(FormatError, match=":2: has 3 words, 'a b c'; expected four"):
        read_analogies(write(": x\na b c\n"))
    with pytest.raises(FormatError, match="has no questions"):
        read_analogies(write(": x\n"))
    with pytest.raises(PolysemeError, match="does not know all four words of any question"):
        probe_analogies(WordSpace(table()), read_analogies(write("a b c d\n")))


def test_answers_are_those_of_one_question_at_a_time():
    """Against the plain formula, of many words."""
    draw = np.random.default_rng(0)
    rows = {f"w{position}": draw.normal(size=5).tolist() for position in range(60)} | ROWS
    rows = {word: row for word, row in rows.items() if len(row) == 5}
    space, vectors = WordSpace(table(rows)), np.array(list(rows.values()))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    questions = np.array([draw.choice(60, 3, replace=False) for _ in range(300)])
    for (a, b, c), answer in zip(questions.tolist(), space.answers(questions).tolist(), strict=True):
        cosines = {row: unit[row] @ (unit[b] - unit[a] + unit[c]) for row in range(60) if row not in (a, b, c)}
        assert answer == max(cosines, key=cosines.__getitem__)
