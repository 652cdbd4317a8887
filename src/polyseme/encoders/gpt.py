"""GPT (Radford et al. 2018, 2019) and its like: every piece sees only what stands before it, and was taught to tell the next.

GPT-2, GPT-Neo and GPT-NeoX are read by the same file. Texts begin with the mark that stood between the texts of their training
(`<|endoftext|>`), so that the first word too is predicted from something. Of a word's pieces only the last has seen the whole
word, so its vectors are the usual ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from polyseme.base.errors import PolysemeError
from polyseme.encoders.base import Sentence
from polyseme.encoders.piece_model import PieceConfig, PieceModel
from polyseme.encoders.piece_windows import Window, windows
from polyseme.encoders.questions import Perplexity, WordLogProbs, perplexity_of
from polyseme.text.batches import by_words

_AT_A_TIME = 1024  # pieces whose scores, one for each piece of the vocabulary, stand in memory


class Gpt(PieceModel):
    """A causal Transformer over pieces, which is a language model from left to right; `polyseme.load` gives one."""

    kind = "gpt"
    causal = True

    @classmethod
    def usual(cls) -> PieceConfig:
        return PieceConfig(pieces="last")

    def _marks(self) -> tuple[list[int], list[int]]:
        return [self.pieces.mark("bos", "eos")], []

    # ---- as a language model

    def log_probs(self, sentences: Sequence[Sentence]) -> list[WordLogProbs]:
        """Log-probability of each word given all to its left (the sum of its pieces'), then of the end mark."""
        if self.network.get_output_embeddings() is None:
            raise PolysemeError(f"{self.source} has no head for the next word, so it cannot score words: take a model that has")
        texts = self._texts(sentences)
        marked = [[*pieces, [self.pieces.mark("eos", "bos")]] for pieces in self._cut(texts)]
        found = [np.zeros(len(pieces)) for pieces in marked]
        spans = [_Span(row, *window) for row, pieces in enumerate(marked) for window in self._windows(pieces)]
        flat = [[piece for word in pieces for piece in word] for pieces in marked]
        owners = [np.repeat(np.arange(len(pieces)), [len(word) for word in pieces]) for pieces in marked]
        with torch.inference_mode():
            for places in by_words([span.end - span.begin + 1 for span in spans], words=_AT_A_TIME):
                some = [spans[place] for place in places]
                for span, logs in zip(some, self._logs(some, flat), strict=True):
                    np.add.at(found[span.row], owners[span.row][span.first : span.last], logs)
        return [WordLogProbs(text, each, None, np.ones(len(text), dtype=bool)) for text, each in zip(texts, found, strict=True)]

    def score(self, sentences: Sequence[Sentence]) -> np.ndarray:
        """Log-probability of each sentence: (sentences,)."""
        return np.array([found.score for found in self.log_probs(sentences)])

    def perplexity(self, sentences: Sequence[Sentence]) -> Perplexity:
        """Perplexity over all sentences, a word and not a piece being the unit."""
        return perplexity_of(self.log_probs(sentences))

    def _windows(self, pieces: list[list[int]]) -> list[Window]:
        return windows(sum(map(len, pieces)), self.window - len(self.before), self.config.overlap, causal=True)

    def _logs(self, spans: list[_Span], flat: list[list[int]]) -> list[np.ndarray]:
        """Log-probabilities of the pieces that some windows take."""
        ids, attention = self.padded([[*self.before, *flat[span.row][span.begin : span.end]] for span in spans])
        scores = torch.log_softmax(
            self.network(input_ids=ids, attention_mask=attention, use_cache=False).logits.float(), dim=-1
        )
        # piece p stands at place p - begin + 1, and the place before predicts it
        logs = scores[:, :-1].gather(2, ids[:, 1:, None])[:, :, 0].double().cpu().numpy()
        return [row[span.first - span.begin : span.last - span.begin] for row, span in zip(logs, spans, strict=True)]


class _Span(NamedTuple):
    """A window of one of several texts."""

    row: int
    begin: int
    end: int
    first: int
    last: int
