"""Hashes of contents: the same model or the same sentences have the same fingerprint, wherever they are stored."""

from __future__ import annotations

import hashlib
import json
import weakref
from collections.abc import Callable, Iterable, Mapping

import torch
from torch import Tensor

from polyseme.base import format1
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence
from polyseme.nn.weight_version import WeightVersion, weight_version
from polyseme.text.corpus import Corpus
from polyseme.text.words import Splitter

_known: weakref.WeakKeyDictionary[Encoder, tuple[tuple[WeightVersion, Splitter, str], str]] = weakref.WeakKeyDictionary()


def model_fingerprint(encoder: Encoder) -> str:
    """Hash all that decides an encoder's vectors: config, words, splitter, precision and weights.

    The output layer has no influence on the vectors and is left out. Config keys and names are hashed as in format 1, so
    that renaming them does not change the fingerprint of a model.
    """
    vocabulary, splitter = encoder.vocabulary, encoder.splitter
    head = {
        "encoder": format1.old_name(format1.ENCODERS, encoder.kind),
        "config": encoder.config.to_dict(format=1),
        "splitter": [format1.old_name(format1.SPLITTERS, splitter.name), getattr(splitter, "fingerprint", None)],
        "precision": encoder.precision,
        "vocabulary": "".join(f"{word}\n" for word in vocabulary) if vocabulary is not None else None,
        "alphabet": getattr(encoder, "alphabet", None),
    }
    if hasattr(encoder, "identity"):  # what is not among the weights: a tokenizer of another library, a table of n-grams
        head["identity"] = encoder.identity
    digest = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    hash_weights(digest, {name: value for name, value in encoder.state_dict().items() if not name.startswith("output.")})
    return digest.hexdigest()


def known_fingerprint(encoder: Encoder) -> str:
    """Return the fingerprint of an encoder, computed once until it changes."""
    now = (weight_version(encoder), encoder.splitter, getattr(encoder, "precision", "fp32"))
    if encoder not in _known or _known[encoder][0] != now:
        _known[encoder] = (now, model_fingerprint(encoder))
    return _known[encoder][1]


def _header(name: str, value: Tensor) -> str:
    return json.dumps([name, str(value.dtype), list(value.shape)])


def hash_weights(
    digest: hashlib._Hash, weights: Mapping[str, Tensor], *, header: Callable[[str, Tensor], str] = _header
) -> None:
    """Add tensors to a hash, in the order of their names, each with a header."""
    for name, value in sorted(weights.items()):
        digest.update(header(name, value).encode())
        digest.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)


def text_fingerprint(encoder: Encoder, sentences: Iterable[Sentence]) -> str:
    """Hash sentences as the encoder splits them; a `Corpus` has a fingerprint of its own and is not split."""
    if isinstance(sentences, Corpus):
        return sentences.fingerprint()
    digest = hashlib.sha256()
    for sentence in sentences:
        digest.update(json.dumps(encoder.words(sentence)).encode() + b"\n")
    return digest.hexdigest()
