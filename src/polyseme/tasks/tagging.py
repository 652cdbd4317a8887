"""Tagging: a tag for each word. Named entities, parts of speech, chunks, Chinese words by their characters.

Characters and word vectors, a bidirectional LSTM and a CRF (Lample et al. 2016, Peters et al. 2017, 2018); without LSTM layers,
a softmax or a CRF on the features, as for a fine-tuned BERT (Devlin et al. 2019).

Where tags mark spans, the network learns BIOES tags and predicts valid sequences only; the score is the F1 of spans as the
CoNLL scorer counts it, else the accuracy over words.
"""

from __future__ import annotations

import itertools
import logging
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.errors import FormatError, arg
from polyseme.encoders.batch import Sentence
from polyseme.metrics.accuracy import accuracy
from polyseme.metrics.classes import Confusion, confusion
from polyseme.metrics.spans import are_span_tags, span_scores, span_statistics, spans
from polyseme.nn.crf import Crf
from polyseme.nn.dropout import Dropout
from polyseme.nn.stacked_bilstm import StackedBiLstm
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import Task, check_texts
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.data import TaskData
from polyseme.tasks.error_analysis import (
    ExampleError,
    PredictionError,
    UnknownLabel,
    align_spans,
    find_unknown_labels,
    location,
    span_confusion,
    tag_locations,
    unknown_span_types,
)
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.tasks.label_checks import MIN_CLASS_EXAMPLES, merged_names, rare_problems
from polyseme.tasks.predictions import Predictions, TaggedText
from polyseme.tasks.splits import same_text
from polyseme.tasks.tag_repair import repair_tags
from polyseme.tasks.tag_scheme import allowed_transitions, from_bioes, predicted_labels, scheme_labels, scheme_of, to_bioes
from polyseme.tasks.tagging_config import Scheme, TaggingConfig
from polyseme.text.labelled.column_names import column_of
from polyseme.text.labelled.conll import TaggedSentence, read_conll, refuse_one_tag
from polyseme.text.labelled.marked_texts import LONG
from polyseme.text.labelled.tagged_shapes import EXPECTED
from polyseme.text.labelled.text_in_context import TextInContext, document_of, in_documents
from polyseme.text.splitting.alignment import join
from polyseme.text.words import Splitter

_log = logging.getLogger(__name__)
_REPEATED = 0.1  # of the words: so much is reported
_MANY_TAGS = 20
"""Data with more tags than words, and more than these, has its columns in the wrong order."""


def _repeated(examples: Sequence[TaggedSentence]) -> list[str]:
    """Say how many sentences repeat another, where they are much of the text: short ones do in any text."""
    seen: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    repeated = words = 0
    for example in examples:
        key = tuple(example.words), tuple(example.tags)
        if key in seen:
            repeated, words = repeated + 1, words + len(example.words)
        seen.add(key)
    if words <= _REPEATED * sum(len(example.words) for example in examples):
        return []
    return [f"{repeated:,} of {len(examples):,} sentences repeat another, words and tags"]


class Tagging(Task):
    """A tagger; an output is a list of tags."""

    kind = "tagging"
    config_type = TaggingConfig
    config: TaggingConfig
    multi_line = True

    def __init__(self, config: TaggingConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        assert config.scheme is not None
        self.scheme: Scheme = config.scheme
        self._ids = {label: number for number, label in enumerate(self.labels)}
        self.dropout = Dropout(config.dropout)  # without LSTM layers, which have their own
        self.recurrent = None
        if config.layers:
            self.recurrent = StackedBiLstm(
                features.width("input"),
                config.hidden_size,
                config.layers,
                dropout=config.dropout,
                extra_inputs=features.width("between"),
            )
        inputs = features.width("input") if self.recurrent is None else self.recurrent.dim
        self.scores = nn.Linear(inputs + features.width("output"), len(self.labels))
        transitions = allowed_transitions(self.labels) if self.scheme != "plain" else {}
        self.crf = Crf(len(self.labels), **transitions, learn=config.crf) if config.crf or transitions else None

    @property
    def main_metric(self) -> str:  # type: ignore[override]
        """F1 of spans, or the accuracy over words."""
        return "accuracy" if self.scheme == "plain" else "f1"

    def predicted_labels(self) -> list[str]:
        return predicted_labels(self.labels, self.scheme)

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[TaggedSentence]:
        assert isinstance(config, TaggingConfig)
        column, word_column = column_of(config.column), column_of(config.word_column)
        sentences = read_conll(path, column=column, word_column=word_column, strict=config.strict)
        if training and len(sentences) == 1 and len(sentences[0].words) > LONG:
            raise FormatError(path, f"has {len(sentences[0].words):,} words and no empty line; {EXPECTED}")
        if config.strict:
            scheme_of(sentences, path, warn=True)  # refuses mixed schemes, with the line
        elif config.scheme != "plain":
            sentences = repair_tags(sentences, path)
        if config.document_context and len(sentences) > 1 and sentences[-1].document == 0:
            _log.warning("%s does not mark documents (-DOCSTART-, # newdoc): all of it is read as one", path)
        return sentences

    @classmethod
    def merge_labels(
        cls, examples: Sequence[TaggedSentence], config: TaskConfig, known: Sequence[str] | None = None
    ) -> tuple[list[TaggedSentence], dict[str, str]]:
        """Types of spans; plain tags stay as they are."""
        counts = Counter(tag for example in examples for tag in example.tags)
        if config.strict or not are_span_tags(counts):
            return list(examples), {}
        types: Counter[str] = Counter()
        for tag, times in counts.items():
            types[tag[2:]] += times
        names = merged_names(types, None if known is None else sorted({tag[2:] for tag in known}))
        changed = {tag: tag[:2] + names[tag[2:]] for tag in counts if tag[2:] in names}
        if not changed:
            return list(examples), {}
        return [replace(each, tags=[changed.get(tag, tag) for tag in each.tags]) for each in examples], names

    @classmethod
    def data_problems(cls, examples: Sequence[TaggedSentence], config: TaskConfig) -> list[str]:
        words = {word for example in examples for word in example.words}
        tags = {tag for example in examples for tag in example.tags}
        if len(tags) <= max(_MANY_TAGS, len(words)):
            kinds = (kind or "span" for example in examples for *_, kind in spans(example.tags)) if are_span_tags(tags) else ()
            counts = Counter(kinds)
            rare = rare_problems(counts, "types of spans") if max(counts.values(), default=0) >= MIN_CLASS_EXAMPLES else []
            return [*_repeated(examples), *rare]
        wrong = f"{len(tags):,} different tags and {len(words):,} different words: are the columns swapped?"
        return [f"{wrong} {arg('column')} names that of the tags, and {arg('word_column')} that of the words"]

    @classmethod
    def with_context(cls, examples: Sequence[TaggedSentence], config: TaskConfig) -> list[TaggedSentence]:
        """With `document_context`, return sentences in their documents; those that are in one already stay as they are."""
        assert isinstance(config, TaggingConfig)
        if not config.document_context or all(isinstance(example.words, TextInContext) for example in examples):
            return list(examples)
        texts = in_documents([example.words for example in examples], [example.document for example in examples])
        return [replace(example, words=words) for example, words in zip(examples, texts, strict=True)]

    def data(self, examples: Sequence[TaggedSentence]) -> TaskData:
        return super().data(self.with_context(examples, self.config))

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[TaggedSentence]) -> TaggingConfig:
        assert isinstance(config, TaggingConfig)
        return config if config.scheme else config.replace(scheme=scheme_of(examples, "the training data"))

    @classmethod
    def split_groups(cls, examples: Sequence[TaggedSentence], config: TaskConfig) -> list[list[Hashable]]:
        return [[example.document for example in examples], [same_text(example.words) for example in examples]]

    @classmethod
    def collect_labels(cls, examples: Sequence[TaggedSentence], config: TaskConfig) -> list[str]:
        assert isinstance(config, TaggingConfig) and config.scheme is not None
        refuse_one_tag(examples, "a tagger")
        return scheme_labels([each.tags for each in examples], config.scheme)

    @classmethod
    def example_texts(cls, example: TaggedSentence, splitter: Splitter) -> list[list[str]]:
        return [example.words]

    def make_targets(self, examples: Sequence[TaggedSentence], inputs: list[TextInputs]) -> Tensor:
        targets = np.zeros(tuple(inputs[0].mask.shape), dtype=np.int64)
        for row, example in enumerate(examples):
            targets[row, : len(example.tags)] = [self._ids[tag] for tag in to_bioes(example.tags, self.scheme)]
        return to_device(torch.from_numpy(targets), self.features.device)

    baseline_name = "most frequent tag of each word"

    def majority_outputs(self, train: Sequence[TaggedSentence], examples: Sequence[TaggedSentence]) -> list[Any]:
        most = Counter(tag for example in train for tag in example.tags).most_common(1)[0][0]
        return [[most] * len(example.words) for example in examples]

    def baseline_outputs(
        self, train: Sequence[TaggedSentence], sets: Mapping[str, Sequence[TaggedSentence]]
    ) -> dict[str, list[Any]] | None:
        counts: dict[str, Counter[str]] = defaultdict(Counter)
        for example in train:
            for word, tag in zip(example.words, example.tags, strict=True):
                counts[word][tag] += 1
                counts[""][tag] += 1  # of words that the training data lacks
        best = {word: each.most_common(1)[0][0] for word, each in counts.items()}
        return {
            name: [self._repaired([best.get(word, best[""]) for word in each.words]) for each in examples]
            for name, examples in sets.items()
        }

    def _repaired(self, tags: list[str]) -> list[str]:
        """Tags in the task's scheme, whose spans are those that the tags mark."""
        return from_bioes(to_bioes(tags, self.scheme), self.scheme)

    # ---- network

    def _scores(self, text: TextVectors) -> Tensor:
        if self.recurrent is None:
            states = self.dropout(text.at_input)
        else:
            states = self.recurrent(text.at_input, text.mask, text.lengths, text.between)
        if text.at_output is not None:
            states = torch.cat([states.float(), text.at_output.float()], dim=-1)
        return self.scores(states).float()

    def summed_loss(self, texts: list[TextVectors], targets: Tensor) -> tuple[Tensor, int]:
        scores, mask = self._scores(texts[0]), texts[0].mask
        words = int(texts[0].lengths.sum())
        if self.crf is not None and self.config.crf:
            return self.crf.loss(scores, targets, mask).sum(), words
        return (F.cross_entropy(scores.transpose(1, 2), targets, reduction="none") * mask).sum(), words

    def decode(self, texts: list[TextVectors], examples: Sequence[TaggedSentence]) -> list[list[str]]:
        scores, mask = self._scores(texts[0]), texts[0].mask
        if self.crf is not None:
            paths = self.crf.decode(scores, mask)
        else:
            best = scores.argmax(-1).tolist()
            paths = [row[:length] for row, length in zip(best, texts[0].lengths.tolist(), strict=True)]
        return [from_bioes([self.labels[number] for number in path], self.scheme) for path in paths]

    # ---- predictions

    def score(self, examples: Sequence[TaggedSentence], outputs: Sequence[list[str]]) -> dict[str, float]:
        gold = [example.tags for example in examples]
        both = (itertools.chain(*(to_bioes(tags, self.scheme) for tags in side)) for side in (gold, outputs))
        by_word = accuracy(*map(list, both))
        if self.scheme == "plain":
            return {"accuracy": by_word}
        scores = span_scores(gold, outputs)
        return {"f1": scores.f1, "precision": scores.precision, "recall": scores.recall, "accuracy": by_word}

    def score_counts(self, examples: Sequence[TaggedSentence], outputs: Sequence[list[str]]) -> np.ndarray:
        gold = [example.tags for example in examples]
        if self.scheme != "plain":
            return span_statistics(gold, outputs)
        pairs = zip(gold, outputs, strict=True)
        return np.array([[sum(a == b for a, b in zip(tags, output, strict=True)), len(tags)] for tags, output in pairs])

    def predict(self, sentences: Sequence[Sentence]) -> Predictions[TaggedText]:
        """Tag the words of each sentence; a string is split into words.

        With `document_context` they are the sentences of a document, in order; an empty one ends it.
        """
        texts = self._untagged(sentences)
        outputs = self.predict_data(self.data(texts))
        marks_spans = self.scheme != "plain"
        given = [sentence if isinstance(sentence, str) else None for sentence in sentences]
        return Predictions(
            TaggedText(sentence.words, tags, marks_spans=marks_spans, text=text)
            for sentence, tags, text in zip(texts, outputs, given, strict=True)
        )

    def _untagged(self, sentences: Sequence[Sentence]) -> list[TaggedSentence]:
        """Sentences without tags; an empty one is a document by itself, and another begins after it."""
        texts = [self.words(sentence) for sentence in check_texts(sentences)]
        ended = itertools.accumulate(not words for words in texts)
        return [TaggedSentence(words, [], document=2 * count - (not words)) for words, count in zip(texts, ended, strict=True)]

    def num_final(self, inputs: Sequence[Sentence]) -> int:
        """All, or with `document_context` all before the last document, which may continue."""
        if not self.config.document_context or not inputs:
            return len(inputs)
        last = self.with_context(self._untagged(inputs), self.config)[-1]
        return len(inputs) - len(document_of(last.words))

    def example_json(self, example: TaggedSentence, output: list[str], path: str | Path) -> dict[str, Any]:
        tagged = TaggedText(example.words, output, marks_spans=self.scheme != "plain")
        return {"where": _location(example, path), "gold": self._repaired(example.tags), **tagged.to_json()}

    # ---- error analysis

    def confusion_matrix(self, examples: Sequence[TaggedSentence], outputs: Sequence[list[str]]) -> Confusion | None:
        """Of tags, or of the types of spans."""
        if self.scheme == "plain":
            gold = [example.tags for example in examples]
            return confusion(list(itertools.chain(*gold)), list(itertools.chain(*outputs)))
        both = zip(examples, outputs, strict=True)
        return span_confusion([pair for example, tags in both for pair in self._aligned(example.tags, tags).values()])

    def example_errors(
        self, examples: Sequence[TaggedSentence], outputs: Sequence[list[str]], path: str | Path
    ) -> Iterator[ExampleError]:
        """Sentences by the number of their wrong words or spans."""
        for example, tags in zip(examples, outputs, strict=True):
            aligned = self._aligned(example.tags, tags).items()
            errors = [PredictionError(join(example.words[slice(*span)]), *pair) for span, pair in aligned if pair[0] != pair[1]]
            if errors:
                yield ExampleError(_location(example, path), join(example.words), errors, len(errors))

    def _aligned(self, gold: Sequence[str], tags: Sequence[str]) -> dict[tuple[int, int], tuple[str, str]]:
        """The gold and the predicted tag of each word, or type of each span, by its begin and end."""
        if self.scheme == "plain":
            return {(position, position + 1): pair for position, pair in enumerate(zip(gold, tags, strict=True))}
        both = ({(begin, end): kind or "span" for begin, end, kind in spans(side)} for side in (gold, tags))
        return align_spans(*both)

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[TaggedSentence], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        assert isinstance(config, TaggingConfig)
        tags = (tag for example in examples for tag in tag_locations(example.tags, example.lines, path))
        return find_unknown_labels(tags, labels) if config.scheme == "plain" else unknown_span_types(tags, labels)


def _location(example: TaggedSentence, path: str | Path) -> str:
    return location(path, example.lines[0] if example.lines else None)
