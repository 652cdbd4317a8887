"""From a corpus to an n-gram model: the text is encoded once, counted, and the counts are smoothed.

There is no loop and no seed. The result follows from the text and the settings, so the same call writes the same model again,
and other settings need another folder. All of the text is counted and none held out: `polyseme perplexity` evaluates the
model on other text.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from polyseme.base import format1
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.files import read_json, write_text
from polyseme.base.progress import progress
from polyseme.encoders.folder import LIBRARY_KEY
from polyseme.encoders.ngram import NgramModel
from polyseme.pretraining.card import format_card
from polyseme.pretraining.cost import Cost, write_cost
from polyseme.pretraining.job import Job, text_facts
from polyseme.pretraining.kneser_ney import estimate
from polyseme.pretraining.ngram_config import NgramPretraining
from polyseme.pretraining.ngram_counts import NgramCounts, count_ngrams, to_stream
from polyseme.pretraining.ngram_parts import ngram_parts
from polyseme.pretraining.ngram_pruning import prune
from polyseme.pretraining.result import NgramResult
from polyseme.pretraining.vocabulary_index import TOKENS, TypeIds, index_vocabulary
from polyseme.text.files.reader import TextEngine
from polyseme.text.shards.shards import Shards
from polyseme.text.vocabulary import Vocabulary
from polyseme.training.resume import differences
from polyseme.training.setting_names import listed_changes

FORMAT = 2  # of run/ngram.json


class NgramJob(Job):
    """The counting of a text; of several processes the first one writes the model."""

    method: NgramPretraining

    def fit(self) -> NgramResult:
        """Count the text and write the model."""
        begin = time.monotonic()
        record = self.out / "run" / "ngram.json"
        exists = _check_folder(self.out, record, self.method.to_dict())
        with progress("encoding text", unit="words") as advance:
            shards = Shards.build(self.corpus, self.out / "run", advance, only_known=exists)
        if exists and read_json(record)["corpus"] != shards.fingerprint:  # of shards in another folder
            raise PolysemeError(f"the text, or how it is split, is not that of the model in {self.out}: choose another folder")
        engine = self.corpus.engine if self.run.world_size == 1 else None  # others would use the same files
        model = build(shards, self.method, engine, self.out / "run")
        model.splitter = self.corpus.splitter
        info = model.info()
        result = NgramResult(
            out=self.out,
            method=self.method.name,
            words=shards.total,
            text_words=shards.total,
            seconds=time.monotonic() - begin,
            sentences=len(shards),
            **{name: info[name] for name in ("vocabulary", "ngrams", "discounts")},
        )
        if self.run.is_main_process:
            options = self.method.to_dict()
            facts = info | text_facts(self.corpus, shards) | {"options": options, "seconds": f"{result.seconds:.1f}"}
            record.parent.mkdir(parents=True, exist_ok=True)
            head = {"polyseme_format": FORMAT, "options": options, "corpus": shards.fingerprint}
            write_text(record, json.dumps(head, indent=2) + "\n")
            model.save_pretrained(self.out, card=format_card(self.out.resolve().name, facts))
            write_cost(self.out, Cost.of(result, parameters=int(info["parameters"])))
        return result


def build(shards: Shards, method: NgramPretraining, engine: TextEngine | None = None, work: Path | None = None) -> NgramModel:
    """Build the model of an encoded text; with an engine, the n-grams are counted there, through files in the folder `work`."""
    words, ids = index_vocabulary(shards, vocabulary_size=method.vocabulary_size, min_count=method.min_count)
    size = len(words)
    limit = method.max_ngrams
    with _counted(shards, ids, size, method.order, engine, work) as counts:
        estimated = estimate(counts, size, method.smoothing, method.cutoff_per_order, keep_counts=limit is not None)
    table = estimated.table if limit is None else prune(estimated.table, estimated.counts, limit)
    config = TOKENS.replace(order=method.order, smoothing=method.smoothing, discounts=estimated.discounts)
    vocabulary = Vocabulary(words, unknown=config.unknown, begin=config.begin, end=config.end)
    return NgramModel(config, vocabulary=vocabulary, table=table)


def _counted(
    shards: Shards, ids: TypeIds, size: int, order: int, engine: TextEngine | None, work: Path | None
) -> contextlib.AbstractContextManager[Iterator[NgramCounts]]:
    if engine is None or work is None:
        return contextlib.nullcontext(count_ngrams(to_stream(shards, ids), size, order))
    return ngram_parts(shards, ids, size, order, work, engine)


def _check_folder(out: Path, record: Path, options: Mapping[str, Any]) -> bool:
    """Return whether the folder holds the model of these settings; any other model there is an error."""
    path = out / "config.json"
    if not path.is_file():
        return False
    head = read_json(path)
    head = head[LIBRARY_KEY] if isinstance(head.get(LIBRARY_KEY), dict) else head
    if (kind := head.get("encoder", "of another library")) != NgramModel.kind:
        raise PolysemeError(f"{out} holds another kind of model ({kind}): choose another folder")
    if not record.is_file():
        raise PolysemeError(f"{out} holds the model of another run: choose another folder, or remove it")
    written = read_json(record)
    before = written["options"]
    if written.get("polyseme_format", 1) == 1:
        before = format1.translate(NgramPretraining.__name__, before)
    changed = differences(before, json.loads(json.dumps(options)))
    if changed:
        listed = listed_changes(changed)
        raise UsageError(f"{out} holds a model with other settings ({listed}): give the same ones, or choose another folder")
    return True
