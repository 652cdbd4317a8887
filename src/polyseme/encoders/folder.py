"""Model folders: JSON, safetensors and plain text, nothing that can run code.

config.json          polyseme_format, encoder, splitter and the encoder's config
words.txt            the word list of the splitter `unigram`, most frequent first
README.md            the model card
sentence.safetensors statistics of the model's text for `encode`, where they were measured

Where the network is of another library, config.json and the rest are as that library writes them, and ours is a key of it.
All else depends on the kind of encoder (`polyseme.encoders.registry`): model.safetensors has its weights, in any float
precision or in int8 (float32 in memory), and vocabulary.txt its words, one per line. Task folders share the functions below
that read and write a format number and a splitter.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import polyseme
from polyseme.base import format1
from polyseme.base.card import write_card
from polyseme.base.errors import FormatError, PolysemeError, arg, nearest
from polyseme.base.files import atomic_folder, read_bytes, read_json, wrap_os_errors, write_text
from polyseme.encoders import shipped
from polyseme.encoders.registry import ENCODERS, encoder_class
from polyseme.encoders.sentence_vectors import FILE as SENTENCE
from polyseme.encoders.sentence_vectors import SentenceStatistics
from polyseme.text.splitting.unigram import UNIGRAM, UnigramSegmenter
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter, get_splitter, splitter_names

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder

FORMAT = 2
READABLE = (1, 2)
CONFIG, WORDS, CARD = "config.json", "words.txt", "README.md"
LIBRARY_KEY = "polyseme"  # in a config.json of another library
REFERENCE = "verify.safetensors"  # vectors of these weights; other weights make them untrue
COST = "pretraining.json"  # what their training cost, which its end writes
FILES = (CONFIG, WORDS, CARD, SENTENCE, *sorted({name for kind in ENCODERS.values() for name in kind.files}))
_PRECISIONS = {"fp32": torch.float32, "fp16": torch.float16, "int8": torch.int8}


@dataclass(frozen=True)
class Head:
    """What config.json says of a model."""

    encoder: str
    splitter: str
    config: dict[str, Any]
    format: int


def is_folder(path: Path) -> bool:
    """Whether a folder is a polyseme model: its config.json has a `polyseme_format`."""
    config = path / CONFIG
    with wrap_os_errors(config, "read"):
        return config.is_file() and b'"polyseme_format"' in config.read_bytes()


def save(model: Encoder, folder: str | Path, *, precision: str = "fp32", card: str | None = None) -> Path:
    """Write a model folder atomically; weights in fp32, in fp16 (half the size) or in int8 (a quarter)."""
    if precision not in _PRECISIONS:
        raise PolysemeError(f"{arg('precision')} is {precision!r}; allowed: {', '.join(_PRECISIONS)}")
    if model.kind not in ENCODERS:
        raise PolysemeError(f"cannot save an encoder of kind {model.kind!r}; allowed: {', '.join(ENCODERS)}")
    folder = Path(folder).expanduser()
    with atomic_folder(folder, last=CONFIG, remove=(*FILES, REFERENCE, COST, shipped.HASH)) as part:
        model.write_files(part, _PRECISIONS[precision])
        write_splitter(model.splitter, part / WORDS)
        if model.sentence_statistics is not None:
            model.sentence_statistics.save(part)
        head: dict[str, Any] = {
            "polyseme_format": FORMAT,
            "polyseme_version": polyseme.__version__,
            "encoder": model.kind,
            "splitter": model.splitter.name,
            "config": model.config.to_dict(),
        }
        if (part / CONFIG).exists():  # written by another library, which opens the folder too
            head = {**read_json(part / CONFIG), LIBRARY_KEY: head}
        write_text(part / CONFIG, json.dumps(head, indent=2, ensure_ascii=False) + "\n")
        write_text(part / CARD, card or model.card or write_card(model.kind, model.info()))
    return folder


def load(path: str | Path) -> Any:
    """Read the encoder of a model folder, a shipped name or a hub id. `Encoder.from_pretrained` is the typed form."""
    folder = shipped.resolve_path(path)
    if not folder.is_dir() or not is_folder(folder):
        raise FormatError(folder, "is no polyseme model folder (polyseme.load reads other formats)")
    head = read_head(folder)
    kind = encoder_class(head.encoder)
    config = kind.config_type.from_dict(head.config, where=f"{folder / CONFIG}: config", format=head.format)
    model = kind.read_files(folder, config, read_splitter(head.splitter, folder / WORDS))
    if (folder / CARD).exists():
        model.card = read_bytes(folder / CARD).decode("utf-8", "replace")
    model.sentence_statistics = SentenceStatistics.load(folder, model)
    model.source = str(path)
    return model.eval()


def read_head(folder: Path) -> Head:
    path = folder / CONFIG
    values = read_json(path)
    values = values[LIBRARY_KEY] if isinstance(values.get(LIBRARY_KEY), dict) else values
    version = check_format(path, values, "polyseme_format", {"encoder", "splitter", "config"})
    known = {"polyseme_format", "polyseme_version", "encoder", "splitter", "config"}
    for name in sorted(set(values) - known):
        raise FormatError(path, f"has an unknown key {name!r}{nearest(name, known)}")
    if not isinstance(values["encoder"], str) or values["encoder"] not in ENCODERS:
        raise FormatError(path, f"names the encoder {values['encoder']!r}; known: {', '.join(ENCODERS)}")
    return Head(values["encoder"], splitter_name(path, values["splitter"], version), values["config"], version)


# ---- shared with task folders


def check_format(path: Path, values: Mapping[str, Any], key: str, required: set[str]) -> int:
    """Return the format number in a head; an unknown format or a missing key is an error."""
    version = values.get(key)
    if version not in READABLE or isinstance(version, bool):
        raise FormatError(path, f"has {key} {version!r}; this version reads 1 and 2: update polyseme")
    for name in sorted(required - set(values)):
        raise FormatError(path, f"lacks {name!r}")
    return int(version)


def splitter_name(path: Path, name: Any, version: int) -> str:
    """Return the name of a splitter in a head of a format, as it is called now."""
    now = format1.SPLITTERS.get(name, name) if version == 1 and isinstance(name, str) else name
    if not isinstance(now, str) or now not in splitter_names():
        raise FormatError(path, f"names the splitter {name!r}; known: {', '.join(splitter_names())}")
    return now


def write_splitter(splitter: Splitter, path: Path) -> None:
    """Write the word list of a splitter that has one."""
    if isinstance(splitter, UnigramSegmenter):
        write_text(path, Vocabulary(splitter.words).to_text())


def read_splitter(name: str, path: Path) -> Splitter:
    """Return the splitter of a name, with its word list where it needs one."""
    if name != UNIGRAM:
        return get_splitter(name)
    if not path.exists():
        raise FormatError(path.parent, f"lacks {path.name}, which the splitter {name!r} needs")
    return _unigram_splitter(path, read_bytes(path))


@functools.lru_cache(maxsize=1)
def _unigram_splitter(path: Path, content: bytes) -> Splitter:
    """Return the splitter of a word list. That of the model zh takes 0.2 seconds, most of what loading the model takes."""
    return get_splitter(UNIGRAM, Vocabulary.read(path).words)


@functools.cache
def shipped_splitter(name: str) -> Splitter:
    """Return the splitter of a shipped model, without its weights."""
    folder = shipped.shipped_folder(name)
    assert folder is not None, name
    return read_splitter(read_head(folder).splitter, folder / WORDS)


def chinese_splitter() -> Splitter:
    """Return the default splitter for Chinese: by the word list of the model zh, which needs no other package."""
    return shipped_splitter("zh")
