"""Exercises of chapter 10. Write the three functions, then check them:

python -m pytest course/exercises/check_10.py
"""

from __future__ import annotations

import numpy as np


def causal_weights(scores: np.ndarray) -> np.ndarray:
    """Return attention weights (words, words) from scores (words, words): a softmax in each row, with the causal mask.

    Row t has zeros behind column t, and sums to one. Scores can be large: exp must not overflow.
    """
    raise NotImplementedError("causal_weights")


def gpt_inputs(task: str, *texts: list[str]) -> list[list[str]]:
    """Return the token sequences that GPT reads for one example (figure 1 of Radford et al. 2018).

    "<s>" begins each sequence, "$" is the delimiter between two texts, "<e>" is the extract token at the end.
    - "classification": one text, one sequence.
    - "entailment": premise and hypothesis, in this order, one sequence.
    - "similarity": two texts without an order, so two sequences: first and second, then second and first.
    - "choice": a context and any number of answers: one sequence for each answer, context first.
    """
    raise NotImplementedError("gpt_inputs")


def num_parameters(vocabulary: int, positions: int, dim: int, layers: int) -> int:
    """Return the number of weights of a GPT-2.

    It has a table of words and a table of positions; the output layer shares the table of words and has no bias. A
    block has two layer norms (weight and bias), attention (dim -> 3 dim, and dim -> dim) and a feed-forward network
    (dim -> 4 dim -> dim); all four linear layers have biases. One more layer norm comes after the last block. GPT-2
    small has 50,257 words, 1,024 positions, 768 dimensions and 12 layers.
    """
    raise NotImplementedError("num_parameters")
