"""Sentiment trees in brackets."""

import gzip
from collections import Counter

import pytest

from polyseme.base.errors import FormatError
from polyseme.text.labelled.trees import Phrase, Tree, examples, read_trees
from tests.analysis.real import real

TREES = "(3 (2 It) (4 (2 's) (3 fun)))\n\n(2 (2 -LRB-) (2 (1 and\\/or) (2 -RRB-)))\r\n(0 Dull)\n"


@pytest.fixture
def write(tmp_path):
    def call(text: str):
        path = tmp_path / "trees.txt"
        path.write_bytes(text.encode())
        return path

    return call


def test_words_and_labels(write):
    first, second, third = read_trees(write(TREES))
    assert first == Tree(("It", "'s", "fun"), ((0, 3, "3"), (0, 1, "2"), (1, 3, "4"), (1, 2, "2"), (2, 3, "3")))
    assert (second.words, second.label) == (("(", "and/or", ")"), "2")
    assert third.phrases() == [Phrase(("Dull",), "0")]


def test_packed(tmp_path):
    path = tmp_path / "trees.txt"
    path.write_bytes(gzip.compress(TREES.encode()))
    assert len(read_trees(path)) == 3


def test_escapes(write):
    line = "(2 (2 ``) (2 (2 ***) (2 (2 \\*) (2 (2 7\u00a01\\/2) (2 ''))))) \n"
    assert read_trees(write(line))[0].words == ('"', "***", "*", "7\u00a01/2", '"')


def test_sentences(write):
    trees = read_trees(write(TREES))
    assert [each.label for each in examples(trees)] == ["3", "2", "0"]
    assert [each.label for each in examples(trees, classes=2)] == ["positive", "negative"]


def test_phrases_all_or_distinct(write):
    trees = read_trees(write("(3 (2 so) (3 (2 so) (4 good)))\n(1 (4 good) (1 (2 so) (0 bad)))\n"))
    everything = examples(trees, phrases="all")
    assert len(everything) == 10
    assert Counter(everything)[Phrase(("so",), "2")] == 3
    distinct = examples(trees, phrases="distinct")
    assert len(distinct) == len(set(distinct)) == 7
    two = examples(trees, classes=2, phrases="distinct")
    assert {" ".join(each.words): each.label for each in two} == {
        "so so good": "positive",
        "so good": "positive",
        "good": "positive",
        "good so bad": "negative",
        "so bad": "negative",
        "bad": "negative",
    }


def test_whole_sentences_can_come_more_often(write):
    trees = read_trees(write(TREES))
    once, thrice = (examples(trees, phrases="distinct", sentence_copies=count) for count in (1, 3))
    sentences = examples(trees)
    assert thrice[: len(once)] == once and Counter(thrice[len(once) :]) == Counter(sentences * 2)
    assert examples(trees, sentence_copies=2) == sentences * 2


def test_a_deep_tree_costs_no_recursion(write):
    depth = 5000
    tree = read_trees(write("(2 (2 a) " * depth + "(2 b)" + ")" * depth))[0]
    assert len(tree.words) == depth + 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("(3 (2 It) (3 works)", "ends with 1 open brackets"),
        ("(3 (2 It) (3 works)))", "')' after the tree"),
        ("(3 (2 It) (3 works)) (2 And)", "'(' after the tree"),
        ("3 (2 It)", "'3' before the tree"),
        ("(5 (2 It) (3 works))", "'5' where a label from 0 to 4"),
        ("((2 It) (3 works))", "'(' where a label"),
        ("(", "'the end' where a label"),
        ("(3 (2) (3 works))", "a bracket (2) without words"),
        ("(3 (2 It) works)", "'works' outside a bracket of its own"),
        ("(3 It works)", "'It' outside a bracket of its own"),
        ("(3 It (2 works))", "'It' outside a bracket of its own"),
        ("(3", "1 open brackets"),
    ],
)
def test_not_a_tree(write, line, says):
    path = write(f"(2 fine)\n{line}\n")
    with pytest.raises(FormatError) as caught:
        read_trees(path)
    assert str(caught.value).startswith(f"{path}:2: ")
    assert says in str(caught.value) and "expected one tree per line" in str(caught.value)


def test_empty(write):
    with pytest.raises(FormatError, match="has no trees"):
        read_trees(write("\n \n"))


@pytest.mark.parametrize(
    ("split", "five", "two"),
    [  # slow: other splits of the same data
        pytest.param("train", 8544, 6920, marks=pytest.mark.slow),
        ("dev", 1101, 872),
        pytest.param("test", 2210, 1821, marks=pytest.mark.slow),
    ],
)
def test_real(split, five, two):
    trees = read_trees(real("sst_en") / f"trees.{split}.txt.gz")
    assert (len(examples(trees)), len(examples(trees, classes=2))) == (five, two)
    if split == "train":
        assert len(examples(trees, phrases="distinct")) == 159_274 - 1  # opening and closing quotes are one word here
        assert not any("-LRB-" in tree.words or "\\" in "".join(tree.words) for tree in trees)
