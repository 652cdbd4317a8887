"""The plain training loop that others are measured against: characters of every token, one time step at a time."""

from __future__ import annotations

import torch

from polyseme.nn.lstm_lanes import plain_layer, read_lanes
from polyseme.pretraining.elmo_lanes import LaneObjective
from polyseme.text.lanes import LaneBatch
from polyseme.training.base import Loss


class PlainObjective(LaneObjective):
    """The same loss as `LaneObjective`, computed as the published systems did."""

    def loss(self, batch: LaneBatch) -> Loss:  # type: ignore[override]
        """No word is looked at once for all its occurrences, no padding is left out, no step is batched with another."""
        model, tables = self.model, self._words
        distinct, index = tables.distinct(batch.inputs)
        assert distinct.characters is not None and model.tokens.characters is not None
        assert model.tokens.projection is not None and model.output is not None
        network = model.tokens.characters
        ids = distinct.characters[tables.move(index).flatten()]  # the characters of every token, both directions
        x = network.convolve(ids) + torch.cat([filters.bias for filters in network.filters])
        x = torch.relu(x)
        for highway in network.highways:
            x = highway(x)
        vectors = model.tokens.projection(x).view(*index.shape, -1)
        start = model.start_state("learned", 1)
        carried = self._carried if self._carried is not None else start.expand(batch.begins.shape[1])
        top, self._carried = read_lanes(model.lstm, vectors, tables.move(batch.begins), start, carried, layer=plain_layer)
        return self.mean_loss(top.flatten(1, 2), tables.outputs(batch.targets).flatten(1), batch.words)
