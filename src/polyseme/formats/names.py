"""The foreign names: what every array of the published formats is called, how large it is, and where it goes in ours.

This is the one file that knows them. Each function gives the rules of one part for a model of the given sizes:

- bilm-tf, also AllenNLP's weights, SeqVec and the NLPL repository: HDF5 datasets (github.com/allenai/bilm-tf).
- AllenNLP archives and ELMoForManyLangs: PyTorch state dicts, alike but for the names of the word encoder.
"""

from __future__ import annotations

from dataclasses import dataclass

from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.formats.layout import (
    FILTER,
    FORGET_APART,
    KEEPING_GATE,
    SAME,
    STACKED,
    STACKED_TRANSPOSED,
    TRANSPOSED,
    UNPADDED,
    Rule,
    kernel,
)
from polyseme.nn.config import CharactersConfig

BYTES = 261  # rows of a bilm-tf character table: 256 bytes and five marks
CNN = "tokens.characters"
PROJECTION = ("tokens.projection.weight", "tokens.projection.bias")


@dataclass(frozen=True)
class TorchNames:
    """What a PyTorch word encoder calls its parts; `{}` is a number."""

    table: str
    convolution: str
    highway: str
    projection: str


ALLENNLP = TorchNames("_char_embedding_weights", "char_conv_{}", "_highways._layers.{}", "_projection")
MANYLANGS = TorchNames("char_emb_layer.embedding.weight", "convolutions.{}", "highways._layers.{}", "projection")
MANYLANGS_WORDS = "word_emb_layer.embedding.weight"


def bilm_characters(config: ElmoConfig) -> list[Rule]:
    """The character network of a bilm-tf file. What it calls *carry* is the share of the change, as our gate."""
    characters = config.characters
    if characters is None:
        return []
    total, dim = characters.output, characters.dim
    rules = [Rule({"char_embed": (BYTES, dim)}, (f"{CNN}.embedding",), UNPADDED)]
    for n, (width, count) in enumerate(characters.filters):
        rules.append(Rule({f"CNN/W_cnn_{n}": (1, width, dim, count)}, (f"{CNN}.convolutions.{n}.weight",), FILTER))
        rules.append(Rule({f"CNN/b_cnn_{n}": (count,)}, (f"{CNN}.convolutions.{n}.bias",), SAME))
    for n in range(characters.highways):
        place, ours = f"CNN_high_{n}/", f"{CNN}.highways.{n}"
        pair = {f"{place}W_transform": (total, total), f"{place}W_carry": (total, total)}
        rules.append(Rule(pair, (f"{ours}.weight",), STACKED_TRANSPOSED))
        rules.append(Rule({f"{place}b_transform": (total,), f"{place}b_carry": (total,)}, (f"{ours}.bias",), STACKED))
    if config.project:
        rules.append(Rule({"CNN_proj/W_proj": (total, config.dim)}, PROJECTION[:1], TRANSPOSED))
        rules.append(Rule({"CNN_proj/b_proj": (config.dim,)}, PROJECTION[1:], SAME))
    return rules


def bilm_lstm(config: ElmoConfig, *, flat: bool = False) -> list[Rule]:
    """The LSTMs of a bilm-tf file; `flat`: a single layer, without the level of numbered cells."""
    lstm, rules = config.lstm, []
    for d, direction in enumerate(("forward", "backward")):
        for level in range(lstm.layers):
            cell = "" if flat else f"MultiRNNCell/Cell{level}/"
            place, ours = f"RNN_{d}/RNN/{cell}LSTMCell/", f"lstm.{direction}_layers.{level}"
            inputs = config.dim if level == 0 else lstm.output
            both = (f"{ours}.input_weight", f"{ours}.recurrent_weight")
            rules.append(Rule({f"{place}W_0": (inputs + lstm.output, 4 * lstm.dim)}, both, kernel(inputs)))
            rules.append(Rule({f"{place}B": (4 * lstm.dim,)}, (f"{ours}.bias",), FORGET_APART))
            if lstm.projection is not None:
                shape = (lstm.dim, lstm.projection)
                rules.append(Rule({f"{place}W_P_0": shape}, (f"{ours}.projection_weight",), TRANSPOSED))
    return rules


def bilm_words(rows: int, dim: int) -> list[Rule]:
    """The word table of a bilm-tf file, trained or cached: row k is line k of the vocabulary."""
    return [Rule({"embedding": (rows, dim)}, ("tokens.words.weight",), SAME)]


def bilm_output(rows: int, dim: int) -> list[Rule]:
    """The output layer, in the weights file or in one of its own."""
    return [Rule({"softmax/W": (rows, dim)}, ("weight",), SAME), Rule({"softmax/b": (rows,)}, ("bias",), SAME)]


def torch_words(names: TorchNames, config: ElmoConfig, prefix: str = "") -> list[Rule]:
    """The word encoder of a PyTorch state dict: characters, words or both, and the projection."""
    rules = []
    if config.words is not None:
        shape = (config.words.size, config.words.dim)
        rules.append(Rule({f"{prefix}{MANYLANGS_WORDS}": shape}, ("tokens.words.weight",), SAME))
    if config.characters is not None:
        rules += _torch_characters(names, config.characters, prefix)
    weight, bias = (f"{prefix}{names.projection}.{end}" for end in ("weight", "bias"))
    rules.append(Rule({weight: (config.dim, config.inputs)}, PROJECTION[:1], SAME))
    rules.append(Rule({bias: (config.dim,)}, PROJECTION[1:], SAME))
    return rules


def _torch_characters(names: TorchNames, characters: CharactersConfig, prefix: str) -> list[Rule]:
    total, dim = characters.output, characters.dim
    rules = [Rule({f"{prefix}{names.table}": (characters.symbols, dim)}, (f"{CNN}.embedding",), SAME)]
    for n, (width, count) in enumerate(characters.filters):
        theirs, ours = f"{prefix}{names.convolution.format(n)}", f"{CNN}.convolutions.{n}"
        rules.append(Rule({f"{theirs}.weight": (count, dim, width)}, (f"{ours}.weight",), SAME))
        rules.append(Rule({f"{theirs}.bias": (count,)}, (f"{ours}.bias",), SAME))
    for n in range(characters.highways):
        theirs, ours = f"{prefix}{names.highway.format(n)}", f"{CNN}.highways.{n}"
        rules.append(Rule({f"{theirs}.weight": (2 * total, total)}, (f"{ours}.weight",), KEEPING_GATE))
        rules.append(Rule({f"{theirs}.bias": (2 * total,)}, (f"{ours}.bias",), KEEPING_GATE))
    return rules


def torch_lstm(config: ElmoConfig, prefix: str = "") -> list[Rule]:
    """The LSTMs of a PyTorch state dict; the order of the gates is ours, and nothing is to be added."""
    lstm, rules = config.lstm, []
    for direction in ("forward", "backward"):
        for level in range(lstm.layers):
            place, ours = f"{prefix}{direction}_layer_{level}.", f"lstm.{direction}_layers.{level}"
            shapes = {
                "input_linearity.weight": (4 * lstm.dim, config.dim if level == 0 else lstm.output),
                "state_linearity.weight": (4 * lstm.dim, lstm.output),
                "state_linearity.bias": (4 * lstm.dim,),
                "state_projection.weight": (lstm.output, lstm.dim),
            }
            parts = ("input_weight", "recurrent_weight", "bias", "projection_weight")
            for (name, shape), part in zip(shapes.items(), parts, strict=True):
                rules.append(Rule({f"{place}{name}": shape}, (f"{ours}.{part}",), SAME))
    return rules
