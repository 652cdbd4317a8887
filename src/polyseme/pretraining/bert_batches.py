"""What BERT is trained on (Devlin et al. 2019): pairs of texts of which half belong together, with some subwords masked.

    [CLS] first text [SEP] second text [SEP]

The second text follows the first in its document, or (half of the time) comes from another one. 15 % of the subwords are
predicted: 80 % of these are replaced by [MASK], 10 % by a random subword, and 10 % are not changed. These fractions hold
exactly on average, in texts of any length: a remainder is decided by chance, where the published program takes at least one
subword; and a lone sentence, which there always gets a second text from elsewhere, is cut in two as often as not. What is too
long for a pair is cut from it, as published. Pairs and masks are sampled again in each epoch (dynamic masking, Liu et al.
2019), or once (static masking).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.base.run import Run
from polyseme.pretraining.document_batches import BLOCK, IGNORED, DocumentBatches
from polyseme.pretraining.subword_config import MaskingConfig
from polyseme.text.batching.batches import batch_by_words
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer


@dataclass(frozen=True)
class BertBatch:
    """Pairs of texts; all arrays are (batch, length) but for `related`."""

    ids: NDArray[np.int64]
    """What is read."""
    segments: NDArray[np.int64]
    """0 for [CLS], the first text and its [SEP], 1 for the second and its [SEP]."""
    attention: NDArray[np.int64]
    """1 where a subword or special token is, 0 for padding."""
    targets: NDArray[np.int64]
    """The subwords to predict; IGNORED elsewhere."""
    related: NDArray[np.bool_]
    """(batch,): whether the second text follows the first."""
    words: int
    """Words of the text."""


class Pair(NamedTuple):
    """Two texts as spans of subwords."""

    first: tuple[int, int]
    second: tuple[int, int]
    related: bool

    @property
    def subwords(self) -> int:
        """Subwords of both texts."""
        return self.first[1] - self.first[0] + self.second[1] - self.second[0]


class Plan(NamedTuple):
    """A batch before it is made."""

    pairs: list[Pair]
    seed: list[int]
    """Of its masks."""


class PairMaker:
    """Makes pairs from documents, of `room` subwords at most."""

    def __init__(self, shards: SubwordShards, documents: range, room: int, *, short: float = 0.1) -> None:
        self._shards, self._documents, self._room, self._short = shards, documents, room, short

    def pairs(self, numbers: Sequence[int], random: np.random.Generator) -> list[Pair]:
        """Return the pairs of some documents: all of their text, with text of other documents in between."""
        return [pair for number in numbers for pair in self._document(number, random)]

    def _document(self, number: int, random: np.random.Generator) -> Iterator[Pair]:
        segments = self._segments(number)
        while segments:
            wanted = self._room if random.random() >= self._short else int(random.integers(2, self._room + 1))
            count = _filling(segments, wanted)
            if count == 1 and segments[0][1] - segments[0][0] == 1:
                segments = segments[1:]  # a single subword has no two parts
                continue
            related = bool(random.random() < 0.5)
            if count == 1 and related:  # a single segment is cut in two
                segments, count = [*_halves(segments[0]), *segments[1:]], 2
            middle = int(random.integers(1, count)) if count > 1 else 1
            first = (segments[0][0], segments[middle - 1][1])
            if related:
                second = (segments[middle][0], segments[count - 1][1])
                segments = segments[count:]
            else:
                second = self._other(number, max(1, wanted - (first[1] - first[0])), random)
                segments = segments[middle:]  # what would have been the second text comes again
            yield _shortened(Pair(first, second, related), self._room, random)

    def _segments(self, number: int) -> list[tuple[int, int]]:
        """Return the sentences of a document as spans of subwords; those longer than half the room in parts."""
        positions, most = self._shards.document(number).tolist(), max(1, self._room // 2)
        return [
            (begin, min(begin + most, end)) for first, end in itertools.pairwise(positions) for begin in range(first, end, most)
        ]

    def _other(self, number: int, wanted: int, random: np.random.Generator) -> tuple[int, int]:
        """Return text of another document; of the same one, where there is no other."""
        other = int(random.integers(self._documents.start, self._documents.stop - (len(self._documents) > 1)))
        other += len(self._documents) > 1 and other >= number
        segments = self._segments(other)
        begin = int(random.integers(len(segments)))
        return segments[begin][0], segments[begin + _filling(segments[begin:], wanted) - 1][1]


def _filling(segments: Sequence[tuple[int, int]], wanted: int) -> int:
    """Return how many segments, at least one, have so many subwords."""
    total = 0
    for count, (begin, end) in enumerate(segments, start=1):
        total += end - begin
        if total >= wanted:
            return count
    return len(segments)


def _halves(segment: tuple[int, int]) -> list[tuple[int, int]]:
    middle = sum(segment) // 2
    return [(segment[0], middle), (middle, segment[1])]


def _shortened(pair: Pair, room: int, random: np.random.Generator) -> Pair:
    """Cut what is too long from the longer text, at its begin or at its end by chance."""
    (a, b), (c, d) = pair.first, pair.second
    while b - a + d - c > room:
        front = random.random() < 0.5
        if b - a > d - c:
            a, b = (a + 1, b) if front else (a, b - 1)
        else:
            c, d = (c + 1, d) if front else (c, d - 1)
    return Pair((a, b), (c, d), pair.related)


def sample_units(
    begins: NDArray[np.bool_], lengths: NDArray[np.int64], fraction: float, random: np.random.Generator
) -> NDArray[np.bool_]:
    """Sample a fraction of the subwords of texts that are concatenated, (subwords,); units are taken as a whole or not at all.

    A unit begins where `begins` says. The units of a text come in random order until its fraction is reached; the last one is
    taken by chance, so that the expected fraction of each text is exact. `lengths`: the subwords of each text, none empty.
    """
    starts = np.cumsum(lengths) - lengths
    units = begins.copy()
    units[starts] = True  # a text may begin within a word
    first = np.flatnonzero(units)  # (units,): their first subwords
    sizes = np.diff(np.append(first, len(begins)))
    texts = np.searchsorted(starts, first, side="right") - 1
    order = np.argsort(texts + random.random(len(first)))  # text by text, by chance within each
    before = np.cumsum(sizes[order]) - sizes[order] - starts[texts[order]]  # subwords of the text whose turn was earlier
    missing = fraction * lengths[texts[order]] - before
    taken = np.zeros(len(first), dtype=bool)
    taken[order] = random.random(len(first)) * sizes[order] < missing
    return np.repeat(taken, sizes)


class Masker:
    """Turns pairs into a batch with masked subwords."""

    def __init__(self, shards: SubwordShards, tokenizer: SubwordTokenizer, config: MaskingConfig) -> None:
        self._shards, self._config = shards, config
        self._cls, self._sep, self._mask, self._pad = (
            tokenizer.special_token_id(name) for name in ("cls", "sep", "mask", "pad")
        )
        special = set(tokenizer.tokenizer.all_special_ids)
        self._subwords = np.array([each for each in range(len(tokenizer)) if each not in special], dtype=np.int64)

    def batch(self, pairs: Sequence[Pair], random: np.random.Generator) -> BertBatch:
        """Return the pairs as arrays, some subwords masked; all subwords of the batch are handled together, concatenated."""
        sides = np.array([pair.first + pair.second for pair in pairs], dtype=np.int64).reshape(-1, 2)
        texts, starts = self._shards.gather(sides[:, 0], sides[:, 1] - sides[:, 0])
        one, two = (sides[:, 1] - sides[:, 0]).reshape(-1, 2).T
        lengths, words = one + two, int(starts.sum())
        begins = np.cumsum(lengths) - lengths
        starts[(begins + one)[two > 0]] = True  # the second text begins a unit, too
        units = starts if self._config.whole_word_mask else np.ones(len(texts), dtype=bool)
        chosen = sample_units(units, lengths, self._config.mlm_probability, random)
        shape = (len(pairs), int(lengths.max()) + 3)
        ids, targets = np.full(shape, self._pad, dtype=np.int64), np.full(shape, IGNORED, dtype=np.int64)
        rows = np.repeat(np.arange(len(pairs)), lengths)
        positions = np.arange(len(texts)) - begins[rows]
        positions += 1 + (positions >= one[rows])  # behind [CLS], and behind [SEP]
        ids[rows, positions] = self._masked(texts, chosen, random)
        targets[rows, positions] = np.where(chosen, texts, IGNORED)
        every = np.arange(len(pairs))
        ids[:, 0] = self._cls
        ids[every, one + 1] = ids[every, lengths + 2] = self._sep
        column = np.arange(shape[1])
        attention = column < (lengths + 3)[:, None]
        segments = attention & (column >= (one + 2)[:, None])
        related = np.array([pair.related for pair in pairs])
        return BertBatch(ids, segments.astype(np.int64), attention.astype(np.int64), targets, related, words)

    def _masked(self, texts: NDArray[np.int64], chosen: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.int64]:
        draw, config = random.random(len(texts)), self._config
        others = self._subwords[random.integers(len(self._subwords), size=len(texts))]
        masked, replaced = config.mask_replace_prob, config.mask_replace_prob + config.random_replace_prob
        read = np.where(chosen & (draw < masked), self._mask, texts)
        return np.where(chosen & (draw >= masked) & (draw < replaced), others, read)


class BertBatches(DocumentBatches):
    """Batches of masked pairs.

    `max_length`: subwords of a pair, special tokens included; `batch_subwords`: those of a batch, padding included.
    """

    def __init__(
        self,
        shards: SubwordShards,
        documents: range,
        tokenizer: SubwordTokenizer,
        *,
        masking: MaskingConfig,
        max_length: int = 128,
        batch_subwords: int = 4096,
        run: Run | None = None,
    ) -> None:
        super().__init__(shards, documents, run)
        self._pairs = PairMaker(shards, documents, max_length - 3)
        self._masker = Masker(shards, tokenizer, masking)
        self._static, self._batch_subwords = masking.static_masking, batch_subwords
        self._words = shards.words(documents)

    @property
    def words_per_epoch(self) -> int:
        """Words of the text; a pass has somewhat more, because second texts of other documents come on top."""
        return self._words

    def shuffled(self, epoch: int, block: int) -> list[Plan]:
        plans = self.plans(0 if self._static else epoch, block)
        order = np.random.default_rng([self._seed, 1, epoch, block]).permutation(len(plans))
        return [plans[number] for number in order]

    def plans(self, version: int, block: int) -> list[Plan]:
        """Return the batches of a block of documents: their pairs, and the seed of their masks."""
        order = np.random.default_rng([self._seed, 2, version]).permutation(len(self._documents)) + self._documents.start
        random = np.random.default_rng([self._seed, 3, version, block])
        pairs = self._pairs.pairs(order[block * BLOCK : (block + 1) * BLOCK].tolist(), random)
        lengths = [pair.subwords + 3 for pair in pairs]
        batches = batch_by_words(lengths, words=self._batch_subwords, batch_size=max(len(pairs), 1))
        return [
            Plan([pairs[row] for row in rows], [self._seed, 4, version, block, number]) for number, rows in enumerate(batches)
        ]

    def gather(self, plan: Plan) -> BertBatch:
        return self._masker.batch(plan.pairs, np.random.default_rng(plan.seed))

    def once(self) -> list[BertBatch]:
        blocks = range(-(-len(self._documents) // BLOCK))
        return [self.gather(plan) for block in blocks for plan in self.plans(0, block)]
