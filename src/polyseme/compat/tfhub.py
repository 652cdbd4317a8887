"""TensorFlow Hub's `google/elmo`, versions 2 and 3, without TensorFlow: the signatures `default` and `tokens`, on tensors.

    elmo = hub.Module("elmo_3/", trainable=True)                            # as in TensorFlow 1, without a session
    elmo(["the cat is on the mat"], signature="default", as_dict=True)["elmo"]
    hub.load("elmo_3/").signatures["default"](["the cat is on the mat"])    # as in TensorFlow 2
    hub.KerasLayer("elmo_3/")(["the cat is on the mat"])                    # outside a network of Keras

The model is the unpacked SavedModel or any other ELMo. Sentences do not depend on each other. Gradients are for the four
weights of the mix, with `trainable=True`, after `module.train()`.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.compat.weights import load_elmo
from polyseme.formats import tf_hub
from polyseme.nn.mix import Mix

_INPUTS = {"default": {"text"}, "tokens": {"tokens", "sequence_len"}}


class Module(nn.Module):
    """An ELMo with the outputs of the TF-Hub module."""

    def __init__(self, spec: str | Path, trainable: bool = False, name: str = "module", tags: object = None) -> None:
        super().__init__()
        path = _local_model(str(spec))
        self._model = load_elmo(path).requires_grad_(False)
        weights, scale = tf_hub.read_mix(path) or (None, 1.0)
        self.mix = Mix(self._model.layers, weights=weights, gamma=scale, learn=trainable)
        self.signatures: Mapping[str, Callable[..., dict[str, Tensor]]] = {"default": self._default, "tokens": self._tokens}
        self.eval()

    def forward(self, inputs: Any, signature: str = "default", as_dict: bool = False) -> Any:
        """Embed strings (`default`), or {"tokens": ..., "sequence_len": ...} (`tokens`).

        Gives a dictionary with `as_dict`, else its entry "default", one vector per sentence.
        """
        if signature not in self.signatures:
            raise UsageError(f"signature is {signature!r}; allowed: {', '.join(self.signatures)}")
        call, names = self.signatures[signature], _INPUTS[signature]
        named = isinstance(inputs, Mapping)
        if set(inputs) != names if named else signature == "tokens":
            given = ", ".join(inputs) if named else type(inputs).__name__
            raise UsageError(f"the signature {signature} takes a dictionary of {' and '.join(sorted(names))}; got {given}")
        found = call(**inputs) if named else call(inputs)
        return found if as_dict else found["default"]

    def _default(self, text: Sequence[str] | np.ndarray) -> dict[str, Tensor]:
        """Strings, split at blanks."""
        lines = [_string(line) for line in np.asarray(text, dtype=object).reshape(-1)]
        return self._embed([[word for word in line.split(" ") if word] for line in lines])

    def _tokens(self, tokens: Any, sequence_len: Any) -> dict[str, Tensor]:
        """Words (sentences, longest), of which the first `sequence_len` (sentences,) of each row count."""
        lengths = [int(length) for length in np.asarray(sequence_len).reshape(-1)]
        rows = [[_string(word) for word in row] for row in tokens]
        if len(rows) != len(lengths) or any(length > len(row) for row, length in zip(rows, lengths, strict=False)):
            raise UsageError(
                f"sequence_len has {lengths} for {len(rows)} sentences of up to {max(map(len, rows), default=0)} words"
            )
        return self._embed([row[:length] for row, length in zip(rows, lengths, strict=True)], max(map(len, rows), default=0))

    def _embed(self, sentences: list[list[str]], longest: int = 0) -> dict[str, Tensor]:
        with torch.no_grad():
            layers = self._model(self._model.prepare(sentences), start="zero")
        missing = max(longest - layers.mask.shape[1], 0)
        states = nn.functional.pad(layers.states, (0, 0, 0, missing))
        mask = nn.functional.pad(layers.mask, (0, missing))
        with torch.set_grad_enabled(self.training and torch.is_grad_enabled()):
            mixed = self.mix(states, mask)
            mean = mixed.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        found = {"word_emb": states[0, :, :, : self._model.config.dim], "elmo": mixed, "default": mean}
        return found | {f"lstm_outputs{level}": states[level] for level in range(1, len(states))}


class KerasLayer(Module):
    """As `tensorflow_hub.KerasLayer`: calls give one output, or all with `signature_outputs_as_dict`."""

    def __init__(
        self,
        handle: str | Path,
        trainable: bool = False,
        signature: str = "default",
        signature_outputs_as_dict: bool = False,
        output_key: str | None = None,
        **keras: object,
    ) -> None:
        super().__init__(handle, trainable)
        self._signature, self._all = signature, signature_outputs_as_dict
        self._output = output_key or "default"  # `keras`: settings of a layer in a network, such as dtype and input_shape

    def forward(self, inputs: Any, signature: str | None = None, as_dict: bool = False) -> Any:
        """Embed strings, or words and lengths, by the signature of the layer."""
        found = super().forward(inputs, signature or self._signature, as_dict=True)
        if not (self._all or as_dict) and self._output not in found:
            raise UsageError(f"output_key is {self._output!r}; allowed: {', '.join(found)}")
        return found if self._all or as_dict else found[self._output]


def load(handle: str | Path, tags: object = None, options: object = None) -> Module:
    """As `tensorflow_hub.load`: call `.signatures["default"]` of what it gives."""
    return Module(handle)


def _string(value: Any) -> str:
    if not isinstance(value, str | bytes):
        raise UsageError(f"expected strings, got {value!r}")
    return value.decode("utf-8") if isinstance(value, bytes) else str(value)


def _local_model(spec: str) -> str:
    """A path, and for the address of a module its folder in TensorFlow Hub's cache."""
    if not spec.startswith(("http://", "https://")):
        return spec
    cache = Path(os.environ.get("TFHUB_CACHE_DIR", Path(tempfile.gettempdir()) / "tfhub_modules"))
    for form in ("?tf-hub-format=compressed", ""):
        folder = cache / hashlib.sha1((spec.rstrip("/") + form).encode()).hexdigest()
        if folder.is_dir():
            return str(folder)
    raise PolysemeError(
        f"{spec}: is not in TensorFlow Hub's cache ({cache}): download and unpack it, or give the folder of any other ELMo"
    )
