"""The language model inside AllenNLP's `Elmo`, and the names that its weights have in files of AllenNLP."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.compat.weights import load_elmo
from polyseme.encoders.batch import Batch
from polyseme.encoders.id_batch import add_sentence_ends, batch_of_ids
from polyseme.formats import weight_names
from polyseme.formats.weight_layout import check_shapes, to_polyseme

_TOKENS, _LSTM = "_token_embedder.", "_elmo_lstm."
_CACHED = ("_word_embedding.", "_bos_embedding", "_eos_embedding")  # computed from the characters here


class ElmoBiLm(nn.Module):
    """All layers of an ELMo, with the sentence ends. `load_state_dict` reads weights that AllenNLP saved, too."""

    def __init__(
        self,
        options_file: Any,
        weight_file: Any,
        requires_grad: bool = False,
        vocab_to_cache: list[str] | None = None,
        *,
        stateful: bool = True,
    ) -> None:
        super().__init__()
        self.model = load_elmo(weight_file, options_file).requires_grad_(requires_grad)
        self.num_layers, self.words, self.stateful = self.model.layers, vocab_to_cache, stateful

    def get_output_dim(self) -> int:
        return self.model.dim

    def forward(self, inputs: Tensor, word_inputs: Tensor | None = None) -> dict[str, Any]:
        """Return `activations`, a list of (batch, words + 2, dim), and their `mask`."""
        batch = self._listed(word_inputs) or batch_of_ids(self.model, add_sentence_ends(self.model, inputs))
        layers = self.model(batch, start="carry" if self.stateful else None)
        steps = (inputs if word_inputs is None else word_inputs).shape[1] + 2
        full = F.pad(layers.states, (0, 0, 1, steps - 1 - layers.states.shape[2]))
        ends, rows = batch.lengths + 1, torch.arange(len(batch.lengths), device=full.device)
        full[:, :, 0], full[:, rows, ends] = layers.ends.unbind(2)
        return {"activations": list(full), "mask": torch.arange(steps, device=full.device) <= ends[:, None]}

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *others: Any) -> None:
        _rename(self, state_dict, prefix)
        super()._load_from_state_dict(state_dict, prefix, *others)

    def _listed(self, ids: Tensor | None) -> Batch | None:
        """The batch of words by their places in `vocab_to_cache`, where 0 is padding; None: a word is not listed."""
        if ids is None or self.words is None or not ids.numel() or int(ids.max()) >= len(self.words) or int(ids.min()) < 0:
            return None
        return self.model.prepare([[self.words[place] for place in row if place] for row in ids.tolist()])


def remove_sentence_boundaries(tensor: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Take the sentence ends off (batch, words + 2, dim) and off its mask; what was the end of a short sentence is zero."""
    inside = mask[:, 2:]
    return tensor[:, 1:-1].masked_fill(~inside.bool()[..., None], 0.0), inside


def _rename(module: ElmoBiLm, state: dict[str, Any], prefix: str) -> None:
    """Replace AllenNLP's names and layouts in a state dict by ours, before PyTorch looks for ours."""
    theirs = {name.removeprefix(prefix): name for name in state if name.startswith((prefix + _TOKENS, prefix + _LSTM))}
    for name in [name for name in state if name.startswith(tuple(prefix + each for each in _CACHED))]:
        del state[name]
    if not theirs:
        return
    config = module.model.config
    mappings = weight_names.torch_words(weight_names.ALLENNLP, config, _TOKENS) + weight_names.torch_lstm(config, _LSTM)
    check_shapes(mappings, {name: tuple(state[full].shape) for name, full in theirs.items()}, "the state dict", "tensor")
    tensors = {name: state.pop(full) for name, full in theirs.items()}
    state.update({f"{prefix}model.{name}": value for name, value in to_polyseme(mappings, tensors.__getitem__).items()})
