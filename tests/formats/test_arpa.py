"""ARPA files: one written by hand, round trips, and damage."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

import polyseme
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.encoders.config import NgramConfig
from polyseme.encoders.ngram import NgramModel
from polyseme.encoders.ngram_table import NgramTable
from polyseme.formats import arpa
from polyseme.text.vocabulary import Vocabulary
from tests.encoders.test_ngram import level, small
from tests.pretraining.test_ngram import random_text, trained

BY_HAND = """a comment, which the format allows

\\data\\
ngram 1=5
ngram 2=3
ngram 3=1

\\1-grams:
-1.0\t<unk>
-99\t<s>\t-0.5
-0.7\t</s>
-0.4\tbank\t-0.2
-0.6 river -0.3

\\2-grams:
-0.3\t<s> bank\t-0.1
-0.25\tbank river\t0.05
-0.1\triver </s>

\\3-grams:
-0.05\t<s> bank river

\\end\\
what follows is not read
"""


def write(path: Path, text: str = BY_HAND) -> Path:
    path.write_bytes(text.encode())
    return path


def test_a_file_written_by_hand(tmp_path: Path) -> None:
    model = polyseme.load(write(tmp_path / "m.arpa"))
    assert isinstance(model, NgramModel) and model.config.order == 3 and model.splitter.name == "whitespace"
    assert model.vocabulary.words == ["<unk>", "<s>", "</s>", "bank", "river"]
    found = model.log_probs(["bank river", "bank bank", "river oak"])
    log10 = [each.forward / np.log(10) for each in found]
    # <s> bank; <s> bank river; then `bank river` (0.05) has no `bank river </s>`, so `river </s>`
    np.testing.assert_allclose(log10[0], [-0.3, -0.05, 0.05 - 0.1], rtol=1e-5)
    # <s> bank; no `<s> bank bank` (-0.1), no `bank bank` (-0.2), so bank; no `bank bank` as a context, no `bank </s>` (-0.2)
    np.testing.assert_allclose(log10[1], [-0.3, -0.1 - 0.2 - 0.4, -0.2 - 0.7], rtol=1e-5)
    # no `<s> river` (-0.5); no `river <unk>` (-0.3); <unk> has no back-off weight
    np.testing.assert_allclose(log10[2], [-0.5 - 0.6, -0.3 - 1.0, -0.7], rtol=1e-5)
    assert found[2].known.tolist() == [True, False]


@pytest.mark.parametrize("suffix", ["arpa", "arpa.gz", "arpa.xz", "txt"])
def test_round_trip(tmp_path: Path, suffix: str) -> None:
    model = trained(random_text(3), tmp_path / "t", order=4)
    path = arpa.write(model, tmp_path / f"m.{suffix}")
    start = {"gz": b"\x1f\x8b", "xz": b"\xfd7zXZ"}.get(suffix[-2:], b"\\data\\\nngram 1=")
    assert path.read_bytes().startswith(start)
    again = polyseme.load(path)
    assert again.vocabulary.words == model.vocabulary.words and again.table.difference(model.table) == 0
    assert again.perplexity(["a b c"]) == model.perplexity(["a b c"])
    arpa.write(again, tmp_path / f"n.{suffix}")
    assert polyseme.load(tmp_path / f"n.{suffix}").table.difference(model.table) == 0


@pytest.mark.parametrize(
    ("comment", "name"),
    [
        ("# polyseme splitter: english\n", "english"),
        ("other words\r\n  # polyseme splitter: characters\r\n", "characters"),
        ("# polyseme splitter: unheard\n", "whitespace"),
        ("# polyseme splitter: likeliest\n", "whitespace"),  # whose words are not there
        ("splitter: english\n", "whitespace"),
    ],
)
def test_a_comment_says_how_text_is_split(tmp_path: Path, comment: str, name: str) -> None:
    model = polyseme.load(write(tmp_path / "m.arpa", comment + BY_HAND))
    assert model.splitter.name == name
    assert polyseme.load(tmp_path / "m.arpa", splitter="chinese").splitter.name == "chinese"
    again = arpa.write(model, tmp_path / "n.arpa")
    assert polyseme.load(again).splitter.name == name
    head = again.read_text().partition("\\data\\\n")[0]  # KenLM takes nothing but blank lines and those that begin with #
    assert head == ("" if name == "whitespace" else f"# polyseme splitter: {name}\n\n")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_packed(tmp_path: Path, pack) -> None:
    (tmp_path / "m").write_bytes(pack(BY_HAND.encode()))
    assert polyseme.load(tmp_path / "m").score(["bank river"])[0] == pytest.approx(-0.4 * np.log(10), rel=1e-5)
    (tmp_path / "cut").write_bytes(pack(BY_HAND.encode())[:-8])
    with pytest.raises(PolysemeError):
        polyseme.load(tmp_path / "cut")


def test_variants(tmp_path: Path) -> None:
    capitals = BY_HAND.replace("<s>", "<S>").replace("</s>", "</S>").replace("<unk>", "<UNK>")
    lines = BY_HAND.replace("\n", "\r\n").replace("\t", "  ").replace("-99", "-inf")
    plain = polyseme.load(write(tmp_path / "plain")).score(["bank river oak"])
    assert (polyseme.load(write(tmp_path / "c", capitals)).score(["bank river oak"]) == plain).all()
    assert (polyseme.load(write(tmp_path / "l", lines)).score(["bank river oak"]) == plain).all()
    closed = polyseme.load(write(tmp_path / "closed", BY_HAND.replace("<unk>", "oak")))
    assert closed.config.unknown is None
    with pytest.raises(PolysemeError, match="'elm' is not in the vocabulary"):
        closed.score(["elm"])
    one = "\\data\\\nngram 1=2\n\n\\1-grams:\n-0.3 <s>\n-0.2 </s>\n\n\\end\\\n"
    assert polyseme.load(write(tmp_path / "one", one)).config.order == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("ngram 2=3", "ngram 3=3", ":5: counts 3-grams; expected 2-grams"),
        ("ngram 2=3", "ngram 2=4", "4 2-grams were announced"),
        ("ngram 2=3", "ngram 2=2", r"has '-0.1\\triver </s>'; expected \\3-grams:"),
        ("ngram 3=1", "ngram 3=2", r"has '\\\\end\\\\'; expected a log-probability, 3 words"),
        ("\\end\\", "", "expected \\\\end"),
        ("\n\\end\\\nwhat follows is not read\n", "", "ends: is the file complete?"),
        ("-0.3\t<s> bank\t-0.1", "-0.3\t<s> tree\t-0.1", ":16: has 'tree', which is not among the 1-grams"),
        ("-0.3\t<s> bank\t-0.1", "high\t<s> bank\t-0.1", "expected numbers around the words"),
        ("-0.3\t<s> bank\t-0.1", "0.3\t<s> bank\t-0.1", "log-probability above 0"),
        ("-0.3\t<s> bank\t-0.1", "nan\t<s> bank\t-0.1", "not finite"),
        ("-0.3\t<s> bank\t-0.1", "-0.3\t<s> bank\tinf", "not finite"),
        ("-0.3\t<s> bank\t-0.1", "-0.3\tbank river\t-0.1", "has a 2-gram more than once"),
        ("-0.4\tbank", "-0.4\triver", "has a 1-gram more than once"),
        ("<s> bank river", "river bank river", "whose first 2 words are no 2-gram"),
        ("<s>", "<begin>", "lacks <s> or </s>"),
        ("\\1-grams:", "\\2-grams:", "expected ngram 1="),
    ],
)
def test_damage(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = write(tmp_path / "m.arpa", BY_HAND.replace(old, new))
    with pytest.raises(FormatError, match=said):
        polyseme.load(path)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes(BY_HAND.encode().replace(b"river", b"\xff"))
    with pytest.raises(FormatError, match="is not UTF-8"):
        polyseme.load(tmp_path / "m")


def test_what_it_is_not(tmp_path: Path) -> None:
    assert not arpa.is_arpa(write(tmp_path / "t", "the \\data\\ of ngram 1\n"))
    assert arpa.is_arpa(write(tmp_path / "m"))
    with pytest.raises(UsageError, match="vocabulary does not apply to an ARPA file"):
        polyseme.load(tmp_path / "m", vocabulary=tmp_path / "t")
    with pytest.raises(FormatError, match="has no line"):
        arpa.read(tmp_path / "t")


def test_words_that_cannot_be_written(tmp_path: Path) -> None:
    words = ["<s>", "</s>", "<unk>", "New York"]
    table = NgramTable(4, [level(dict.fromkeys(range(4), (0.25, 1)))])
    model = NgramModel(NgramConfig(order=1), vocabulary=Vocabulary(words, unknown="<unk>"), table=table)
    with pytest.raises(PolysemeError, match="'New York' cannot be in an ARPA file"):
        arpa.write(model, tmp_path / "m.arpa")
    assert not list(tmp_path.iterdir())


def test_zero_is_written_as_others_expect_it(tmp_path: Path) -> None:
    path = arpa.write(trained([["a", "b"]], tmp_path / "t", order=2), tmp_path / "m.arpa")
    assert "-99\t<s>\t" in path.read_text()
    assert "\n\\2-grams:\n" in path.read_text() and arpa.write(small(), tmp_path / "s").exists()


def test_a_begin_mark_of_any_probability_is_never_the_next_word(tmp_path: Path) -> None:
    path = tmp_path / "kenlm.arpa"
    path.write_text(BY_HAND.replace("-99\t<s>", "0\t<s>"))
    model = arpa.read(path)
    assert np.exp(model.distribution(["bank"]))[list(model.vocabulary).index("<s>")] < 1e-90
    assert np.exp(model.distribution([])).sum() < 1.5
