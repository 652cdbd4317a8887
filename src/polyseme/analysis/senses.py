"""Which sense a word has, by the nearest sense in training: word-sense disambiguation without a classifier.

As in Peters et al. 2018, section 5.3. A sense is the mean of the unit vectors of its occurrences in training; a word gets the
sense with the highest cosine among those of its lemma and part of speech. The baseline is the most frequent of these. A lemma
that the training data lacks has no answer, and counts as wrong among all words.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from polyseme.analysis.probe_result import ProbeResult
from polyseme.analysis.search import normalised
from polyseme.analysis.sense_data import Instance, Lemma, SenseSentence
from polyseme.analysis.span_vectors import layer_views, span_vector_blocks, span_vectors
from polyseme.base.errors import PolysemeError
from polyseme.encoders.base import Encoder

SEEN, ALL = "accuracy on seen", "accuracy on all"
Senses = Mapping[Lemma, Counter[str]]
"""How often each lemma has each sense."""


def probe_senses(encoder: Encoder, train: Sequence[SenseSentence], test: Sequence[SenseSentence]) -> ProbeResult:
    """Return the accuracy of each layer, on words whose lemma the training data has, and on all."""
    senses = count_senses(train)
    asked = [instance for sentence in test for instance in sentence.instances]
    if not any(instance.lemma in senses for instance in asked):
        raise PolysemeError(f"none of the {len(asked)} words in the test data has a lemma of the training data")
    centroids = _centroids(encoder, train, _ambiguous(senses, asked))
    vectors = span_vectors(
        encoder,
        [sentence.words for sentence in test],
        [[instance.span for instance in sentence.instances] for sentence in test],
        around=True,
        title="embedding the test data",
    )
    frequent = [most_frequent(senses, instance) for instance in asked]
    rows = {
        name: _scores(asked, _nearest(asked, frequent, view, centroids[name]))
        for name, view in layer_views(vectors, around=True).items()
    }
    return ProbeResult(
        title=f"senses of {len(asked):,} words",
        measures=(SEEN, ALL),
        rows=rows,
        baselines={"most frequent sense": _scores(asked, frequent)},
        facts={
            "test_words": len(asked),
            "seen_words": sum(answer is not None for answer in frequent),
            "training_words": sum(len(sentence.instances) for sentence in train),
        },
    )


def count_senses(train: Sequence[SenseSentence]) -> dict[Lemma, Counter[str]]:
    """Count the senses of each lemma in training."""
    found: defaultdict[Lemma, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for instance in sentence.instances:
            found[instance.lemma].update(instance.synsets)
    return dict(found)


def most_frequent(senses: Senses, instance: Instance) -> str | None:
    """Return the most frequent sense of a word in training, the first among equals; None if its lemma is unknown."""
    counts = senses.get(instance.lemma)
    return counts.most_common(1)[0][0] if counts else None


def _ambiguous(senses: Senses, asked: Sequence[Instance]) -> Senses:
    """Return the lemmas of the test data that have several senses, which need vectors."""
    return {each.lemma: senses[each.lemma] for each in asked if len(senses.get(each.lemma, ())) > 1}


class _Centroids:
    """The senses of lemmas as rows of one table (senses, dim)."""

    def __init__(self, senses: Senses, dim: int) -> None:
        keys = [(lemma, synset) for lemma, counts in senses.items() for synset in counts]
        self.row = {key: number for number, key in enumerate(keys)}
        self.senses = {lemma: [synset for synset, _ in counts.most_common()] for lemma, counts in senses.items()}
        self.table = np.zeros((len(keys), dim), dtype=np.float32)

    def add(self, instances: Sequence[Instance], vectors: NDArray[np.float32]) -> None:
        """Add occurrences to their senses; cosines do not need means."""
        pairs = [(self.row[each.lemma, synset], at) for at, each in enumerate(instances) for synset in each.synsets]
        rows, occurrences = zip(*pairs, strict=True)
        np.add.at(self.table, list(rows), normalised(vectors)[list(occurrences)])

    def nearest(self, lemma: Lemma, vector: NDArray[np.float32]) -> str:
        """Return the sense of a lemma with the highest cosine, to six digits; the more frequent among equals."""
        rows = [self.row[lemma, synset] for synset in self.senses[lemma]]
        cosines = normalised(self.table[rows]) @ normalised(vector)
        return self.senses[lemma][int(np.argmax(np.round(cosines, 6)))]


def _centroids(encoder: Encoder, train: Sequence[SenseSentence], wanted: Senses) -> dict[str, _Centroids]:
    """Compute the senses of the wanted lemmas for each view of the layers; other sentences are not embedded."""
    sentences, spans, instances = [], [], []
    for sentence in train:
        chosen = [instance for instance in sentence.instances if instance.lemma in wanted]
        if chosen:
            sentences.append(sentence.words)
            spans.append([instance.span for instance in chosen])
            instances += chosen
    shapes = layer_views(np.zeros((encoder.layers + 1, 0, encoder.dim), dtype=np.float32), around=True)
    found = {name: _Centroids(wanted, view.shape[1]) for name, view in shapes.items()}
    begin = 0
    for block in span_vector_blocks(encoder, sentences, spans, around=True, title="embedding the training data"):
        some = instances[begin : begin + block.shape[1]]
        for name, vectors in layer_views(block, around=True).items():
            found[name].add(some, vectors)
        begin += len(some)
    return found


def _nearest(
    asked: Sequence[Instance], frequent: Sequence[str | None], vectors: NDArray[np.float32], centroids: _Centroids
) -> list[str | None]:
    """Return the answer for each word; with one sense or none in training there is nothing to choose."""
    pairs = zip(asked, frequent, vectors, strict=True)
    return [centroids.nearest(each.lemma, vector) if each.lemma in centroids.senses else only for each, only, vector in pairs]


def _scores(asked: Sequence[Instance], answers: Sequence[str | None]) -> dict[str, float]:
    right = sum(answer in each.synsets for each, answer in zip(asked, answers, strict=True))
    answered = sum(answer is not None for answer in answers)
    return {SEEN: right / answered, ALL: right / len(asked)}
