"""Word features for characters: each character has the vectors of the word that contains it.

Chinese names are tagged character by character, and a model that was trained on words knows little of single characters. So the
tokens are joined to text, which the encoder's splitter splits into words, and a token takes the layers of the word that holds
its first character, with its position in the word (single, begin, inside, end) as a one-hot vector.
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
"""Size of the one-hot vector of a token's position in its word."""


@dataclass(frozen=True)
class WordAlignment:
    """Tokens and the words that contain them."""

    words: list[str]
    index: list[int]
    """For each token, which word."""
    positions: list[int]
    """For each token, its position in the word."""


@dataclass(frozen=True)
class WordFeatureInputs:
    """What `forward` needs besides the encoder's own batch."""

    inner: Batch
    index: Tensor
    """(batch, tokens): the word of each token."""
    positions: Tensor
    """(batch, tokens): its position there."""


class WordFeatures(Encoder):
    """An encoder of words whose sentences are smaller tokens, such as characters; see `align_to_words`."""

    kind = "word_features"

    def __init__(self, inner: Encoder) -> None:
        super().__init__(inner.config, inner.splitter)
        self._inner = [inner]  # in a list: its weights are its own
        self.source = inner.source

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
        alignments = [align_to_words(text, self.inner) for text in self._texts(sentences)]
        lengths = torch.tensor([len(each.index) for each in alignments])
        index, positions = torch.zeros(2, len(alignments), int(lengths.max()), dtype=torch.long)
        for row, each in enumerate(alignments):
            index[row, : len(each.index)] = torch.tensor(each.index, dtype=torch.long)
            positions[row, : len(each.index)] = torch.tensor(each.positions, dtype=torch.long)
        mask = torch.arange(index.shape[1]) < lengths[:, None]
        inner, device = self.inner.prepare([each.words for each in alignments]), self.device
        inputs = WordFeatureInputs(inner, index.to(device), positions.to(device))
        return Batch(inputs, mask.to(device), lengths.to(device))

    def forward(self, batch: Batch) -> Layers:
        inputs: WordFeatureInputs = batch.inputs
        words = self.inner(inputs.inner).states  # (layers, batch, words, dim)
        if not words.shape[2]:  # only empty texts
            return Layers(words.new_zeros(*words.shape[:2], inputs.index.shape[1], self.dim), batch.mask)
        index = inputs.index[None, :, :, None].expand(self.layers, -1, -1, words.shape[3])
        positions = F.one_hot(inputs.positions, POSITION_TAGS).to(words.dtype).expand(self.layers, -1, -1, -1)
        states = torch.cat([words.gather(2, index), positions], dim=3)
        return Layers(states.masked_fill(~batch.mask[..., None], 0.0), batch.mask)

    def _embed_batch(
        self, texts: list[list[str]], selection: LayerSelection, start: str | None, batch_words: int
    ) -> Callable[[], list[np.ndarray]]:
        alignments = [align_to_words(text, self.inner) for text in texts]
        begun = self.inner._embed_batch([each.words for each in alignments], selection, start, batch_words)
        one_hot = np.eye(POSITION_TAGS, dtype=np.float32)

        def arrays() -> list[np.ndarray]:
            result = []
            for each, words in zip(alignments, begun(), strict=True):
                positions = np.broadcast_to(one_hot[each.positions], (len(words), len(each.positions), POSITION_TAGS))
                result.append(np.concatenate([words[:, each.index], positions], axis=2))
            return result

        return arrays


def align_to_words(tokens: Sequence[str], encoder: Encoder) -> WordAlignment:
    """Split the text that the tokens spell into words, as the encoder does, and find each token in them.

    The tokens are the words themselves where the encoder splits at white space, or where a token is white space.
    """
    if encoder.splitter.name == "whitespace" or not all(token.strip() for token in tokens):
        return WordAlignment(list(tokens), list(range(len(tokens))), [SINGLE] * len(tokens))
    words = encoder.words(join(tokens))
    index = [each.start for each in overlaps(tokens, words)]
    begins = [position == 0 or index[position - 1] != word for position, word in enumerate(index)]
    ends = [position + 1 == len(index) or index[position + 1] != word for position, word in enumerate(index)]
    names = {(True, True): SINGLE, (True, False): BEGIN, (False, True): END, (False, False): INSIDE}
    positions = [names[each] for each in zip(begins, ends, strict=True)]
    return WordAlignment(words, index, positions)
