"""Sampled sequences: every next word drawn from what the decoder holds likely.

The distribution can be made flatter or steeper (temperature), and cut to the `top_k` likeliest words or to the fewest that
together have the probability `top_p` (Holtzman et al. 2020). Each sequence has random numbers of its own, from its seed: a
text's samples do not depend on which other texts stand in its batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyseme.base.errors import UsageError
from polyseme.nn.networks.beam import BeamState, Hypothesis, StepFunction


@torch.no_grad()
def sample(
    step: StepFunction,
    state: BeamState,
    limits: Tensor,
    seeds: Sequence[Any],
    *,
    begin: int,
    end: int,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> list[Hypothesis]:
    """A sequence for each row of the state; its score is its mean log-probability, as the decoder has it.

    `limits` (rows,): words, at most. `seeds`: of each row's random numbers, as `numpy.random.default_rng` takes them. `begin`,
    `end`: the numbers of the marks.
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
        last = draw(made.log_probs, uniforms[:, place], temperature=temperature, top_k=top_k, top_p=top_p)
        own = made.log_probs.gather(1, last.unsqueeze(1)).squeeze(1)
        sums, counted = sums + own.masked_fill(~open_rows, 0.0), counted + open_rows
        open_rows = open_rows & (last != end)
        words[:, place], places[:, place] = last, made.places
        lengths = lengths + open_rows
        open_rows, state = open_rows & (lengths < limits), made.state
    rows = zip(words.tolist(), places.tolist(), lengths.tolist(), (sums / counted.clamp(min=1)).tolist(), strict=True)
    return [Hypothesis(found[:length], looked[:length], score) for found, looked, length, score in rows]


def draw(log_probs: Tensor, uniforms: Tensor, *, temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0) -> Tensor:
    """A word for each row of log-probabilities (rows, vocabulary), by a number from [0, 1) each: (rows,).

    `top_k` 0: all words.

    >>> chances = torch.tensor([[0.5, 0.3, 0.2]]).log()
    >>> [int(draw(chances, torch.tensor([number]), top_p=0.7)) for number in (0.0, 0.6, 0.65, 0.99)]
    [0, 0, 1, 1]
    """
    if not temperature > 0 or top_k < 0 or not 0 < top_p <= 1:
        raise UsageError(
            f"temperature is {temperature}, top_k {top_k}, top_p {top_p}; allowed: above 0, 0 (all) or more, and above 0 to 1"
        )
    chances, words = torch.softmax(log_probs.double() / temperature, dim=1).sort(dim=1, descending=True)
    if top_k:
        chances, words = chances[:, :top_k], words[:, :top_k]
    chances = chances / chances.sum(1, keepdim=True)
    below = chances.cumsum(1) - chances  # what is likelier
    sums = chances.masked_fill(below >= top_p, 0.0).cumsum(1)
    wanted = uniforms.double().unsqueeze(1) * sums[:, -1:]
    places = torch.searchsorted(sums, wanted, right=True).clamp(max=words.shape[1] - 1)
    return words.gather(1, places).squeeze(1)
