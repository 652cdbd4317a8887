"""Which script a text is written in, and whether its words are separated: cheap, from a sample.

The English splitter takes a clause of Chinese for one word, and the English model has never seen one, so both are wrong for
text that is mostly Chinese. Three shares decide, all counted in letters, because words are what is not known yet:

- Han among all letters: at least half in Chinese, technical text with English terms included; some per cent in English text
  with Chinese names. Japanese has Han too, but with kana between them.
- Spaces between two Han characters of a line: none in plain text, about half in text that is split into words, all in text
  that is split into characters.
- Tokens of one character, for data whose words are given: about half of Chinese words, all of data by characters.

A detector of languages (fastText, CLD3) was not chosen: it would be a model to install for what five counts tell.
"""

from __future__ import annotations

import operator
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from polyseme.base.errors import arg
from polyseme.text.files.sources import Source
from polyseme.text.splitting.characters import CJK

MOSTLY = 0.5
"""Of the letters, for a text to be mostly of one script."""
SOME = 0.1
"""Of the letters, for a script to matter in a text that is mostly of another."""
SAMPLE_CHARACTERS = 200_000
"""Characters of a text that are looked at."""
_KANA = 0.1  # of Han and kana together, for Japanese
_SEPARATED = 0.25  # of the neighbours among Han characters, where words of two or three are separated by spaces
_SINGLE = 0.95  # of the tokens with Han characters, where each character is a token
_FEW = 20  # tokens say little
_FEW_LETTERS = 500  # one line of another language says little
_FILES = 10  # of a corpus that are looked at
_LONG_RUN = 8.0  # letters without a break, on average: more than words have

_SCRIPTS = {
    "Han": "々〇\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "kana": "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Hangul": "\u1100-\u11ff\u3130-\u318f\uac00-\ud7ff",
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff",
    "Cyrillic": "\u0400-\u052f",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Arabic": "\u0620-\u064a\u066e-\u06d3\u0750-\u077f",
    "Hebrew": "\u05d0-\u05ea",
    "Devanagari": "\u0904-\u0939\u0958-\u0961",
    "Thai": "\u0e01-\u0e4e",
    "Lao": "\u0e81-\u0ece",
    "Burmese": "\u1000-\u103f\u1050-\u108f",
    "Khmer": "\u1780-\u17d3",
}
_UNSPACED = ("Thai", "Lao", "Burmese", "Khmer")
_PATTERNS = {name: re.compile(f"[{ranges}]+") for name, ranges in _SCRIPTS.items()}
_HAN = _SCRIPTS["Han"]
_TOGETHER = re.compile(f"(?<=[{_HAN}])(?=[{_HAN}])")
_APART = re.compile(f"(?<=[{_HAN}])[ \t\u3000]+(?=[{_HAN}])")
_LETTER_OR_DIGIT = re.compile(rf"[^\W_{CJK}]")
_OTHER_LETTERS = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True)
class ScriptProfile:
    """What a sample of text is written in.

    >>> profile = ScriptProfile.of("我喜欢北京。I like it.")
    >>> profile.shares["Latin"], ScriptProfile.of("我喜欢北京。").is_chinese
    (0.5833333333333334, True)
    """

    letters: int
    """Letters of the sample."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """By script, its share of the letters, largest first."""
    separated: float = 0.0
    """Of all Han characters that have one as a neighbour, how many have a space between them."""
    mean_run: float = 0.0
    """Letters of the main script without a break, on average; kana and Han count as one script."""

    @classmethod
    def of(cls, text: str) -> ScriptProfile:
        """Look at a text; only its first letters count."""
        text = text[:SAMPLE_CHARACTERS]
        found = {name: pattern.findall(text) for name, pattern in _PATTERNS.items()}
        counts = Counter({name: sum(map(len, runs)) for name, runs in found.items() if runs})
        letters = max(sum(counts.values()), sum(map(len, _OTHER_LETTERS.findall(text))))
        if not counts:
            return cls(letters)
        shares = {name: count / letters for name, count in counts.most_common()}
        together, apart = len(_TOGETHER.findall(text)), len(_APART.findall(text))
        main = ("Han", "kana") if counts.most_common(1)[0][0] in ("Han", "kana") else (counts.most_common(1)[0][0],)
        runs = re.findall(f"[{''.join(_SCRIPTS[name] for name in main)}]+", text)
        return cls(letters, shares, apart / max(together + apart, 1), sum(map(len, runs)) / len(runs))

    @classmethod
    def of_lines(cls, lines: Iterable[str]) -> ScriptProfile:
        """Look at the first lines of a text; no more are read than needed."""
        return cls.of(first_text(lines))

    @classmethod
    def of_source(cls, source: Source) -> ScriptProfile:
        """Look at the beginnings of the files of a corpus, of some of them where there are many."""
        return cls.of(sample_of(source))

    def share(self, *scripts: str) -> float:
        """The share of some scripts together."""
        return sum(self.shares.get(name, 0.0) for name in scripts)

    @property
    def is_japanese(self) -> bool:
        """Whether kana stand among the Han characters, of which Chinese has none."""
        return self.share("kana") > _KANA * self.share("Han", "kana")

    @property
    def is_chinese(self) -> bool:
        """Whether the text is mostly Chinese, simplified or traditional."""
        return self.share("Han") >= MOSTLY and not self.is_japanese

    @property
    def is_split(self) -> bool:
        """Whether spaces separate Chinese words or characters already."""
        return self.separated >= _SEPARATED

    @property
    def needs_chinese_splitter(self) -> bool:
        """Whether the text is Chinese, with no spaces between words."""
        return self.is_chinese and not self.is_split

    @property
    def is_unspaced(self) -> bool:
        """Whether the text is in a script that has no spaces between words, Chinese apart, and has none."""
        return self.main in ("Japanese", *_UNSPACED) and self.mean_run > _LONG_RUN

    @property
    def is_foreign(self) -> bool:
        """Whether most letters are neither Latin nor Chinese: the models that come with polyseme have read no such text."""
        known = self.share("Latin") if self.is_japanese else self.share("Latin", "Han")
        return bool(self.letters) and known < MOSTLY

    @property
    def main(self) -> str:
        """What the text is mostly written in, for messages.

        >>> ScriptProfile.of("Привет, мир").main, ScriptProfile.of("東京に行きます").main, ScriptProfile.of("வணக்கம்").main
        ('Cyrillic', 'Japanese', 'another script')
        """
        if self.is_japanese and self.share("Han", "kana") >= MOSTLY:
            return "Japanese"
        name = next(iter(self.shares), "")
        return name if self.share(name) >= MOSTLY else "another script"

    @property
    def percent(self) -> str:
        """How much of the text is Han, for messages."""
        return f"{100 * self.share('Han'):.0f} % of its letters"

    def refusal(self, what: str = "text") -> str:
        """Why the English splitter is refused, and what to give."""
        choices = f"leave it out, or give {arg('splitter')} chinese, characters or unigram"
        return f"the {what} is mostly Chinese ({self.percent}), which {arg('splitter', 'english')} cannot split: {choices}"

    def warning(self) -> str | None:
        """Why splitting this text at spaces and punctuation is poor, where it is Japanese, Thai and the like, or mixed."""
        if self.is_chinese or self.mean_run <= _LONG_RUN:
            mixed = SOME <= self.share("Han") < MOSTLY and not self.is_split and self.share("kana", "Hangul") < SOME
            mixed &= self.letters >= _FEW_LETTERS
            return f"{self.percent.replace('its', 'the')} are Chinese, and a run of them counts as one word" if mixed else None
        if not self.is_unspaced:
            return None
        return f"the text is mostly {self.main}, which has no spaces between words, so whole phrases count as words"


def is_chinese_data(lines: Sequence[str]) -> bool:
    """Whether lines of labelled data are in Chinese; their labels, tags and field names are mostly Latin, so lines count.

    >>> is_chinese_data(["我 O", "在 O", "北 B-LOC", "京 I-LOC"]), is_chinese_data(["Li Na (李娜)\ta", "Yes\ta", "No\tb"])
    (True, False)
    """
    lines = [line for line in lines if line.strip()]
    profile = ScriptProfile.of_lines(lines)
    with_han = sum(_PATTERNS["Han"].search(line) is not None for line in lines)
    return profile.share("Han") >= SOME and not profile.is_japanese and with_han >= MOSTLY * len(lines)


def are_single_characters(sentences: Iterable[Iterable[str]]) -> bool:
    """Whether data whose words are given is Chinese by characters: each token with a Han character is one alone.

    >>> are_single_characters([["我", "在", "北", "京", "3", "天"]] * 10), are_single_characters([["我", "在", "北京"]] * 10)
    (True, False)
    """
    tokens = [word for words in sentences for word in words if _PATTERNS["Han"].search(word)]
    return len(tokens) >= _FEW and sum(len(token) == 1 for token in tokens) >= _SINGLE * len(tokens)


def cuts_letters(sentences: Iterable[Sequence[str]]) -> bool:
    """Whether single letters or digits that are not Chinese stand next to each other, and no token has several.

    >>> cuts_letters([["用", "Q", "Q", "聊"]]), cuts_letters([["用", "QQ", "聊", "3", "天"]]), cuts_letters([["3", "天"]])
    (True, False, False)
    """
    adjacent = False
    for words in sentences:
        counts = [len(_LETTER_OR_DIGIT.findall(word)) for word in words]
        if max(counts, default=0) > 1:
            return False
        adjacent = adjacent or any(map(operator.and_, counts, counts[1:]))
    return adjacent


def first_text(lines: Iterable[str]) -> str:
    """The first lines of a text, as many as a profile looks at; no more are read."""
    some, total = list[str](), 0
    for line in lines:
        some.append(line)
        total += len(line) + 1
        if total >= SAMPLE_CHARACTERS:
            break
    return "\n".join(some)


def sample_of(source: Source) -> str:
    """The beginnings of the files of a corpus, of some of them where there are many."""
    files = source.files[:: max(1, len(source.files) // _FILES)][:_FILES]
    room = SAMPLE_CHARACTERS // max(len(files), 1)
    texts = (next(iter(source.tolerant().chunks([file])), None) for file in files)
    return "\n".join(chunk.text[:room] for chunk in texts if chunk is not None)
