"""TagLM (Peters et al. 2017): the top layers of a forward and a backward language model, concatenated.

The step before ELMo: a tagger takes that one vector per word between its two layers, where ELMo later mixed all layers. The
models are those of `Elmo`, trained in the same way: they share the character network and the output layer, which in the paper
were separate.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyseme.encoders.batch import Batch, Layers
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import Start
from polyseme.encoders.layer_choice import LayerSelection, to_arrays


class TagLm(Elmo):
    """Two language models whose top layers are a word's one vector; `polyseme.load` reads one."""

    kind = "taglm"
    default_position = "between"
    has_static_vectors = False

    @property
    def layers(self) -> int:
        return 1

    def forward(self, batch: Batch, *, start: Start | None = None) -> Layers:
        """Run a prepared batch; `start` as in `embed`, except "carry"."""
        output = super().forward(batch, start=start)
        assert output.ends is not None
        return Layers(states=output.states[-1:], mask=output.mask, ends=output.ends[-1:])

    def _embed_batch(
        self, texts: list[list[str]], selection: LayerSelection, start: str | None, batch_words: int
    ) -> Callable[[], list[np.ndarray]]:
        states, _ = self.read(texts, start=start, chunk=batch_words)  # type: ignore[arg-type]
        return to_arrays(selection.stack(states[-1:]), [slice(1, len(text) + 1) for text in texts])
