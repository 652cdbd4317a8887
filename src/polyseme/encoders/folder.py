"""Our own model folder, read and written: JSON, safetensors and plain text, nothing that can carry code.

config.json          polyseme_format, encoder, splitter and the encoder's config
model.safetensors    the weights (any float precision; float32 in memory)
output.safetensors   the language-model output layer, where there is one; its tensors' names say which kind:
                     weight and bias (full), bias alone (tied to the word table), head and tails (adaptive)
vocabulary.txt       one word a line; characters.txt likewise for models over code points
words.txt            the words that raw text is cut into, most frequent first, where the splitter is `likeliest`
README.md            the model card
"""

from __future__ import annotations

import copy
import itertools
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import polyseme
from polyseme.base import hub
from polyseme.base.card import write_card
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError, nearest
from polyseme.base.files import read_bytes, read_json, telling, write_text
from polyseme.encoders.base import Encoder
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.nn.adaptive import AdaptiveSoftmax
from polyseme.nn.lstm import State
from polyseme.nn.output import FullSoftmax, OutputLayer
from polyseme.nn.unfilled import unfilled
from polyseme.text.likeliest import LikeliestSplitter
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import LIKELIEST, Splitter, splitter, splitter_names

FORMAT = 1
FILES = ("config.json", "model.safetensors", "output.safetensors", "vocabulary.txt", "characters.txt", "words.txt", "README.md")
REFERENCE = "verify.safetensors"  # vectors of the weights as they were; other weights make them untrue
_PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16}


def is_folder(path: Path) -> bool:
    """Whether a folder is one of ours: its config.json names a `polyseme_format`."""
    config = path / "config.json"
    with telling(config, "read"):
        return config.is_file() and b'"polyseme_format"' in config.read_bytes()


def save(model: Encoder, folder: str | Path, *, precision: str = "fp32", card: str | None = None) -> Path:
    """Write a model folder, whole or not at all; weights in fp32, or in fp16 to halve the files."""
    if precision not in _PRECISIONS:
        raise PolysemeError(f"precision is {precision!r}; a folder holds {' or '.join(_PRECISIONS)}")
    if not isinstance(model, Elmo):
        raise PolysemeError(f"a folder holds an {Elmo.kind}; this is a {model.kind}")
    folder = Path(folder)
    with telling(folder, "write"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
        try:
            _write_files(model, part, _PRECISIONS[precision], card)
            part.chmod(0o755)
            _move(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def _write_files(model: Elmo, folder: Path, dtype: torch.dtype, card: str | None) -> None:
    weights = {name: value for name, value in model.state_dict().items() if not name.startswith("output.")}
    kept: dict[str, Tensor] = {}
    if model.config.trunk == "lstm":
        warm = _warm_state(model, dtype)
        kept = {"warm.hidden": warm.hidden, "warm.cell": warm.cell}
    _write_tensors(weights, folder / "model.safetensors", dtype, exact=kept)
    if model.output is not None:
        _write_tensors(model.output.state_dict(), folder / "output.safetensors", dtype)
    if model.vocabulary is not None:
        write_text(folder / "vocabulary.txt", model.vocabulary.to_text())
    if isinstance(model.splitter, LikeliestSplitter):
        write_text(folder / "words.txt", Vocabulary(model.splitter.words).to_text())
    if model.alphabet is not None:
        write_text(folder / "characters.txt", "".join(f"{symbol}\n" for symbol in model.alphabet))
    config = {
        "polyseme_format": FORMAT,
        "polyseme_version": polyseme.__version__,
        "encoder": model.kind,
        "splitter": model.splitter.name,
        "config": model.config.to_dict(),
    }
    write_text(folder / "config.json", json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / "README.md", card or model.card or write_card(model.kind, describe(model)))


def _warm_state(model: Elmo, dtype: torch.dtype) -> State:
    """Of the weights as they will be read: those in fewer bits have a warm state of their own."""
    if dtype != torch.float32:
        model = copy.deepcopy(model)
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype).float()
        model.refresh()
    return model.warm_state()


def _write_tensors(tensors: dict[str, Tensor], path: Path, dtype: torch.dtype, exact: dict[str, Tensor] | None = None) -> None:
    """Write tensors as `dtype`, and those of `exact` in full."""
    plain = {name: value.detach().to("cpu", dtype).contiguous().clone() for name, value in tensors.items()}
    plain |= {name: value.detach().to("cpu", torch.float32).contiguous().clone() for name, value in (exact or {}).items()}
    for name, value in plain.items():
        if not bool(torch.isfinite(value).all()):
            why = "numbers too large for fp16: save it in fp32" if dtype == torch.float16 else "numbers that are not finite"
            raise PolysemeError(f"{name} has {why}")
    try:
        save_file(plain, path)
    except SafetensorError as error:
        raise PolysemeError(f"cannot write {path.name}: {error}") from error
    path.chmod(0o644)  # safetensors lets nobody but the owner read


def _move(part: Path, folder: Path) -> None:
    if not folder.exists():
        part.replace(folder)
        return
    new = {file.name for file in part.iterdir()}
    (folder / "config.json").unlink(missing_ok=True)  # until the new one is there, this is no model
    for name in {*FILES, REFERENCE} - new:
        (folder / name).unlink(missing_ok=True)
    for name in sorted(new, key=lambda name: name == "config.json"):
        (part / name).replace(folder / name)


def load(path: str | Path) -> Elmo:
    """Read a model folder or a hub id."""
    folder = hub.fetch(path)
    if not folder.is_dir() or not is_folder(folder):
        raise FormatError(folder, "is no polyseme model folder (polyseme.load reads other formats)")
    head = _head(folder)
    config = ElmoConfig.from_dict(head["config"], where=f"{folder / 'config.json'}: config")
    vocabulary = alphabet = None
    if (folder / "vocabulary.txt").exists():
        vocabulary = Vocabulary.read(folder / "vocabulary.txt", unknown=config.unknown, begin=config.begin, end=config.end)
    if (folder / "characters.txt").exists():
        alphabet = _alphabet(folder / "characters.txt", config)
    _check_words(folder, config, vocabulary, alphabet)
    weights = read_tensors(folder / "model.safetensors")
    warm: dict[str, Tensor] = {}
    if config.trunk == "lstm":
        warm = {name: weights.pop(f"warm.{name}") for name in ("hidden", "cell") if f"warm.{name}" in weights}
    model = assemble(
        config,
        weights,
        where=folder / "model.safetensors",
        splitter=_splitter(folder, head["splitter"]),
        vocabulary=vocabulary,
        alphabet=alphabet,
    )
    if (folder / "output.safetensors").exists():
        _read_output(model, folder / "output.safetensors")
    if len(warm) == 2:
        zero = model.lstm.zero_state(1)
        if warm["hidden"].shape != zero.hidden.shape or warm["cell"].shape != zero.cell.shape:
            raise FormatError(folder / "model.safetensors", "has a warm state of another size than its LSTMs")
        model.set_warm_state(State(warm["hidden"], warm["cell"]))
    if (folder / "README.md").exists():
        model.card = read_bytes(folder / "README.md").decode("utf-8", "replace")
    model.source = str(path)
    return model


def _splitter(folder: Path, name: str) -> Splitter:
    if name != LIKELIEST:
        return splitter(name)
    if not (folder / "words.txt").exists():
        raise FormatError(folder, f"lacks words.txt, which the splitter {name!r} needs")
    return splitter(name, Vocabulary.read(folder / "words.txt").words)


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


def _head(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    head = read_json(path)
    if head.get("polyseme_format") != FORMAT or isinstance(head.get("polyseme_format"), bool):
        given = head.get("polyseme_format")
        raise FormatError(path, f"has polyseme_format {given!r}; this version reads {FORMAT}: update polyseme")
    known = {"polyseme_format", "polyseme_version", "encoder", "splitter", "config"}
    for name in sorted(known - {"polyseme_version"} - set(head)):
        raise FormatError(path, f"lacks {name!r}")
    for name in sorted(set(head) - known):
        raise FormatError(path, f"has an unknown key {name!r}{nearest(name, known)}")
    if not isinstance(head["splitter"], str) or head["splitter"] not in splitter_names():
        raise FormatError(path, f"names the splitter {head['splitter']!r}; known: {', '.join(splitter_names())}")
    if head["encoder"] != Elmo.kind:
        raise FormatError(path, f"names the encoder {head['encoder']!r}; known: {Elmo.kind}")
    return head


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file as float32."""
    try:
        with telling(path, "read"):
            path.open("rb").close()  # safetensors calls every file that it cannot open a missing one
            return {name: value.float() for name, value in load_file(path).items()}
    except SafetensorError as error:
        raise FormatError(path, f"is a damaged safetensors file ({error})") from error


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
        with unfilled():
            output = FullSoftmax(*tensors["weight"].shape)
    elif "head.weight" in names and tensors["head.weight"].dim() == 2:
        output = _adaptive(tensors, path)
    else:
        expected = "weight (vocabulary, dim) and bias, bias alone, or head and tails"
        raise FormatError(path, f"holds {sorted(names)}; expected {expected}")
    fill(output, tensors, path)
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
        with unfilled():
            return AdaptiveSoftmax(ends[-1], dim, ends)
    except ConfigError as error:
        raise FormatError(path, f"has {rows} rows in its head and {len(names)} tails: {error}") from error


def assemble(config: ElmoConfig, weights: dict[str, Tensor], *, where: str | Path, **parts: Any) -> Elmo:
    """An ELMo from its config and weights under our names, ready to use (in evaluation mode)."""
    output: OutputLayer | None = parts.pop("output", None)
    vocabulary: Vocabulary | None = parts.get("vocabulary")
    with unfilled():  # no time spent on random weights that are replaced at once
        model = Elmo(config, **parts)
    fill(model, weights, where)
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


def fill(module: nn.Module, weights: dict[str, Tensor], where: str | Path) -> None:
    """Put tensors into a module strictly: each one expected, each expected one there, each of the right shape."""
    expected = module.state_dict()
    problems = [f"lacks {name}" for name in expected if name not in weights]
    problems += [f"has an unknown tensor {name}" for name in weights if name not in expected]
    problems += [
        f"{name} has shape {tuple(weights[name].shape)}, expected {tuple(value.shape)}"
        for name, value in expected.items()
        if name in weights and weights[name].shape != value.shape
    ]
    if problems:
        more = f" (and {len(problems) - 3} more problems)" if len(problems) > 3 else ""
        raise FormatError(where, "; ".join(problems[:3]) + more)
    module.load_state_dict(weights, assign=True)
    for parameter in module.parameters():
        parameter.requires_grad_(True)


def describe(model: Elmo) -> dict[str, Any]:
    """What a model is, as plain values: for the card and for `polyseme info`."""
    config, blocks = model.config, model.config.transformer
    encoder_parameters = sum(p.numel() for n, p in model.named_parameters() if not n.startswith("output."))
    return {
        "encoder": model.kind,
        "layers": model.layers,
        "dim": model.dim,
        "parameters": encoder_parameters,
        "trunk": config.trunk,
        "lstm": f"{config.lstm.dim}/{config.lstm.output}" if blocks is None else None,
        "transformer": f"{blocks.heads} heads, {blocks.inner}/{config.dim}" if blocks is not None else None,
        "characters": config.characters.alphabet if config.characters else None,
        "word_table": config.words.size if config.words else None,
        "vocabulary": len(model.vocabulary) if model.vocabulary else None,
        "language_model": model.output is not None,
        "start": config.start,
        "splitter": model.splitter.name,
    }
