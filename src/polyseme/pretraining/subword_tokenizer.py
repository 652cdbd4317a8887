"""The tokenizer of a run: trained on the words of its text once, and read again when the run is resumed."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from polyseme.encoders.subword_library import library, quiet
from polyseme.text.shards.files import build_once
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import SPECIAL_TOKENS

TrainTokenizer = Callable[[Iterable[Sequence[str]]], Any]
_REPEATED = 10_000
"""A frequent word is given in several sequences, none of more words than this."""


def train_tokenizer(words: Shards, settings: dict[str, Any], train: TrainTokenizer) -> Any:
    """Return the tokenizer that `train` makes from the words of a text, stored by a hash of the text and the settings.

    It is stored beside the shards, so that runs with the same settings share it. Of several processes that need it, one
    trains it and the others wait.
    """
    assert words.folder is not None
    key = hashlib.sha256(f"{words.fingerprint} {json.dumps(settings, sort_keys=True)}".encode()).hexdigest()[:16]
    path = words.folder.parent / f"tokenizer-{key}"

    def ready() -> bool | None:
        return (path / "tokenizer_config.json").is_file() or None

    def write(part: Path) -> None:
        with quiet():
            train(repeated(words)).save_pretrained(part)

    build_once(path, ready, write)
    with quiet():
        return library().PreTrainedTokenizerFast.from_pretrained(path)


def repeated(words: Shards) -> Iterator[list[str]]:
    """Yield every distinct word as often as it occurs: trainers only count words, so their order does not matter."""
    types = itertools.chain.from_iterable(words.type_blocks())
    for word, count in itertools.islice(zip(types, words.counts.tolist(), strict=True), len(SPECIAL_TOKENS), None):
        for done in range(0, count, _REPEATED):
            yield [word] * min(_REPEATED, count - done)
