"""Sentences: examples by hand (a bar between sentences), nothing lost but white space, and time that grows with the text."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.base.errors import UsageError
from polyseme.text.sentences import SentenceSplitter
from tests.text.test_words import inked

ENGLISH = [
    # plain stops
    "The cat sat.| The dog ran.",
    "Is it? |Yes! |Good.",
    "What?! |Really?",
    "No stop at the end",
    "One. two is written small? |No.",
    "It ends with blanks.  ",
    "He came in 1990. |20 people left.",
    "It rose by 3.5 percent to $1,000.50. |Shares fell.",
    "Version 2.0 of node.js is out. |See example.org for more.",
    # titles and what stands before a name or number
    "Mr. Smith met Dr. Jones. |They left.",
    "Gen. Grant and Lt. Col. Lee met at St. Paul's.",
    "Prof. A. B. Clark spoke. |We listened.",
    "See Fig. 3 and pp. 12-14. |It is No. 5 on the list.",
    "He said no. |Then he left.",
    "On Jan. 5 it snowed. |On Feb. 6 it did not.",
    "Read John viii. 46 again. |Amen.",
    "He likes fruit, e.g. Apples from Kent, i.e. Good ones.",
    "Kramer vs. Kramer is a film.",
    # abbreviations that may end a sentence
    "Apple Inc. Chairman Levinson spoke.",
    "She works for Apple Inc. |The firm is large.",
    "The U.S. Senate met. |It voted.",
    "He moved to the U.S. |In May he left.",
    "It opens at 5 p.m. |The doors close at 9 p.m. |He knows.",
    "It closes at 5 p.m. Eastern time.",
    "Apples, pears, etc. |They are fruit.",
    "Smith et al. Nature paper.",
    "Martin Luther King Jr. |He had a dream.",
    "Martin Luther King Jr. Boulevard is long.",
    # initials
    "J. R. R. Tolkien wrote it. |C. S. Lewis read it.",
    "George W. Bush won.",
    "We chose plan B. |The other failed.",
    "She is taller than I. |Bob is not.",
    # quotes and brackets behind the stop
    'He said, "Go." |She went.',
    "“It is late.” |“No!” |“Yes.”",
    '"Why?" she asked. |"Because."',
    '"Stop!" John said. |He ran.',
    "“Never!” Mrs. Bennet cried. |She wept.",
    "(He left.) |Then she came.",
    "They ate (fish, etc.) and slept. |All was well.",
    "It is known [1]. |It is true.[2] |So it is.",
    "He left. |(She stayed.) |They met.",
    "It ended. |“Good,” he said.",
    # ellipses
    "Wait... what?",
    "He thought… then spoke.",
    "It was gone... |Nobody knew.",
    "I... I do not know.",
    # numbered lines, names with stops
    "1. Open the door. |2. Go in.",
    "(a. The first.",
    "Yahoo! is a firm. |So is Jeopardy! the show.",
    # split already, other scripts
    "The cat sat . |The dog ran .",
    "He said `` Go . '' |She went .",
    "Das ist gut. |Über alles. |Привет. |Мир.",
    "",
    "   ",
    "...",
]

OTHERS = [
    "वह घर गया। |फिर सो गया।|कब? |अंत ॥ |शुरू",
    'उसने कहा, "चलो।", और चला। |"रुको।" |वह रुका।',
    "کیا آپ آئے؟ |ہاں۔ |ٹھیک ہے۔",
    "12۔10۔2019 کو؟! |ہاں۔",
    "قال: «هل جئت؟» |نعم. |ثم ذهب",
    "አበበ በሶ በላ። |ጫላ ጩቤ ጨበጠ።|እሺ፧",
    "သွားသည်။ |သူလာသည်။",
    "ខ្ញុំទៅ។ |គាត់មក៕",
    "Բարև։ |Լավ։",
    "הוא בא.\u200f |\u200fהיא הלכה.\u200f” |סוף",
    "He left.\u200e \u200eand came. |Good.",
]

CHINESE = [
    "今天天气很好。|我们去公园吧！|你去吗？",
    "他说：“我不去。”|她笑了。",
    "“走！”，他喊道。|大家走了。",
    "等等……|他走了。",
    "一；二；三。|四",
    "真的吗？！|是的。",
    "（他走了。）|她来了。",
    "「好。」|『不好！』|完",
    "他问：“在哪儿？”、“什么时候？”",
    "价格是3.5元。|很便宜!|OK?|好",
    "没有句号",
    "",
]


def parts(example: str) -> list[str]:
    return [part.strip() for part in example.split("|") if part.strip()]


@pytest.mark.parametrize("example", [*ENGLISH, *OTHERS])
def test_english(example: str) -> None:
    assert SentenceSplitter("english")(example.replace("|", "")) == parts(example)


@pytest.mark.parametrize("example", CHINESE)
def test_chinese(example: str) -> None:
    assert SentenceSplitter("chinese")(example.replace("|", "")) == parts(example)


def test_what_nobody_sees_is_no_sentence() -> None:
    assert SentenceSplitter("english")("\ufeff") == [] and SentenceSplitter("english")("He left. \u200f\n") == ["He left."]


def test_lines() -> None:
    assert SentenceSplitter("lines")(" One. Two. \n\nThree\r\n") == ["One. Two.", "Three"]


PIECES = r""". ! ? । ؟ ။ … ... 。 ！ ” “ " ' '' ) ( [ ] a B I Mr U.S. etc 1 3.5 - — 漢 The said"""
SPACES = [" ", "\n", "\t", "\u2028", "\u00a0", "\u0301", "\u200d"]
TEXT = st.text(st.characters()) | st.lists(st.sampled_from([*PIECES.split(), *SPACES]), max_size=40).map("".join)


@pytest.mark.parametrize("name", ["lines", "english", "chinese"])
@settings(deadline=None, max_examples=100)
@given(text=TEXT)
def test_only_white_space_is_lost(name: str, text: str) -> None:
    sentences = SentenceSplitter(name)(text)
    assert "".join(inked(sentence) for sentence in sentences) == inked(text)
    assert all(sentence and sentence == sentence.strip() for sentence in sentences)


@pytest.mark.parametrize("size", [30_000, pytest.param(200_000, marks=pytest.mark.slow)])  # slow: the same, longer
@pytest.mark.parametrize("name", ["english", "chinese"])
@pytest.mark.parametrize(
    "pattern",
    [
        "।",
        "। ",
        "।\u200f",
        "।1",
        ".",
        ". ",
        ".)",
        ". (",
        '."',
        "a. ",
        "... ",
        "' ",
        "A. ",
        ". A",
        "。",
        "。”",
        "。，",
        "！ ",
        " ",
        "(",
        ". -",
    ],
)
def test_long_texts_end(name: str, pattern: str, size: int) -> None:
    """A second or two at most; a pattern that went back over the text would take hours."""
    text = (pattern * size)[:size]
    assert "".join("".join(SentenceSplitter(name)(text)).split()) == "".join(text.split())


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(UsageError, match=r"'englsh' \(did you mean 'english'\?\)"):
        SentenceSplitter("englsh")


def test_a_splitter_is_its_name() -> None:
    english = SentenceSplitter("english")
    assert english == SentenceSplitter("english") == pickle.loads(pickle.dumps(english))
