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

from polyseme.base.errors import FormatError, MissingExtraError
from polyseme.base.files import read_bytes
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
    root, modules = Path(folder), []
    for entry in json.loads(read_bytes(root / "modules.json")):
        place, _, name = str(entry["type"]).rpartition(".")
        if (place, name) == (__name__, ElmoModule.__name__):
            kind: Any = ElmoModule
        elif place.startswith("sentence_transformers."):
            kind = getattr(importlib.import_module(place), name)
        else:
            what = f"modules.json names {entry['type']!r}; allowed: modules of sentence-transformers, and {ElmoModule.__name__}"
            raise FormatError(root, what)
        modules.append(kind.load(str(root), subfolder=entry["path"], local_files_only=True))
    own = root / "config_sentence_transformers.json"
    saved = json.loads(read_bytes(own)) if own.is_file() else {}
    names = ("prompts", "default_prompt_name", "similarity_fn_name")
    known = {name: saved[name] for name in names if saved.get(name) is not None}
    return SentenceTransformer(modules=modules, **{**known, **kwargs})


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
        self.mix = Mix(self.model.config.num_hidden_layers + 1)
        self.max_seq_length = max_seq_length
        """Words of a text that are read; None: all."""

    def preprocess(self, inputs: list[Any], prompt: str | None = None, **kwargs: Any) -> dict[str, Tensor]:
        """Split and spell texts; a pair of texts is read as two sentences of running text."""
        texts = [f"{prompt}{text}" for text in inputs] if prompt else list(inputs)
        cut = {} if self.max_seq_length is None else {"truncation": True, "max_length": self.max_seq_length}
        encoded = [self.tokenizer(*([text] if isinstance(text, str) else text), **cut) for text in texts]
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
