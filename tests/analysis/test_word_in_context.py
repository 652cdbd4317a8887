"""WiC by a threshold on dev."""

import numpy as np
import pytest

from polyseme.analysis.word_in_context import best_threshold, probe_word_in_context, read_wic
from polyseme.base.errors import FormatError, UsageError
from tests.analysis.fake import Fake
from tests.analysis.real import real


def write(folder, name, lines, gold):
    (folder / f"{name}.data.txt").write_text("".join(f"{line}\n" for line in lines))
    (folder / f"{name}.gold.txt").write_text("".join(f"{answer}\n" for answer in gold))
    return folder / f"{name}.data.txt"


def pair(first, second):
    return f"bank\tN\t1-2\t{first} bank\tthe {second} bank"


def vectors(words, position):
    """Layer 0 is the same everywhere; layer 1 is another direction beside `river`."""
    return [[1.0, 0.0], [0.0, 1.0] if words[position - 1] == "river" else [1.0, 0.2]]


@pytest.fixture
def data(tmp_path):
    dev = write(tmp_path, "dev", [pair("river", "river"), pair("money", "river"), pair("cash", "money")], "TFT")
    test = write(tmp_path, "test", [pair("river", "money"), pair("river", "river"), pair("a", "b"), pair("a", "river")], "FTTT")
    return read_wic(dev), read_wic(test)


def test_read(data):
    assert data[0].pairs[1].sentences == (["money", "bank"], ["the", "river", "bank"])
    assert data[0].pairs[1].positions == (1, 2) and data[0].same.tolist() == [True, False, True]


def test_the_layer_that_knows(data):
    table = probe_word_in_context(Fake(vectors), *data)
    assert table.rows["layer 0"]["dev"] == pytest.approx(2 / 3) and table.rows["layer 0"]["accuracy"] == 0.75
    assert table.rows["layer 1"]["dev"] == 1.0 and table.rows["layer 1"]["accuracy"] == 0.75
    cosine = 0.2 / np.hypot(1, 0.2)
    assert table.rows["layer 1"]["threshold"] == pytest.approx((1 + cosine) / 2, abs=1e-5)
    assert table.facts["chosen_on_dev"] == "layer 1" and table.facts["accuracy_of_chosen"] == 0.75
    assert table.baselines["one answer"] == {"accuracy": 0.75, "dev": pytest.approx(2 / 3)}


@pytest.mark.parametrize(
    ("values", "same", "right"),
    [
        ([0.1, 0.2, 0.3, 0.4], "FFTT", 4),
        ([0.1, 0.2, 0.3, 0.4], "TTTT", 4),
        ([0.1, 0.2], "FF", 2),
        ([0.5, 0.5, 0.5], "TFT", 2),
        ([0.1, 0.2, 0.3], "TFF", 2),
    ],
)
def test_best_threshold(values, same, right):
    values, same = np.array(values), np.array([letter == "T" for letter in same])
    assert np.sum((values >= best_threshold(values, same)) == same) == right


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("bank\tN\t0-0\ta", "has 4 columns"),
        ("bank\tN\t0-2\tbank\tbank b", "asks for word '2' of a sentence of 2 words"),
        ("bank\tN\tx-0\tbank\tbank", "word 'x'"),
    ],
)
def test_bad_lines(tmp_path, row, what):
    with pytest.raises(FormatError, match=rf"dev\.data\.txt:2: .*{what}"):
        read_wic(write(tmp_path, "dev", [pair("a", "b"), row], "TT"))


def test_bad_answers(tmp_path):
    with pytest.raises(FormatError, match=r"dev\.gold\.txt:1: has 'yes'"):
        read_wic(write(tmp_path, "dev", [pair("a", "b")], ["yes"]))
    with pytest.raises(FormatError, match="has 2 answers for the 1 pairs"):
        read_wic(write(tmp_path, "dev", [pair("a", "b")], "TF"))


def test_where_the_answers_are(tmp_path):
    data = write(tmp_path, "dev", [pair("a", "b")], "T")
    moved = (tmp_path / "dev.gold.txt").rename(tmp_path / "answers")
    assert read_wic(data, moved).same.tolist() == [True]
    with pytest.raises(UsageError, match=r"there is no .*dev\.gold\.txt"):
        read_wic(data)
    with pytest.raises(UsageError, match="are missing"):
        read_wic(data.rename(tmp_path / "pairs.txt"))


def test_real_data():
    for name, count in (("dev", 638), ("test", 1400)):
        found = read_wic(real("wic_en") / f"{name}.data.txt")
        assert len(found.pairs) == count and found.same.sum() == count / 2
