"""From a corpus to an n-gram model: the text is encoded once, counted, and the counts are smoothed.

No loop and no seed: the result follows from the text and the options, so the same call writes the same model again, and
another one must go elsewhere. All of the text is counted and none of it held out; how good the model is, `polyseme perplexity`
says on other text.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.base.files import read_json, write_text
from polyseme.base.progress import Advance
from polyseme.base.run import Run
from polyseme.encoders.config import NgramConfig, Smoothing
from polyseme.encoders.folder import LIBRARY_KEY
from polyseme.encoders.ngram import NgramModel
from polyseme.pretraining.card import format_card
from polyseme.pretraining.cost import Cost, write_cost
from polyseme.pretraining.elmo_training import text_facts
from polyseme.pretraining.kneser_ney import estimate
from polyseme.pretraining.ngram_counts import UNKNOWN, count_ngrams, to_stream
from polyseme.text.corpus import Corpus
from polyseme.text.counting.counts import SPECIAL_TOKENS
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.training.resume import differences

MARKED = NgramConfig(order=1)
"""For the names of the marks, which are those of ARPA files."""


@dataclass(frozen=True)
class Made:
    """A model and what it was made of."""

    model: NgramModel
    words: int
    sentences: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class NgramPretraining(Config):
    """What is counted, and how counts become probabilities.

    >>> import tempfile; folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("a b\\na b\\na c\\n")
    >>> text = Corpus(folder / "a.txt", splitter="whitespace", sentences="lines")
    >>> model = NgramPretraining(order=2).fit(text, Run(), folder / "model").model
    >>> bool(model.score(["a b"]) > model.score(["b a"]))
    True
    """

    order: int = 5
    """Words of the longest n-grams: a word depends on one less (the Markov assumption)."""
    smoothing: Smoothing = "kneser-ney"
    """Modified Kneser-Ney; absolute discounting; or none (maximum likelihood)."""
    vocabulary_size: int | None = None
    """Words of the vocabulary, marks counted: the most frequent ones; all others are `<unk>`. None: all words."""
    min_count: int = 1
    """Words that come less often are `<unk>`."""
    cutoffs: tuple[int, ...] = (0,)
    """For each order from 1: n-grams that come so often or less are dropped; the last one holds for all higher orders."""

    def __post_init__(self) -> None:
        problems = []
        if self.order < 1:
            problems.append(f"order is {self.order}; it must be at least 1")
        if self.vocabulary_size is not None and self.vocabulary_size < 4:
            problems.append(f"vocabulary_size is {self.vocabulary_size}; it counts <s>, </s> and <unk>, so at least 4")
        if self.min_count < 1:
            problems.append(f"min_count is {self.min_count}; it must be at least 1")
        if not self.cutoffs or self.cutoffs[0] != 0 or list(self.cutoffs) != sorted(self.cutoffs):
            problems.append(
                f"cutoffs are {self.cutoffs}; the first, for single words, is 0 (min_count drops words), and they never fall"
            )
        if len(self.cutoffs) > max(self.order, 1):
            problems.append(f"there are {len(self.cutoffs)} cutoffs for {self.order} orders: one for each at most")
        if problems:
            raise ConfigError("; ".join(problems))

    @property
    def every_cutoff(self) -> tuple[int, ...]:
        """One for each order."""
        return self.cutoffs + self.cutoffs[-1:] * (self.order - len(self.cutoffs))

    def fit(self, corpus: Corpus, run: Run, out: str | Path, *, progress: Advance | None = None) -> Made:
        """Count a corpus and write the model to `out`; the encoded text stays in `out/run` or where the corpus keeps it.

        Of several processes the first one writes. `progress` is told the words as they are encoded.
        """
        out, begin = Path(out), time.monotonic()
        record = out / "run" / "ngram.json"
        there = _check_free(out, record, self.to_dict())
        shards = Shards.build(corpus, out / "run", progress, only_known=there)
        if there and read_json(record)["corpus"] != shards.fingerprint:  # of shards that lie elsewhere
            raise PolysemeError(f"the text, or how it is split, is not that of the model in {out}: choose another folder")
        model = build(shards, self)
        model.splitter = corpus.splitter
        made = Made(model, shards.total, len(shards), time.monotonic() - begin)
        if run.is_main_process:
            text = text_facts(corpus, shards) | {"options": self.to_dict(), "seconds": f"{made.seconds:.1f}"}
            record.parent.mkdir(parents=True, exist_ok=True)
            write_text(record, json.dumps({"options": self.to_dict(), "corpus": shards.fingerprint}, indent=2) + "\n")
            model.save_pretrained(out, card=format_card(out.resolve().name, model.info() | text))
            write_cost(out, _cost(made))
        return made


def _cost(made: Made) -> Cost:
    return Cost(
        method=made.model.kind,
        seconds=round(made.seconds, 3),
        words=made.words,
        text_words=made.words,
        parameters=int(made.model.info()["parameters"]),
    )


def build(shards: Shards, config: NgramPretraining) -> NgramModel:
    """The model of an encoded text."""
    words, ids = index_vocabulary(shards, vocabulary=config.vocabulary_size, min_count=config.min_count)
    size = len(words)
    estimated = estimate(count_ngrams(to_stream(shards, ids), size, config.order), size, config.smoothing, config.every_cutoff)
    about = MARKED.replace(order=config.order, smoothing=config.smoothing, discounts=estimated.discounts)
    vocabulary = Vocabulary(words, unknown=about.unknown, begin=about.begin, end=about.end)
    return NgramModel(about, vocabulary=vocabulary, table=estimated.table)


def index_vocabulary(shards: Shards, *, vocabulary: int | None, min_count: int) -> tuple[list[str], NDArray[np.int32]]:
    """The vocabulary, marks first and then by falling count, and what each type of a text is in it, (types,).

    Words that a text has in the place of rare ones already (`<unk>`) are this model's unknown word; so is a mark inside a
    sentence, which would not be told from a true one.
    """
    marks = [MARKED.begin, MARKED.end, str(MARKED.unknown)]
    words = list(marks)
    ids = np.full(len(shards.counts), UNKNOWN, dtype=np.int32)
    room = len(shards.counts) + 1 if vocabulary is None else vocabulary
    for place, (word, count) in enumerate(zip(_types(shards), shards.counts, strict=True)):
        if len(words) == room or (count < min_count and place >= len(SPECIAL_TOKENS)):  # counts fall
            break
        if word not in marks and place >= len(SPECIAL_TOKENS):
            ids[place] = len(words)
            words.append(word)
    if len(words) == len(marks):
        raise PolysemeError(f"the vocabulary would be empty: no word comes {min_count} times or more; lower min_count")
    return words, ids


def _types(shards: Shards) -> Iterator[str]:
    return itertools.chain.from_iterable(shards.type_blocks())


def _check_free(out: Path, record: Path, options: Mapping[str, Any]) -> bool:
    """Whether a model of these options is there already; one of another kind, or with others, is not written over."""
    path = out / "config.json"
    if not path.is_file():
        return False
    head = read_json(path)
    head = head[LIBRARY_KEY] if isinstance(head.get(LIBRARY_KEY), dict) else head
    if (kind := head.get("encoder", "none of ours")) != NgramModel.kind:
        raise PolysemeError(f"{out} holds a model of another kind ({kind}): choose another folder")
    if not record.is_file():
        raise PolysemeError(f"{out} holds a model of another run: choose another folder, or remove it first")
    changed = differences(read_json(record)["options"], json.loads(json.dumps(options)))
    if changed:
        told = "; ".join(f"{name}: {how}" for name, how in changed.items())
        raise PolysemeError(f"{out} holds a model with other settings ({told}); give the old ones, or choose another folder")
    return True
