"""TagLM: what two language models know of a word's sentence, for the middle of a tagger.

Peters et al. 2017, "Semi-supervised sequence tagging with bidirectional language models", the step before ELMo. A forward and a
backward language model are read at their top layers alone, side by side; a tagger takes that one vector a word between its two
layers. ELMo then mixed all layers. The models are those of `Elmo`, trained in the same way: they share the network over
characters and the output layer, which in the paper were each one's own.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from polyseme.encoders.batch import Batch, Layers
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import Start
from polyseme.encoders.layer_choice import LayerSelection, to_arrays


class TagLm(Elmo):
    """Two language models, of which a word has one vector: the top layers of both; see `polyseme.load` for how to get one."""

    kind = "taglm"
    default_position = "between"
    has_static_vectors = False

    @property
    def layers(self) -> int:
        return 1

    def forward(self, batch: Batch, *, start: Start | None = None) -> Layers:
        """Run a prepared batch; `start` as in `embed`, except "carry"."""
        found = super().forward(batch, start=start)
        assert found.ends is not None
        return Layers(states=found.states[-1:], mask=found.mask, ends=found.ends[-1:])

    def _embed_batch(
        self, texts: list[list[str]], selection: LayerSelection, start: str | None, batch_words: int
    ) -> Callable[[], list[np.ndarray]]:
        states, _ = self.read(texts, start=start, chunk=batch_words)  # type: ignore[arg-type]
        return to_arrays(selection.stack(states[-1:]), [slice(1, len(text) + 1) for text in texts])
