"""Beam search: the likeliest sequences of words, found from left to right, a few at a time for every text of a batch.

All texts and all their beams are rows of one batch, and every step is a handful of tensor operations. Sums of log-probabilities
are divided by a power of the length, or else short answers would win. A sequence that ends counts only where it stands among
the `beam` best of its step, so that a beam of 1 is greedy. A text is done when it has `beam` ended sequences and no open one is
better than the worst of them as it stands; what is open at the limit counts as it stands, too.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Protocol, Self

import torch
from torch import Tensor

from polyseme.base.errors import UsageError


@dataclass(frozen=True)
class Hypothesis:
    """A sequence of words that a decoder gives."""

    words: list[int]
    """Their numbers, without the end mark."""
    source_positions: list[int]
    """For each of them the word of the source that was looked at most."""
    score: float
    """Its log-probability, divided by a power of its length (the end mark counted)."""


class BeamState(Protocol):
    """What a decoder carries from word to word, a row for each sequence."""

    def repeat(self, count: int) -> Self:
        """Each row `count` times, one behind the other."""

    def take(self, rows: Tensor) -> Self:
        """Other rows (rows,), each in the place of one that belongs to the same text."""

    def select(self, rows: Tensor) -> Self:
        """Some rows (some,), with all that belongs to them."""


@dataclass(frozen=True)
class DecoderStep:
    """What a decoder says of the next word."""

    log_probs: Tensor
    """(rows, vocabulary)."""
    source_positions: Tensor
    """(rows,): the word of the source that is looked at most."""
    state: Any
    """The `BeamState` behind this word."""


class StepFunction(Protocol):
    """A decoder: the last words (rows,) and the state before them -> the next."""

    def __call__(self, words: Tensor, state: Any, /) -> DecoderStep: ...


@dataclass(frozen=True)
class _Sequences:
    """Sequences of each text."""

    scores: Tensor
    """(texts, count): -inf where there is none."""
    words: Tensor
    """(texts, count, steps)."""
    places: Tensor
    """(texts, count, steps)."""
    lengths: Tensor
    """(texts, count): words, without the end mark."""

    def take(self, scores: Tensor, which: Tensor) -> _Sequences:
        """Some of each text's, (texts, some), with other scores."""
        wide = which.unsqueeze(2).expand(-1, -1, self.words.shape[2])
        return _Sequences(scores, self.words.gather(1, wide), self.places.gather(1, wide), self.lengths.gather(1, which))

    def of(self, texts: Tensor) -> _Sequences:
        """Those of some texts."""
        return _Sequences(self.scores[texts], self.words[texts], self.places[texts], self.lengths[texts])

    def best_with(self, others: _Sequences) -> _Sequences:
        """The best of both, as many as these are."""
        scores, which = torch.cat([self.scores, others.scores], dim=1).topk(self.scores.shape[1], dim=1)
        both = _Sequences(
            scores,
            torch.cat([self.words, others.words], dim=1),
            torch.cat([self.places, others.places], dim=1),
            torch.cat([self.lengths, others.lengths], dim=1),
        )
        return both.take(scores, which)

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Best first; of a text without any, the empty one."""
        columns = (each.tolist() for each in (self.scores, self.words, self.places, self.lengths))
        found = []
        for rows in zip(*columns, strict=True):
            several = [
                Hypothesis(words[:length], places[:length], score)
                for score, words, places, length in zip(*rows, strict=True)
                if score > -torch.inf
            ]
            found.append(several or [Hypothesis([], [], 0.0)])
        return found


@torch.no_grad()
def beam_search(
    step: StepFunction, state: BeamState, limits: Tensor, *, begin: int, end: int, beam: int, length_penalty: float = 1.0
) -> list[list[Hypothesis]]:
    """For each text its `beam` best sequences, best first; fewer where there are not so many.

    `state`: before the first word, a row for each text. `limits` (texts,): words of an answer, at most. `begin`, `end`: the
    numbers of the marks.
    """
    if beam < 1:
        raise UsageError(f"beam is {beam}; it must be at least 1")
    search = _Search(limits, beam=beam, end=end, length_penalty=length_penalty)
    state = state.repeat(beam)
    last = torch.full((len(limits) * beam,), begin, device=limits.device)
    for length in range(1, search.longest + 1):
        made = step(last, state)
        state = made.state.take(search.grow(made, length))
        left = search.put_away()
        if left is not None:
            if not len(left):
                break
            state = state.select(left)
        last = search.opened.words[:, :, length - 1].flatten()
    return search.found


class _Search:
    """The sequences of all texts that are not done, and what was found for those that are."""

    def __init__(self, limits: Tensor, *, beam: int, end: int, length_penalty: float) -> None:
        self.found = [[Hypothesis([], [], 0.0)] for _ in limits]
        self.longest = int(limits.max()) if len(limits) else 0
        self._beam, self._end, self._penalty, self._limits = beam, end, length_penalty, limits
        self._texts = torch.arange(len(limits), device=limits.device)  # which of all each is
        scores = torch.full((len(limits), beam), -torch.inf, device=limits.device)
        words = torch.zeros(len(limits), beam, self.longest, dtype=torch.int64, device=limits.device)
        self.closed = _Sequences(scores, words, words, torch.zeros_like(scores, dtype=torch.int64))
        scores = scores.clone()
        scores[:, 0] = torch.where(limits > 0, 0.0, -torch.inf)  # one empty sequence a text
        self.opened = dataclasses.replace(self.closed, scores=scores)

    def grow(self, made: DecoderStep, length: int) -> Tensor:
        """Let all sequences become so long: (rows,), which row each of the new ones comes from."""
        found, parents = self._followed(made, length)
        scale = length**self._penalty
        ended = found.words[:, :, length - 1] == self._end
        within = torch.arange(ended.shape[1], device=ended.device) < self._beam
        self.closed = self.closed.best_with(_scored(found, ended & within, scale, length - 1))
        sums, which = found.scores.masked_fill(ended, -torch.inf).topk(self._beam, dim=1)
        opened, parents = found.take(sums, which), parents.gather(1, which)
        self.closed = self.closed.best_with(_scored(opened, (self._limits == length).unsqueeze(1), scale, length))
        hopeless = sums.max(dim=1).values / scale <= self.closed.scores.min(dim=1).values  # never while fewer than `beam` ended
        done = (hopeless | (self._limits <= length)).unsqueeze(1)
        self.opened = dataclasses.replace(opened, scores=sums.masked_fill(done, -torch.inf))
        return (parents + self._beam * torch.arange(len(parents), device=parents.device).unsqueeze(1)).flatten()

    def _followed(self, made: DecoderStep, length: int) -> tuple[_Sequences, Tensor]:
        """The best sequences of one word more, twice as many (as many may end), and of which beam each comes: (texts, some)."""
        texts, beam = self.opened.scores.shape
        vocabulary = made.log_probs.shape[1]
        totals = self.opened.scores.unsqueeze(2) + made.log_probs.float().view(texts, beam, vocabulary)
        sums, flat = totals.flatten(1).topk(min(2 * beam, beam * vocabulary), dim=1)
        parents = flat // vocabulary
        found = self.opened.take(sums, parents)
        found.words[:, :, length - 1] = flat % vocabulary
        found.places[:, :, length - 1] = made.source_positions.view(texts, beam).gather(1, parents)
        return found, parents

    def put_away(self) -> Tensor | None:
        """Keep what was found for texts that are done, and go on without them: (rows,), which are left.

        None: fewer than half are done, and all stay, since it costs a copy of the others.
        """
        open_texts = (self.opened.scores > -torch.inf).any(1)
        if 2 * int(open_texts.sum()) > len(open_texts):
            return None
        done = ~open_texts
        for text, several in zip(self._texts[done].tolist(), self.closed.of(done).hypotheses(), strict=True):
            self.found[text] = several
        self._texts, self._limits = self._texts[open_texts], self._limits[open_texts]
        self.opened, self.closed = self.opened.of(open_texts), self.closed.of(open_texts)
        return open_texts.repeat_interleave(self._beam).nonzero().squeeze(1)


def _scored(sequences: _Sequences, kept: Tensor, scale: float, length: int) -> _Sequences:
    """Sums as scores; those that are not kept are none."""
    scores = (sequences.scores / scale).masked_fill(~kept, -torch.inf)
    return _Sequences(scores, sequences.words, sequences.places, torch.full_like(sequences.lengths, length))
