"""The neural probabilistic language model (Bengio et al. 2003): an n-gram model that generalises over similar words.

The concatenated vectors of the few words before go through a layer of tanh units, and a softmax over the vocabulary gives the
next word. The vectors are trained with the rest: words that are followed by the same words get similar vectors, so that an
unseen context borrows from seen ones. `embed` returns this table, one layer, the same vector in every sentence.

    x = [C(w[t-n+1]), ..., C(w[t-1])]        y = b + U tanh(H x + d) (+ W x: direct connections)        P = softmax(y)

The context before the first word is padded with begin tokens.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.encoders.batch import Batch, Layers
from polyseme.encoders.config import NnlmConfig
from polyseme.encoders.left_to_right import LeftToRight
from polyseme.nn.output.full import FullSoftmax
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import WHITESPACE, Splitter


class Nnlm(LeftToRight):
    """A feed-forward language model; its table is the word vectors.

    >>> words = Vocabulary(["<s>", "</s>", "<unk>", "a"], unknown="<unk>", begin="<s>", end="</s>")
    >>> model = Nnlm(NnlmConfig(size=4, dim=3, hidden_size=5, order=3), vocabulary=words)
    >>> model.embed([["a", "b"]])[0].shape, model.log_probs([["a", "b"]])[0].forward.shape
    ((1, 2, 3), (3,))
    """

    kind = "nnlm"
    layers = 1
    config_type = NnlmConfig
    config: NnlmConfig

    def __init__(self, config: NnlmConfig, *, vocabulary: Vocabulary, splitter: Splitter = WHITESPACE) -> None:
        super().__init__(config, vocabulary=vocabulary, splitter=splitter)
        self.table = nn.Embedding(config.size, config.dim)
        self.hidden = nn.Linear(config.context, config.hidden_size)
        self.output = FullSoftmax(config.size, config.hidden_size + (config.context if config.direct_connections else 0))
        self.dropout = 0.0
        """On the words' vectors and on the tanh layer, in training only."""

    def layer_groups(self) -> dict[str, nn.Module]:
        return {"table": self.table, "hidden": self.hidden, "output": self.output}

    def forward(self, batch: Batch) -> Layers:
        vectors: Tensor = self.table(batch.inputs)  # (batch, words, dim)
        return Layers(states=vectors.masked_fill(~batch.mask[..., None], 0.0)[None], mask=batch.mask)

    def top_states(self, rows: Tensor) -> Tensor:
        before = self.config.order - 2  # begin tokens besides the one that is there
        contexts = F.pad(rows, (before, 0), value=self.first).unfold(1, before + 1, 1)  # (batch, positions, order - 1)
        return self.read(contexts.flatten(0, 1)).unflatten(0, rows.shape)

    def read(self, contexts: Tensor) -> Tensor:
        """Rows of the words before, the nearest last, (n, order - 1) -> what the output layer reads, (n, output.dim)."""
        vectors = F.dropout(self.table(contexts).flatten(1), self.dropout, self.training)
        hidden = F.dropout(torch.tanh(self.hidden(vectors)), self.dropout, self.training)
        return torch.cat([hidden, vectors.to(hidden.dtype)], dim=1) if self.config.direct_connections else hidden

    def info(self) -> dict[str, Any]:
        config = self.config
        return super().info() | {"order": config.order, "hidden": config.hidden_size, "direct": config.direct_connections}
