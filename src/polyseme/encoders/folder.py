"""Our own model folder, read and written: JSON, safetensors and plain text, nothing that can carry code.

config.json          polyseme_format, encoder, splitter and the encoder's config
words.txt            the words that raw text is cut into, most frequent first, where the splitter is `unigram`
README.md            the model card

Where the network is of another library, config.json and the rest are as that library writes them, and ours is a key of it.
All else depends on the kind of encoder (`polyseme.encoders.registry`): model.safetensors has its weights, of any float
precision (float32 in memory), and vocabulary.txt its words, one a line.
"""

from __future__ import annotations

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
from polyseme.base import format1
from polyseme.base.card import write_card
from polyseme.base.errors import FormatError, PolysemeError, nearest
from polyseme.base.files import read_bytes, read_json, replace_path_in_errors, wrap_os_errors, write_text
from polyseme.encoders import shipped
from polyseme.encoders.base import Encoder
from polyseme.encoders.registry import ENCODERS, encoder_class
from polyseme.text.splitting.unigram import UNIGRAM, UnigramSegmenter
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter, get_splitter, splitter_names

FORMAT = 2
READABLE = (1, 2)
LIBRARY_KEY = "polyseme"  # in a config.json that is another library's
FILES = ("config.json", "words.txt", "README.md", *sorted({name for kind in ENCODERS.values() for name in kind.files}))
REFERENCE = "verify.safetensors"  # vectors of the weights as they were; other weights make them untrue
COST = "pretraining.json"  # what their training cost, which its end writes
_LOOKED_AT = 1 << 24  # numbers of a large tensor that are checked together
_PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16}


def is_folder(path: Path) -> bool:
    """Whether a folder is one of ours: its config.json names a `polyseme_format`."""
    config = path / "config.json"
    with wrap_os_errors(config, "read"):
        return config.is_file() and b'"polyseme_format"' in config.read_bytes()


def save(model: Encoder, folder: str | Path, *, precision: str = "fp32", card: str | None = None) -> Path:
    """Write a model folder, whole or not at all; weights in fp32, or in fp16 to halve the files."""
    if precision not in _PRECISIONS:
        raise PolysemeError(f"precision is {precision!r}; a folder holds {' or '.join(_PRECISIONS)}")
    if model.kind not in ENCODERS:
        raise PolysemeError(f"a folder holds an encoder of a known kind ({', '.join(ENCODERS)}); this is a {model.kind}")
    folder = Path(folder).expanduser()
    with wrap_os_errors(folder, "write"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
        try:
            with replace_path_in_errors(folder, part):
                _write_files(model, part, _PRECISIONS[precision], card)
            part.chmod(0o755)
            _move(part, folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return folder


def _write_files(model: Encoder, folder: Path, dtype: torch.dtype, card: str | None) -> None:
    model.write_files(folder, dtype)
    if isinstance(model.splitter, UnigramSegmenter):
        write_text(folder / "words.txt", Vocabulary(model.splitter.words).to_text())
    config = {
        "polyseme_format": FORMAT,
        "polyseme_version": polyseme.__version__,
        "encoder": model.kind,
        "splitter": model.splitter.name,
        "config": model.config.to_dict(),
    }
    if (folder / "config.json").exists():  # another library's, which opens the folder too: ours is a key of it
        config = {**read_json(folder / "config.json"), LIBRARY_KEY: config}
    write_text(folder / "config.json", json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    write_text(folder / "README.md", card or model.card or write_card(model.kind, model.info()))


def write_tensors(tensors: dict[str, Tensor], path: Path, dtype: torch.dtype, exact: dict[str, Tensor] | None = None) -> None:
    """Write tensors as `dtype`, and those of `exact` in full."""
    plain = {name: value.detach().to("cpu", dtype) for name, value in tensors.items()}
    plain |= {name: value.detach().to("cpu", torch.float32) for name, value in (exact or {}).items()}
    plain = _apart(plain)
    for name, value in plain.items():
        if not all(bool(torch.isfinite(some).all()) for some in value.view(-1).split(_LOOKED_AT)):
            why = "numbers too large for fp16: save it in fp32" if dtype == torch.float16 else "numbers that are not finite"
            raise PolysemeError(f"{name} has {why}")
    try:
        save_file(plain, path)
    except SafetensorError as error:
        raise PolysemeError(f"cannot write {path}: {error}") from error
    path.chmod(0o644)  # safetensors lets nobody but the owner read


def _apart(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Tensors that share no memory, as safetensors wants them; those that did are copied, and no large table needlessly."""
    found, seen = {}, set()
    for name, value in tensors.items():
        alone = value.untyped_storage().nbytes() == value.nbytes and value.data_ptr() not in seen
        found[name] = value if alone and value.is_contiguous() else value.contiguous().clone()
        seen.add(value.data_ptr())
    return found


def _move(part: Path, folder: Path) -> None:
    if not folder.exists():
        part.replace(folder)
        return
    new = {file.name for file in part.iterdir()}
    (folder / "config.json").unlink(missing_ok=True)  # until the new one is there, this is no model
    for name in {*FILES, REFERENCE, COST} - new:
        (folder / name).unlink(missing_ok=True)
    for name in sorted(new, key=lambda name: name == "config.json"):
        (part / name).replace(folder / name)


def load(path: str | Path) -> Encoder:
    """Read a model folder or a hub id."""
    folder = shipped.resolve_path(path)
    if not folder.is_dir() or not is_folder(folder):
        raise FormatError(folder, "is no polyseme model folder (polyseme.load reads other formats)")
    head = _head(folder)
    kind = encoder_class(head["encoder"])
    where = f"{folder / 'config.json'}: config"
    config = kind.config_type.from_dict(head["config"], where=where, format=head["polyseme_format"])
    model = kind.read_files(folder, config, _splitter(folder, head["splitter"]))
    if (folder / "README.md").exists():
        model.card = read_bytes(folder / "README.md").decode("utf-8", "replace")
    model.source = str(path)
    return model.eval()


def _splitter(folder: Path, name: str) -> Splitter:
    if name != UNIGRAM:
        return get_splitter(name)
    if not (folder / "words.txt").exists():
        raise FormatError(folder, f"lacks words.txt, which the splitter {name!r} needs")
    return get_splitter(name, Vocabulary.read(folder / "words.txt").words)


def _head(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    head = read_json(path)
    head = head[LIBRARY_KEY] if isinstance(head.get(LIBRARY_KEY), dict) else head
    version = head.get("polyseme_format")
    if version not in READABLE or isinstance(version, bool):
        raise FormatError(path, f"has polyseme_format {version!r}; this version reads 1 and 2: update polyseme")
    known = {"polyseme_format", "polyseme_version", "encoder", "splitter", "config"}
    for name in sorted(known - {"polyseme_version"} - set(head)):
        raise FormatError(path, f"lacks {name!r}")
    for name in sorted(set(head) - known):
        raise FormatError(path, f"has an unknown key {name!r}{nearest(name, known)}")
    if version == 1 and isinstance(head["splitter"], str):
        head = head | {"splitter": format1.SPLITTERS.get(head["splitter"], head["splitter"])}
    if not isinstance(head["splitter"], str) or head["splitter"] not in splitter_names():
        raise FormatError(path, f"names the splitter {head['splitter']!r}; known: {', '.join(splitter_names())}")
    if not isinstance(head["encoder"], str) or head["encoder"] not in ENCODERS:
        raise FormatError(path, f"names the encoder {head['encoder']!r}; known: {', '.join(ENCODERS)}")
    return head


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file as float32."""
    try:
        with wrap_os_errors(path, "read"):
            path.open("rb").close()  # safetensors calls every file that it cannot open a missing one
            return {name: value.float() for name, value in load_file(path).items()}
    except SafetensorError as error:
        raise FormatError(path, f"is a damaged safetensors file ({error})") from error


def load_weights(module: nn.Module, weights: dict[str, Tensor], where: str | Path) -> None:
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
