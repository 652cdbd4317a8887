"""simple_elmo: `ElmoModel` with vectors, sentence averages and substitutes.

Every call starts from zeros and, with `warmup`, reads its first batch twice, as the original did; within a call the state
goes on from batch to batch. Four of its results were bugs, which `bug_compatible=True` brings back: padded words of layer 0
were not zero; an average was over the padded length of the batch; averages of `layers="all"` mixed the layers up; and
substitutes saw one neighbouring word on either side instead of the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.compat.bilm_batches import Batcher, vector_of_padding
from polyseme.compat.old_inputs import word_lists
from polyseme.compat.weights import load_elmo
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.id_batch import batch_of_ids

LayerName = Literal["top", "average", "all"]
_NO_WORDS = "{} has no output layer or no vocabulary, so it cannot predict words"
_LAYERS: dict[str, Any] = {"top": "top", "average": "mean", "all": "all"}


class ElmoModel:
    """Load a model from a folder or zip file, then ask for vectors of sentences (lists of words)."""

    model: Elmo
    layers = "average"

    def load(
        self, directory: str | Path, max_batch_size: int = 32, limit: int = 100, full: bool = False, *, top: bool = False
    ) -> str:
        """Load a model; `full`: one that predicts words; `top`: the default is its top layer. (`limit` has no effect.)"""
        self.model, self.batch_size, self.layers = load_elmo(directory), max_batch_size, "top" if top else "average"
        if full and not self.model.predicts_words:
            raise PolysemeError(_NO_WORDS.format(directory))
        self.vocab, self.n_layers, self.vector_size = self.model.vocabulary, self.model.layers, self.model.dim
        self.max_chars = None if self.model.speller is None else self.model.speller.max_length
        return "The model is now loaded."

    def get_elmo_vectors(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: LayerName | None = None,
        session: object = None,
        *,
        bug_compatible: bool = False,
    ) -> np.ndarray:
        """Return float64 vectors, zero on padding: (n, longest, dim), for "all" (n, layers, longest, dim).

        `layers`: top, average (the default) or all. With a `session` (any object) the state goes on from the call before.
        """
        batches = self._embed(texts, warmup, layers, session, bug_compatible)
        longest = max(array.shape[-2] for batch in batches for array in batch)
        return np.stack([_pad(array, longest) for batch in batches for array in batch]).astype(np.float64)

    def get_elmo_vector_average(
        self,
        texts: Sequence[Sequence[str]],
        warmup: bool = True,
        layers: LayerName | None = None,
        session: object = None,
        *,
        bug_compatible: bool = False,
    ) -> np.ndarray:
        """Return one float64 vector of unit length per sentence, (n, dim); for "all" (n, layers, dim), each of unit norm."""
        found, batches = [], self._embed(texts, warmup, layers, session, bug_compatible)
        for array in [each for batch in batches for each in batch]:
            if bug_compatible and layers == "all":  # the axes were renamed instead of swapped
                array = array.reshape(array.shape[1], array.shape[0], array.shape[2]).swapaxes(0, 1)
            mean = array.astype(np.float64).sum(-2) / max(array.shape[-2], 1)
            found.append(mean / (np.linalg.norm(mean) or 1.0))
        return np.stack(found)

    def get_elmo_substitutes(
        self, data: Sequence[Sequence[str]], topn: int = 3, nodelimiters: bool = True, *, bug_compatible: bool = False
    ) -> list[list[dict[str, Any]]]:
        """Return for each word the likeliest words by what is to its left ("forward") and to its right ("backward").

        `logp` has log-probabilities, best first (the original's were scores without a scale, in no order).
        """
        output, words = self.model.output, self.model.vocabulary
        if output is None or words is None:
            raise PolysemeError(_NO_WORDS.format(self.model.source))
        hidden = [int(words.ids([mark])[0]) for mark in ("<S>", "</S>")] if nodelimiters else []
        batcher, results = Batcher(None, self.max_chars or 50), []
        for sentence in data:
            text = sentence.split() if isinstance(sentence, str) else list(sentence)
            ids = torch.from_numpy(batcher.batch_sentences([text]))
            if bug_compatible:  # each word between its neighbours alone
                ids = torch.stack([ids[0, :-2], ids[0, 2:]], dim=1)
            with torch.no_grad():
                left, right = self.model.top_states(batch_of_ids(self.model, ids))
                halves = (left[:, 0], right[:, 1]) if bug_compatible else (left[0, :-2], right[0, 2:])
                scores = [output(half).index_fill(1, torch.tensor(hidden, dtype=torch.int64), -torch.inf) for half in halves]
            best = [[_candidates(row, topn, words.words) for row in each] for each in scores]
            rows = zip(text, *best, strict=True)
            results.append([{"word": word, "forward": ahead, "backward": back} for word, ahead, back in rows])
        return results

    def _embed(
        self, texts: Sequence[Sequence[str]], warmup: bool, layers: str | None, session: object, padding: bool
    ) -> list[list[np.ndarray]]:
        """The vectors of each batch; with `padding`, sentences as long as the longest of their batch."""
        layers = layers or self.layers
        if not hasattr(self, "model"):
            raise UsageError("there is no model yet: call load first")
        if layers not in _LAYERS:
            raise UsageError(f"layers is {layers!r}; allowed: {', '.join(_LAYERS)}")
        sentences = word_lists(texts)
        if not sentences:
            raise UsageError("there are no texts: give at least one sentence")
        if session is None:
            self.model.reset_state()
        found = []
        for begin in [*([0] if warmup else []), *range(0, len(sentences), self.batch_size)]:
            batch = sentences[begin : begin + self.batch_size]
            found.append(self.model.embed(batch, layers=_LAYERS[layers], start="carry", batch_size=len(batch)))
        found = found[1:] if warmup else found
        if padding:
            empty = self._padding(layers)
            found = [[_pad(array, max(each.shape[-2] for each in batch), empty) for array in batch] for batch in found]
        return found

    def _padding(self, layers: str) -> np.ndarray:
        """What the original has on padding, (dim,) or (layers, 1, dim): the vector of a word without characters in layer 0."""
        stack = np.zeros((self.n_layers, 1, self.vector_size), np.float32)
        if self.max_chars is not None:
            stack[0] = vector_of_padding(self.model).cpu().numpy()
        return {"all": stack, "top": stack[-1], "average": stack.mean(0)}[layers]


def _pad(array: np.ndarray, length: int, value: np.ndarray | None = None) -> np.ndarray:
    """Lengthen (..., words, dim) to `length` words of a value, by default zeros."""
    shape = (*array.shape[:-2], length - array.shape[-2], array.shape[-1])
    return np.concatenate([array, np.broadcast_to(0.0 if value is None else value, shape)], axis=-2).astype(np.float32)


def _candidates(row: torch.Tensor, count: int, words: list[str]) -> dict[str, list[Any]]:
    values, ids = (each.tolist() for each in row.topk(min(count, len(row))))
    return {"candidates": ids, "candidate_words": [words[i] for i in ids], "logp": [round(value, 4) for value in values]}
