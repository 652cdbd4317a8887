"""From a corpus to the language model of ULMFiT: an AWD-LSTM (Merity et al. 2017).

As published: text in its own order, batches of random length, state carried from batch to batch, dropout everywhere, and
penalties on the activations. Published is gradient descent with averaged weights for hundreds of epochs (`--optimizer asgd`);
the default is AdamW, whose rate falls to zero, for fewer. The published rescaling of the rate by a batch's length is left out:
the loss is a mean, and Adam's steps hardly depend on its size.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from polyseme.base.run import Run
from polyseme.encoders.lr_multipliers import lr_multipliers
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.nn.awd_lstm import AwdLstmOutput, AwdLstmState, activation_loss
from polyseme.nn.awd_lstm_graph import GraphedAwdLstm
from polyseme.nn.cuda_graph import recording
from polyseme.pretraining.job import shuffling
from polyseme.pretraining.left_to_right import LeftToRightJob, LeftToRightObjective
from polyseme.pretraining.ulmfit_config import UlmfitPretraining, UlmfitTraining
from polyseme.pretraining.vocabulary_index import TypeIds
from polyseme.text.batching.bptt import BpttBatch, BpttBatches, TokenStream
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.training.base import Loss, LrMultiplier

VALIDATION_ROWS = 10  # per batch, as published


@dataclass(frozen=True)
class BpttTensors:
    """A batch on the model's device."""

    ids: Tensor
    """(rows, bptt + 1): all but the last are read, all but the first predicted."""
    fresh: bool
    """Whether nothing was read before."""
    words: int


class UlmfitObjective(LeftToRightObjective):
    """The language model over BPTT windows of the text; `layer_decay` divides the rate of each layer below the top one."""

    model: Ulmfit

    def __init__(self, model: Ulmfit, ids: TypeIds, config: UlmfitTraining, *, layer_decay: float = 1.0) -> None:
        super().__init__(model, ids, negatives=config.negatives)
        self._config, self._layer_decay = config, layer_decay
        model.set_dropout(config.scaled_dropout)
        self._carried: AwdLstmState | None = None
        self._lstm = GraphedAwdLstm(model.lstm)

    def prepare(self, batch: BpttBatch) -> BpttTensors:
        """Turn type ids into tensors on the model's device."""
        with recording:  # this may run in a thread of its own
            return BpttTensors(self.move(self.word_ids(batch.types, ends=batch.ends)), batch.fresh, batch.words)

    def loss(self, batch: BpttTensors) -> Loss:
        """Return the mean loss of a prediction plus the penalties on the activations."""
        output, config = self._read(batch), self._config
        loss = self.mean_loss(output.top.flatten(0, 1), batch.ids[:, 1:].flatten(), batch.words)
        penalty = activation_loss(output, size=config.activation_regularization, change=config.temporal_regularization)
        loss.components = {"prediction": loss.total.detach(), "activation": penalty.detach()}
        loss.total = loss.total + penalty
        return loss

    def predictions(self, batch: BpttBatch) -> tuple[Tensor, Tensor]:
        tensors = self.prepare(batch)
        return self._read(tensors).top.flatten(0, 1), tensors.ids[:, 1:].flatten()

    def _read(self, batch: BpttTensors) -> AwdLstmOutput:
        """Continue from the batch before; the loop restores the state that evaluation overwrites."""
        state = None if batch.fresh else self._carried
        output = self._lstm(self.model.look_up(batch.ids[:, :-1]), state or self.model.lstm.zero_state(len(batch.ids)))
        self._carried = [(hidden.detach(), cell.detach()) for hidden, cell in output.end]
        return output

    def lr_multipliers(self) -> list[LrMultiplier]:
        return [] if self._layer_decay == 1.0 else lr_multipliers(self.model, "model.", decay=self._layer_decay)

    def carried_state(self) -> dict[str, Tensor]:
        """Return the state of each row."""
        tensors: dict[str, Tensor] = {}
        for level, (hidden, cell) in enumerate(self._carried or []):
            tensors |= {f"hidden{level}": hidden, f"cell{level}": cell}
        return tensors

    def restore_carried_state(self, carried: Mapping[str, Tensor]) -> None:
        """Restore the state of each row."""
        device, levels = self.model.device, range(len(carried) // 2)
        state = [(carried[f"hidden{n}"].to(device).clone(), carried[f"cell{n}"].to(device).clone()) for n in levels]
        self._carried = state or None


class UlmfitJob(LeftToRightJob):
    """The training of a new model."""

    method: UlmfitPretraining

    def new_model(self, vocabulary: Vocabulary) -> Ulmfit:
        config = self.method.encoder_config(len(vocabulary))
        return Ulmfit(config, vocabulary=vocabulary, splitter=self.corpus.splitter)

    def training_data(self, model: Ulmfit, shards: Shards, train: range) -> tuple[UlmfitObjective, BpttBatches]:
        backward = self.method.backward
        batches = bptt_batches(self.method, shards, train, self.run, backward=backward)
        return UlmfitObjective(model, self.ids, self.method), batches

    def validation_data(self, shards: Shards, held_out: range) -> list[BpttBatch]:
        return validation_data(self.method, shards, held_out, backward=self.method.backward)


def bptt_batches(method: UlmfitTraining, shards: Shards, sentences: range, run: Run, *, backward: bool = False) -> BpttBatches:
    """Return the batches of some sentences; the method has no open settings."""
    assert method.batch_size is not None
    return BpttBatches(shards, sentences, batch_size=method.batch_size, bptt=method.bptt, backward=backward, **shuffling(run))


def validation_data(method: UlmfitTraining, shards: Shards, held_out: range, *, backward: bool = False) -> list[BpttBatch]:
    """Return the held-out sentences as batches."""
    return list(TokenStream(shards, held_out, backward=backward).in_order(VALIDATION_ROWS, method.bptt))
