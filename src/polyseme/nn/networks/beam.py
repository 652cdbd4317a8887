"""Beam search: the most likely sequences of words, from left to right, a few at a time for every text of a batch.

All texts and their beams are rows of one batch, and every step is a few tensor operations. Sums of log-probabilities are
divided by a power of the length, or short answers would win. A sequence that ends counts only if it is among the `beam` best
of its step, so a beam of 1 is greedy search. A text is done when it has `beam` finished sequences and no open one scores
better than the worst of them. Sequences that are open at the length limit count as they are.
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
    """A sequence of words from a decoder."""

    words: list[int]
    """Ids, without the end token."""
    source_positions: list[int]
    """For each word the source word with the largest attention weight."""
    score: float
    """Log-probability divided by a power of the length (with the end token)."""


class BeamState(Protocol):
    """What a decoder carries from word to word, one row per sequence."""

    def repeat(self, count: int) -> Self:
        """Return each row `count` times, next to each other."""

    def take(self, rows: Tensor) -> Self:
        """Replace rows by others (rows,) of the same text."""

    def select(self, rows: Tensor) -> Self:
        """Return some rows (some,), with their memory."""


@dataclass(frozen=True)
class DecoderStep:
    """A decoder's prediction of the next word."""

    log_probs: Tensor
    """(rows, vocabulary)."""
    source_positions: Tensor
    """(rows,): the source word with the largest attention weight."""
    state: Any
    """The `BeamState` after this word."""


class StepFunction(Protocol):
    """A decoder: the last words (rows,) and the state before them -> the next step."""

    def __call__(self, words: Tensor, state: Any, /) -> DecoderStep: ...


@dataclass(frozen=True)
class _Sequences:
    """Sequences of each text."""

    scores: Tensor
    """(texts, count): -inf for missing ones."""
    words: Tensor
    """(texts, count, steps)."""
    positions: Tensor
    """(texts, count, steps)."""
    lengths: Tensor
    """(texts, count): words, without the end token."""

    def take(self, scores: Tensor, which: Tensor) -> _Sequences:
        """Return some sequences of each text, (texts, some), with new scores."""
        wide = which.unsqueeze(2).expand(-1, -1, self.words.shape[2])
        return _Sequences(scores, self.words.gather(1, wide), self.positions.gather(1, wide), self.lengths.gather(1, which))

    def of(self, texts: Tensor) -> _Sequences:
        """Return the sequences of some texts."""
        return _Sequences(self.scores[texts], self.words[texts], self.positions[texts], self.lengths[texts])

    def best_with(self, others: _Sequences) -> _Sequences:
        """Return the best of both, as many as in this one."""
        scores, which = torch.cat([self.scores, others.scores], dim=1).topk(self.scores.shape[1], dim=1)
        both = _Sequences(
            scores,
            torch.cat([self.words, others.words], dim=1),
            torch.cat([self.positions, others.positions], dim=1),
            torch.cat([self.lengths, others.lengths], dim=1),
        )
        return both.take(scores, which)

    def hypotheses(self) -> list[list[Hypothesis]]:
        """Return the hypotheses, best first; the empty one for a text without any."""
        columns = (each.tolist() for each in (self.scores, self.words, self.positions, self.lengths))
        found = []
        for rows in zip(*columns, strict=True):
            several = [
                Hypothesis(words[:length], positions[:length], score)
                for score, words, positions, length in zip(*rows, strict=True)
                if score > -torch.inf
            ]
            found.append(several or [Hypothesis([], [], 0.0)])
        return found


@torch.no_grad()
def beam_search(
    step: StepFunction, state: BeamState, limits: Tensor, *, begin: int, end: int, beam: int, length_penalty: float = 1.0
) -> list[list[Hypothesis]]:
    """Return the `beam` best sequences of each text, or as many as there are, best first.

    `state`: before the first word, one row per text. `limits` (texts,): maximum length. `begin`, `end`: ids of these special
    tokens.
    """
    if beam < 1:
        raise UsageError(f"beam is {beam}; allowed: 1 or more")
    search = _Search(limits, beam=beam, end=end, length_penalty=length_penalty)
    state = state.repeat(beam)
    last = torch.full((len(limits) * beam,), begin, device=limits.device)
    for length in range(1, search.max_length + 1):
        made = step(last, state)
        state = made.state.take(search.grow(made, length))
        left = search.remove_finished()
        if left is not None:
            if not len(left):
                break
            state = state.select(left)
        last = search.opened.words[:, :, length - 1].flatten()
    return search.found


class _Search:
    """The sequences of all unfinished texts, and the results of the finished ones."""

    def __init__(self, limits: Tensor, *, beam: int, end: int, length_penalty: float) -> None:
        self.found = [[Hypothesis([], [], 0.0)] for _ in limits]
        self.max_length = int(limits.max()) if len(limits) else 0
        self._beam, self._end, self._penalty, self._limits = beam, end, length_penalty, limits
        self._texts = torch.arange(len(limits), device=limits.device)  # number of each unfinished text
        scores = torch.full((len(limits), beam), -torch.inf, device=limits.device)
        words = torch.zeros(len(limits), beam, self.max_length, dtype=torch.int64, device=limits.device)
        self.closed = _Sequences(scores, words, words, torch.zeros_like(scores, dtype=torch.int64))
        scores = scores.clone()
        scores[:, 0] = torch.where(limits > 0, 0.0, -torch.inf)  # one empty sequence per text
        self.opened = dataclasses.replace(self.closed, scores=scores)

    def grow(self, made: DecoderStep, length: int) -> Tensor:
        """Extend all sequences to this length; return which row each new one comes from, (rows,)."""
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
        """Return the best sequences of one more word, twice the beam (half may end), and the beam of each: (texts, some)."""
        texts, beam = self.opened.scores.shape
        vocabulary = made.log_probs.shape[1]
        totals = self.opened.scores.unsqueeze(2) + made.log_probs.float().view(texts, beam, vocabulary)
        sums, flat = totals.flatten(1).topk(min(2 * beam, beam * vocabulary), dim=1)
        parents = flat // vocabulary
        found = self.opened.take(sums, parents)
        found.words[:, :, length - 1] = flat % vocabulary
        found.positions[:, :, length - 1] = made.source_positions.view(texts, beam).gather(1, parents)
        return found, parents

    def remove_finished(self) -> Tensor | None:
        """Store the results of finished texts and remove them; return the remaining rows, (rows,).

        None: fewer than half are finished, and nothing is removed, since that copies the others.
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
    """Turn sums into scores; -inf for those not kept."""
    scores = (sequences.scores / scale).masked_fill(~kept, -torch.inf)
    return _Sequences(scores, sequences.words, sequences.positions, torch.full_like(sequences.lengths, length))
