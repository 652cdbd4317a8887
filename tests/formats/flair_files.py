"""Writes the files of Flair's language models with torch, as Flair does, without Flair; and reads them in float64 NumPy."""

from __future__ import annotations

import sys
import types
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from tests.oracle.parts import Cell, Gate, float64

CHARACTERS = ["<unk>", *"abcdefghijklmnoprstuvwyTZü ", "\n", "银"]
HIDDEN, DIM = 6, 4


class Dictionary:
    """What Flair pickles with a model, under the name `flair.data.Dictionary`."""

    def __init__(self, items: list[str]) -> None:
        self.idx2item = [item.encode() for item in items]
        self.item2idx = {item: number for number, item in enumerate(self.idx2item)}
        self.add_unk, self.multi_label, self.span_labels = True, False, False
        self.item2idx_not_encoded = defaultdict(int, {item: number for number, item in enumerate(items)})  # once it was used


Dictionary.__module__ = "flair.data"


@contextmanager
def pretended() -> Iterator[None]:
    """While a file is written, there is a module `flair.data`."""
    names = {"flair": types.ModuleType("flair"), "flair.data": types.ModuleType("flair.data")}
    names["flair.data"].Dictionary = Dictionary  # type: ignore[attr-defined]
    before = {name: sys.modules.get(name) for name in names}
    sys.modules |= names
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def state(*, forward: bool = True, layers: int = 1, nout: int | None = None, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """The content of a file, of random weights."""
    torch.manual_seed(seed)
    network = nn.Module()
    network.encoder, network.rnn = nn.Embedding(len(CHARACTERS), DIM), nn.LSTM(DIM, HIDDEN, layers)
    if nout is not None:
        network.proj = nn.Linear(HIDDEN, nout)
    network.decoder = nn.Linear(nout or HIDDEN, len(CHARACTERS))
    return {
        "state_dict": network.state_dict(),
        "dictionary": Dictionary(CHARACTERS),
        "is_forward_lm": forward,
        "hidden_size": HIDDEN,
        "nlayers": layers,
        "embedding_size": DIM,
        "nout": nout,
        "document_delimiter": "\n",
        "dropout": 0.1,
        **changes,
    }


def write(path: Path, content: Any, *, old: bool = False, protocol: int = 4) -> Path:
    with pretended():
        torch.save(content, path, pickle_protocol=protocol, _use_new_zipfile_serialization=not old)
    return path


def vectors(content: dict[str, Any], words: list[str]) -> np.ndarray:
    """The vector of each word, (words, dim), by the definition: letter after letter, in float64."""
    tensors = {name: float64(value) for name, value in content["state_dict"].items()}
    text, delimiter = " ".join(words), content["document_delimiter"]
    string = delimiter + (text if content["is_forward_lm"] else text[::-1]) + " "
    states = np.array([tensors["encoder.weight"][CHARACTERS.index(letter) if letter in CHARACTERS else 0] for letter in string])
    for layer in range(content["nlayers"]):
        parts = [np.split(tensors[f"rnn.{name}_l{layer}"], 4) for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
        gates = {gate: Gate(i.T, h.T, a + b) for gate, i, h, a, b in zip("ifgo", *parts, strict=True)}
        cell = Cell(gates, None)
        states, _ = cell.run(states, cell.start())
    if content["nout"] is not None:
        states = states @ tensors["proj.weight"].T + tensors["proj.bias"]
    found, begin = [], 0
    for word in words:
        end = begin + len(word)
        found.append(states[len(delimiter) + (end if content["is_forward_lm"] else len(text) - begin)])
        begin = end + 1
    return np.array(found)
