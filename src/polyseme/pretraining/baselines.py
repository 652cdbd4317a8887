"""What anyone would count first, beside the held-out perplexity of a neural language model: word frequencies and 3-grams.

Both are interpolated Kneser-Ney models of the same training text, over the same vocabulary, on the same held-out sentences;
words outside it are one unknown word for all. A model that predicts both directions is compared with a 3-gram model of each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from polyseme.base.display import two_digits
from polyseme.base.errors import arg
from polyseme.pretraining.kneser_ney import estimate
from polyseme.pretraining.ngram_counts import BEGIN, count_ngrams, to_stream
from polyseme.pretraining.result import FEW_WORDS
from polyseme.pretraining.vocabulary_index import TypeIds
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import SPECIAL_TOKENS

ORDER = 3
MAX_WORDS = 5_000_000
"""Words that are counted: the end of a longer text, some ten seconds."""
USABLE = 2.0
"""Times the perplexity of 3-grams, at most, for a model to be usable."""
FEW_UNKNOWN = 0.85
"""Share of known words below which it is told: a low perplexity is easy where the unknown word is often right."""
MOSTLY_KNOWN = 0.7
"""Share of known words, at least, for a model to be usable."""
_UNKNOWN = SPECIAL_TOKENS.index("<UNK>")


@dataclass(frozen=True)
class Baselines:
    """Held-out perplexities of counted models."""

    unigram: float
    trigram: float
    trigram_backward: float | None = None
    """That of a 3-gram model which reads from right to left, for models of both directions."""
    words: int = FEW_WORDS
    """Held-out words."""
    known: float = 1.0
    """How many of them occur in the training text and the vocabulary."""
    repeats: str | None = None
    """That many held-out sentences are in the training text too; None: few are."""

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        values = {"unigram": self.unigram, "3-gram": self.trigram, "3-gram_backward": self.trigram_backward}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def mean_trigram(self) -> float:
        """The perplexity of 3-grams, over both directions where there are two."""
        if self.trigram_backward is None:
            return self.trigram
        return math.sqrt(self.trigram * self.trigram_backward)

    def verdict(self, scores: Mapping[str, float]) -> str:
        """Whether a model with these scores is usable, in words: by the perplexities of both counted models beside its own.

        >>> Baselines(unigram=500, trigram=100).verdict({"perplexity": 130})
        'usable for a first try: its perplexity is 1.3 times that of 3-grams (3-gram 100.0, unigram 500.0); more time or text \
helps'
        """
        ratio, perplexity = scores["perplexity"] / self.mean_trigram, scores["perplexity"]
        halfway = math.sqrt(self.unigram * self.mean_trigram)
        beside = f"3-gram {self.mean_trigram:,.1f}, unigram {self.unigram:,.1f}"
        if self.repeats:
            return f"no verdict: {self.repeats} ({beside})"
        if self.known < 0.5:
            seen = f"{100 * self.known:.0f} % of the {self.words:,} held-out words occur in the training text ({beside})"
            return f"perhaps not usable: only {seen}; give more text, or a {arg('splitter')} that finds its words"
        if self.known < FEW_UNKNOWN:
            beside += f"; {100 * (1 - self.known):.0f} % of the held-out words are outside the vocabulary or the training text"
        few = self.words < FEW_WORDS
        beside, perhaps = f"{beside}; only {self.words:,} held-out words" if few else beside, "perhaps " if few else ""
        if perplexity >= self.unigram:
            return f"{perhaps}not usable: no better than the frequencies of words ({beside}); give more time or more text"
        near = two_digits(ratio)
        times = f"its perplexity is {'about' if near == '1' else f'{near} times'} that of 3-grams ({beside})"
        if ratio > USABLE or perplexity > halfway or self.known < MOSTLY_KNOWN:
            return f"{perhaps}hardly usable: {times}; give more time or more text"
        if ratio >= 1:
            return f"{perhaps}usable for a first try: {times}; more time or text helps"
        return f"{perhaps}usable: better than 3-grams ({beside})"


def baselines(shards: Shards, train: range, held_out: range, ids: TypeIds, *, both: bool = False) -> Baselines:
    """Count the training sentences, and score the held-out ones; `ids`: the id of each type in the vocabulary, (types,)."""
    size = int(ids.max()) + 1
    first = int(np.searchsorted(shards.offsets, shards.offsets[train.stop] - MAX_WORDS))
    counted = _part(shards, range(max(first, train.start), train.stop))
    scored = _part(shards, held_out)
    unigram, trigram = (_perplexity(counted, scored, ids, size, order) for order in (1, ORDER))
    backward = _perplexity(_reversed(counted), _reversed(scored), ids, size, ORDER) if both else None
    seen = np.zeros(size, dtype=bool)
    seen[ids[np.unique(counted.words)]] = True
    seen[_UNKNOWN] = False
    return Baselines(unigram, trigram, backward, scored.total, float(seen[ids[scored.words]].mean()))


def _perplexity(counted: Shards, scored: Shards, ids: TypeIds, size: int, order: int) -> float:
    counts = count_ngrams(to_stream(counted, ids), size, order)
    table = estimate(counts, size, "kneser-ney", (0,) * order).table
    stream = to_stream(scored, ids).astype(np.int64)
    begins = np.flatnonzero(stream == BEGIN)
    return float(np.exp(-np.delete(table.read(stream, begins).log_probs, begins).mean()))


def _part(shards: Shards, sentences: range) -> Shards:
    """Some sentences of a text."""
    begin, end = int(shards.offsets[sentences.start]), int(shards.offsets[sentences.stop])
    offsets = np.asarray(shards.offsets[sentences.start : sentences.stop + 1]) - begin
    return Shards(shards.words[begin:end], offsets, shards.counts, fingerprint="", types=[])


def _reversed(shards: Shards) -> Shards:
    """The same sentences, each from its end."""
    offsets = shards.total - shards.offsets[::-1]
    return Shards(shards.words[::-1], offsets, shards.counts, fingerprint="", types=[])
