"""Language modelling in both directions, for an encoder with a forward and a backward half and one output layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.encoders.batch import Sentence
from polyseme.encoders.elmo_config import ElmoConfig, Start
from polyseme.encoders.language_model import LanguageModelApi, check_count, find_position
from polyseme.encoders.read_sentence import ReadSentence
from polyseme.encoders.results import LogProbs, Substitutes, WordLogProbs
from polyseme.nn.output.full import OutputLayer
from polyseme.text.batching.batches import batch_by_words, batch_in_order
from polyseme.text.vocabulary import Vocabulary

_CARRIED = 128  # sentences whose states are carried next to each other


class BidirectionalLanguageModel(LanguageModelApi):
    """Implements `log_probs` and `substitutes` by the top states of both directions (`read`)."""

    config: ElmoConfig
    output: OutputLayer | None
    vocabulary: Vocabulary | None

    if TYPE_CHECKING:

        def read(self, texts: list[list[str]], *, start: Start | None) -> tuple[Tensor, Tensor]: ...
        def _texts(self, sentences: Sequence[Sentence]) -> list[list[str]]: ...

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        output, vocabulary = self.output_and_vocabulary()
        texts = self._texts(sentences)
        results: list[WordLogProbs | None] = [None] * len(texts)
        carry = start == "carry"  # which goes on from batch to batch, so the order of arrival stays
        batches = batch_in_order(len(texts), _CARRIED) if carry else batch_by_words([len(text) for text in texts])
        with torch.inference_mode():
            for rows in batches:
                states, _ = self.read([texts[row] for row in rows], start=start)  # type: ignore[arg-type]
                for place, row in enumerate(rows.tolist()):
                    results[row] = self._sentence(states[-1, place], texts[row], output, vocabulary)
        return LogProbs(results)  # type: ignore[arg-type]

    def substitutes(
        self,
        sentence: Sentence,
        position: int | None = None,
        *,
        word: str | None = None,
        count: int = 10,
        start: str | None = None,
    ) -> Substitutes:
        """Return the most probable words for the position of `word`, or for a position counted from 0.

        The word there is not read: the forward model has read all before it, the backward model all after it.
        """
        self.output_and_vocabulary()
        if start == "carry":
            raise UsageError(f"{arg('start', 'carry')} does not apply to substitutes; allowed: learned, zero, warm")
        check_count(count)
        (text,) = self._texts([sentence])
        place = find_position(sentence, text, word, position)
        return self.read_sentence(text, start=start).substitutes(place, count)

    def read_sentence(self, sentence: Sentence, *, start: str | None = None) -> ReadSentence:
        """Read a sentence once for several questions: its vectors, how probable its words are, and what else would fit.

        >>> model.read_sentence("We sat on the bank.").log_probs().both.round(1)   # doctest: +SKIP
        """
        (text,) = self._texts([sentence])
        with torch.inference_mode():
            states, _ = self.read([text], start=start)  # type: ignore[arg-type]
        return ReadSentence(self, text, states[:, 0])  # type: ignore[arg-type]

    def output_and_vocabulary(self) -> tuple[OutputLayer, Vocabulary]:
        """What predicts words; raise if the model has none."""
        if self.output is None or self.vocabulary is None:
            raise PolysemeError(
                "this model has no output layer, so it cannot score words: load it together with its softmax weights "
                "and vocabulary (for bilm-tf: *_softmax_weights.hdf5 and the training vocabulary beside the weights)"
            )
        return self.output, self.vocabulary

    def halves(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Split the top layer of a text (words + 2, dim) into forward and backward states."""
        width, half = self.config.output, self.config.half
        return states[:, :width], states[:, half : half + width]

    def _sentence(self, states: Tensor, words: list[str], output: OutputLayer, vocabulary: Vocabulary) -> WordLogProbs:
        left, right = self.halves(states[: len(words) + 2])
        limit = self.config.words.max_characters if self.config.words is not None else None
        looked_up = [word[:limit] for word in words]
        tokens = [self.config.begin, *looked_up, self.config.end]
        ids = torch.from_numpy(vocabulary.ids(tokens)).to(states.device)
        # a word is predicted from the state one position before it, in the direction of reading
        forward = output.log_probs(left[:-1], ids[1:])
        backward = output.log_probs(right[1:], ids[:-1]).roll(-1)  # the begin token goes last
        known = np.array([word in vocabulary for word in looked_up], dtype=bool)
        return WordLogProbs(words, forward.cpu().double().numpy(), backward.cpu().double().numpy(), known)
