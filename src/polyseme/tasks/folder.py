"""The folder of a trained task: JSON, safetensors and plain text, whole or not there.

task.json            polyseme_task, the task's name and config, its splitter, its encoders
model.safetensors    the network's weights
labels.txt           one label a line; words.txt: the words of its table, likewise
splitter.txt         the words that raw text is cut into, where the splitter is `unigram`
encoder-1/ ...       its encoders, each a model folder; vectors/ where word vectors were loaded

A frozen encoder is written once, and one that comes with the package not at all: its name and a hash of its weights stand in
task.json. So a run can be carried to another machine as it is.
"""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import torch

import polyseme
from polyseme.base import format1
from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import FormatError
from polyseme.base.files import read_json, wrap_os_errors, write_text
from polyseme.base.tensor_files import read_tensors, write_tensors
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.shipped import NAMES
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.nn.weight_version import WeightVersion, weight_version
from polyseme.tasks.base import Task
from polyseme.tasks.features import Features
from polyseme.tasks.registry import task_class
from polyseme.tasks.word_embeddings import WordEmbeddings
from polyseme.text.splitting.unigram import UNIGRAM, UnigramSegmenter
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter, get_splitter

FORMAT = 2
HEAD, WEIGHTS, LABELS, WORDS, LIST = "task.json", "model.safetensors", "labels.txt", "words.txt", "splitter.txt"
NOTED = "sha256.txt"
"""Of which encoder a folder beside the task is the copy."""
_TUNED = "features.tuned."


def is_task(path: Path) -> bool:
    """Whether a folder holds a trained task."""
    return (path / HEAD).is_file()


def save(task: Task, folder: Path) -> None:
    """Write a task: its files appear together, task.json last; what else lies there (`run/`) stays."""
    with wrap_os_errors(folder, "write"):
        folder.mkdir(parents=True, exist_ok=True)
        loaded = task.features.words.loaded
        part = Path(tempfile.mkdtemp(prefix=".task.", suffix=".part", dir=folder))
        try:
            encoders = [_encoder(task, number, folder, part) for number in range(1, len(task.features.contextual) + 1)]
            weights = {name: value for name, value in task.state_dict().items() if not name.startswith(_TUNED)}
            write_tensors(weights, part / WEIGHTS)
            write_text(part / LABELS, Vocabulary(task.labels).to_text())
            write_text(part / WORDS, Vocabulary(task.features.words.words).to_text())
            if isinstance(task.splitter, UnigramSegmenter):
                write_text(part / LIST, Vocabulary(task.splitter.words).to_text())
            head = {
                "polyseme_task": FORMAT,
                "polyseme_version": polyseme.__version__,
                "task": task.kind,
                "config": task.config.to_dict(),
                "splitter": task.splitter.name,
                "encoders": encoders,
                "vectors": None if loaded is None else _kept(loaded, "vectors", folder),
            }
            write_text(part / HEAD, json.dumps(head, indent=2, ensure_ascii=False) + "\n")
            (folder / HEAD).unlink(missing_ok=True)  # until the new one is there, this is no task
            for tuned in (path.name for path in part.iterdir() if path.is_dir()):
                shutil.rmtree(folder / tuned, ignore_errors=True)
                (part / tuned).rename(folder / tuned)
            for name in (WEIGHTS, LABELS, WORDS, LIST, HEAD):
                if (part / name).exists():
                    (part / name).replace(folder / name)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _encoder(task: Task, number: int, folder: Path, part: Path) -> dict[str, Any]:
    """Where an encoder is to be found again; one that is fine-tuned changes with the task, and is written with it."""
    encoder, name = task.features.contextual[number - 1], f"encoder-{number}"
    if task.config.features.mode == "finetune":
        encoder.save_pretrained(part / name)
        return {"folder": name, "sha256": model_fingerprint(encoder)}
    return _kept(encoder, name, folder)


def _kept(encoder: Encoder, name: str, folder: Path) -> dict[str, Any]:
    """A frozen encoder: by its name where it comes with the package, else a copy, written once."""
    content = _content(encoder)
    if encoder.source in NAMES and content == _shipped(encoder.source):  # and not with another splitter
        return {"shipped": encoder.source, "sha256": content}
    noted = folder / name / NOTED
    if not noted.is_file() or noted.read_text(encoding="ascii") != content:
        encoder.save_pretrained(folder / name)
        write_text(noted, content)
    return {"folder": name, "sha256": content}


_known: weakref.WeakKeyDictionary[Encoder, tuple[tuple[WeightVersion, Splitter, str], str]] = weakref.WeakKeyDictionary()


def _content(encoder: Encoder) -> str:
    """The fingerprint of a frozen encoder, computed once while it stays as it is: a run saves often."""
    now = (weight_version(encoder), encoder.splitter, getattr(encoder, "precision", "fp32"))
    if encoder not in _known or _known[encoder][0] != now:
        _known[encoder] = (now, model_fingerprint(encoder))
    return _known[encoder][1]


@functools.cache
def _shipped(name: str) -> str:
    return model_fingerprint(Encoder.from_pretrained(name))


def load(path: str | Path, *, device: str | torch.device = "cpu") -> Task:
    """Read a trained task, ready to answer."""
    folder = Path(path)
    if not is_task(folder):
        what = f"is no trained task ({HEAD} is missing)" if folder.is_dir() else "is no folder of a trained task"
        raise FormatError(folder, f"{what}; `polyseme train` makes one from a model and labelled data")
    head = read_json(folder / HEAD)
    version = head.get("polyseme_task")
    if version not in (1, FORMAT):
        raise FormatError(folder / HEAD, f"has format {version!r}; this version reads formats 1 and {FORMAT}: update polyseme")
    missing = {"task", "config", "splitter", "encoders", "vectors"} - set(head)
    if missing:
        raise FormatError(folder / HEAD, f"lacks {', '.join(sorted(missing))}")
    kind = task_class(head["task"])
    config = _config(kind.config_type, head["config"], folder, version)
    encoders = [_read_encoder(entry, folder) for entry in head["encoders"]]
    vectors = None if head["vectors"] is None else _read_encoder(head["vectors"], folder)
    if vectors is not None and not isinstance(vectors, WordVectorTable):
        raise FormatError(folder / HEAD, "names an encoder that is no table of word vectors as its vectors")
    known = Vocabulary.read(folder / WORDS).words if config.features.words.enabled else []
    words = WordEmbeddings(config.features.words, known, vectors)
    name = format1.SPLITTERS.get(head["splitter"], head["splitter"])
    cut = get_splitter(name, folder / LIST if name == UNIGRAM else None)
    task = kind(config, Features(config.features, words, encoders), Vocabulary.read(folder / LABELS).words, cut)
    _fill(task, folder)
    return task.to(device).eval()


def _fill(task: Task, folder: Path) -> None:
    weights = read_tensors(folder / WEIGHTS)
    own = {name: value for name, value in task.state_dict().items() if not name.startswith(_TUNED)}
    wrong = sorted(set(own) ^ set(weights)) or [name for name in own if own[name].shape != weights[name].shape]
    if wrong:
        raise FormatError(folder / WEIGHTS, f"does not fit {HEAD}: {', '.join(wrong[:5])}")
    task.load_state_dict(weights, strict=False)


def _config(kind: type[Config], values: dict[str, Any], folder: Path, version: int) -> Any:
    try:
        return kind.from_dict(values, where=f"{folder / HEAD}: config", format=version)
    except ConfigError as error:
        raise FormatError(folder / HEAD, str(error)) from error


def _read_encoder(entry: dict[str, Any], folder: Path) -> Encoder:
    encoder = Encoder.from_pretrained(entry["shipped"] if "shipped" in entry else folder / entry["folder"])
    if model_fingerprint(encoder) != entry["sha256"]:
        which = entry.get("shipped") or folder / entry["folder"]
        raise FormatError(
            folder / HEAD, f"was trained with another encoder than {which} is now: train it again, or put that back"
        )
    return encoder
