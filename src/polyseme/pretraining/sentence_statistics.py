"""Statistics for sentence vectors at the end of a training: `encode` of the new model needs no further text."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import torch

from polyseme.encoders.base import Encoder
from polyseme.encoders.sentence_vectors import SAMPLE_SENTENCES, SentenceStatistics
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards

_READ = 20  # sentences to skip for each that is taken, where the text can only be read from its beginning


def sample_text(corpus: Corpus, shards: Any) -> list[list[str]]:
    """Take sentences from all parts of a text; where it is not stored as words, from its beginning."""
    if not isinstance(shards, Shards):
        return list(itertools.islice(corpus, 0, _READ * SAMPLE_SENTENCES, _READ)) or list(itertools.islice(corpus, 1))
    numbers = np.unique(np.linspace(0, len(shards) - 1, SAMPLE_SENTENCES).astype(np.int64))
    sentences = [shards.sentence(int(number)).astype(np.int64) for number in numbers]
    wanted = np.unique(np.concatenate(sentences))
    spelled: dict[int, str] = {}
    begin = 0
    for block in shards.type_blocks():
        low, high = np.searchsorted(wanted, [begin, begin + len(block)])
        spelled |= {int(each): block[int(each) - begin] for each in wanted[low:high]}
        begin += len(block)
    return [[spelled[int(each)] for each in sentence] for sentence in sentences]


def write_statistics(folder: Path, corpus: Corpus, shards: Any, device: torch.device) -> None:
    """Measure the finished model of a folder on its text, and add the result to the folder."""
    model = Encoder.from_pretrained(folder).to(device)
    SentenceStatistics.fit(model, sample_text(corpus, shards)).save(folder)
