"""The tokenizer of a run: learned from its text once, and found again by a run that goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from polyseme.encoders.subword_library import library, quiet
from polyseme.text.corpus import Corpus
from polyseme.text.shards.files import build_once
from polyseme.text.shards.subwords import documents

Learn = Callable[[Iterable[Sequence[str]]], Any]


def train_tokenizer(corpus: Corpus, folder: Path, settings: dict[str, Any], learn: Learn) -> Any:
    """What `learn` makes of the corpus' sentences, kept under a name of the text and the settings.

    It lies in `folder`, or where the corpus keeps what is encoded of it, so that runs over the same pieces share it;
    of several processes that want the same one, one learns and the others wait.
    """
    key = hashlib.sha256(f"{corpus.fingerprint()} {json.dumps(settings, sort_keys=True)}".encode()).hexdigest()[:16]
    place = (corpus.shards or folder) / f"tokenizer-{key}"

    def ready() -> bool | None:
        return (place / "tokenizer_config.json").is_file() or None

    def write(part: Path) -> None:
        with quiet():
            learn(words for document in documents(corpus) for words in document).save_pretrained(part)

    build_once(place, ready, write)
    with quiet():
        return library().PreTrainedTokenizerFast.from_pretrained(place)
