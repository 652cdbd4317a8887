"""The language-model API: probabilities of words and sentences, perplexity, and substitutes for a word.

`LanguageModel` is the protocol of all language models. `BidirectionalLanguageModel` implements it for an encoder with two
directions and an output layer. Probabilities are over the full vocabulary, never a sample. Words outside the vocabulary count
as its unknown word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.metrics.perplexity import Perplexity, PerplexityMeter
from polyseme.text.batching.batches import batch_by_words, batch_in_order

if TYPE_CHECKING:
    from polyseme.encoders.base import Sentence
    from polyseme.encoders.elmo_config import ElmoConfig, Start
    from polyseme.nn.output.full import OutputLayer
    from polyseme.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class WordLogProbs:
    """Natural-log probabilities of a sentence's words."""

    words: list[str]
    forward: np.ndarray
    """(words + 1,): of each word given all to its left, then of the end mark."""
    backward: np.ndarray | None
    """(words + 1,): of each word given all to its right, then of the begin mark; None: the model reads from left to right."""
    known: np.ndarray
    """(words,): False where the vocabulary lacks the word and its unknown word was asked instead."""

    @property
    def score(self) -> float:
        """The sentence's log-probability, mean of the directions that there are."""
        forward = float(self.forward.sum())
        return forward if self.backward is None else (forward + float(self.backward.sum())) / 2


@dataclass(frozen=True)
class Substitute:
    """A word that could stand in a place."""

    word: str
    log_prob: float
    """Log of the product of both directions' probabilities, brought to sum to one over the vocabulary."""


@runtime_checkable
class LanguageModel(Protocol):
    """Any model that gives sentences probabilities."""

    def log_probs(self, sentences: Sequence[Sentence]) -> list[WordLogProbs]:
        """Of each word of each sentence."""

    def score(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Of each sentence."""

    def perplexity(self, sentences: Sequence[Sentence]) -> Perplexity:
        """Of all sentences together."""


def perplexity_of(found: Sequence[WordLogProbs]) -> Perplexity:
    """Return the perplexity of all sentences of one model together."""
    meter = PerplexityMeter()
    for sentence in found:
        meter.add(sentence.forward, sentence.backward)
    result = meter.result()
    if result is None:
        raise UsageError("perplexity needs at least one sentence")
    return result


class BidirectionalLanguageModel:
    """Answers for an encoder that reads from both sides and has an output layer."""

    config: ElmoConfig
    output: OutputLayer | None
    vocabulary: Vocabulary | None

    if TYPE_CHECKING:

        def read(self, texts: list[list[str]], *, start: Start | None) -> tuple[Tensor, Tensor]: ...
        def _texts(self, sentences: Sequence[Sentence]) -> list[list[str]]: ...

    def log_probs(self, sentences: Sequence[Sentence], *, start: Start | None = None) -> list[WordLogProbs]:
        """Log-probability of each word, from the left and from the right."""
        output, vocabulary = self._language_model()
        texts = self._texts(sentences)
        results: list[WordLogProbs | None] = [None] * len(texts)
        with torch.inference_mode():
            carry = start == "carry"  # which goes on from row to row, so it keeps the order of arrival
            for rows in batch_in_order(len(texts), 128) if carry else batch_by_words([len(text) for text in texts]):
                states, _ = self.read([texts[row] for row in rows], start=start)
                for place, row in enumerate(rows.tolist()):
                    results[row] = self._sentence(states[-1, place], texts[row], output, vocabulary)
        return results  # type: ignore[return-value]

    def score(self, sentences: Sequence[Sentence], *, start: Start | None = None) -> np.ndarray:
        """Log-probability of each sentence, mean of both directions: (sentences,)."""
        return np.array([found.score for found in self.log_probs(sentences, start=start)])

    def perplexity(self, sentences: Sequence[Sentence], *, start: Start | None = None) -> Perplexity:
        """Perplexity over all sentences, by the full distribution."""
        return perplexity_of(self.log_probs(sentences, start=start))

    def substitutes(
        self, sentence: Sentence, position: int, *, count: int = 10, start: Start | None = None
    ) -> list[Substitute]:
        """The likeliest words for the place `position` (from 0) of a sentence, both sides combined.

        The word that stands there is not looked at: the forward model has read all before it, the backward one all after.
        """
        output, vocabulary = self._language_model()
        if start == "carry":
            raise UsageError("substitutes are asked of a sentence alone; allowed starts: learned, zero, warm")
        if count < 1:
            raise UsageError(f"count is {count}; it must be at least 1")
        text = self._texts([sentence])[0]
        if not 0 <= position < len(text):
            raise UsageError(f"position is {position}; the sentence has {len(text)} words, counted from 0")
        with torch.inference_mode():
            states, _ = self.read([text], start=start)
            left, right = self._halves(states[-1, 0])
            both = output(torch.stack([left[position], right[position + 2]])).sum(0)  # (vocabulary,)
            for mark in (self.config.begin, self.config.end, self.config.unknown):
                if mark in vocabulary:
                    both[int(vocabulary.ids([mark])[0])] = -torch.inf
            best = torch.log_softmax(both, dim=0).topk(min(count, len(both)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [Substitute(vocabulary[row], value) for row, value in pairs if value > -np.inf]

    def _language_model(self) -> tuple[OutputLayer, Vocabulary]:
        if self.output is None or self.vocabulary is None:
            raise PolysemeError(
                "this model has no output layer, so it cannot score words: load it together with its softmax weights "
                "and vocabulary (for bilm-tf: *_softmax_weights.hdf5 and the training vocabulary beside the weights)"
            )
        return self.output, self.vocabulary

    def _halves(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """One text's top layer (words + 2, dim) -> forward and backward states."""
        width, half = self.config.output, self.config.half
        return states[:, :width], states[:, half : half + width]

    def _sentence(self, states: Tensor, words: list[str], output: OutputLayer, vocabulary: Vocabulary) -> WordLogProbs:
        left, right = self._halves(states[: len(words) + 2])
        limit = self.config.words.max_characters if self.config.words is not None else None
        known_by = [word[:limit] for word in words]  # a model whose table cuts words knows them by no more
        marked = [self.config.begin, *known_by, self.config.end]
        ids = torch.from_numpy(vocabulary.ids(marked)).to(states.device)
        # a word is predicted from the state one place before it, in the direction of reading
        forward = output.log_probs(left[:-1], ids[1:])
        backward = output.log_probs(right[1:], ids[:-1]).roll(-1)  # the begin mark goes last
        known = np.array([word in vocabulary for word in known_by], dtype=bool)
        return WordLogProbs(words, forward.cpu().double().numpy(), backward.cpu().double().numpy(), known)
