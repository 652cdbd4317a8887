"""The names of weights in published formats, with their shapes and our names.

No other file knows them. Each function returns the mappings of one module for a model of the given sizes:

- bilm-tf, also AllenNLP's weights, SeqVec and the NLPL repository: HDF5 datasets (github.com/allenai/bilm-tf). The variables of
  its checkpoints and of TF-Hub's module are renamed to these.
- AllenNLP archives and ELMoForManyLangs: PyTorch state dicts that differ only in the names of the word encoder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.formats.weight_layout import (
    CARRY_GATE,
    COLUMN,
    FILTER,
    FORGET_BIAS,
    IDENTITY,
    STACKED,
    STACKED_TRANSPOSED,
    TRANSPOSED,
    WITHOUT_PADDING_ROW,
    LayoutTransform,
    Shape,
    WeightMapping,
    lstm_kernel,
)
from polyseme.nn.config import CharactersConfig

BYTES = 261  # rows of a bilm-tf character table: 256 bytes and five special symbols
_LSTM_VARIABLE = re.compile(
    r"RNN_(?P<direction>[01])/(?P<scopes>.*/)?(?:lstm_cell|LSTMCell)/(?P<projection>projection/)?(?P<leaf>kernel|weights|bias(?:es)?)"
)
_CELL = re.compile(r"(?<![^/])(?:cell_|Cell)(\d+)/")
CNN = "tokens.characters"
PROJECTION, WORDS = "tokens.projection", "tokens.words.weight"


@dataclass(frozen=True)
class TorchNames:
    """The names of the modules of a PyTorch word encoder; `{}` is a number."""

    table: str
    convolution: str
    highway: str
    projection: str


ALLENNLP = TorchNames("_char_embedding_weights", "char_conv_{}", "_highways._layers.{}", "_projection")
MANYLANGS = TorchNames("char_emb_layer.embedding.weight", "convolutions.{}", "highways._layers.{}", "projection")
MANYLANGS_WORDS = "word_emb_layer.embedding.weight"


@dataclass(frozen=True)
class OutputNames:
    """The names of an output layer of ELMoForManyLangs; `column`: its biases are a table with one column."""

    weight: str
    bias: str
    column: bool = False


MANYLANGS_OUTPUTS = (
    OutputNames("column_emb.weight", "column_bias.weight", column=True),
    OutputNames("hidden2tag.weight", "hidden2tag.bias"),
)
"""Sampled and full softmax."""


def bilm_characters(config: ElmoConfig) -> list[WeightMapping]:
    """The character CNN of a bilm-tf file. Its *carry* gate weights the transform, as our gate does."""
    characters = config.characters
    if characters is None:
        return []
    total, dim = characters.output_size, characters.dim
    mappings = [_mapping("char_embed", (BYTES, dim), f"{CNN}.embedding", WITHOUT_PADDING_ROW)]
    for n, (width, count) in enumerate(characters.filters):
        mappings.append(_mapping(f"CNN/W_cnn_{n}", (1, width, dim, count), f"{CNN}.convolutions.{n}.weight", FILTER))
        mappings.append(_mapping(f"CNN/b_cnn_{n}", (count,), f"{CNN}.convolutions.{n}.bias"))
    for n in range(characters.highway_layers):
        base, ours = f"CNN_high_{n}/", f"{CNN}.highways.{n}"
        pair = {f"{base}W_transform": (total, total), f"{base}W_carry": (total, total)}
        mappings.append(WeightMapping(pair, (f"{ours}.weight",), STACKED_TRANSPOSED))
        mappings.append(WeightMapping({f"{base}b_transform": (total,), f"{base}b_carry": (total,)}, (f"{ours}.bias",), STACKED))
    if config.project:
        mappings.append(_mapping("CNN_proj/W_proj", (total, config.dim), f"{PROJECTION}.weight", TRANSPOSED))
        mappings.append(_mapping("CNN_proj/b_proj", (config.dim,), f"{PROJECTION}.bias"))
    return mappings


def bilm_lstm(config: ElmoConfig, *, flat: bool = False) -> list[WeightMapping]:
    """The LSTMs of a bilm-tf file; `flat`: a single layer, whose names have no cell number."""
    lstm, mappings = config.lstm, []
    for direction, level, inputs, ours in _lstm_layers(config):
        cell = "" if flat else f"MultiRNNCell/Cell{level}/"
        base = f"RNN_{int(direction == 'backward')}/RNN/{cell}LSTMCell/"
        both = (f"{ours}.input_weight", f"{ours}.recurrent_weight")
        shape = (inputs + lstm.output_size, 4 * lstm.cell_size)
        mappings.append(WeightMapping({f"{base}W_0": shape}, both, lstm_kernel(inputs)))
        mappings.append(_mapping(f"{base}B", (4 * lstm.cell_size,), f"{ours}.bias", FORGET_BIAS))
        if lstm.projection_size is not None:
            shape = (lstm.cell_size, lstm.projection_size)
            mappings.append(_mapping(f"{base}W_P_0", shape, f"{ours}.projection_weight", TRANSPOSED))
    return mappings


def from_tensorflow(name: str) -> str:
    """Return bilm-tf's name in HDF5 files for a variable of its graphs, of training or of inference; others are unchanged.

    >>> from_tensorflow("RNN_1/rnn/multi_rnn_cell/cell_0/lstm_cell/projection/kernel")
    'RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell/W_P_0'
    """
    match = _LSTM_VARIABLE.fullmatch(name)
    if match is None:
        return name
    number = _CELL.search(match["scopes"] or "")
    cell = "" if number is None else f"MultiRNNCell/Cell{number[1]}/"
    leaf = "B" if match["leaf"].startswith("bias") else "W_P_0" if match["projection"] else "W_0"
    return f"RNN_{match['direction']}/RNN/{cell}LSTMCell/{leaf}"


def bilm_words(rows: int, dim: int) -> list[WeightMapping]:
    """The word embeddings of a bilm-tf file, trained or cached: row k is line k of the vocabulary."""
    return [_mapping("embedding", (rows, dim), WORDS)]


def bilm_output(rows: int, dim: int) -> list[WeightMapping]:
    """The output layer, in the weights file or in a separate one."""
    return [_mapping("softmax/W", (rows, dim), "weight"), _mapping("softmax/b", (rows,), "bias")]


def manylangs_output(names: OutputNames, rows: int, dim: int) -> list[WeightMapping]:
    """The output layer of an ELMoForManyLangs model."""
    shape, transform = ((rows, 1), COLUMN) if names.column else ((rows,), IDENTITY)
    return [_mapping(names.weight, (rows, dim), "weight"), _mapping(names.bias, shape, "bias", transform)]


def torch_words(names: TorchNames, config: ElmoConfig, prefix: str = "") -> list[WeightMapping]:
    """The word encoder of a PyTorch state dict: characters, words or both, and the projection."""
    mappings = []
    if config.words is not None:
        mappings.append(_mapping(f"{prefix}{MANYLANGS_WORDS}", (config.words.size, config.words.dim), WORDS))
    if config.characters is not None:
        mappings += _torch_characters(names, config.characters, prefix)
    return mappings + _module(f"{prefix}{names.projection}", (config.dim, config.inputs), PROJECTION)


def _torch_characters(names: TorchNames, characters: CharactersConfig, prefix: str) -> list[WeightMapping]:
    total, dim = characters.output_size, characters.dim
    mappings = [_mapping(f"{prefix}{names.table}", (characters.symbols, dim), f"{CNN}.embedding")]
    for n, (width, count) in enumerate(characters.filters):
        mappings += _module(f"{prefix}{names.convolution.format(n)}", (count, dim, width), f"{CNN}.convolutions.{n}")
    for n in range(characters.highway_layers):
        mappings += _module(f"{prefix}{names.highway.format(n)}", (2 * total, total), f"{CNN}.highways.{n}", CARRY_GATE)
    return mappings


def torch_lstm(config: ElmoConfig, prefix: str = "") -> list[WeightMapping]:
    """The LSTMs of a PyTorch state dict, whose gates and biases are as ours."""
    lstm, mappings = config.lstm, []
    for direction, level, inputs, ours in _lstm_layers(config):
        base = f"{prefix}{direction}_layer_{level}."
        mappings += [
            _mapping(f"{base}input_linearity.weight", (4 * lstm.cell_size, inputs), f"{ours}.input_weight"),
            _mapping(f"{base}state_linearity.weight", (4 * lstm.cell_size, lstm.output_size), f"{ours}.recurrent_weight"),
            _mapping(f"{base}state_linearity.bias", (4 * lstm.cell_size,), f"{ours}.bias"),
            _mapping(f"{base}state_projection.weight", (lstm.output_size, lstm.cell_size), f"{ours}.projection_weight"),
        ]
    return mappings


def _lstm_layers(config: ElmoConfig) -> Iterator[tuple[str, int, int, str]]:
    """Yield direction, level, size of the inputs and our name of each layer."""
    for direction in ("forward", "backward"):
        for level in range(config.lstm.layers):
            inputs = config.dim if level == 0 else config.lstm.output_size
            yield direction, level, inputs, f"lstm.{direction}_layers.{level}"


def _mapping(foreign: str, shape: Shape, ours: str, transform: LayoutTransform = IDENTITY) -> WeightMapping:
    """Map one array to one tensor."""
    return WeightMapping({foreign: shape}, (ours,), transform)


def _module(foreign: str, shape: Shape, ours: str, transform: LayoutTransform = IDENTITY) -> list[WeightMapping]:
    """Map the weight and the bias of a PyTorch module."""
    weight = _mapping(f"{foreign}.weight", shape, f"{ours}.weight", transform)
    return [weight, _mapping(f"{foreign}.bias", shape[:1], f"{ours}.bias", transform)]
