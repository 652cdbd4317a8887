"""Language modelling in both directions, for an encoder with a forward and a backward half and one output layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.encoders.batch import Sentence
from polyseme.encoders.elmo_config import ElmoConfig, Start
from polyseme.encoders.language_model import LanguageModelApi, check_count, find_position
from polyseme.encoders.results import LogProbs, Substitute, Substitutes, WordLogProbs
from polyseme.nn.output.full import OutputLayer
from polyseme.text.batching.batches import batch_by_words, batch_in_order
from polyseme.text.vocabulary import Vocabulary

_CARRIED = 128  # sentences whose states are carried next to each other
_CLOZE = 64  # positions whose scores of the whole vocabulary are in memory together


class BidirectionalLanguageModel(LanguageModelApi):
    """Implements `log_probs` and `substitutes` by the top states of both directions (`read`)."""

    config: ElmoConfig
    output: OutputLayer | None
    vocabulary: Vocabulary | None

    if TYPE_CHECKING:

        def read(self, texts: list[list[str]], *, start: Start | None) -> tuple[Tensor, Tensor]: ...
        def _texts(self, sentences: Sequence[Sentence]) -> list[list[str]]: ...

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        output, vocabulary = self._output_and_vocabulary()
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
        output, vocabulary = self._output_and_vocabulary()
        if start == "carry":
            raise UsageError(f"{arg('start', 'carry')} does not apply to substitutes; allowed: learned, zero, warm")
        check_count(count)
        (text,) = self._texts([sentence])
        place = find_position(sentence, text, word, position)
        with torch.inference_mode():
            states, _ = self.read([text], start=start)  # type: ignore[arg-type]
            left, right = self._halves(states[-1, 0])
            both = output(torch.stack([left[place], right[place + 2]])).sum(0)  # (vocabulary,)
            for token in (self.config.begin, self.config.end, self.config.unknown):
                if token in vocabulary:
                    both[int(vocabulary.ids([token])[0])] = -torch.inf
            best = torch.log_softmax(both, dim=0).topk(min(count, len(both)))
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        found = [Substitute(vocabulary[row], value) for row, value in pairs if value > -np.inf]
        return Substitutes(found, words=text, position=place)

    def cloze_log_probs(self, sentence: Sentence) -> NDArray[np.float64]:
        """Return the log-probability of each word given all others, as in `substitutes`, (words,); NaN: not in the vocabulary.

        >>> model.cloze_log_probs("We sat on the bank.").round(1)   # doctest: +SKIP
        """
        output, vocabulary = self._output_and_vocabulary()
        (text,) = self._texts([sentence])
        limit = self.config.words.max_characters if self.config.words is not None else None
        special = [token for token in (self.config.begin, self.config.end, self.config.unknown) if token in vocabulary]
        ids = torch.from_numpy(vocabulary.ids([word[:limit] for word in text]))
        found = np.full(len(text), np.nan)
        with torch.inference_mode():
            states, _ = self.read([text], start=None)
            left, right = self._halves(states[-1, 0])
            for begin in range(0, len(text), _CLOZE):
                places = torch.arange(begin, min(begin + _CLOZE, len(text)), device=left.device)
                both = output(left[places]) + output(right[places + 2])  # (words, vocabulary)
                both[:, torch.from_numpy(vocabulary.ids(special)).to(both.device)] = -torch.inf
                rows = torch.log_softmax(both, dim=1).cpu()
                found[begin : begin + len(places)] = rows[torch.arange(len(places)), ids[begin : begin + len(places)]].double()
        known = np.array([word[:limit] in vocabulary and word not in special for word in text], dtype=bool)
        return np.where(known, found, np.nan)

    def _output_and_vocabulary(self) -> tuple[OutputLayer, Vocabulary]:
        if self.output is None or self.vocabulary is None:
            raise PolysemeError(
                "this model has no output layer, so it cannot score words: load it together with its softmax weights "
                "and vocabulary (for bilm-tf: *_softmax_weights.hdf5 and the training vocabulary beside the weights)"
            )
        return self.output, self.vocabulary

    def _halves(self, states: Tensor) -> tuple[Tensor, Tensor]:
        """Split the top layer of a text (words + 2, dim) into forward and backward states."""
        width, half = self.config.output, self.config.half
        return states[:, :width], states[:, half : half + width]

    def _sentence(self, states: Tensor, words: list[str], output: OutputLayer, vocabulary: Vocabulary) -> WordLogProbs:
        left, right = self._halves(states[: len(words) + 2])
        limit = self.config.words.max_characters if self.config.words is not None else None
        looked_up = [word[:limit] for word in words]
        tokens = [self.config.begin, *looked_up, self.config.end]
        ids = torch.from_numpy(vocabulary.ids(tokens)).to(states.device)
        # a word is predicted from the state one position before it, in the direction of reading
        forward = output.log_probs(left[:-1], ids[1:])
        backward = output.log_probs(right[1:], ids[:-1]).roll(-1)  # the begin token goes last
        known = np.array([word in vocabulary for word in looked_up], dtype=bool)
        return WordLogProbs(words, forward.cpu().double().numpy(), backward.cpu().double().numpy(), known)
