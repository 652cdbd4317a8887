"""Encoder, splitter and word features that fit the script of labelled data, where the user chose none.

Data that is mostly Chinese gets the Chinese model and its splitter instead of the English ones; data by single characters, as
Chinese names are tagged, gets the splitter `characters` for prediction (`each-character` if Latin letters and digits are single
tokens too), and encoders of words read the words that contain the characters (`polyseme.encoders.word_features`). Data in a
script that neither model has read, such as Cyrillic, gets no frozen encoder: English vectors of such words say little. What the
user chose stays; English for Chinese data is refused. Words that a tagger's splitter would not find in raw text are
reported.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from polyseme.base.errors import UsageError, arg
from polyseme.encoders.base import Encoder
from polyseme.encoders.folder import chinese_splitter
from polyseme.encoders.script_check import other_letters, unknown_words
from polyseme.studies.config import NONE
from polyseme.tasks.base import Task
from polyseme.tasks.config import TaskConfig
from polyseme.text.script import ScriptProfile, are_single_characters, cuts_letters, first_text
from polyseme.text.splitting.alignment import join, overlaps
from polyseme.text.splitting.unicode_classes import strip_invisible
from polyseme.text.words import Splitter, get_splitter, plain_word

Notify = Callable[[str], None]
_EXAMPLES = 2000  # that are looked at
_CLAUSE = 8  # letters: a Chinese text that long has more than one word
_MIXED = 0.05  # of the texts of Chinese that is split into words, for those that are not to matter
_RESPLIT = 500  # sentences that are split again
_OTHERWISE = 0.02  # of their words come out otherwise; of CoNLL-2003 and UD English 0.002 to 0.006
_FEW_OTHERWISE = 5  # words in a little data are no pattern
_WORD_SPLITTERS = ("unigram", "chinese")  # of encoders whose words contain characters


@dataclass(eq=False)
class _RawTexts:
    """A splitter that collects the texts it is asked to split."""

    name: str = "whitespace"
    texts: list[str] = field(default_factory=list)

    def __call__(self, text: str) -> list[str]:
        self.texts.append(text)
        return text.split()


@dataclass(frozen=True)
class DataScript:
    """The script of labelled data."""

    profile: ScriptProfile
    raw: bool
    """Whether it has texts that are still to be split into words."""
    single_characters: bool
    """Whether its words are given, and are single Chinese characters."""
    cuts_letters: bool = False
    """Whether Latin letters and digits are single tokens, too."""
    mixed: tuple[int, int] | None = None
    """Of Chinese texts of which some are split into words and some are not: how many are not, and of how many."""
    text: str = field(default="", repr=False)
    """The first texts."""

    @classmethod
    def of(cls, task: type[Task], examples: Sequence[Any]) -> DataScript:
        """Look at the first examples."""
        splitter, given = _RawTexts(), list[list[str]]()
        for example in itertools.islice(examples, _EXAMPLES):
            before = len(splitter.texts)
            texts = task.example_texts(example, splitter)
            given += texts if len(splitter.texts) == before else []
        lines: Iterator[str] = itertools.chain(splitter.texts, map(" ".join, given))
        text = first_text(lines)
        profile, raw = ScriptProfile.of(text), bool(splitter.texts)
        mixed = _mixed(splitter.texts) if profile.is_chinese and profile.is_split else None
        single = not raw and are_single_characters(given)
        return cls(profile, raw, single, single and cuts_letters(given), mixed, text)

    def default_encoder(self, config: TaskConfig, notify: Notify) -> str:
        """The name of the encoder where none is given."""
        if self.profile.is_foreign and config.features.mode == "frozen" and not config.is_linear:
            why = f"the data is mostly in {self.profile.main}, and the models en and zh have read none"
            notify(f"{why}: {arg('encoder', NONE)}; a model of your own text may help (polyseme pretrain elmo)")
            return NONE
        if not self.profile.is_chinese:
            return "en"
        notify(f"the data is mostly Chinese ({self.profile.percent}), so this uses {arg('encoder', 'zh')}")
        return "zh"

    def check_encoders(self, encoders: Sequence[Encoder]) -> None:
        """Refuse the English model for Chinese data."""
        english = [each for each in encoders if each.source == "en" or (self._unsplit and _is_english(each))]
        if self.profile.is_chinese and english:
            what = f"the data is mostly Chinese ({self.profile.percent}), and {english[0].source} is an English model"
            raise UsageError(f"{what}: give {arg('encoder', 'zh')}, or a Chinese model of your own")

    def report_encoders(self, encoders: Sequence[Encoder], notify: Notify) -> None:
        """Say that a shipped model has read nothing in the script or the language of the data."""
        for encoder in encoders:
            if (what := other_letters(encoder, self.profile, self.text, "data")) is not None:
                others = f"give {arg('encoder', NONE)}, or a model of your own text (polyseme pretrain elmo)"
                notify(f"{what}: its vectors say little; {others}")
                break
            if (what := unknown_words(encoder, self.profile, self.text, "data")) is not None:
                notify(f"{what}: a model of your own text may help more (polyseme pretrain elmo)")

    def check_splitter(self, splitter: Splitter | None) -> None:
        """Refuse the English splitter for Chinese text."""
        if self._unsplit and splitter is not None and splitter.name == "english":
            raise UsageError(self.profile.refusal("data"))

    def splitter(self, given: Splitter | None, encoders: Sequence[Encoder], notify: Notify) -> Splitter | None:
        """The splitter for prediction and raw text; None: that of the first encoder."""
        contextual = [each for each in encoders if not each.static]
        if given is not None:
            return given
        if self.single_characters:
            name = "each-character" if self.cuts_letters else "characters"
            what = "single characters, Latin letters and digits too" if self.cuts_letters else "single characters"
            notify(f"the data is split into {what}, and so are new texts: {arg('splitter', name)}")
            return get_splitter(name)
        if self.mixed is not None:
            unsplit, texts = self.mixed
            what = f"{unsplit:,} of {texts:,} Chinese texts have no spaces between words, and the others have"
            notify(f"{what}: better remove these spaces, or split all texts alike")
            if not contextual or contextual[0].splitter.name == "whitespace":
                return chinese_splitter()
        words_are_given = self.profile.is_chinese and not self.raw
        if (self._unsplit or words_are_given) and (not contextual or contextual[0].splitter.name == "whitespace"):
            which = "new texts" if words_are_given else "its texts"
            notify(f"the data is mostly Chinese ({self.profile.percent}): {which} are split into words as for the model zh")
            return chinese_splitter()
        if self.raw and not contextual and self.profile.is_unspaced:
            notify(f"the data is mostly in {self.profile.main}, without spaces between words: {arg('splitter', 'characters')}")
            return get_splitter("characters")
        effective = contextual[0].splitter.name if contextual else "english"
        if self.raw and effective in ("english", "whitespace") and (problem := self.profile.warning()):
            notify(f"{problem}: consider {arg('splitter', 'characters')}, or text whose words are separated by spaces")
        return None

    def report_words(self, sentences: Sequence[Sequence[str]], splitter: Splitter, notify: Notify) -> None:
        """Say that raw text will be split otherwise than these sentences, whose words are given.

        Chinese words have no spaces between them, and a splitter finds other words in any case.
        """
        if self.profile.is_chinese:
            return
        some = sentences[:: max(-(-len(sentences) // _RESPLIT), 1)]
        found = Counter[tuple[str, str]]()
        for sentence in some:
            words = [strip_invisible(plain_word(word)) for word in sentence]
            found.update(_otherwise(words, join(words) if self.profile.is_japanese else " ".join(words), splitter))
        count, total = found.total(), sum(map(len, some))
        if count < _FEW_OTHERWISE or count <= _OTHERWISE * total:
            return
        shown = ", ".join(f"{word!r} becomes {split}" for (word, split), _ in found.most_common(2))
        what = f"{count:,} of {total:,} words are split otherwise in raw text ({shown})"
        like = f"predict text that is split like the data, with {arg('split_on_spaces', True)}"
        notify(f"{what}: {like}, or train with {arg('splitter', 'whitespace')}")

    def options(
        self, config: TaskConfig, given: Mapping[str, Any], encoders: Sequence[Encoder], notify: Notify
    ) -> dict[str, Any]:
        """Settings that follow from the script: word features where encoders of words read characters."""
        frozen = config.features.mode == "frozen" and not config.is_linear
        fits = bool(encoders) and all(each.splitter.name in _WORD_SPLITTERS for each in encoders if not each.static)
        words = any(not each.static for each in encoders)
        if not (self.single_characters and frozen and fits and words) or "word_features" in given:
            return {}
        notify(f"encoders read the words that contain the characters: {arg('word_features', True)}")
        return {"word_features": True}

    @property
    def _unsplit(self) -> bool:
        return self.raw and self.profile.needs_chinese_splitter


def _mixed(texts: Sequence[str]) -> tuple[int, int] | None:
    """How many of some Chinese texts are not split into words, and of how many; None: hardly any."""
    profiles = [each for each in map(ScriptProfile.of, texts) if each.is_chinese and each.letters >= _CLAUSE]
    unsplit = sum(each.separated == 0 for each in profiles)
    return (unsplit, len(profiles)) if unsplit > _MIXED * len(profiles) else None


def _otherwise(words: Sequence[str], text: str, splitter: Splitter) -> Iterator[tuple[str, str]]:
    """Words of a sentence that the splitter does not find in its text, each with what it finds there."""
    again = splitter(text)
    for word, where in zip(words, overlaps(words, again), strict=True):
        if where and (len(where) > 1 or again[where[0]] != word):
            yield word, " ".join(again[where.start : where.stop])


def _is_english(encoder: Encoder) -> bool:
    return encoder.splitter.name == "english" and not encoder.static and not encoder.reads_subwords
