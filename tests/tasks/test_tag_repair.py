"""Slips in span tags: repaired as the CoNLL scorer reads them, in the scheme of the file."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from polyseme.metrics.spans import spans
from polyseme.tasks.tag_repair import repair_tags
from polyseme.tasks.tag_scheme import from_bioes, scheme_of, to_bioes
from polyseme.tasks.tagging import Tagging
from polyseme.tasks.tagging_config import TaggingConfig
from polyseme.text.labelled.conll import TaggedSentence
from tests.analysis.real import real


def sentences(*tags: str) -> list[TaggedSentence]:
    rows = [each.split() for each in tags]
    return [TaggedSentence([f"w{i}" for i in range(len(row))], row, list(range(1, len(row) + 1))) for row in rows]


@pytest.mark.parametrize(
    ("given_tags", "expected"),
    [
        (["B-A I-A O", "O I-A I-A B-B"], ["B-A I-A O", "O B-A I-A B-B"]),  # Weibo, MSRA
        (["I-A O I-A", "I-B B-B", "O B-A"], ["I-A O I-A", "I-B B-B", "O I-A"]),
        (["B-A I-B"], ["B-A B-B"]),
        (["B-A M-A E-A S-B", "B-A O M-A E-A", "E-A"], ["B-A M-A E-A S-B", "S-A O B-A E-A", "S-A"]),
        (["B-A I-A L-A U-B", "I-A I-A O"], ["B-A I-A L-A U-B", "B-A L-A O"]),
        (["B-A E-A O S-B", "B-A I-A O"], ["B-A E-A O S-B", "B-A E-A O"]),
        (["O B_A I_A", "o b_A"], ["O B-A I-A", "O B-A"]),
        (["B-A I-A 0 O", "B-A X O"], ["B-A I-A O O", "B-A O O"]),
        (["B I B", "O I I"], ["B I B", "O B I"]),
        (["NOUN VERB O", "B-X NOUN"], ["NOUN VERB O", "B-X NOUN"]),  # classes
        (["O O"], ["O O"]),
    ],
)
def test_repaired(given_tags, expected, caplog):
    found = repair_tags(sentences(*given_tags), "a.txt")
    assert [" ".join(each.tags) for each in found] == expected
    assert len(caplog.messages) == (given_tags != expected)
    scheme_of(found, "a.txt")


def test_the_message(caplog):
    repair_tags(sentences("B-A I-A O", "O I-A O I-A", "B-A"), "a.txt")
    what = "line 2: I-A is read as B-A (2 times)"
    assert caplog.messages == [f"a.txt: repaired 2 of 8 tags as the CoNLL scorer reads them ({what})"]


def test_each_kind_of_repair_is_named(caplog):
    repair_tags(sentences("B-A I-A O", "0 I-A o", "B_A O", "B-A I-B O"), "a.txt")
    (message,) = caplog.messages
    kinds = "line 1: 0 is read as O; line 2: I-A is read as B-A; line 3: o is read as O; line 1: B_A is read as B-A"
    assert message.startswith("a.txt: repaired 5 of 11 tags") and f"({kinds}; line 2: I-B is read as B-B)" in message


TAGS = some.lists(some.sampled_from(["O", *(f"{letter}-{kind}" for letter in "BIES" for kind in "AB")]), min_size=1, max_size=8)


@given(TAGS, some.sampled_from(["BIO", "IOB1", "BIOES", "BMES", "BMEWO", "BILOU"]))
def test_spans_stay_and_legal_tags_too(tags, scheme):
    legal = from_bioes(to_bioes(["B-A", "I-A", "E-A", "S-B", "B-A", "E-A", *tags], "BIOES"), scheme)
    assert repair_tags([TaggedSentence(["w"] * len(legal), legal)], "a")[0].tags == legal
    broken = ["B-A", "I-A", "I-A", "E-A", "S-B", *tags]
    (found,) = repair_tags([TaggedSentence(["w"] * len(broken), broken)], "a")
    assert spans(found.tags) == spans(broken)


def test_files_of_a_tagger(tmp_path, caplog):
    text = "-DOCSTART- O\n\nAnn I-PER\nis O\n\nBob B-PER\nhere\n\n \tO\nTom NN B-PER\nHill B-PER\nLee I-PER\n\nno tag at all\n"
    (tmp_path / "a").write_text(text)
    found = Tagging.read(tmp_path / "a", TaggingConfig())
    assert [each.tags for each in found] == [["B-PER", "O"], ["B-PER", "B-PER", "I-PER"]]
    rows = "1 with a word that has no tag (line 7), 1 with other than 2 columns (line 14)"
    assert f"skipped 2 of 4 sentences: {rows}" in caplog.text


@pytest.mark.slow
def test_real():
    folder = real("ner_msra_zh")
    found = Tagging.read(folder / "msra.test.bio.gz", TaggingConfig())
    assert len(found) == 4631 and scheme_of(found, "a") == "BIO"
