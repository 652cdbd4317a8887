"""Beam search and sampling against plain loops and the list of all sequences, on decoders small enough to write out."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.nn.networks.beam import DecoderStep, Hypothesis, beam_search
from polyseme.nn.networks.sampling import SamplingConfig, draw, sample

BEGIN, END, WORDS = 0, 1, 4
MARKS = {"begin": BEGIN, "end": END}


@dataclass(frozen=True)
class Seen:
    """Everything that was written so far, and which text it is."""

    text: Tensor
    words: Tensor

    def repeat(self, count: int) -> Seen:
        return Seen(self.text.repeat_interleave(count), self.words.repeat_interleave(count, dim=0))

    def take(self, rows: Tensor) -> Seen:
        assert torch.equal(self.text[rows], self.text)  # rows move within their text
        return Seen(self.text, self.words[rows])

    def select(self, rows: Tensor) -> Seen:
        return Seen(self.text[rows], self.words[rows])


class Random:
    """A decoder whose next word depends on all words before, at random; it looks at the place of the last word."""

    def __init__(self, seed: int, sharpness: float = 1.0) -> None:
        self.seed, self.sharpness = seed, sharpness

    def __call__(self, words: Tensor, state: Seen) -> DecoderStep:
        written = torch.cat([state.words, words.unsqueeze(1)], dim=1)
        found = [self.chances(int(text), row) for text, row in zip(state.text, written[:, 1:].tolist(), strict=True)]
        return DecoderStep(torch.stack(found), words * 10, Seen(state.text, written))

    def chances(self, text: int, before: list[int]) -> Tensor:
        """Log-probabilities behind some words of a text."""
        source = torch.Generator().manual_seed(hash((self.seed, text, *before)) % 2**31)
        scores = self.sharpness * torch.randn(WORDS, generator=source)
        scores[BEGIN] = -torch.inf
        return torch.log_softmax(scores, 0)

    def start(self, texts: int) -> Seen:
        return Seen(torch.arange(texts), torch.zeros(texts, 0, dtype=torch.int64))


def greedy(decoder: Random, text: int, limit: int) -> list[int]:
    found: list[int] = []
    while len(found) < limit:
        word = int(decoder.chances(text, found).argmax())
        if word == END:
            break
        found.append(word)
    return found


def everything(decoder: Random, text: int, limit: int, penalty: float) -> list[tuple[float, list[int]]]:
    """All answers of a text with their scores, best first: what ends within the limit, and what is cut there."""
    found = []
    for length in range(limit + 1):
        for words in itertools.product(range(2, WORDS), repeat=length):
            row = list(words)
            total = sum(float(decoder.chances(text, row[:place])[word]) for place, word in enumerate(row))
            if length < limit:
                ended = total + float(decoder.chances(text, row)[END])
                found.append((ended / (length + 1) ** penalty, row))
            else:
                found.append((total / length**penalty, row))
    return sorted(found, key=lambda pair: -pair[0])


@pytest.mark.parametrize("seed", range(5))
def test_a_beam_of_one_is_greedy(seed: int) -> None:
    decoder, limits = Random(seed), torch.tensor([7, 3, 5, 0, 1])
    found = beam_search(decoder, decoder.start(5), limits, beam=1, **MARKS)
    assert [[each.words for each in several] for several in found] == [
        [greedy(decoder, text, int(limit))] for text, limit in enumerate(limits)
    ]


@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0, 2.0])
def test_a_wide_beam_finds_the_best_of_all(penalty: float) -> None:
    decoder, limit = Random(1), 4
    expected = [everything(decoder, text, limit, penalty) for text in range(3)]
    beam = len(expected[0])  # 1 + 2 + 4 + 8 + 16
    found = beam_search(decoder, decoder.start(3), torch.full((3,), limit), beam=beam, length_penalty=penalty, **MARKS)
    for several, right in zip(found, expected, strict=True):
        assert len(several) == beam == 31
        assert [each.score for each in several] == pytest.approx([score for score, _ in right], abs=1e-5)
        assert several[0].words == right[0][1]


def test_a_narrow_beam_is_near() -> None:
    """A beam of 3 finds no worse answers than greedy, and mostly the best."""
    best, better = 0, 0
    for seed in range(30):
        decoder = Random(seed, sharpness=2.0)
        right = everything(decoder, 0, 4, 1.0)[0]
        wide, narrow = (beam_search(decoder, decoder.start(1), torch.tensor([4]), beam=beam, **MARKS)[0] for beam in (3, 1))
        best += wide[0].words == right[1]
        better += wide[0].score >= narrow[0].score - 1e-6
        scores = [each.score for each in wide]
        assert scores == sorted(scores, reverse=True) and len({tuple(each.words) for each in wide}) == len(wide)
    assert best >= 22 and better >= 28


def test_scores_are_those_of_the_words() -> None:
    decoder = Random(3)
    for each in beam_search(decoder, decoder.start(1), torch.tensor([5]), beam=4, length_penalty=0.5, **MARKS)[0]:
        written = each.words + ([END] if len(each.words) < 5 else [])
        total = sum(float(decoder.chances(0, written[:place])[word]) for place, word in enumerate(written))
        assert each.score == pytest.approx(total / len(written) ** 0.5, abs=1e-5)
        assert each.source_positions == [10 * word for word in [BEGIN, *each.words][: len(each.words)]]


def test_texts_do_not_see_each_other() -> None:
    decoder, limits = Random(5), torch.tensor([6, 2, 9, 0, 4])
    together = beam_search(decoder, decoder.start(5), limits, beam=3, **MARKS)
    starts = [Seen(torch.tensor([text]), torch.zeros(1, 0, dtype=torch.int64)) for text in range(5)]
    alone = [beam_search(decoder, start, limits[row : row + 1], beam=3, **MARKS) for row, start in enumerate(starts)]
    assert [each for (each,) in alone] == together
    assert together[3] == [Hypothesis([], [], 0.0)]
    assert beam_search(decoder, decoder.start(0), limits[:0], beam=2, **MARKS) == []
    with pytest.raises(UsageError, match="beam is 0; allowed: 1 or more"):
        beam_search(decoder, decoder.start(5), limits, beam=0, **MARKS)


# ---- samples


def test_a_draw_follows_the_distribution() -> None:
    chances = torch.tensor([0.4, 0.1, 0.3, 0.2])
    rows, numbers = chances.log().expand(20_000, -1), torch.rand(20_000, generator=torch.Generator().manual_seed(0))

    def shares(**options: Any) -> list[float]:
        counts = Counter(draw(rows, numbers, SamplingConfig(**options)).tolist())
        return [counts[word] / len(rows) for word in range(4)]

    assert shares() == pytest.approx(chances.tolist(), abs=0.015)
    cold = chances**2 / (chances**2).sum()
    assert shares(temperature=0.5) == pytest.approx(cold.tolist(), abs=0.015)
    assert shares(top_k=2) == pytest.approx([4 / 7, 0, 3 / 7, 0], abs=0.015)
    assert shares(top_p=0.75) == pytest.approx([4 / 9, 0, 3 / 9, 2 / 9], abs=0.015)
    assert shares(top_p=0.1) == shares(top_k=1) == [1, 0, 0, 0]
    with pytest.raises(ConfigError, match=r"temperature is 0\.0; allowed: above 0"):
        SamplingConfig(temperature=0.0)


def sampled(decoder: Random, texts: list[int], limits: list[int], seeds: list[Any], **options: Any) -> list[Hypothesis]:
    start = Seen(torch.tensor(texts), torch.zeros(len(texts), 0, dtype=torch.int64))
    return sample(decoder, start, torch.tensor(limits), seeds, **MARKS, config=SamplingConfig(**options))


def test_samples_follow_the_decoder() -> None:
    decoder, count = Random(7), 3000
    samples = sampled(decoder, [0] * count, [2] * count, [[1, row] for row in range(count)])
    found = Counter(tuple(each.words) for each in samples)
    for score, words in everything(decoder, 0, 2, 0.0):  # without a penalty: log-probabilities of whole answers
        assert found.pop(tuple(words), 0) / count == pytest.approx(math.exp(score), abs=0.03)
    assert not found


def test_samples_follow_their_seeds_in_any_company() -> None:
    decoder, limits = Random(8), [6, 3, 0, 9]
    together = sampled(decoder, [0, 1, 2, 3], limits, [[5, row] for row in range(4)])
    assert together == sampled(decoder, [0, 1, 2, 3], limits, [[5, row] for row in range(4)])
    assert together != sampled(decoder, [0, 1, 2, 3], limits, [[6, row] for row in range(4)])
    for row in range(4):
        (alone,) = sampled(decoder, [row], [limits[row]], [[5, row]])
        assert alone == together[row]
    for text, each in enumerate(together):
        written = each.words + ([END] if len(each.words) < limits[text] else [])
        total = sum(float(decoder.chances(text, written[:place])[word]) for place, word in enumerate(written))
        assert each.score == pytest.approx(total / max(len(written), 1), abs=1e-5)
    likeliest = sampled(decoder, [0, 1], [5, 5], [1, 2], top_k=1)
    assert [each.words for each in likeliest] == [greedy(decoder, row, 5) for row in (0, 1)]
