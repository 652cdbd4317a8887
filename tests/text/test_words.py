"""The splitters by name: what each gives, and that none loses anything but white space."""

from __future__ import annotations

import pickle
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.base.errors import MissingExtraError, UsageError
from polyseme.text.words import NamedSplitter, get_splitter, normalise_quotes, plain_word

PIECES = "a|B|n't|'s|'|’|.|...|-|--|@|http://|www.|(|)|,|1|&|_|$| "
INVISIBLE = [*"\u200b\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff"]
PIECES += "|👍|🏽|🇫|漢|か|U.S.|Mr.|\u0301|\u200d|\ufe0f|\u3099|\ud800|\n|\u2028"
TRICKY = st.sampled_from([*PIECES.split("|"), *INVISIBLE, *"ก่ำ๒ស្ត្រីမြန်္"])
TEXT = st.text(st.characters()) | st.lists(TRICKY, max_size=30).map("".join)


def inked(text: str) -> str:
    return "".join(letter for letter in text if not letter.isspace() and letter not in INVISIBLE)


@pytest.mark.parametrize("name", ["whitespace", "english", "characters", "each-character"])
@settings(deadline=None, max_examples=100)
@given(text=TEXT)
def test_only_white_space_is_lost(name: str, text: str) -> None:
    words = get_splitter(name)(text)
    assert "".join(words) == ("".join(text.split()) if name == "whitespace" else inked(text))
    assert all(words)
    assert not any(letter.isspace() for word in words for letter in word)


@settings(deadline=None)
@given(text=TEXT)
def test_chinese_loses_only_white_space(text: str) -> None:
    pytest.importorskip("rjieba")
    assert "".join(get_splitter("chinese")(text)) == inked(text)


def test_a_hebrew_sentence_with_marks_of_direction() -> None:
    for name in ("english", "characters"):
        assert get_splitter(name)("\u200fהילד קרא ספר\u200f.") == ["הילד", "קרא", "ספר", "."]


@pytest.mark.parametrize("mark", INVISIBLE)
@pytest.mark.parametrize("name", ["english", "characters", "chinese"])
def test_an_invisible_mark_is_no_word_and_changes_none(name: str, mark: str) -> None:
    pytest.importorskip("rjieba" if name == "chinese" else "polyseme")
    split = get_splitter(name)
    assert split(f"{mark}the bank{mark}. {mark} {mark}{mark}x{mark}") == ["the", "bank", ".", "x"]
    assert split(f" {mark}\n") == []
    within = ["bank", "s"] if mark == "\u200b" else ["banks"]  # a zero-width space divides words
    assert split(f"bank{mark}s") == within
    assert get_splitter("whitespace")(f"a{mark} {mark}") == [f"a{mark}", mark]  # whoever split the text has decided


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \t\n", []),
        ("to be,  or\nnot", ["to", "be,", "or", "not"]),
        ("a\u3000b\u00a0c\u2003d\u2028e", ["a", "b", "c", "d", "e"]),
    ],
)
def test_whitespace(text: str, words: list[str]) -> None:
    assert get_splitter("whitespace")(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我爱北京", ["我", "爱", "北", "京"]),
        ("iPhone15发布了。", ["iPhone15", "发", "布", "了", "。"]),
        ("用 PyTorch 写", ["用", "PyTorch", "写"]),
        ("ＡＢＣ股", ["ＡＢＣ", "股"]),
        ("カタカナとかな", ["カ", "タ", "カ", "ナ", "と", "か", "な"]),
        ("か\u3099", ["か\u3099"]),
        ("서울 2024", ["서", "울", "2024"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("葛\U000e0100城", ["葛\U000e0100", "城"]),
        ("cafe\u0301很好", ["cafe\u0301", "很", "好"]),
        ("Привет，мир！", ["Привет", "，", "мир", "！"]),
        ("好👍🏽👍", ["好", "👍🏽", "👍"]),
        ("3.5%", ["3", ".", "5", "%"]),
        ("ภาษาไทย", ["ภ", "า", "ษ", "า", "ไ", "ท", "ย"]),
        ("ที่น้ำ ๒๕๖๗ok", ["ที่", "น้ำ", "๒๕๖๗ok"]),  # a tone sign above a vowel sign; a vowel half above
        ("ພາສາ ນ້ຳ໕", ["ພ", "າ", "ສ", "າ", "ນ້ຳ", "໕"]),
        ("ស្ត្រីខ្មែរ។", ["ស្ត្រី", "ខ្មែ", "រ", "។"]),  # letters below a letter
        ("မြန်မာ၁၂ အင်္ဂ။", ["မြ", "န်", "မာ", "၁၂", "အ", "င်္ဂ", "။"]),
        ("ខ\u200cប", ["ខ\u200c", "ប"]),
        ("\u0e48ก", ["\u0e48", "ก"]),  # a sign without its letter
    ],
)
def test_characters(text: str, words: list[str]) -> None:
    assert get_splitter("characters")(text) == words


def test_chinese() -> None:
    pytest.importorskip("rjieba")
    assert get_splitter("chinese")("我们 爱北京\n天安门") == ["我们", "爱", "北京", "天安门"]


def test_chinese_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rjieba", None)
    with pytest.raises(MissingExtraError, match=r"needs rjieba.*pip install 'polyseme\[zh\]'"):
        get_splitter("chinese")("今天")


def test_unknown_names_get_a_hint() -> None:
    with pytest.raises(UsageError, match=r"'englsh' \(did you mean 'english'\?\)"):
        get_splitter("englsh")
    with pytest.raises(UsageError, match="known: characters, chinese, each-character, english, unigram, whitespace"):
        NamedSplitter("zzz")


def test_a_splitter_is_its_name() -> None:
    english = get_splitter("english")
    assert english == NamedSplitter("english") != get_splitter("whitespace")
    assert pickle.loads(pickle.dumps(english))("a, b") == ["a", ",", "b"]
    with pytest.raises(AttributeError):
        english.name = "other"


def test_normalise_quotes() -> None:
    assert normalise_quotes("“It’s ‘fine’,” he said: „gut‟ ‚so‛ «non» ′") == "\"It's 'fine',\" he said: \"gut\" 'so' «non» ′"


def test_plain_word() -> None:
    escapes = {"``": '"', "''": '"', "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}"}
    others = {"’s": "'s", "“": '"', "-lrb-": "-lrb-", "LRB": "LRB", "-LRB-a": "-LRB-a", "`": "`", "'": "'", "": ""}
    for word, plain in (escapes | others).items():
        assert plain_word(word) == plain_word(plain) == plain
