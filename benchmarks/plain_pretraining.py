"""The plain training loop that others are measured against: characters of every token, one time step at a time."""

from __future__ import annotations

import torch

from polyseme.nn.lstm.packed_rows import plain_layer, run_packed_rows
from polyseme.pretraining.elmo_packed import PackedElmoObjective, PackedTensors
from polyseme.training.base import Loss


class PlainObjective(PackedElmoObjective):
    """The same loss as `PackedElmoObjective`, computed as the published systems did."""

    def loss(self, batch: PackedTensors) -> Loss:  # type: ignore[override]
        """No word is looked at once for all its occurrences, no padding is left out, no step is batched with another."""
        model, characters = self.model, batch.distinct.characters
        network, projection = model.tokens.characters, model.tokens.projection
        assert characters is not None and network is not None and projection is not None
        ids = characters[batch.index.flatten()]  # the characters of every token, both directions
        x = network.convolve(ids) + torch.cat([filters.bias for filters in network.filters])
        x = torch.relu(x)
        for highway in network.highways:
            x = highway(x)
        vectors = projection(x).view(*batch.index.shape, -1)
        start = model.start_state("learned", 1)
        carried = self._carried if self._carried is not None else start.expand(batch.index.shape[2])
        top, self._carried = run_packed_rows(model.lstm, vectors, batch.begins, start, carried, layer=plain_layer)
        return self.mean_loss(top.flatten(1, 2), batch.targets.flatten(1), batch.words)
