"""An encoder read through another cut of the same text: each given token has the vectors of the word that covers it.

Chinese names are tagged character by character, and a model that was trained on words knows little of single characters. So
the tokens are joined to running text, which is cut as the encoder cuts it, and a token takes the layers of the word that holds
its first character, beside a mark of its place there: alone, first, inside or last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Layers, Sentence
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.layer_choice import LayerSelection
from polyseme.text.splitting.alignment import join, overlaps

SINGLE, BEGIN, INSIDE, END = range(4)
POSITION_TAGS = 4
"""Numbers of a vector that tell the token's place in its word."""


@dataclass(frozen=True)
class WordAlignment:
    """Tokens and the words that cover them."""

    words: list[str]
    index: list[int]
    """For each token, which word."""
    places: list[int]
    """For each token, its place in the word."""


@dataclass(frozen=True)
class WordFeatureInputs:
    """What `forward` needs besides the encoder's own batch."""

    inner: Batch
    index: Tensor
    """(batch, tokens): the word of each token."""
    places: Tensor
    """(batch, tokens): its place there."""


class WordFeatures(Encoder):
    """An encoder whose sentences are tokens of another cut; see `align_to_words`."""

    kind = "word_features"

    def __init__(self, inner: Encoder) -> None:
        super().__init__(inner.config, inner.splitter)
        self._inner = [inner]  # in a list: its weights are its own

    @property
    def inner(self) -> Encoder:
        """The encoder that reads the words."""
        return self._inner[0]

    @property
    def layers(self) -> int:
        return self.inner.layers

    @property
    def dim(self) -> int:
        return self.inner.dim + POSITION_TAGS

    @property
    def device(self) -> torch.device:
        return self.inner.device

    @property
    def identity(self) -> str:
        """What decides the vectors: the encoder."""
        return model_fingerprint(self.inner)

    def layer_groups(self) -> dict[str, nn.Module]:
        return self.inner.layer_groups()

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        covers = [align_to_words(text, self.inner) for text in self._texts(sentences)]
        lengths = torch.tensor([len(each.index) for each in covers])
        index, places = torch.zeros(2, len(covers), int(lengths.max()), dtype=torch.long)
        for row, each in enumerate(covers):
            index[row, : len(each.index)] = torch.tensor(each.index, dtype=torch.long)
            places[row, : len(each.index)] = torch.tensor(each.places, dtype=torch.long)
        mask = torch.arange(index.shape[1]) < lengths[:, None]
        inner, device = self.inner.prepare([each.words for each in covers]), self.device
        inputs = WordFeatureInputs(inner, index.to(device), places.to(device))
        return Batch(inputs, mask.to(device), lengths.to(device))

    def forward(self, batch: Batch) -> Layers:
        inputs: WordFeatureInputs = batch.inputs
        words = self.inner(inputs.inner).states  # (layers, batch, words, dim)
        if not words.shape[2]:  # only empty texts
            return Layers(words.new_zeros(*words.shape[:2], inputs.index.shape[1], self.dim), batch.mask)
        index = inputs.index[None, :, :, None].expand(self.layers, -1, -1, words.shape[3])
        places = F.one_hot(inputs.places, POSITION_TAGS).to(words.dtype).expand(self.layers, -1, -1, -1)
        states = torch.cat([words.gather(2, index), places], dim=3)
        return Layers(states.masked_fill(~batch.mask[..., None], 0.0), batch.mask)

    def _embed_batch(
        self, texts: list[list[str]], selection: LayerSelection, start: str | None, batch_words: int
    ) -> Callable[[], list[np.ndarray]]:
        covers = [align_to_words(text, self.inner) for text in texts]
        begun = self.inner._embed_batch([each.words for each in covers], selection, start, batch_words)
        marks = np.eye(POSITION_TAGS, dtype=np.float32)

        def arrays() -> list[np.ndarray]:
            found = []
            for each, words in zip(covers, begun(), strict=True):
                places = np.broadcast_to(marks[each.places], (len(words), len(each.places), POSITION_TAGS))
                found.append(np.concatenate([words[:, each.index], places], axis=2))
            return found

        return arrays


def align_to_words(tokens: Sequence[str], encoder: Encoder) -> WordAlignment:
    """The words of the text that the tokens spell, as the encoder cuts it, and where each token is in them.

    The tokens are the words themselves where the encoder cuts at white space, of which they have none, and where one of them
    is white space.
    """
    if encoder.splitter.name == "whitespace" or not all(token.strip() for token in tokens):
        return WordAlignment(list(tokens), list(range(len(tokens))), [SINGLE] * len(tokens))
    words = encoder.words(join(tokens))
    index = [each.start for each in overlaps(tokens, words)]
    begins = [place == 0 or index[place - 1] != word for place, word in enumerate(index)]
    ends = [place + 1 == len(index) or index[place + 1] != word for place, word in enumerate(index)]
    names = {(True, True): SINGLE, (True, False): BEGIN, (False, True): END, (False, False): INSIDE}
    places = [names[each] for each in zip(begins, ends, strict=True)]
    return WordAlignment(words, index, places)
