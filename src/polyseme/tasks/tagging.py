"""Sequence labelling: a tag for each word. Names, parts of speech, chunks, Chinese words by their characters.

Characters and word vectors, a bidirectional LSTM and a CRF on top (Lample et al. 2016, Peters et al. 2017, 2018); without LSTM
layers, a softmax or a CRF straight on what is read, as a fine-tuned BERT has it (Devlin et al. 2019).

Where tags mark spans, the network learns them as BIOES and can give no impossible sequence; the score is F1 of spans as the
CoNLL scorer counts it, else the accuracy by word.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.encoders.batch import Sentence
from polyseme.metrics.accuracy import accuracy
from polyseme.metrics.classes import Confusion, confusion
from polyseme.metrics.spans import span_scores, span_statistics, spans
from polyseme.nn.crf import Crf
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
from polyseme.tasks.tag_scheme import allowed_transitions, collect_labels, from_bioes, scheme_of, to_bioes
from polyseme.tasks.tagging_config import Scheme, TaggingConfig
from polyseme.text.labelled.conll import TaggedSentence, read_conll, refuse_one_tag
from polyseme.text.labelled.text_in_context import TextInContext, document_of, in_documents
from polyseme.text.words import Splitter

_log = logging.getLogger(__name__)


class Tagging(Task):
    """A tagger; an answer is a list of tags."""

    kind = "tagging"
    config_type = TaggingConfig
    config: TaggingConfig
    multi_line = True

    def __init__(self, config: TaggingConfig, features: Features, labels: Sequence[str], cut: Splitter) -> None:
        super().__init__(config, features, labels, cut)
        assert config.scheme is not None
        self.scheme: Scheme = config.scheme
        self._ids = {label: number for number, label in enumerate(self.labels)}
        self.dropout = nn.Dropout(config.dropout)  # where there are no layers, which have their own
        self.recurrent = None
        if config.layers:
            self.recurrent = StackedBiLstm(
                features.width("input"),
                config.hidden_size,
                config.layers,
                dropout=config.dropout,
                extra_inputs=features.width("between"),
            )
        read = features.width("input") if self.recurrent is None else self.recurrent.dim
        self.scores = nn.Linear(read + features.width("output"), len(self.labels))
        moves = allowed_transitions(self.labels) if self.scheme != "plain" else {}
        self.crf = Crf(len(self.labels), **moves, learn=config.crf) if config.crf or moves else None

    @property
    def main_metric(self) -> str:  # type: ignore[override]
        """F1 of spans, or the accuracy by word."""
        return "accuracy" if self.scheme == "plain" else "f1"

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[TaggedSentence]:
        assert isinstance(config, TaggingConfig)
        column = config.column
        number = int(column) if column is not None and column.lstrip("-").isdecimal() else column
        sentences = read_conll(path, column=number)
        scheme_of(sentences, path, warn=True)  # tags that mix two ways are told by their line
        if config.document_context and len(sentences) > 1 and sentences[-1].document == 0:
            _log.warning("%s has no marks of documents (-DOCSTART-, # newdoc), so all of it is read as one", path)
        return sentences

    @classmethod
    def in_context(cls, examples: Sequence[TaggedSentence], config: TaskConfig) -> list[TaggedSentence]:
        """With `document_context`, sentences to be read in their documents; those that are already stay as they are."""
        assert isinstance(config, TaggingConfig)
        if not config.document_context or all(isinstance(example.words, TextInContext) for example in examples):
            return list(examples)
        words = in_documents([example.words for example in examples], [example.document for example in examples])
        return [replace(example, words=placed) for example, placed in zip(examples, words, strict=True)]

    def data(self, examples: Sequence[TaggedSentence]) -> TaskData:
        return super().data(self.in_context(examples, self.config))

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[TaggedSentence]) -> TaggingConfig:
        assert isinstance(config, TaggingConfig)
        return config if config.scheme else config.replace(scheme=scheme_of(examples, "the training data"))

    @classmethod
    def collect_labels(cls, examples: Sequence[TaggedSentence], config: TaskConfig) -> list[str]:
        assert isinstance(config, TaggingConfig) and config.scheme is not None
        refuse_one_tag(examples, "a tagger")
        return collect_labels([each.tags for each in examples], config.scheme)

    @classmethod
    def example_texts(cls, example: TaggedSentence, cut: Splitter) -> list[list[str]]:
        return [example.words]

    def make_targets(self, examples: Sequence[TaggedSentence], inputs: list[TextInputs]) -> Tensor:
        targets = np.zeros(tuple(inputs[0].mask.shape), dtype=np.int64)
        for row, example in enumerate(examples):
            targets[row, : len(example.tags)] = [self._ids[tag] for tag in to_bioes(example.tags, self.scheme)]
        return to_device(torch.from_numpy(targets), self.features.device)

    # ---- network

    def _scores(self, text: TextVectors) -> Tensor:
        if self.recurrent is None:
            states = self.dropout(text.at_input)
        else:
            states = self.recurrent(text.at_input, text.mask, text.lengths, text.between)
        if text.at_output is not None:
            states = torch.cat([states.float(), text.at_output.float()], dim=-1)
        return self.scores(states).float()

    def losses(self, texts: list[TextVectors], targets: Tensor) -> tuple[Tensor, int]:
        scores, mask = self._scores(texts[0]), texts[0].mask
        words = int(texts[0].lengths.sum())
        if self.crf is not None and self.config.crf:
            return self.crf.loss(scores, targets, mask).sum(), words
        return (F.cross_entropy(scores.transpose(1, 2), targets, reduction="none") * mask).sum(), words

    def answers(self, texts: list[TextVectors], examples: Sequence[TaggedSentence]) -> list[list[str]]:
        scores, mask = self._scores(texts[0]), texts[0].mask
        if self.crf is not None:
            paths = self.crf.decode(scores, mask)
        else:
            best = scores.argmax(-1).tolist()
            paths = [row[:length] for row, length in zip(best, texts[0].lengths.tolist(), strict=True)]
        return [from_bioes([self.labels[number] for number in path], self.scheme) for path in paths]

    # ---- answers

    def score(self, examples: Sequence[TaggedSentence], answers: Sequence[list[str]]) -> dict[str, float]:
        gold = [example.tags for example in examples]
        both = (itertools.chain(*(to_bioes(tags, self.scheme) for tags in side)) for side in (gold, answers))
        by_word = accuracy(*map(list, both))
        if self.scheme == "plain":
            return {"accuracy": by_word}
        found = span_scores(gold, answers)
        return {"f1": found.f1, "precision": found.precision, "recall": found.recall, "accuracy": by_word}

    def score_counts(self, examples: Sequence[TaggedSentence], answers: Sequence[list[str]]) -> np.ndarray:
        gold = [example.tags for example in examples]
        if self.scheme != "plain":
            return span_statistics(gold, answers)
        pairs = zip(gold, answers, strict=True)
        return np.array([[sum(a == b for a, b in zip(right, found, strict=True)), len(right)] for right, found in pairs])

    def predict(self, sentences: Sequence[Sentence]) -> list[TaggedSentence]:
        """The words of each sentence with their tags; a string is split into words.

        With `document_context` they are the sentences of a document, one after another; an empty one ends it, and is in none.
        """
        texts = self._asked(sentences)
        answers = self.answer(self.data(texts))
        return [TaggedSentence(text.words, tags) for text, tags in zip(texts, answers, strict=True)]

    def _asked(self, sentences: Sequence[Sentence]) -> list[TaggedSentence]:
        """Sentences without tags; an empty one is a document by itself, and what follows it another."""
        texts = [self.words(sentence) for sentence in check_texts(sentences)]
        ended = itertools.accumulate(not words for words in texts)
        return [TaggedSentence(words, [], document=2 * count - (not words)) for words, count in zip(texts, ended, strict=True)]

    def num_final(self, questions: Sequence[Sentence]) -> int:
        """All, or with `document_context` all up to the last part that is read together, which may go on."""
        if not self.config.document_context or not questions:
            return len(questions)
        last = self.in_context(self._asked(questions), self.config)[-1]
        return len(questions) - len(document_of(last.words))

    def prediction_lines(self, asked: str, answer: TaggedSentence) -> list[str]:
        """Words and their tags."""
        return [f"{word}\t{tag}" for word, tag in zip(answer.words, answer.tags, strict=True)]

    def prediction_values(self, asked: str, answer: TaggedSentence) -> dict[str, Any]:
        return {"words": answer.words, "tags": answer.tags}

    # ---- errors

    def confusion_matrix(self, examples: Sequence[TaggedSentence], answers: Sequence[list[str]]) -> Confusion | None:
        """Of tags, or of the types of spans."""
        if self.scheme == "plain":
            gold = [example.tags for example in examples]
            return confusion(list(itertools.chain(*gold)), list(itertools.chain(*answers)))
        both = zip(examples, answers, strict=True)
        return span_confusion([pair for example, tags in both for pair in self._compared(example.tags, tags).values()])

    def example_errors(
        self, examples: Sequence[TaggedSentence], answers: Sequence[list[str]], path: str | Path
    ) -> Iterator[ExampleError]:
        """Sentences by the number of their wrong words or spans."""
        for example, tags in zip(examples, answers, strict=True):
            compared = self._compared(example.tags, tags).items()
            wrong = [
                PredictionError(" ".join(example.words[slice(*place)]), *pair) for place, pair in compared if pair[0] != pair[1]
            ]
            if wrong:
                where = location(path, example.lines[0] if example.lines else None)
                yield ExampleError(where, " ".join(example.words), wrong, len(wrong))

    def _compared(self, gold: Sequence[str], tags: Sequence[str]) -> dict[tuple[int, int], tuple[str, str]]:
        """For each word, or each span of the truth or the answer, by its borders: its tag or type in both."""
        if self.scheme == "plain":
            return {(place, place + 1): pair for place, pair in enumerate(zip(gold, tags, strict=True))}
        truth, found = ({(begin, end): kind or "span" for begin, end, kind in spans(side)} for side in (gold, tags))
        return align_spans(truth, found)

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[TaggedSentence], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        assert isinstance(config, TaggingConfig)
        tags = (tag for example in examples for tag in tag_locations(example.tags, example.lines, path))
        return find_unknown_labels(tags, labels) if config.scheme == "plain" else unknown_span_types(tags, labels)
