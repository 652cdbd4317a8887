"""Checkpoints of the `transformers` library: a folder with `config.json`, safetensors and a tokenizer, as the hub has them.

BERT and similar models become a `Bert`, GPT and similar ones a `Gpt`, by their `model_type`. No code in a folder is executed.
There is no `write`: a `Bert` or `Gpt` saves such a folder itself (`polyseme.encoders.subword_model`).
"""

from __future__ import annotations

from pathlib import Path

from polyseme.base.files import read_bytes
from polyseme.encoders.bert import Bert
from polyseme.encoders.gpt import Gpt
from polyseme.encoders.subword_library import family_of
from polyseme.encoders.subword_model import SubwordModel
from polyseme.formats import model_files


def is_checkpoint(folder: Path) -> bool:
    """Whether a folder is a checkpoint of the transformers library."""
    path = folder / "config.json"
    return path.is_file() and bool({"model_type", "architectures"} & (model_files.json_object(path) or {}).keys())


def read(folder: Path) -> SubwordModel:
    """Read the model in a folder."""
    kind: type[SubwordModel] = Gpt if family_of(folder).causal else Bert
    model = kind.from_library(folder)
    if (folder / "README.md").is_file():
        model.card = read_bytes(folder / "README.md").decode("utf-8", "replace")
    return model
