"""The files of an ELMo in a model folder, and an ELMo from its config and weights.

model.safetensors    the weights, and the warm state of LSTMs
output.safetensors   the language-model output layer, where there is one; its tensors' names say which kind:
                     weight and bias (full), bias alone (tied to the word table), head and tails (adaptive)
vocabulary.txt       one word a line; characters.txt likewise for models over code points
"""

from __future__ import annotations

import copy
import itertools
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError
from polyseme.base.files import read_bytes, write_text
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.encoders.folder import load_weights, read_tensors, write_tensors
from polyseme.nn.lstm.layers import LstmState
from polyseme.nn.meta_init import meta_init
from polyseme.nn.output.adaptive import AdaptiveSoftmax
from polyseme.nn.output.full import FullSoftmax, OutputLayer
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter


def write_elmo(model: Elmo, folder: Path, dtype: torch.dtype) -> None:
    """Write an ELMo's files."""
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("output.")}
    kept: dict[str, Tensor] = {}
    if model.config.architecture == "lstm":
        warm = _warm_state(model, dtype)
        kept = {"warm.hidden": warm.hidden, "warm.cell": warm.cell}
    write_tensors(weights, folder / "model.safetensors", dtype, exact=kept)
    if model.output is not None:
        write_tensors(model.output.state_dict(), folder / "output.safetensors", dtype)
    if model.vocabulary is not None:
        write_text(folder / "vocabulary.txt", model.vocabulary.to_text())
    if model.alphabet is not None:
        write_text(folder / "characters.txt", "".join(f"{symbol}\n" for symbol in model.alphabet))


def _warm_state(model: Elmo, dtype: torch.dtype) -> LstmState:
    """Of the weights as they will be read: those in fewer bits have a warm state of their own."""
    if dtype != torch.float32:
        model = copy.deepcopy(model)
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype).float()
        model.refresh()
    return model.warm_state()


def read_elmo(folder: Path, config: ElmoConfig, splitter: Splitter, kind: type[Elmo] = Elmo) -> Elmo:
    """The ELMo of a kind whose files lie in a folder."""
    vocabulary = alphabet = None
    if (folder / "vocabulary.txt").exists():
        vocabulary = Vocabulary.read(folder / "vocabulary.txt", unknown=config.unknown, begin=config.begin, end=config.end)
    if (folder / "characters.txt").exists():
        alphabet = _alphabet(folder / "characters.txt", config)
    _check_words(folder, config, vocabulary, alphabet)
    weights = read_tensors(folder / "model.safetensors")
    warm: dict[str, Tensor] = {}
    if config.architecture == "lstm":
        warm = {name: weights.pop(f"warm.{name}") for name in ("hidden", "cell") if f"warm.{name}" in weights}
    model = assemble(
        config,
        weights,
        where=folder / "model.safetensors",
        kind=kind,
        splitter=splitter,
        vocabulary=vocabulary,
        alphabet=alphabet,
    )
    if (folder / "output.safetensors").exists():
        _read_output(model, folder / "output.safetensors")
    if len(warm) == 2:
        zero = model.lstm.zero_state(1)
        if warm["hidden"].shape != zero.hidden.shape or warm["cell"].shape != zero.cell.shape:
            raise FormatError(folder / "model.safetensors", "has a warm state of another size than its LSTMs")
        model.set_warm_state(LstmState(warm["hidden"], warm["cell"]))
    return model


def _alphabet(path: Path, config: ElmoConfig) -> list[str]:
    try:
        symbols = read_bytes(path).decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError as error:
        raise FormatError(path, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    if config.characters is not None and len(symbols) != config.characters.symbols:
        raise FormatError(path, f"has {len(symbols)} symbols; the character table has {config.characters.symbols} rows")
    return symbols


def _check_words(folder: Path, config: ElmoConfig, vocabulary: Vocabulary | None, alphabet: list[str] | None) -> None:
    """What the config needs must be there, and the marks must be in the vocabulary."""
    if config.characters is not None and config.characters.alphabet == "code_points" and alphabet is None:
        raise FormatError(folder, "lacks characters.txt, which a model over code points needs")
    if config.words is None:
        return
    if vocabulary is None:
        raise FormatError(folder, "lacks vocabulary.txt, which a word table needs")
    missing = [mark for mark in (config.begin, config.end) if mark not in vocabulary]
    if missing:
        raise FormatError(folder / "vocabulary.txt", f"lacks {' and '.join(missing)}, which begin and end every sentence")


def _read_output(model: Elmo, path: Path) -> None:
    """Give a model the output layer of its folder, of the kind that the tensors' names say."""
    tensors = read_tensors(path)
    names = set(tensors)
    output: OutputLayer
    if names == {"bias"}:
        try:
            output = model.tie_output()
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
    _attach(model, output, path)


def _adaptive(tensors: dict[str, Tensor], path: Path) -> AdaptiveSoftmax:
    """An adaptive output layer of the sizes that its tensors have, yet without them."""
    rows, dim = tensors["head.weight"].shape
    found = [value for name, value in tensors.items() if name.startswith("tails.") and name.endswith(".words.bias")]
    names = [f"tails.{number}.words.bias" for number in range(len(found))]
    if not names or any(name not in tensors for name in names):
        raise FormatError(path, "lacks tails of its adaptive output layer: expected tails.0.words.bias and so on")
    sizes = [rows - len(names), *(tensors[name].numel() for name in names)]
    ends = tuple(itertools.accumulate(sizes))
    try:
        with meta_init():
            return AdaptiveSoftmax(ends[-1], dim, ends)
    except ConfigError as error:
        raise FormatError(path, f"has {rows} rows in its head and {len(names)} tails: {error}") from error


def assemble(
    config: ElmoConfig,
    weights: dict[str, Tensor],
    *,
    where: str | Path,
    kind: type[Elmo] = Elmo,
    **parts: Any,
) -> Elmo:
    """An ELMo from its config and weights under our names, ready to use (in evaluation mode)."""
    output: OutputLayer | None = parts.pop("output", None)
    vocabulary: Vocabulary | None = parts.get("vocabulary")
    with meta_init():  # no time spent on random weights that are replaced at once
        model = kind(config, **parts)
    load_weights(model, weights, where)
    if output is not None:
        _attach(model, output, where)
    if config.words is not None and vocabulary is not None and len(vocabulary) > config.words.size:
        raise FormatError(where, f"has a word table of {config.words.size} rows for {len(vocabulary)} words")
    return model.eval()


def _attach(model: Elmo, output: OutputLayer, where: str | Path) -> None:
    vocabulary, width = model.vocabulary, model.config.output
    if vocabulary is None or output.size != len(vocabulary):
        have = "none" if vocabulary is None else f"{len(vocabulary)} words"
        raise FormatError(where, f"has an output layer of {output.size} rows, but its vocabulary has {have}")
    if output.dim != width:
        raise FormatError(where, f"has an output layer of width {output.dim}; the encoder gives {width}")
    model.output = output.train(model.training)


def elmo_info(model: Elmo) -> dict[str, Any]:
    """What a model is, as plain values."""
    config, blocks = model.config, model.config.transformer
    encoder_parameters = sum(p.numel() for n, p in model.named_parameters() if not n.startswith("output."))
    return {
        "encoder": model.kind,
        "layers": model.layers,
        "dim": model.dim,
        "parameters": encoder_parameters,
        "trunk": config.architecture,
        "lstm": f"{config.lstm.cell_size}/{config.lstm.output_size}" if blocks is None else None,
        "transformer": f"{blocks.heads} heads, {blocks.feedforward_size}/{config.dim}" if blocks is not None else None,
        "characters": config.characters.alphabet if config.characters else None,
        "word_table": config.words.size if config.words else None,
        "vocabulary": len(model.vocabulary) if model.vocabulary else None,
        "language_model": model.output is not None,
        "start": config.start,
        "splitter": model.splitter.name,
    }
