"""The tokenizer of a run: trained on its text once, and read again when the run is resumed."""

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

TrainTokenizer = Callable[[Iterable[Sequence[str]]], Any]


def train_tokenizer(corpus: Corpus, folder: Path, settings: dict[str, Any], train: TrainTokenizer) -> Any:
    """Return the tokenizer that `train` makes from the sentences of a corpus, stored by a hash of the text and the settings.

    It is stored in `folder`, or with the shards of the corpus, so that runs with the same settings share it. Of several
    processes that need it, one trains it and the others wait.
    """
    key = hashlib.sha256(f"{corpus.fingerprint()} {json.dumps(settings, sort_keys=True)}".encode()).hexdigest()[:16]
    path = (corpus.shards or folder) / f"tokenizer-{key}"

    def ready() -> bool | None:
        return (path / "tokenizer_config.json").is_file() or None

    def write(part: Path) -> None:
        with quiet():
            train(words for document in documents(corpus) for words in document).save_pretrained(part)

    build_once(path, ready, write)
    with quiet():
        return library().PreTrainedTokenizerFast.from_pretrained(path)
