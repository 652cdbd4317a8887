"""Sampling: draw every next word from the decoder's distribution.

The distribution can be flattened or sharpened (temperature) and truncated: to the `top_k` most likely words, or to the fewest
that together have the probability `top_p` (nucleus sampling, Holtzman et al. 2020). Each sequence has random numbers of its
own, from its seed: the samples of a text do not depend on the other texts of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyseme.base.config import Config, setting
from polyseme.nn.networks.beam import BeamState, Hypothesis, StepFunction


@dataclass(frozen=True, kw_only=True)
class SamplingConfig(Config):
    """Which words may be drawn."""

    temperature: float = setting(1.0, "Below 1 likely words become likelier, above 1 less likely.", above=0)
    top_k: int = setting(0, "Draw from the `top_k` most likely words; 0: all.", min=0)
    top_p: float = setting(1.0, "Draw from the fewest words that together have this probability.", above=0, max=1)


@torch.no_grad()
def sample(
    step: StepFunction,
    state: BeamState,
    limits: Tensor,
    seeds: Sequence[Any],
    *,
    begin: int,
    end: int,
    config: SamplingConfig,
) -> list[Hypothesis]:
    """Draw a sequence for each row of the state; its score is its mean log-probability.

    `limits` (rows,): maximum length. `seeds`: for each row's random numbers, as `numpy.random.default_rng` takes them. `begin`,
    `end`: ids of these special tokens.
    """
    longest = int(limits.max()) if len(limits) else 0
    numbers = np.array([np.random.default_rng(seed).random(longest) for seed in seeds]).reshape(len(seeds), longest)
    uniforms = torch.from_numpy(numbers).to(limits.device)
    last = torch.full_like(limits, begin)
    open_rows, sums, lengths = limits > 0, torch.zeros(len(limits), device=limits.device), torch.zeros_like(limits)
    words, places = (torch.zeros(len(limits), longest, dtype=torch.int64, device=limits.device) for _ in range(2))
    counted = lengths.clone()  # words whose probability is in the sum, the end mark among them
    for place in range(longest):
        if not bool(open_rows.any()):
            break
        made = step(last, state)
        last = draw(made.log_probs, uniforms[:, place], config)
        own = made.log_probs.gather(1, last.unsqueeze(1)).squeeze(1)
        sums, counted = sums + own.masked_fill(~open_rows, 0.0), counted + open_rows
        open_rows = open_rows & (last != end)
        words[:, place], places[:, place] = last, made.source_positions
        lengths = lengths + open_rows
        open_rows, state = open_rows & (lengths < limits), made.state
    rows = zip(words.tolist(), places.tolist(), lengths.tolist(), (sums / counted.clamp(min=1)).tolist(), strict=True)
    return [Hypothesis(found[:length], looked[:length], score) for found, looked, length, score in rows]


def draw(log_probs: Tensor, uniforms: Tensor, config: SamplingConfig) -> Tensor:
    """Draw a word for each row of log-probabilities (rows, vocabulary), by a number from [0, 1) each: (rows,).

    >>> log_probs = torch.tensor([[0.5, 0.3, 0.2]]).log()
    >>> [int(draw(log_probs, torch.tensor([number]), SamplingConfig(top_p=0.7))) for number in (0.0, 0.6, 0.65, 0.99)]
    [0, 0, 1, 1]
    """
    probs, words = torch.softmax(log_probs.double() / config.temperature, dim=1).sort(dim=1, descending=True)
    if config.top_k:
        probs, words = probs[:, : config.top_k], words[:, : config.top_k]
    probs = probs / probs.sum(1, keepdim=True)
    below = probs.cumsum(1) - probs  # probability of all more likely words
    sums = probs.masked_fill(below >= config.top_p, 0.0).cumsum(1)
    wanted = uniforms.double().unsqueeze(1) * sums[:, -1:]
    places = torch.searchsorted(sums, wanted, right=True).clamp(max=words.shape[1] - 1)
    return words.gather(1, places).squeeze(1)
