"""ELMoForManyLangs: `Embedder(model_dir).sents2elmo(sentences)`.

The original sorted sentences by length, shuffled the batches at random and carried the LSTM state from one batch to the next,
so that vectors differed from run to run. Here every sentence starts from zeros, as the first batch did; `stateful=True` does
as the original, with the same use of Python's `random`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch

from polyseme.base.errors import UsageError
from polyseme.compat.old_inputs import word_lists
from polyseme.compat.weights import load_elmo


class Embedder:
    """Vectors of words from a folder of ELMoForManyLangs (or any other ELMo)."""

    def __init__(self, model_dir: str | Path, batch_size: int = 64, *, stateful: bool = False) -> None:
        self.model_dir, self.batch_size, self.stateful = model_dir, batch_size, stateful
        self.use_cuda = torch.cuda.is_available()
        self.model = load_elmo(model_dir, device="cuda" if self.use_cuda else None)

    def sents2elmo(self, sents: Iterable[Sequence[str]], output_layer: int = -1) -> list[np.ndarray]:
        """Embed sentences of words; a string is a sentence of characters.

        `output_layer`: -1 the mean of all layers, (words, dim); -2 all layers, (layers, words, dim); 0, 1, 2 one of them.
        """
        if not isinstance(output_layer, int) or not -2 <= output_layer < self.model.layers:
            raise UsageError(f"output_layer is {output_layer!r}; allowed: -2 (all), -1 (mean), 0 to {self.model.layers - 1}")
        texts = word_lists(sents)
        layers = "all" if output_layer == -2 else "mean" if output_layer == -1 else output_layer
        if not self.stateful:
            return self.model.embed(texts, layers=layers, start="zero", batch_size=self.batch_size)  # type: ignore[arg-type]
        found: list[np.ndarray] = [np.zeros(0)] * len(texts)
        for rows in self._batches(texts):
            some = [texts[row] for row in rows]
            arrays = self.model.embed(some, layers=layers, start="carry", batch_size=len(some))  # type: ignore[arg-type]
            for row, array in zip(rows, arrays, strict=True):
                found[row] = array
        return found

    def _batches(self, texts: list[list[str]]) -> list[list[int]]:
        """The numbers of the sentences of each batch, in the order of the original."""
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        batches = [order[begin : begin + self.batch_size] for begin in range(0, len(order), self.batch_size)]
        random.shuffle(batches)
        return batches
