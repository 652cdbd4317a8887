"""sentence-transformers: an ELMo as the input module of a `SentenceTransformer` (extra `sentence-transformers`).

    from sentence_transformers import SentenceTransformer
    from polyseme.integrations.sentence_transformers import sentence_transformer
    model = sentence_transformer("en")                     # SentenceTransformer(modules=[ElmoModule("en"), Pooling(...)])

`ElmoModule` gives each word a mix of the layers with learned weights, and any module of the library may follow it. All losses
and trainers of the library train it, the ELMo inside included. A saved model has the weights as safetensors, JSON and text.

`SentenceTransformer(folder)` would ask for `trust_remote_code=True`, because the module is not one of the library's own; that
would let a folder run code of its own as well. `load(folder)` opens a saved model without: it takes modules of the library and
ours, and refuses all others.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from polyseme.base.errors import FormatError, MissingExtraError, UsageError
from polyseme.base.files import read_bytes, read_json
from polyseme.integrations.model_reference import AnyModel, shared_model
from polyseme.nn.mix import Mix

try:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import InputModule
    from sentence_transformers.sentence_transformer.modules import Pooling
except ImportError as error:
    need = "polyseme.integrations.sentence_transformers needs sentence-transformers 6 or later"
    raise MissingExtraError(need, "sentence-transformers") from error

from polyseme.integrations.transformers import PolysemeConfig, PolysemeModel, PolysemeTokenizer


def sentence_transformer(model: AnyModel = "en", *, pooling: str = "mean", **kwargs: Any) -> SentenceTransformer:
    """Return an ELMo as a `SentenceTransformer`; `pooling` and `kwargs` are those of the library."""
    words = ElmoModule(model)
    return SentenceTransformer(modules=[words, Pooling(words.get_embedding_dimension(), pooling)], **kwargs)


def load(folder: str | Path, **kwargs: Any) -> SentenceTransformer:
    """Open a saved `SentenceTransformer` with an `ElmoModule` in it; no code in the folder is run."""
    if not isinstance(folder, str | Path) or not (root := Path(folder).expanduser()).joinpath("modules.json").is_file():
        what = "is not the folder of a saved SentenceTransformer, which has a modules.json: write one with model.save(folder)"
        raise UsageError(f"{folder!s} {what}; a model of polyseme opens with sentence_transformer(name)")
    modules = []
    for kind, place in _modules(root):
        modules.append(kind.load(str(root), subfolder=place, local_files_only=True))
    own = root / "config_sentence_transformers.json"
    saved = read_json(own) if own.is_file() else {}
    names = ("prompts", "default_prompt_name", "similarity_fn_name")
    known = {name: saved[name] for name in names if saved.get(name) is not None}
    return SentenceTransformer(modules=modules, **{**known, **kwargs})


def _modules(root: Path) -> list[tuple[Any, str]]:
    """The classes of the modules of a saved model, and their folders in it."""
    try:
        entries = [(str(entry["type"]), str(entry["path"])) for entry in json.loads(read_bytes(root / "modules.json"))]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FormatError(root, "modules.json is not a list of objects with type and path: save the model again") from error
    if not entries:
        raise FormatError(root, "modules.json names no module: save the model again")
    return [(_module_class(root, name), path) for name, path in entries]


def _module_class(root: Path, full: str) -> Any:
    place, _, name = full.rpartition(".")
    if (place, name) == (__name__, ElmoModule.__name__):
        return ElmoModule
    found = None
    if place.startswith("sentence_transformers."):
        try:
            found = getattr(importlib.import_module(place), name, None)
        except ImportError:
            found = None
    if not (isinstance(found, type) and issubclass(found, torch.nn.Module) and hasattr(found, "load")):
        what = f"modules.json names {full!r}; allowed: modules of the installed sentence-transformers, and ElmoModule"
        raise FormatError(root, what)
    return found


class ElmoModule(InputModule):
    """Words to vectors: `token_embeddings` (batch, words, dim) and `attention_mask` for the modules behind it."""

    config_file_name = "elmo_module.json"
    config_keys: ClassVar[list[str]] = ["max_seq_length"]
    save_in_root = False

    def __init__(
        self, model: AnyModel | PolysemeModel = "en", *, tokenizer: Any = None, max_seq_length: int | None = None
    ) -> None:
        super().__init__()
        if isinstance(model, PolysemeModel):
            self.model, self.tokenizer = model, tokenizer
        else:
            encoder: Any = shared_model(model)
            self.model, self.tokenizer = PolysemeModel.from_encoder(encoder), PolysemeTokenizer.from_encoder(encoder)
        if max_seq_length is not None and (not isinstance(max_seq_length, int) or max_seq_length < 1):
            raise UsageError(f"max_seq_length is {max_seq_length!r}; allowed: 1 or more, or None for all words")
        self.mix = Mix(self.model.config.num_hidden_layers + 1)
        self.max_seq_length = max_seq_length
        """Words of a text that are read; None: all."""

    def preprocess(self, inputs: list[Any], prompt: str | None = None, **kwargs: Any) -> dict[str, Tensor]:
        """Split and spell texts; a pair of texts is read as two sentences of running text."""
        texts = [[text] if isinstance(text, str) else text for text in inputs]
        for text in texts:
            if not isinstance(text, list | tuple) or len(text) > 2 or any(not isinstance(each, str) for each in text):
                raise UsageError(f"expected texts, or pairs of texts; got {text!r}: join the words of a text with spaces")
        cut = {} if self.max_seq_length is None else {"truncation": True, "max_length": self.max_seq_length}
        encoded = [self.tokenizer(f"{prompt or ''}{first}", *second, **cut) for first, *second in texts]
        return dict(self.tokenizer.pad(encoded, padding=True, return_tensors="pt"))

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Add the vectors of words."""
        names = ("input_ids", "character_ids", "attention_mask")
        output = self.model(**{name: features[name] for name in names if name in features}, output_hidden_states=True)
        states = torch.stack(output.hidden_states)
        return {**features, "token_embeddings": self.mix(states, features["attention_mask"].bool())}

    def get_embedding_dimension(self) -> int:
        """Size of a vector."""
        return int(self.model.config.hidden_size)

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the weights, the config and the tokenizer."""
        self.save_config(output_path)
        self.model.config.save_pretrained(output_path)
        self.tokenizer.save_pretrained(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Read what `save` wrote, from a folder or the Hugging Face Hub."""
        hub: dict[str, Any] = {"subfolder": subfolder, "token": token, "cache_folder": cache_folder}
        hub |= {"revision": revision, "local_files_only": local_files_only}
        own = cls.load_config(model_name_or_path, **hub)
        folder = Path(cls.load_dir_path(model_name_or_path, **hub))
        tokenizer = PolysemeTokenizer.from_pretrained(folder)
        model = cls(PolysemeModel(PolysemeConfig.from_pretrained(folder)), tokenizer=tokenizer, **own)
        return cls.load_torch_weights(model_name_or_path, model=model, **hub)
