"""The sentences that were asked about last, as the models have read them.

The page asks several questions of one sentence: how surprising its words are, then neighbours and substitutes of each word that
is clicked. Reading the sentence is most of the work of each, so it is done once. Used by the thread that computes, only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from polyseme.encoders.bidirectional import BidirectionalLanguageModel
from polyseme.encoders.read_sentence import ReadSentence, SideLogProbs
from polyseme.serve.models import ServedModel
from polyseme.serve.recently_used import RecentlyUsed, text_bytes

MAX_BYTES = 16 * 1024 * 1024
"""Of all that is kept, words included."""


class ReadSentences:
    """Reads sentences, and keeps those that were used last."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._kept = RecentlyUsed[ReadSentence | NDArray[np.float32]](max_bytes)
        self._scored: ReadSentence | None = None

    def vectors(self, model: ServedModel, words: list[str]) -> NDArray[np.float32]:
        """All layers of a sentence, (layers, words, dim), as `embed` gives them."""
        found = self._read(model, words)
        return found.vectors if isinstance(found, ReadSentence) else found

    def read(self, model: ServedModel, words: list[str]) -> ReadSentence | None:
        """A sentence as a bidirectional language model has read it; None: the model is none."""
        if not isinstance(model.encoder, BidirectionalLanguageModel):
            return None
        found = self._read(model, words)
        assert isinstance(found, ReadSentence)
        return found

    def log_probs(self, model: ServedModel, words: list[str]) -> SideLogProbs | None:
        """How probable the words are, from each side; None: the model is no bidirectional language model.

        The scores of the last sentence stay in memory: a question about the substitutes of a word usually follows.
        """
        read = self.read(model, words)
        if read is None:
            return None
        if self._scored is not None and self._scored is not read:
            self._scored.forget_scores()
        self._scored = read
        return read.log_probs(keep=True)

    def _read(self, model: ServedModel, words: list[str]) -> ReadSentence | NDArray[np.float32]:
        key, encoder = (model.name, tuple(words)), model.encoder
        found = self._kept.get(key)
        if found is None:
            if isinstance(encoder, BidirectionalLanguageModel):
                found = encoder.read_sentence(words)
            else:
                found = encoder.embed([words])[0]
            self._kept.keep(key, found, found.nbytes + text_bytes(words))
        return found
