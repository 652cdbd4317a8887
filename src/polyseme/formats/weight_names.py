"""The names of weights in published formats, with their shapes and our names.

No other file knows them. Each function returns the mappings of one module for a model of the given sizes:

- bilm-tf, also AllenNLP's weights, SeqVec and the NLPL repository: HDF5 datasets (github.com/allenai/bilm-tf).
- AllenNLP archives and ELMoForManyLangs: PyTorch state dicts that differ only in the names of the word encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.formats.weight_layout import (
    CARRY_GATE,
    FILTER,
    FORGET_BIAS,
    IDENTITY,
    STACKED,
    STACKED_TRANSPOSED,
    TRANSPOSED,
    WITHOUT_PADDING_ROW,
    WeightMapping,
    lstm_kernel,
)
from polyseme.nn.config import CharactersConfig

BYTES = 261  # rows of a bilm-tf character table: 256 bytes and five special symbols
CNN = "tokens.characters"
PROJECTION = ("tokens.projection.weight", "tokens.projection.bias")


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


def bilm_characters(config: ElmoConfig) -> list[WeightMapping]:
    """The character CNN of a bilm-tf file. Its *carry* gate weights the transform, as our gate does."""
    characters = config.characters
    if characters is None:
        return []
    total, dim = characters.output_size, characters.dim
    mappings = [WeightMapping({"char_embed": (BYTES, dim)}, (f"{CNN}.embedding",), WITHOUT_PADDING_ROW)]
    for n, (width, count) in enumerate(characters.filters):
        mappings.append(WeightMapping({f"CNN/W_cnn_{n}": (1, width, dim, count)}, (f"{CNN}.convolutions.{n}.weight",), FILTER))
        mappings.append(WeightMapping({f"CNN/b_cnn_{n}": (count,)}, (f"{CNN}.convolutions.{n}.bias",), IDENTITY))
    for n in range(characters.highway_layers):
        base, ours = f"CNN_high_{n}/", f"{CNN}.highways.{n}"
        pair = {f"{base}W_transform": (total, total), f"{base}W_carry": (total, total)}
        mappings.append(WeightMapping(pair, (f"{ours}.weight",), STACKED_TRANSPOSED))
        mappings.append(WeightMapping({f"{base}b_transform": (total,), f"{base}b_carry": (total,)}, (f"{ours}.bias",), STACKED))
    if config.project:
        mappings.append(WeightMapping({"CNN_proj/W_proj": (total, config.dim)}, PROJECTION[:1], TRANSPOSED))
        mappings.append(WeightMapping({"CNN_proj/b_proj": (config.dim,)}, PROJECTION[1:], IDENTITY))
    return mappings


def bilm_lstm(config: ElmoConfig, *, flat: bool = False) -> list[WeightMapping]:
    """The LSTMs of a bilm-tf file; `flat`: a single layer, whose names have no cell number."""
    lstm, mappings = config.lstm, []
    for d, direction in enumerate(("forward", "backward")):
        for level in range(lstm.layers):
            cell = "" if flat else f"MultiRNNCell/Cell{level}/"
            base, ours = f"RNN_{d}/RNN/{cell}LSTMCell/", f"lstm.{direction}_layers.{level}"
            inputs = config.dim if level == 0 else lstm.output_size
            both = (f"{ours}.input_weight", f"{ours}.recurrent_weight")
            mappings.append(
                WeightMapping({f"{base}W_0": (inputs + lstm.output_size, 4 * lstm.cell_size)}, both, lstm_kernel(inputs))
            )
            mappings.append(WeightMapping({f"{base}B": (4 * lstm.cell_size,)}, (f"{ours}.bias",), FORGET_BIAS))
            if lstm.projection_size is not None:
                shape = (lstm.cell_size, lstm.projection_size)
                mappings.append(WeightMapping({f"{base}W_P_0": shape}, (f"{ours}.projection_weight",), TRANSPOSED))
    return mappings


def bilm_words(rows: int, dim: int) -> list[WeightMapping]:
    """The word embeddings of a bilm-tf file, trained or cached: row k is line k of the vocabulary."""
    return [WeightMapping({"embedding": (rows, dim)}, ("tokens.words.weight",), IDENTITY)]


def bilm_output(rows: int, dim: int) -> list[WeightMapping]:
    """The output layer, in the weights file or in a separate one."""
    return [
        WeightMapping({"softmax/W": (rows, dim)}, ("weight",), IDENTITY),
        WeightMapping({"softmax/b": (rows,)}, ("bias",), IDENTITY),
    ]


def torch_words(names: TorchNames, config: ElmoConfig, prefix: str = "") -> list[WeightMapping]:
    """The word encoder of a PyTorch state dict: characters, words or both, and the projection."""
    mappings = []
    if config.words is not None:
        shape = (config.words.size, config.words.dim)
        mappings.append(WeightMapping({f"{prefix}{MANYLANGS_WORDS}": shape}, ("tokens.words.weight",), IDENTITY))
    if config.characters is not None:
        mappings += _torch_characters(names, config.characters, prefix)
    weight, bias = (f"{prefix}{names.projection}.{end}" for end in ("weight", "bias"))
    mappings.append(WeightMapping({weight: (config.dim, config.inputs)}, PROJECTION[:1], IDENTITY))
    mappings.append(WeightMapping({bias: (config.dim,)}, PROJECTION[1:], IDENTITY))
    return mappings


def _torch_characters(names: TorchNames, characters: CharactersConfig, prefix: str) -> list[WeightMapping]:
    total, dim = characters.output_size, characters.dim
    mappings = [WeightMapping({f"{prefix}{names.table}": (characters.symbols, dim)}, (f"{CNN}.embedding",), IDENTITY)]
    for n, (width, count) in enumerate(characters.filters):
        foreign, ours = f"{prefix}{names.convolution.format(n)}", f"{CNN}.convolutions.{n}"
        mappings.append(WeightMapping({f"{foreign}.weight": (count, dim, width)}, (f"{ours}.weight",), IDENTITY))
        mappings.append(WeightMapping({f"{foreign}.bias": (count,)}, (f"{ours}.bias",), IDENTITY))
    for n in range(characters.highway_layers):
        foreign, ours = f"{prefix}{names.highway.format(n)}", f"{CNN}.highways.{n}"
        mappings.append(WeightMapping({f"{foreign}.weight": (2 * total, total)}, (f"{ours}.weight",), CARRY_GATE))
        mappings.append(WeightMapping({f"{foreign}.bias": (2 * total,)}, (f"{ours}.bias",), CARRY_GATE))
    return mappings


def torch_lstm(config: ElmoConfig, prefix: str = "") -> list[WeightMapping]:
    """The LSTMs of a PyTorch state dict, whose gates and biases are as ours."""
    lstm, mappings = config.lstm, []
    for direction in ("forward", "backward"):
        for level in range(lstm.layers):
            base, ours = f"{prefix}{direction}_layer_{level}.", f"lstm.{direction}_layers.{level}"
            shapes = {
                "input_linearity.weight": (4 * lstm.cell_size, config.dim if level == 0 else lstm.output_size),
                "state_linearity.weight": (4 * lstm.cell_size, lstm.output_size),
                "state_linearity.bias": (4 * lstm.cell_size,),
                "state_projection.weight": (lstm.output_size, lstm.cell_size),
            }
            parts = ("input_weight", "recurrent_weight", "bias", "projection_weight")
            for (name, shape), part in zip(shapes.items(), parts, strict=True):
                mappings.append(WeightMapping({f"{base}{name}": shape}, (f"{ours}.{part}",), IDENTITY))
    return mappings
