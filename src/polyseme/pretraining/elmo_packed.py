"""The objective of an ELMo over packed rows: batches of one shape, with the LSTM state carried from each to the next.

This is the fast way to train, and that of the original: gradients end at the edge of a batch, the state does not. A sentence
starts from the model's own start state, learned or zeros, as when the model is used, or from the state that the sentence
before left (a stream, as in bilm-tf).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from polyseme.encoders.elmo import Elmo, WordInputs
from polyseme.nn.cuda_graph import recording
from polyseme.nn.lstm.layers import LstmState
from polyseme.nn.lstm.packed_rows_graph import GraphedPackedRows
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.text.batching.packed import PackedBatch
from polyseme.text.shards.shards import Shards
from polyseme.training.base import Loss


@dataclass(frozen=True)
class PackedTensors:
    """A batch of packed rows on the model's device."""

    distinct: WordInputs
    index: Tensor
    """(2, bptt, rows): which of the distinct words is read."""
    targets: Tensor
    """(2, bptt, rows): output ids to predict."""
    begins: Tensor | None
    """(bptt, rows): where the state is reset to the start state; None: nowhere."""
    words: int


class PackedElmoObjective(ElmoObjective):
    """The bidirectional language model over packed rows; evaluation reads sentences one by one."""

    def __init__(self, model: Elmo, shards: Shards, *, stream: bool = False, **options: Any) -> None:
        super().__init__(model, shards, **options)
        self._stream = stream
        self._carried: LstmState | None = None
        self._read = GraphedPackedRows(model.lstm)

    def prepare(self, batch: PackedBatch) -> PackedTensors:  # type: ignore[override]
        """Turn type ids into tensors on the model's device."""
        tables = self._words
        with recording:  # this may run in a thread of its own
            words, index = tables.distinct(batch.inputs)
            begins = None if self._stream else tables.move(batch.begins)
            return PackedTensors(words, tables.move(index), tables.outputs(batch.targets), begins, batch.words)

    def loss(self, batch: PackedTensors) -> Loss:  # type: ignore[override]
        """Return the mean loss of a prediction, over both directions."""
        table = self.model.tokens(batch.distinct)
        start = self.model.start_state("zero" if self._stream else None, 1)
        carried = self._carried if self._carried is not None else start.expand(batch.index.shape[2])
        # words are gathered in full precision: their gradients are summed there
        vectors = table.float().index_select(0, batch.index.flatten()).to(table.dtype).view(*batch.index.shape, -1)
        top, self._carried = self._read(vectors, batch.begins, start, carried)
        return self.mean_loss(top.flatten(1, 2), batch.targets.flatten(1), batch.words)

    def carried_state(self) -> dict[str, Tensor]:
        """Return the state of each row."""
        if self._carried is None:
            return {}
        return {"hidden": self._carried.hidden.detach(), "cell": self._carried.cell.detach()}

    def restore_carried_state(self, carried: Mapping[str, Tensor]) -> None:
        """Restore the state of each row."""
        self._carried = None
        if carried:
            device = self.model.device
            self._carried = LstmState(carried["hidden"].to(device).clone(), carried["cell"].to(device).clone())
