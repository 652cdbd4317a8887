"""Names for contents: the same model or the same sentences have the same name, wherever they lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

import torch

from polyseme.base import format1
from polyseme.encoders.base import Encoder, Sentence
from polyseme.text.corpus import Corpus


def model_fingerprint(encoder: Encoder) -> str:
    """A hash of all that decides an encoder's vectors: config, words, splitter, precision and weights.

    The output layer, which predicts words, has no part in the vectors and none in the hash.
    """
    vocabulary = getattr(encoder, "vocabulary", None)
    head = {
        "encoder": encoder.kind,
        "config": encoder.config.to_dict(),
        "splitter": [format1.old_splitter(encoder.splitter.name), getattr(encoder.splitter, "fingerprint", None)],
        "precision": getattr(encoder, "precision", "fp32"),
        "vocabulary": "".join(f"{word}\n" for word in vocabulary) if vocabulary is not None else None,
        "alphabet": getattr(encoder, "alphabet", None),
    }
    if hasattr(encoder, "identity"):  # what is not among the weights: a tokenizer of another library, a table of n-grams
        head["identity"] = encoder.identity
    whole = hashlib.sha256(json.dumps(head, sort_keys=True).encode())
    for name, value in sorted(encoder.state_dict().items()):
        if name.startswith("output."):
            continue
        whole.update(json.dumps([name, str(value.dtype), list(value.shape)]).encode())
        whole.update(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return whole.hexdigest()


def text_fingerprint(encoder: Encoder, sentences: Iterable[Sentence]) -> str:
    """A hash of sentences as the encoder splits them; a `Corpus` has one of its own, which need not split its text."""
    if isinstance(sentences, Corpus):
        return sentences.fingerprint()
    whole = hashlib.sha256()
    for sentence in sentences:
        whole.update(json.dumps(encoder.words(sentence)).encode() + b"\n")
    return whole.hexdigest()
