"""Sense vectors: several vectors per word, `bank#1` and `bank#2`, in files that every program for word vectors reads.

The uses of a word in a text are grouped by their vectors in context (`plane.clusters`), and a sense is the centroid of a group.
The senses of a word are numbered by falling frequency; the words that stand around its uses say what it means.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.config import SensesConfig
from polyseme.analysis.index import DEFAULT_LAYER, check_comparable, layer_slice
from polyseme.analysis.neighbours import Text, searched_sentences
from polyseme.analysis.plane import MAX_CLUSTERS, clusters, common_words, labels
from polyseme.base.display import columns, html_table
from polyseme.base.display import count as counted
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence
from polyseme.formats.word_vectors import form_of, write_vectors
from polyseme.text.filtering.language import ENGLISH_FUNCTION_WORDS
from polyseme.text.word_vectors import WordVectors

log = logging.getLogger(__name__)
_SENTENCES = 256  # whose vectors are in memory at a time
_SHOWN = 40  # rows on a screen
_FEW, _NAMED = 2, 5  # uses of a group that says little; words and groups that a message names
_MANY = 50  # uses of a word, from which on its groups are not called chance
_AROUND = 4  # words before and after an example
_MOST_FREQUENT = 50  # words of a vocabulary that stand in any sentence; it begins with the most frequent
_SAMPLED = 20_000  # sentences that say which words are common


@dataclass(frozen=True)
class Sense:
    """One sense of a word."""

    name: str
    """The word and the number of the sense: `bank#1`."""
    uses: int
    label: list[str]
    """Words that stand around its uses."""
    vector: NDArray[np.float32]
    """(dim,): the mean of the vectors of its uses."""
    example: str = ""
    """The use that is nearest to the vector, with some words around it."""

    @property
    def shown(self) -> str:
        """What it means: its label, or where its uses have no words in common, one of them."""
        return " ".join(self.label) or self.example


@dataclass(frozen=True)
class _Use:
    """A word in a sentence."""

    text: list[str]
    position: int
    vector: NDArray[np.float32]


@dataclass(frozen=True)
class SenseVectors:
    """The senses of words in a text."""

    senses: list[Sense]
    layer: str
    out: Path | None = None
    crowded: tuple[str, ...] = ()
    """Words with the largest number of groups that is tried."""

    def word_vectors(self) -> WordVectors:
        """The vectors by name, as a table of word vectors."""
        names = [each.name for each in self.senses]
        return WordVectors(names, np.stack([each.vector for each in self.senses]), len(names))

    def to_json(self) -> dict[str, Any]:
        rows = [{"name": each.name, "uses": each.uses, "label": each.label, "example": each.example} for each in self.senses]
        return {"senses": rows, "layer": self.layer, "out": None if self.out is None else str(self.out)}

    def __str__(self) -> str:
        rows = [(each.name, counted(each.uses, "use"), each.shown) for each in self.senses[:_SHOWN]]
        more = [f"  ... and {len(self.senses) - _SHOWN} more"] if len(self.senses) > _SHOWN else []
        few = [each.name for each in self.senses if each.uses <= _FEW]
        names = ", ".join([*few[:_NAMED], *(["..."] if len(few) > _NAMED else [])])
        if rare := self._rare():
            listed = ", ".join([*rare[:_NAMED], *(["..."] if len(rare) > _NAMED else [])])
            more.append(f"fewer than {_MANY} uses ({listed}) tell little of senses: groups may be chance; give more text")
        elif few:
            more.append(f"groups of {_FEW} uses or fewer ({names}) may be chance: give more text, or fewer {arg('groups')}")
        if self.crowded:
            named = ", ".join([*self.crowded[:_NAMED], *(["..."] if len(self.crowded) > _NAMED else [])])
            more.append(f"{MAX_CLUSTERS} groups are the most that are tried ({named}): {arg('groups')} N makes N")
        written = [] if self.out is None else [f"{self.out}: {counted(len(self.senses), 'vector')} ({self.layer})"]
        return "\n".join([columns([("sense", "uses", "around it"), *rows], right=[1]), *more, *written])

    def _rare(self) -> list[str]:
        """The words with several groups and few uses, with the number of these."""
        uses: dict[str, list[int]] = {}
        for each in self.senses:
            uses.setdefault(each.name.rpartition("#")[0], []).append(each.uses)
        return [f"{word}: {sum(each)}" for word, each in uses.items() if len(each) > 1 and sum(each) < _MANY]

    def _repr_html_(self) -> str:
        return html_table(["sense", "uses", "around it"], [[each.name, each.uses, each.shown] for each in self.senses])


def sense_vectors(
    encoder: Encoder,
    words: Iterable[str] | None = None,
    *,
    corpus: Text | None = None,
    out: str | Path | None = None,
    config: SensesConfig | None = None,
) -> SenseVectors:
    """Find the senses of words in a text; write their vectors to `out`, whose suffix selects the form.

    `words` None: all words of the text with a letter and at least `min_uses` uses. Case does not count, and of a repeated
    sentence only one.
    """
    config = config or SensesConfig()
    form = {} if out is None else form_of(out)
    check_comparable(encoder)
    if encoder.layers == 1 and encoder.has_static_vectors:
        reason = f"a {encoder.kind} has one vector per word, so its senses cannot be told apart"
        raise UsageError(f"{reason}: choose a contextual model")
    layers = layer_slice(DEFAULT_LAYER if config.layer is None else config.layer, encoder.layers)
    texts = _distinct(encoder, searched_sentences(encoder, corpus, config))
    wanted = _frequent(texts, config.min_uses) if words is None else {word.lower() for word in words}
    _warn_of_unread(texts, wanted, config.max_uses)
    uses = _collect(encoder, texts, wanted, layers, config.max_uses)
    absent = sorted(wanted - uses.keys())
    if not uses:
        what = f"the text has none of the words {', '.join(absent[:5])}"
        raise PolysemeError(f"{what}{_inside_others(texts, absent)}: give words that it has")
    if words is not None and absent:
        log.warning("the text does not have %s%s", ", ".join(absent[:8]), _inside_others(texts, absent))
    common = common_words(texts[:: max(len(texts) // _SAMPLED, 1)]) | _function_words(encoder)
    senses, crowded = list[Sense](), list[str]()
    with progress("grouping", len(uses), "words") as advance:
        for name, found in uses.items():
            of_word = list(_senses(name, found, common, config.groups))
            crowded += [name] if config.groups is None and len(of_word) == MAX_CLUSTERS else []
            senses += of_word
            advance(1)
    first, last = layers.start, layers.stop - 1
    layer = f"layer {last}" if first == last else f"mean of layers {first} to {last}"
    result = SenseVectors(senses, layer, None if out is None else Path(out), tuple(crowded))
    if out is not None:
        write_vectors(result.word_vectors(), out, **form)
    return result


def _distinct(encoder: Encoder, sentences: Iterable[Sentence]) -> list[list[str]]:
    times = Counter(tuple(encoder.words(sentence)) for sentence in sentences)
    if repeats := times.total() - len(times):
        log.warning("of equal sentences one is used: %s left out", counted(repeats, "repeated one"))
    return [list(words) for words in times]


def _inside_others(texts: Sequence[Sequence[str]], absent: Sequence[str]) -> str:
    """Say of which words the absent ones are a part in the text; nothing if of none."""
    counts = Counter(word for text in texts for word in text)
    found = {word: [(other, times) for other, times in counts.most_common() if word in other.lower()] for word in absent}
    parts = [f"{word} is only a part of {', '.join(f'{o} ({n})' for o, n in of[:3])}" for word, of in found.items() if of]
    return f" ({'; '.join(parts[:3])}; with spaces around it, it is a word)" if parts else ""


def _warn_of_unread(texts: list[list[str]], wanted: set[str], most: int) -> None:
    """Say of which words not all uses are compared."""
    counts = Counter(folded for text in texts for word in text if (folded := word.lower()) in wanted)
    over = [f"{word} ({number:,})" for word, number in counts.most_common() if number > most]
    if over:
        named = ", ".join([*over[:_NAMED], *([f"{len(over) - _NAMED} more words"] if len(over) > _NAMED else [])])
        log.warning("only the first %s of %s are compared: raise %s", counted(most, "use"), named, arg("max_uses"))


def _frequent(texts: list[list[str]], least: int) -> set[str]:
    counts = Counter(word.lower() for text in texts for word in text)
    found = {word for word, number in counts.items() if number >= least and any(map(str.isalpha, word))}
    if not found:
        raise PolysemeError(f"no word of the text has {counted(least, 'use')}: lower {arg('min_uses')}, or give more text")
    return found


def _collect(encoder: Encoder, texts: list[list[str]], wanted: set[str], layers: slice, most: int) -> dict[str, list[_Use]]:
    """The first `most` uses of each word, the most used word first."""
    uses: dict[str, list[_Use]] = {}
    chosen = [text for text in texts if not wanted.isdisjoint(word.lower() for word in text)]
    with progress("embedding", len(chosen), "sentences") as advance:
        for begin in range(0, len(chosen), _SENTENCES):
            some = chosen[begin : begin + _SENTENCES]
            for text, stack in zip(some, encoder.embed(some), strict=True):
                for place, word in enumerate(text):
                    found = uses.setdefault(word.lower(), []) if word.lower() in wanted else None
                    if found is not None and len(found) < most:
                        found.append(_Use(text, place, stack[layers, place].mean(0)))
            advance(len(some))
    return dict(sorted(uses.items(), key=lambda each: -len(each[1])))


def _senses(name: str, uses: list[_Use], common: set[str], groups: int | None) -> Iterator[Sense]:
    vectors = np.stack([use.vector for use in uses])
    found = clusters(vectors, groups)
    around = labels([use.text for use in uses], [use.position for use in uses], found, common=common)
    for number, label in enumerate(around):
        members = found == number
        mean = vectors[members].mean(0)
        nearest = uses[int(np.where(members, np.square(vectors - mean).sum(1), np.inf).argmin())]
        yield Sense(f"{name}#{number + 1}", int(members.sum()), label, mean, _example(nearest))


def _example(use: _Use) -> str:
    """A use with the words next to it."""
    begin, end = max(use.position - _AROUND, 0), use.position + _AROUND + 1
    before, after = ["..."] if begin else [], ["..."] if end < len(use.text) else []
    return " ".join([*before, *use.text[begin:end], *after])


def _function_words(encoder: Encoder) -> set[str]:
    """Words that label nothing: the most frequent of a vocabulary, and those of English."""
    vocabulary = encoder.vocabulary or ()
    words = (word.casefold() for word in vocabulary if word.isalpha())
    return {*itertools.islice(words, _MOST_FREQUENT), *ENGLISH_FUNCTION_WORDS}
