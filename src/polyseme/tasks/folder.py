"""The folder of a trained task: JSON, safetensors and plain text.

task.json            polyseme_task, the task's name and config, its splitter, its encoders
model.safetensors    the network's weights
labels.txt           one label per line; words.txt: the words of its table, likewise
splitter.txt         the word list of the splitter, where that is `unigram`
training-texts.npy   hashes of the texts that it was trained on (`leakage`)
encoder-1/ ...       its encoders, each a model folder; vectors/ where word vectors were loaded

A frozen encoder is written once, and one that comes with the package not at all: task.json has its name and a hash of its
weights. Where the package now has another model of that name, the model of that hash is looked for in polyseme-models. So a run
can be copied to another machine as it is. Folders of format 1 are read through `polyseme.base.format1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import FormatError
from polyseme.base.files import read_json
from polyseme.base.tensor_files import read_tensors
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.folder import check_format, read_splitter, splitter_name
from polyseme.encoders.shipped import DISTRIBUTION, find_by_hash
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.tasks.base import Task
from polyseme.tasks.features import Features
from polyseme.tasks.folder_check import HEAD, check_task
from polyseme.tasks.folder_writer import FINETUNED, LABELS, SPLITTER_WORDS, WEIGHTS, WORDS
from polyseme.tasks.registry import task_class
from polyseme.tasks.word_embeddings import WordEmbeddings
from polyseme.text.vocabulary import Vocabulary


def load(path: str | Path, *, device: str | torch.device = "cpu") -> Task:
    """Read a trained task."""
    folder = Path(path)
    check_task(path)
    head = read_json(folder / HEAD)
    version = check_format(folder / HEAD, head, "polyseme_task", {"task", "config", "splitter", "encoders", "vectors"})
    kind = task_class(head["task"])
    config = _config(kind.config_type, head["config"], folder, version)
    encoders = [_read_encoder(entry, folder) for entry in head["encoders"]]
    vectors = None if head["vectors"] is None else _read_encoder(head["vectors"], folder)
    if vectors is not None and not isinstance(vectors, WordVectorTable):
        raise FormatError(folder / HEAD, "names vectors that are not a table of word vectors")
    known = Vocabulary.read(folder / WORDS).words if config.features.words.enabled else []
    words = WordEmbeddings(config.features.words, known, vectors)
    splitter = read_splitter(splitter_name(folder / HEAD, head["splitter"], version), folder / SPLITTER_WORDS)
    task = kind(config, Features(config.features, words, encoders), Vocabulary.read(folder / LABELS).words, splitter)
    _load_weights(task, folder)
    return task.to(device).eval()


def _load_weights(task: Task, folder: Path) -> None:
    weights = read_tensors(folder / WEIGHTS)
    own = {name: value for name, value in task.state_dict().items() if not name.startswith(FINETUNED)}
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
    for place in _places(entry, folder):
        encoder = Encoder.from_pretrained(place)
        if model_fingerprint(encoder) == entry["sha256"]:
            return encoder
    which, earlier = folder / entry.get("folder", ""), ""
    if "shipped" in entry:
        which, earlier = entry["shipped"], f" (earlier models are in {DISTRIBUTION}: pip install --upgrade {DISTRIBUTION})"
    what = f"was trained with another encoder than {which} is now"
    raise FormatError(folder / HEAD, f"{what}: restore that encoder{earlier}, or train again")


def _places(entry: dict[str, Any], folder: Path) -> Iterator[str | Path]:
    """Where an encoder may be: in the folder, or under its name, or, of an earlier version of the package, under another."""
    if "shipped" not in entry:
        yield folder / entry["folder"]
        return
    yield entry["shipped"]
    if (earlier := find_by_hash(entry["sha256"])) is not None:
        yield earlier
