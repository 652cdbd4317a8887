"""The likeliest cut: against all cuts there are, and with its list through pickles, folders and corpora."""

from __future__ import annotations

import itertools
import json
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.base.errors import FormatError, UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.text.corpus import Corpus
from polyseme.text.files import decompression
from polyseme.text.splitting.unigram import UnigramSegmenter
from polyseme.text.words import NamedSplitter, get_splitter, splitter_names
from tests.encoders.small import elmo
from tests.text.test_words import INVISIBLE, inked

WORDS = ["的", "他", "包袱", "很", "重", "包", "北京", "京城", "京", "ไทย", "ภาษา"]
PIECES = [
    *INVISIBLE,
    *"的他包袱很重北京城新。，ก็่ำไ๑្ត្រី္a_B19.,-'& \n\t\u0301\U000e0100\ud800",
    "ไทย",
    "3.5",
    "1,000",
    "kg",
    "👍🏽",
    "👩\u200d🔬",
]
TEXT = st.text(st.characters()) | st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
LISTS = st.lists(st.text("的他包袱", min_size=1, max_size=4), min_size=1, max_size=12)


def probability(words: list[str], piece: str) -> float:
    """Of a piece, by Zipf's law with Mandelbrot's shift; a lone character that is no word is e times rarer than a last one."""
    places = list(dict.fromkeys(words))
    whole = math.fsum(1 / (place + 2.7) for place in range(len(places)))
    if piece in places:
        return 1 / (places.index(piece) + 2.7) / whole
    return 1 / (len(places) + 2.7) / whole / math.e if len(piece) == 1 else 0.0


def all_cuts(run: str) -> list[list[str]]:
    found = []
    for chosen in itertools.product((False, True), repeat=len(run) - 1):
        places = [0, *(place for place, cut in enumerate(chosen, start=1) if cut), len(run)]
        found.append([run[begin:end] for begin, end in itertools.pairwise(places)])
    return found


@settings(deadline=None, max_examples=100)
@given(text=TEXT)
def test_only_white_space_is_lost(text: str) -> None:
    words = UnigramSegmenter(WORDS)(text)
    assert "".join(words) == inked(text)
    assert all(words)
    assert not any(letter.isspace() for word in words for letter in word)


@settings(deadline=None, max_examples=100)
@given(words=LISTS, run=st.text("的他包袱新", min_size=1, max_size=8))
def test_no_other_cut_is_likelier(words: list[str], run: str) -> None:
    def likely(cut: list[str]) -> float:
        return math.prod(probability(words, piece) for piece in cut)

    found = UnigramSegmenter(words)(run)
    assert likely(found) == pytest.approx(max(map(likely, all_cuts(run))), rel=1e-9, abs=0.0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", []),
        (" \n", []),
        ("他的包袱很重", ["他", "的", "包袱", "很", "重"]),
        ("北京城", ["北京", "城"]),  # of two words that overlap, the more frequent one
        ("新闻", ["新", "闻"]),
        ("他新的", ["他", "新", "的"]),
        ("北 京", ["北", "京"]),  # a blank is an end
        ("ภาษาไทย", ["ภาษา", "ไทย"]),
        ("重3.5kg，1,000.5元", ["重", "3.5", "kg", "，", "1,000.5", "元"]),
        ("3.", ["3", "."]),
        ("1.2.3 v2.0 15a ３．５", ["1.2.3", "v", "2.0", "15a", "３", "．", "５"]),
        ("他用PyTorch👍🏽。", ["他", "用", "PyTorch", "👍🏽", "。"]),
    ],
)
def test_by_hand(text: str, words: list[str]) -> None:
    assert UnigramSegmenter(WORDS)(text) == words


@pytest.mark.parametrize("digits", ["๑๐", "໑", "၁", "១"])
def test_digits_of_the_script_are_a_number(digits: str) -> None:
    assert UnigramSegmenter(WORDS)(f"{digits}ภาษาไทย") == [digits, "ภาษา", "ไทย"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ที่นี่", ["ที่", "นี่"]),  # no word of the list: letters with their signs
        ("กินน้ำ", ["กิน", "น้ำ"]),
        ("กินี", ["กิ", "นี"]),  # กิน is a word, but its last letter has a sign here
        ("ภาษาไทยที่", ["ภาษา", "ไทย", "ที่"]),
        ("ស្ត្រីខ្មែរ", ["ស្ត្រី", "ខ្មែ", "រ"]),
        ("မြန်မာ", ["မြန်မာ"]),
        ("か\u3099葛\U000e0100的", ["か\u3099", "葛\U000e0100", "的"]),
    ],
)
def test_signs_stay_with_their_letter(text: str, words: list[str]) -> None:
    assert UnigramSegmenter([*WORDS, "กิน", "ิ", "်", "မြန်မာ"])(text) == words


@pytest.mark.parametrize("mark", INVISIBLE)
def test_an_invisible_mark_is_no_word(mark: str) -> None:
    expected = ["包", "袱"] if mark == "\u200b" else ["包袱"]
    assert UnigramSegmenter(WORDS)(f"{mark}他{mark}。包{mark}袱 {mark} ") == ["他", "。", *expected]


@pytest.mark.parametrize(
    ("first", "whole", "parts"),
    [
        (["京", "城"], ["京城"], ["京", "城"]),  # two frequent words against a rarer one
        (
            ["北京", *"一二三四五六七八九", "北"],
            ["北", "京城"],
            ["北京", "城"],
        ),  # and a character that is no word in one of them
    ],
)
def test_how_rare_a_word_may_be(first: list[str], whole: list[str], parts: list[str]) -> None:
    """From some place in the list on, a word is too rare to be taken: from that one, by the law itself."""
    others = [chr(0x5000 + number) for number in range(100)]
    taken, likelier = [], []
    for place in range(100):
        words = [*first, *others[:place], "京城", *others[place:]]
        taken.append(UnigramSegmenter(words)("".join(whole)) == whole)
        one, two = (math.prod(probability(words, piece) for piece in cut) for cut in (whole, parts))
        likelier.append(one > two)
    assert taken == likelier and 10 < sum(taken) < 90


def test_words_have_twelve_characters_at_most() -> None:
    long = "一二三四五六七八九十百千万"
    assert UnigramSegmenter([long[:12], long])(long) == [long[:12], "万"]
    assert UnigramSegmenter([long])(long) == list(long)


def test_the_same_words_are_the_same_splitter() -> None:
    one, other = UnigramSegmenter(WORDS), UnigramSegmenter(WORDS[::-1])
    again = pickle.loads(pickle.dumps(one))
    assert isinstance(again, UnigramSegmenter) and again.words == one.words and again("北京城") == ["北京", "城"]
    assert again == one == get_splitter("unigram", WORDS) and hash(again) == hash(one)
    assert one != other and len({one, again, other, UnigramSegmenter(WORDS[:-1])}) == 3
    assert one != get_splitter("characters") and get_splitter("characters") != one
    assert UnigramSegmenter([*WORDS, "的", "他"]) == one  # a word counts where it comes first
    with pytest.raises(AttributeError):
        one.name = "other"
    with pytest.raises((AttributeError, TypeError)):  # Python's frozen classes with slots say it oddly to their heirs
        one.words = ()


def test_called_wrongly() -> None:
    assert "unigram" in splitter_names()
    for empty in ([], [""]):
        with pytest.raises(UsageError, match="the word list is empty; splitter='unigram' needs words"):
            UnigramSegmenter(empty)
    with pytest.raises(UsageError, match="splitter='unigram' needs word_list: words, most frequent first"):
        get_splitter("unigram")
    with pytest.raises(UsageError, match="word_list applies only to splitter='unigram', not to 'characters'"):
        get_splitter("characters", WORDS)
    with pytest.raises(UsageError, match="splitter='unigram' needs word_list"):
        NamedSplitter("unigram")


def test_a_model_folder_keeps_the_list(tmp_path: Path) -> None:
    model = elmo()
    model.splitter = UnigramSegmenter(WORDS)
    folder = model.save_pretrained(tmp_path / "m")
    assert (folder / "words.txt").read_text(encoding="utf-8").split("\n") == [*WORDS, ""]
    assert json.loads((folder / "config.json").read_text())["splitter"] == "unigram"
    again = Elmo.from_pretrained(folder)
    assert again.splitter == model.splitter and again.words("他的包袱") == ["他", "的", "包袱"]
    np.testing.assert_array_equal(again.embed(["他的包袱"])[0], model.embed([["他", "的", "包袱"]])[0])
    (folder / "words.txt").unlink()
    with pytest.raises(FormatError, match=r"lacks words\.txt, which the splitter 'unigram' needs"):
        Elmo.from_pretrained(folder)


def test_a_model_that_is_cut_otherwise_leaves_no_list_behind(tmp_path: Path) -> None:
    model = elmo()
    model.splitter = UnigramSegmenter(WORDS)
    model.save_pretrained(tmp_path / "m")
    elmo().save_pretrained(tmp_path / "m")
    assert not (tmp_path / "m" / "words.txt").exists()


def test_a_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decompression, "BLOCK", 1 << 12)  # several blocks
    path = tmp_path / "a.txt"
    path.write_text("他的包袱很重。北京城！\n重3.5kg\n" * 300, encoding="utf-8")
    here, beside = (
        Corpus(path, splitter=get_splitter("unigram", WORDS), sentences="chinese", workers=count) for count in (0, 2)
    )
    expected = [["他", "的", "包袱", "很", "重", "。"], ["北京", "城", "！"], ["重", "3.5", "kg"]] * 300
    assert list(here) == list(beside) == expected
    assert not here.normalise_quotes


def test_another_list_is_another_corpus(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("他的包袱很重。", encoding="utf-8")
    with pytest.raises(UsageError, match="'unigram' needs word_list"):
        Corpus(path, splitter="unigram")
    ways = [get_splitter("characters"), get_splitter("unigram", WORDS), get_splitter("unigram", WORDS[::-1])]
    names = [Corpus(path, splitter=way, sentences="chinese").fingerprint() for way in ways]
    assert len(set(names)) == 3
    assert Corpus(path, splitter=UnigramSegmenter(WORDS), sentences="chinese").fingerprint() == names[1]
