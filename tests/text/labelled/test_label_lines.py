"""Lines of a label and a text: the first word, or labels of fastText."""

import pytest

from polyseme.base.errors import FormatError
from polyseme.text.labelled.tables import read_table, read_usable_rows
from tests.analysis.real import real

SENTENCES = [
    "The man saw the house.",
    "A dog is in the house.",
    "In the end it was a story.",
    "It is a man.",
    "Man is a dog in it.",
]


@pytest.fixture
def read(tmp_path):
    def call(text: str, name: str = "a.txt", **options):
        (tmp_path / name).write_text(text)
        return [(row.first, row.label) for row in read_usable_rows(tmp_path / name, **{"strict": False, **options})]

    return call


@pytest.mark.parametrize("name", ["a.txt", "a.train", "a.csv"])
@pytest.mark.parametrize("line", ["__label__{1} {0}", "{0} __label__{1}", " __label__{1}  {0} "])
def test_labels_of_fasttext(read, caplog, name, line):
    rows = [("good, so good", "pos"), ("bad, __label__ or not", "neg")] * 3
    assert read("\n".join(line.format(*row) for row in rows), name) == rows
    assert not caplog.messages


def test_several_labels_of_fasttext(read, caplog):
    lines = ["__label__a __label__b one two", "__label__b three", "four __label__a __label__b", *["__label__b x"] * 40, "none"]
    rows = read("\n".join(lines))
    assert rows[:3] == [("one two", "a"), ("three", "b"), ("four", "a")] and len(rows) == 43
    assert "a.txt: 2 of 44 lines have several labels: the first is used, the others are left out" in caplog.text
    assert "1 without a label (line 44)" in caplog.text


def test_the_prefix_is_no_part_of_a_label_in_a_table(read):
    rows = [("a text of some words", "a"), ("and yet another text", "b")] * 3
    assert read("".join(f"__label__{label}\t{text}\n" for text, label in rows), "a.tsv") == rows


def test_the_first_word_is_the_label(read, caplog):
    rows = [("How did it begin?", "DESC:manner"), ("Who was sports?", "sports"), ("It was 1.", "NUM")] * 4
    assert read("".join(f"{label} {text}\n" for text, label in rows)) == rows
    assert caplog.messages[0].endswith("a.txt: lines: the first word is the label (3 classes)")


def test_sentences_without_labels_are_refused(read):
    text = "\n".join([*SENTENCES, "Dog is here.", "House of a man."] * 6)
    with pytest.raises(FormatError, match=r"the first words of the lines \(The, A, In \.\.\.\) are words of the texts, too"):
        read(text)
    assert read(text, format="lines")[0] == ("man saw the house.", "The")


@pytest.mark.parametrize("name", ["TREC_train.txt", "TREC.train.all", "mpqa.all", "subj.all", "custrev.all", "rt-polarity.all"])
def test_real_label_lines(name):
    path = real(f"sentence_classification_en/{name}")
    assert read_usable_rows(path, strict=False) == read_table(path, format="lines", strict=False).rows
