"""The files of an ELMo in a model folder.

model.safetensors    the weights, and the warm start state of LSTMs
output.safetensors   the language-model output layer, where there is one; the names of its tensors tell its type:
                     weight and bias (full), bias alone (tied to the word table), head and tails (adaptive)
vocabulary.txt       one word per line; characters.txt likewise for models over code points
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError
from polyseme.base.files import read_bytes
from polyseme.base.tensor_files import load_weights, read_tensors
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.nn.meta_init import meta_init
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax, OutputLayer, TiedSoftmax
from polyseme.text.vocabulary import Vocabulary

WEIGHTS, OUTPUT, VOCABULARY, CHARACTERS = "model.safetensors", "output.safetensors", "vocabulary.txt", "characters.txt"


def read_vocabulary(folder: Path, config: ElmoConfig) -> Vocabulary | None:
    """Read the vocabulary, which a word table needs and which must have its special tokens."""
    path = folder / VOCABULARY
    if not path.exists():
        if config.words is not None:
            raise FormatError(folder, f"lacks {VOCABULARY}, which a word table needs")
        return None
    vocabulary = Vocabulary.read(path, unknown=config.unknown, begin=config.begin, end=config.end)
    missing = [token for token in (config.begin, config.end) if token not in vocabulary]
    if config.words is not None and missing:
        raise FormatError(path, f"lacks {' and '.join(missing)}, which begin and end every sentence")
    return vocabulary


def read_alphabet(folder: Path, config: ElmoConfig) -> list[str] | None:
    """Read the characters of a model over code points."""
    path = folder / CHARACTERS
    if not path.exists():
        if config.characters is not None and config.characters.alphabet == "code_points":
            raise FormatError(folder, f"lacks {CHARACTERS}, which a model over code points needs")
        return None
    try:
        symbols = read_bytes(path).decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise FormatError(path, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    if config.characters is not None and len(symbols) != config.characters.symbols:
        raise FormatError(path, f"has {len(symbols)} symbols; the character table has {config.characters.symbols} rows")
    return symbols


def read_output(path: Path, tie: Callable[[], TiedSoftmax]) -> OutputLayer:
    """Read an output layer, of the type that the names of its tensors tell; `tie` makes one tied to the word table."""
    tensors = read_tensors(path)
    names = set(tensors)
    output: OutputLayer
    if names == {"bias"}:
        try:
            output = tie()
        except ConfigError as error:
            raise FormatError(path, f"holds a bias alone, as if tied to the word table: {error}") from error
    elif names == {"weight", "bias"} and tensors["weight"].dim() == 2:
        with meta_init():
            output = FullSoftmax(*tensors["weight"].shape)
    elif "head.weight" in names and tensors["head.weight"].dim() == 2:
        output = _adaptive(tensors, path)
    else:
        expected = "weight (vocabulary, dim) and bias, bias alone, or head and tails"
        raise FormatError(path, f"holds {sorted(names)}; expected {expected}")
    load_weights(output, tensors, path)
    return output


def _adaptive(tensors: dict[str, Tensor], path: Path) -> AdaptiveSoftmax:
    """Make an adaptive output layer of the sizes of its tensors, still without them."""
    rows, dim = tensors["head.weight"].shape
    tails = [value for name, value in tensors.items() if name.startswith("tails.") and name.endswith(".words.bias")]
    names = [f"tails.{number}.words.bias" for number in range(len(tails))]
    if not names or any(name not in tensors for name in names):
        raise FormatError(path, "lacks tails of its adaptive output layer: expected tails.0.words.bias and so on")
    sizes = [rows - len(names), *(tensors[name].numel() for name in names)]
    ends = tuple(itertools.accumulate(sizes))
    try:
        with meta_init():
            return AdaptiveSoftmax(ends[-1], dim, ends)
    except ConfigError as error:
        raise FormatError(path, f"has {rows} rows in its head and {len(names)} tails: {error}") from error
