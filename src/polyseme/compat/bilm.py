"""bilm-tf's calls without TensorFlow: what was built as a graph and run in a session is computed at once.

`model(ids)` gives arrays for an array of ids, and tensors for a tensor. The state goes on from call to call, as it did from run
to run; `model.reset_state()` does what initialising the variables did. On padding all layers are zeros; with
`padding_vectors=True` layer 0 has the vector of a word without characters there, as in the original.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import h5py
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.base.errors import UsageError
from polyseme.base.files import atomic
from polyseme.compat.bilm_batches import Batcher, TokenBatcher, vector_of_padding
from polyseme.compat.old_inputs import id_tensor
from polyseme.compat.weights import load_elmo, local_file
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.id_batch import batch_of_ids
from polyseme.formats import hdf5
from polyseme.nn.mix import Mix
from polyseme.text.vocabulary import Vocabulary

__all__ = [
    "Batcher",
    "BidirectionalLanguageModel",
    "TokenBatcher",
    "dump_bilm_embeddings",
    "dump_token_embeddings",
    "weight_layers",
]
Numbers = TypeVar("Numbers", np.ndarray, Tensor)
_CHUNK = 4096  # words whose vectors are computed together


class BidirectionalLanguageModel(nn.Module):
    """All layers of ELMo from ids; `weight_layers` keeps its trainable weights here, by name (`mixes`)."""

    def __init__(
        self,
        options_file: str | Path,
        weight_file: str | Path,
        use_character_inputs: bool = True,
        embedding_weight_file: str | Path | None = None,
        max_batch_size: int = 128,
        *,
        padding_vectors: bool = False,
    ) -> None:
        super().__init__()
        if not use_character_inputs and embedding_weight_file is None:
            raise UsageError("use_character_inputs=False needs embedding_weight_file, the vectors of the words")
        table = None if use_character_inputs else Path(local_file(embedding_weight_file))  # type: ignore[arg-type]
        self._model = _load(options_file, weight_file, table).requires_grad_(False)
        self._padding_vectors, self.mixes = padding_vectors, nn.ModuleDict()  # max_batch_size: any size fits here

    def reset_state(self) -> None:
        """Forget what was read so far."""
        self._model.reset_state()

    def forward(self, ids: Numbers) -> dict[str, Any]:
        """Return `lm_embeddings` (n, layers, words, dim), `mask` (n, words), `lengths` (n,) and `token_embeddings`."""
        batch = batch_of_ids(self._model, id_tensor(ids))
        with torch.no_grad():
            layers = self._model(batch, start="carry")
            ends, rows = batch.lengths + 1, torch.arange(len(batch.lengths), device=self._model.device)
            tokens = F.pad(layers.states[0], (0, 0, 1, 1))
            tokens[:, 0], tokens[rows, ends] = layers.ends[0].unbind(1)
            states = layers.states.transpose(0, 1)
            if self._padding_vectors and self._model.speller is not None:
                states[:, 0][~batch.mask] = vector_of_padding(self._model)
        tokens = tokens[..., : self._model.config.dim]
        found = {"lm_embeddings": states, "lengths": batch.lengths, "mask": batch.mask, "token_embeddings": tokens}
        arrays = found if isinstance(ids, Tensor) else {name: value.cpu().numpy() for name, value in found.items()}
        return {**arrays, "mixes": self.mixes}


def weight_layers(
    name: str,
    bilm_ops: Mapping[str, Any],
    l2_coef: float | None = None,
    use_top_only: bool = False,
    do_layer_norm: bool = False,
) -> dict[str, Any]:
    """Mix the layers by trainable weights; calls with one name share them.

    Returns `weighted_op` (n, words, dim) and `regularization_op`: arrays, or for tensors tensors with gradients.
    """
    if not isinstance(name, str) or not isinstance(bilm_ops, Mapping) or "mixes" not in bilm_ops:
        raise UsageError("expected a name and the result of a BidirectionalLanguageModel: weight_layers('input', bilm(ids))")
    given, mixes = bilm_ops["lm_embeddings"], bilm_ops["mixes"]
    layers, mask = torch.as_tensor(given).transpose(0, 1), torch.as_tensor(bilm_ops["mask"])
    if name not in mixes:
        mixes[name] = Mix(len(layers)).to(layers.device)
    mix = mixes[name]
    mix.norm, mix.l2 = "bilm" if do_layer_norm else None, l2_coef or 0.0
    with torch.set_grad_enabled(isinstance(given, Tensor) and torch.is_grad_enabled()):
        mixed = mix.gamma * layers[-1] if use_top_only else mix(layers, mask if do_layer_norm else torch.ones_like(mask))
        penalty = mix.penalty() * (not use_top_only)
    found = {"weighted_op": mixed, "regularization_op": penalty}
    return found if isinstance(given, Tensor) else {key: value.numpy() for key, value in found.items()}


def dump_token_embeddings(
    vocab_file: str | Path, options_file: str | Path, weight_file: str | Path, outfile: str | Path
) -> None:
    """Write the vectors of all words of a vocabulary without context: the `embedding_weight_file` of a model of word ids."""
    model, words = _load(options_file, weight_file), Vocabulary.read(vocab_file).words
    with torch.no_grad():
        chunks = [model.word_inputs(words[begin : begin + _CHUNK]) for begin in range(0, len(words), _CHUNK)]
        hdf5.write(Path(outfile), {"embedding": torch.cat([model.tokens(chunk).cpu() for chunk in chunks])})


def dump_bilm_embeddings(
    vocab_file: str | Path, dataset_file: str | Path, options_file: str | Path, weight_file: str | Path, outfile: str | Path
) -> None:
    """Embed the lines of a file, split at white space, one by one: dataset "0", "1", ... (layers, words, dim)."""
    model = BidirectionalLanguageModel(options_file, weight_file)
    batcher = Batcher(vocab_file, model._model.speller.max_length)  # type: ignore[union-attr]
    if not Path(dataset_file).is_file():
        raise UsageError(f"{dataset_file}: no such file; expected a text with one sentence per line")
    with Path(dataset_file).open(encoding="utf-8") as lines, atomic(outfile) as part, h5py.File(part, "w") as file:
        for number, line in enumerate(lines):
            file[str(number)] = model(batcher.batch_sentences([line.split()]))["lm_embeddings"][0]


def _load(options: str | Path, weights: str | Path, table: Path | None = None) -> Elmo:
    """Load a model; with a table of word vectors, whose words need no names here, a model of word ids."""
    if table is None:
        return load_elmo(weights, options)
    rows = hdf5.shapes(table).get("embedding", (0,))[0]
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "vocab.txt"
        names.write_text("<S>\n</S>\n" + "".join(f"{row}\n" for row in range(2, rows)), encoding="utf-8")
        return load_elmo(weights, options, token_embeddings=table, vocabulary=names)
