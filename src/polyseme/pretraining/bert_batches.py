"""What BERT learns from (Devlin et al. 2019): pairs of texts of which half belong together, with some pieces hidden.

    [CLS] first text [SEP] second text [SEP]

The second text follows the first in its document, or (half of the time) comes from another one. Of the pieces 15 % are to be
told: 80 % of these are replaced by [MASK], 10 % by any piece, and 10 % stay as they are. The shares hold exactly on average,
in texts of any length: a remainder is decided by chance, where the published program takes at least one piece; and a lone
sentence, which there always gets a second text from elsewhere, is cut in two as often as not. What is too long for a pair is
cut from it, as published. Pairs and masks are drawn anew in each epoch (dynamic, Liu et al. 2019), or once (static). All of it
follows from the seed, the epoch and the place, so that a run can be taken up anywhere.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.text.batching.batches import batch_by_words
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer

IGNORED = -100  # the target of pieces that are not to be told, as PyTorch's cross-entropy has it
BLOCK = 2048  # documents whose pairs are made together


@dataclass(frozen=True, kw_only=True)
class MaskingConfig(Config):
    """Which pieces are hidden, and how."""

    mlm_probability: float = 0.15
    """Of the pieces, marks not counted, those that are to be told."""
    mask_replace_prob: float = 0.8
    """Of these, those that are replaced by [MASK]."""
    random_replace_prob: float = 0.1
    """Of these, those that are replaced by any piece; the rest stays as it is."""
    whole_word_mask: bool = False
    """Hide all pieces of a word, or none."""
    kind: Literal["dynamic", "static"] = "dynamic"
    """Draw pairs and masks anew in each epoch, or once."""

    def __post_init__(self) -> None:
        replaced = self.mask_replace_prob + self.random_replace_prob
        if not 0 < self.mlm_probability < 1 or min(self.mask_replace_prob, self.random_replace_prob) < 0 or replaced > 1:
            raise ConfigError(
                f"mlm_probability is {self.mlm_probability}, mask_replace_prob {self.mask_replace_prob}, random_replace_prob "
                f"{self.random_replace_prob}; the first lies between 0 and 1, and the other two together are no more than 1"
            )


@dataclass(frozen=True)
class BertBatch:
    """Pairs of texts; all arrays are (batch, length) but for `related`."""

    ids: NDArray[np.int64]
    """What is read."""
    segments: NDArray[np.int64]
    """0 for [CLS], the first text and its [SEP], 1 for the second and its [SEP]."""
    attention: NDArray[np.int64]
    """1 where a piece or a mark is."""
    targets: NDArray[np.int64]
    """The pieces that are to be told; IGNORED elsewhere."""
    related: NDArray[np.bool_]
    """(batch,): whether the second text follows the first."""
    words: int
    """Words of the text."""


class Pair(NamedTuple):
    """Two texts as places of pieces."""

    first: tuple[int, int]
    second: tuple[int, int]
    related: bool

    @property
    def pieces(self) -> int:
        """Of both texts."""
        return self.first[1] - self.first[0] + self.second[1] - self.second[0]


class PairMaker:
    """Pairs from documents of shards, of `room` pieces at most."""

    def __init__(self, shards: SubwordShards, documents: range, room: int, *, short: float = 0.1) -> None:
        self._shards, self._documents, self._room, self._short = shards, documents, room, short

    def pairs(self, numbers: Sequence[int], source: np.random.Generator) -> list[Pair]:
        """The pairs of some documents: all their text, with other documents' text between."""
        return [pair for number in numbers for pair in self._document(number, source)]

    def _document(self, number: int, source: np.random.Generator) -> Iterator[Pair]:
        segments = self._segments(number)
        while segments:
            wanted = self._room if source.random() >= self._short else int(source.integers(2, self._room + 1))
            count = _filling(segments, wanted)
            if count == 1 and segments[0][1] - segments[0][0] == 1:
                segments = segments[1:]  # a lone piece has no two parts
                continue
            related = bool(source.random() < 0.5)
            if count == 1 and related:  # it has no second part, so it is cut
                segments, count = [*_halves(segments[0]), *segments[1:]], 2
            middle = int(source.integers(1, count)) if count > 1 else 1
            first = (segments[0][0], segments[middle - 1][1])
            if related:
                second = (segments[middle][0], segments[count - 1][1])
                segments = segments[count:]
            else:
                second = self._other(number, max(1, wanted - (first[1] - first[0])), source)
                segments = segments[middle:]  # what was to be the second text comes again
            yield _shortened(Pair(first, second, related), self._room, source)

    def _segments(self, number: int) -> list[tuple[int, int]]:
        """The sentences of a document as places of pieces; those of more than half the room in parts."""
        places, most = self._shards.document(number).tolist(), max(1, self._room // 2)
        return [
            (begin, min(begin + most, end)) for first, end in itertools.pairwise(places) for begin in range(first, end, most)
        ]

    def _other(self, number: int, wanted: int, source: np.random.Generator) -> tuple[int, int]:
        """Text of any other document; of the same, where there is no other."""
        other = int(source.integers(self._documents.start, self._documents.stop - (len(self._documents) > 1)))
        other += len(self._documents) > 1 and other >= number
        segments = self._segments(other)
        begin = int(source.integers(len(segments)))
        return segments[begin][0], segments[begin + _filling(segments[begin:], wanted) - 1][1]


def _filling(segments: Sequence[tuple[int, int]], wanted: int) -> int:
    """How many segments, at least one, it takes to have so many pieces."""
    total = 0
    for count, (begin, end) in enumerate(segments, start=1):
        total += end - begin
        if total >= wanted:
            return count
    return len(segments)


def _halves(segment: tuple[int, int]) -> list[tuple[int, int]]:
    middle = sum(segment) // 2
    return [(segment[0], middle), (middle, segment[1])]


def _shortened(pair: Pair, room: int, source: np.random.Generator) -> Pair:
    """What is too long is cut from the longer text, now at its beginning and now at its end."""
    (a, b), (c, d) = pair.first, pair.second
    while b - a + d - c > room:
        front = source.random() < 0.5
        if b - a > d - c:
            a, b = (a + 1, b) if front else (a, b - 1)
        else:
            c, d = (c + 1, d) if front else (c, d - 1)
    return Pair((a, b), (c, d), pair.related)


def chosen(
    begins: NDArray[np.bool_], lengths: NDArray[np.int64], share: float, source: np.random.Generator
) -> NDArray[np.bool_]:
    """A share of the pieces of texts laid end to end, (pieces,), drawn by units that begin where `begins` says; no unit is
    taken in part.

    The units of a text come in a random order until its share is full; the one that would be too much is taken by chance, so
    that the expected share of each text is exactly the one that was asked for. `lengths`: the pieces of each text, none empty.
    """
    starts = np.cumsum(lengths) - lengths
    units = begins.copy()
    units[starts] = True  # a text may begin within a word
    first = np.flatnonzero(units)  # (units,): their first pieces
    sizes = np.diff(np.append(first, len(begins)))
    texts = np.searchsorted(starts, first, side="right") - 1
    order = np.argsort(texts + source.random(len(first)))  # text by text, by chance within each
    before = np.cumsum(sizes[order]) - sizes[order] - starts[texts[order]]  # pieces of the text whose turn was earlier
    missing = share * lengths[texts[order]] - before
    taken = np.zeros(len(first), dtype=bool)
    taken[order] = source.random(len(first)) * sizes[order] < missing
    return np.repeat(taken, sizes)


class Masker:
    """Pairs -> a batch with hidden pieces."""

    def __init__(self, shards: SubwordShards, pieces: SubwordTokenizer, config: MaskingConfig) -> None:
        self._shards, self._config = shards, config
        self._cls, self._sep, self._mask, self._pad = (pieces.special_token_id(name) for name in ("cls", "sep", "mask", "pad"))
        marks = set(pieces.tokenizer.all_special_ids)
        self._any = np.array([piece for piece in range(len(pieces)) if piece not in marks], dtype=np.int64)

    def batch(self, pairs: Sequence[Pair], source: np.random.Generator) -> BertBatch:
        """The pairs as arrays, some pieces hidden; all pieces of the batch are handled together, end to end."""
        sides = np.array([pair.first + pair.second for pair in pairs], dtype=np.int64).reshape(-1, 2)
        texts, starts = self._shards.gather(sides[:, 0], sides[:, 1] - sides[:, 0])
        one, two = (sides[:, 1] - sides[:, 0]).reshape(-1, 2).T
        lengths, words = one + two, int(starts.sum())
        begins = np.cumsum(lengths) - lengths
        starts[(begins + one)[two > 0]] = True  # the second text begins a unit, too
        units = starts if self._config.whole_word_mask else np.ones(len(texts), dtype=bool)
        told = chosen(units, lengths, self._config.mlm_probability, source)
        shape = (len(pairs), int(lengths.max()) + 3)
        ids, targets = np.full(shape, self._pad, dtype=np.int64), np.full(shape, IGNORED, dtype=np.int64)
        rows = np.repeat(np.arange(len(pairs)), lengths)
        places = np.arange(len(texts)) - begins[rows]
        places += 1 + (places >= one[rows])  # behind [CLS], and behind [SEP]
        ids[rows, places] = self._hidden(texts, told, source)
        targets[rows, places] = np.where(told, texts, IGNORED)
        every = np.arange(len(pairs))
        ids[:, 0] = self._cls
        ids[every, one + 1] = ids[every, lengths + 2] = self._sep
        column = np.arange(shape[1])
        attention = column < (lengths + 3)[:, None]
        segments = attention & (column >= (one + 2)[:, None])
        related = np.array([pair.related for pair in pairs])
        return BertBatch(ids, segments.astype(np.int64), attention.astype(np.int64), targets, related, words)

    def _hidden(self, texts: NDArray[np.int64], told: NDArray[np.bool_], source: np.random.Generator) -> NDArray[np.int64]:
        draw, config = source.random(len(texts)), self._config
        others = self._any[source.integers(len(self._any), size=len(texts))]
        masked, random = config.mask_replace_prob, config.random_replace_prob
        read = np.where(told & (draw < masked), self._mask, texts)
        return np.where(told & (draw >= masked) & (draw < masked + random), others, read)


class BertBatches:
    """An endless stream of batches over some documents; each of `world_size` processes gets its own share.

    `length` is the most pieces of a pair, marks counted, and `size` the most of a batch, padding counted.
    """

    def __init__(
        self,
        shards: SubwordShards,
        documents: range,
        pieces: SubwordTokenizer,
        *,
        masking: MaskingConfig,
        length: int = 128,
        size: int = 4096,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        self._pairs = PairMaker(shards, documents, length - 3)
        self._masker = Masker(shards, pieces, masking)
        self._documents, self._dynamic, self._size = documents, masking.kind == "dynamic", size
        self._seed, self._rank, self._world_size = seed, rank, world_size
        self._words = shards.words(documents)
        self._epoch = self._block = self._batch = 0

    @property
    def words_per_epoch(self) -> int:
        """Words of the text; the pairs of a pass have somewhat more, since the second texts are drawn besides."""
        return self._words

    def position(self) -> dict[str, Any]:
        """Where the next batch stands."""
        return {"epoch": self._epoch, "block": self._block, "batch": self._batch}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from a position."""
        self._epoch, self._block, self._batch = (position[name] for name in ("epoch", "block", "batch"))

    def __iter__(self) -> Iterator[BertBatch]:
        given = True
        while given:
            given = self._block > 0 or self._batch > 0
            while self._block * BLOCK < len(self._documents):
                version = self._epoch if self._dynamic else 0
                plan = self.plan(version, self._block)
                order = np.random.default_rng([self._seed, 1, self._epoch, self._block]).permutation(len(plan))
                order = np.resize(order, -(-len(order) // self._world_size) * self._world_size)  # as many steps in each
                mine = order[self._rank :: self._world_size].tolist()
                while self._batch < len(mine):
                    given = True
                    self._batch += 1  # the position is that of the batch after the one given
                    yield self._gather(plan, version, self._block, mine[self._batch - 1])
                self._block, self._batch = self._block + 1, 0
            self._epoch, self._block = self._epoch + 1, 0
        raise PolysemeError("the text has no two words that belong together, so there is nothing to learn: add text")

    def plan(self, version: int, block: int) -> list[list[Pair]]:
        """The batches of a block of documents, as pairs."""
        order = np.random.default_rng([self._seed, 2, version]).permutation(len(self._documents)) + self._documents.start
        source = np.random.default_rng([self._seed, 3, version, block])
        pairs = self._pairs.pairs(order[block * BLOCK : (block + 1) * BLOCK].tolist(), source)
        batches = batch_by_words([pair.pieces + 3 for pair in pairs], words=self._size, batch_size=max(len(pairs), 1))
        return [[pairs[row] for row in rows] for rows in batches]

    def _gather(self, plan: list[list[Pair]], version: int, block: int, number: int) -> BertBatch:
        return self._masker.batch(plan[number], np.random.default_rng([self._seed, 4, version, block, number]))

    def once(self) -> list[BertBatch]:
        """All documents once, always the same: for evaluation."""
        blocks = range(-(-len(self._documents) // BLOCK))
        plans = [(block, self.plan(0, block)) for block in blocks]
        return [self._gather(plan, 0, block, number) for block, plan in plans for number in range(len(plan))]
