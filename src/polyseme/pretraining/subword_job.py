"""From a corpus to a BERT or a GPT: a tokenizer and a network of the transformers library, trained on the same text.

Blank lines separate the documents of the text; without any, each line is one. The networks are those of transformers (extra
`transformers`); batches, objectives and the training loop are ours.
"""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from polyseme.base.errors import arg
from polyseme.base.progress import progress
from polyseme.encoders.subword_library import library
from polyseme.encoders.subword_model import SubwordModel
from polyseme.pretraining.job import TrainingJob
from polyseme.pretraining.subword_config import SubwordPretraining
from polyseme.pretraining.subword_tokenizer import train_tokenizer
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer
from polyseme.training.checkpoint import has_checkpoint

_log = logging.getLogger(__name__)


class SubwordJob(TrainingJob):
    """What BERT and GPT share."""

    method: SubwordPretraining
    max_held_out = 1000
    unit = "document"
    tokenizer: Any

    @abstractmethod
    def train_tokenizer(self, sentences: Iterable[Sequence[str]]) -> Any:
        """Train a tokenizer on sentences of words."""

    @abstractmethod
    def tokenizer_settings(self) -> dict[str, Any]:
        """Return what decides the tokenizer besides the text."""

    def encode_text(self) -> Any:
        library()  # report a missing extra first
        resumed = has_checkpoint(self.out)
        words = super().encode_text()
        tokenizer = train_tokenizer(words, self.tokenizer_settings(), self.train_tokenizer)
        tokenizer.model_max_length = self.method.max_length
        if self.run.is_main_process and not resumed and len(tokenizer) > self.method.vocabulary_size:
            given = arg("vocabulary_size", self.method.vocabulary_size)
            _log.warning("the vocabulary has %d subwords: the text has more characters than %s allows", len(tokenizer), given)
        self.tokenizer = tokenizer
        with progress("encoding subwords", unit="words") as advance:
            return SubwordShards.build(words, SubwordTokenizer(tokenizer), advance)

    def resolve_defaults(self, shards: SubwordShards) -> SubwordPretraining:
        return self.method.resolve_defaults(self.run)

    @abstractmethod
    def build(self, shards: SubwordShards) -> SubwordModel: ...

    def text_fingerprint(self, shards: SubwordShards) -> dict[str, Any]:
        return {"corpus": self.corpus.fingerprint(), "vocabulary": SubwordTokenizer(self.tokenizer).fingerprint}

    def text_facts(self, shards: SubwordShards) -> dict[str, Any]:
        return {
            "text": self.corpus.source.names,
            "documents_of_text": len(shards),
            "words_of_text": shards.words(range(len(shards))),
        }
