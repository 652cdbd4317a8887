"""Teach an ELMo its language from lanes: batches of one shape, the LSTMs' state carried from each to the next.

The fast way to train, and the original's: back-propagation is cut at the edge of a batch, the state is not. Either a sentence
begins from the model's own start state, learned or zeros, as it will when the model is used, or from whatever
the sentence before left (a stream, as bilm-tf trained).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from polyseme.encoders.elmo import Elmo, WordInputs
from polyseme.nn.lstm.layers import LstmState
from polyseme.nn.lstm.packed_rows_graph import GraphedPackedRows, recording
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.text.batching.packed import PackedBatch
from polyseme.text.shards.shards import Shards
from polyseme.training.base import Loss


@dataclass(frozen=True)
class PackedTensors:
    """A batch of lanes on the model's device."""

    distinct: WordInputs
    index: Tensor
    """(2, steps, lanes): which of the distinct words is read."""
    targets: Tensor
    """(2, steps, lanes): output ids to predict."""
    begins: Tensor | None
    """(steps, lanes): where the state is put back to the start; None: nowhere."""
    words: int


class PackedElmoObjective(ElmoObjective):
    """The bidirectional language model over lanes; evaluation is by whole sentences, as ever."""

    def __init__(self, model: Elmo, shards: Shards, *, stream: bool = False, **options: Any) -> None:
        super().__init__(model, shards, **options)
        self._stream = stream
        self._carried: LstmState | None = None
        self._read = GraphedPackedRows(model.lstm)

    def prepare(self, batch: PackedBatch) -> PackedTensors:  # type: ignore[override]
        """Type ids -> tensors on the model's device."""
        tables = self._words
        with recording:  # this may run in a thread of its own
            words, index = tables.distinct(batch.inputs)
            begins = None if self._stream else tables.move(batch.begins)
            return PackedTensors(words, tables.move(index), tables.outputs(batch.targets), begins, batch.words)

    def loss(self, batch: PackedTensors) -> Loss:  # type: ignore[override]
        """The mean loss a prediction, over both directions."""
        table = self.model.tokens(batch.distinct)
        start = self.model.start_state("zero" if self._stream else None, 1)
        carried = self._carried if self._carried is not None else start.expand(batch.index.shape[2])
        # words are gathered in full precision: their gradients are summed there
        vectors = table.float().index_select(0, batch.index.flatten()).to(table.dtype).view(*batch.index.shape, -1)
        top, self._carried = self._read(vectors, batch.begins, start, carried)
        return self.mean_loss(top.flatten(1, 2), batch.targets.flatten(1), batch.words)

    def carried_state(self) -> dict[str, Tensor]:
        """The state of every lane."""
        if self._carried is None:
            return {}
        return {"hidden": self._carried.hidden.detach(), "cell": self._carried.cell.detach()}

    def restore_carried_state(self, carried: Mapping[str, Tensor]) -> None:
        """Put it back."""
        self._carried = None
        if carried:
            device = self.model.device
            self._carried = LstmState(carried["hidden"].to(device).clone(), carried["cell"].to(device).clone())
