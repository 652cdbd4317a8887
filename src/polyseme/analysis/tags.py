"""Tags of words (parts of speech, names) by a linear probe on each layer, and on a mix of them.

As in Peters et al. 2018, section 5.3, and Liu et al. 2019. The baseline is the most frequent tag of a word in training.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import accumulate, chain, pairwise

import numpy as np
import torch

from polyseme.analysis.config import ProbeConfig
from polyseme.analysis.linear_probe import LinearProbe, fit_linear_probe
from polyseme.analysis.probe_result import ProbeResult
from polyseme.analysis.span_vectors import token_vectors
from polyseme.base.errors import PolysemeError, arg
from polyseme.encoders.base import Encoder
from polyseme.metrics.accuracy import accuracy
from polyseme.metrics.spans import are_span_tags, span_scores
from polyseme.text.labelled.conll import TaggedSentence, refuse_one_tag


def probe_tags(
    encoder: Encoder,
    train: Sequence[TaggedSentence],
    test: Sequence[TaggedSentence],
    *,
    resplit: bool = False,
    config: ProbeConfig | None = None,
) -> ProbeResult:
    """Return the accuracy of each layer and of the learned mix; for span tags, F1 too.

    `resplit`: the model splits text differently than the data (see `polyseme.analysis.span_vectors.token_vectors`).
    """
    config = config or ProbeConfig()
    gold, names = _checked(train, test)
    spans = are_span_tags(chain(names, *gold))
    known = {name: number for number, name in enumerate(names)}
    labels = np.array([known[tag] for tags in train for tag in tags.tags], dtype=np.int64)
    vectors = token_vectors(encoder, [each.words for each in train], resplit=resplit, title="embedding the training data")
    tested = token_vectors(encoder, [each.words for each in test], resplit=resplit, title="embedding the test data")
    rows: dict[str, dict[str, float]] = {}
    facts: dict[str, object] = {"training_words": len(labels), "test_words": tested.shape[1], "tags": len(names)}
    slices = {f"layer {number}": slice(number, number + 1) for number in range(encoder.layers)}
    if encoder.layers > 1:
        slices["mix"] = slice(None)
    for row, layers in slices.items():
        probe = fit_linear_probe(vectors[layers], labels, len(names), config, device=encoder.device, title=f"probing {row}")
        rows[row] = _scores(gold, [names[number] for number in probe.predict(tested[layers])], spans=spans)
        facts |= _mix_facts(probe)
    baseline = _scores(gold, list(chain.from_iterable(most_frequent_tags(train, test))), spans=spans)
    return ProbeResult(
        title=f"tags of {tested.shape[1]:,} words",
        measures=tuple(baseline),
        rows=rows,
        baselines={"most frequent tag": baseline},
        facts=facts,
    )


def most_frequent_tags(train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> list[list[str]]:
    """Return the most frequent training tag of each word; for an unseen word, the most frequent tag of all."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for sentence in train:
        for word, tag in zip(sentence.words, sentence.tags, strict=True):
            counts[word][tag] += 1
    overall = sum(counts.values(), Counter[str]()).most_common(1)[0][0]
    by_word = {word: tags.most_common(1)[0][0] for word, tags in counts.items()}
    return [[by_word.get(word, overall) for word in sentence.words] for sentence in test]


def _checked(train: Sequence[TaggedSentence], test: Sequence[TaggedSentence]) -> tuple[list[list[str]], list[str]]:
    """Return the gold tags, and the tags that a probe can predict."""
    for name, data in (("training", train), ("test", test)):
        if not any(sentence.words for sentence in data):
            raise PolysemeError(f"the {name} data has no words")
    refuse_one_tag(train, "a probe")
    names = sorted({tag for sentence in train for tag in sentence.tags})
    gold = [sentence.tags for sentence in test]
    if not set(names) & set(chain.from_iterable(gold)):
        some = ", ".join(sorted(set(chain.from_iterable(gold)))[:3])
        raise PolysemeError(
            f"training and test data have no tag in common: {', '.join(names[:3])} ... and {some} ...; choose another "
            f"{arg('column')}"
        )
    return gold, names


def _scores(gold: list[list[str]], predicted: list[str], *, spans: bool) -> dict[str, float]:
    flat = list(chain.from_iterable(gold))
    scores = {"accuracy": accuracy(flat, predicted)}
    if spans:
        ends = list(accumulate(map(len, gold), initial=0))
        found = span_scores(gold, [predicted[begin:end] for begin, end in pairwise(ends)])
        scores = {"F1": found.f1, "precision": found.precision, "recall": found.recall, **scores}
    return scores


def _mix_facts(probe: LinearProbe) -> dict[str, object]:
    if probe.mix is None:
        return {}
    weights = torch.softmax(probe.mix.weights.detach(), 0).tolist()
    return {"mix_weights": [round(weight, 4) for weight in weights], "mix_gamma": round(probe.mix.gamma.item(), 4)}
