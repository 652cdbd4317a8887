"""Reading comprehension: the span of a paragraph, or of one of several, that answers a question.

BiDAF with self-attention (Clark and Gardner 2017), the baseline of Peters et al. 2018 on SQuAD. The paragraphs of a question
are read one by one and scored under one softmax, so that their answers can be compared. The loss is the summed probability of
all gold spans. An answer is copied from the text as given, with its position there. A BERT can read question and paragraph
together instead, with a layer of scores (`linear`; `polyseme.tasks.span_head`).

Files are SQuAD's JSON (`polyseme.text.labelled.squad`). Scores are those of SQuAD's and CMRC's scripts
(`polyseme.metrics.reading`).
"""

from __future__ import annotations

import dataclasses
import logging
import math
import re
from collections.abc import Hashable, Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError, arg
from polyseme.encoders.batch import Sentence
from polyseme.metrics.classes import Confusion, confusion
from polyseme.metrics.reading import ScoringRules, answer_f1, exact_match
from polyseme.nn.attention import MASKED_SCORE
from polyseme.nn.networks.bidaf import AnswerScores, Bidaf, best_spans, shared_log_total
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import TaskBatch, as_text, as_words, joined, to_words
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.data import ExampleBatch, TaskData
from polyseme.tasks.error_analysis import ExampleError, UnknownLabel, location, unknown_example_labels
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.tasks.predictions import Answer, Predictions, with_lines
from polyseme.tasks.reading_config import ReadingConfig
from polyseme.tasks.reading_data import (
    Paragraph,
    ReadingData,
    TokenizedQuestion,
    split_paragraph,
    truncate_paragraphs,
    word_spans,
)
from polyseme.tasks.sentence_pair import SentencePairTask
from polyseme.tasks.span_head import SpanHead
from polyseme.tasks.splits import same_text
from polyseme.text.labelled.squad import ANSWER, NO_ANSWER, AnswerSpan, ReadingQuestion, SquadData, read_squad
from polyseme.text.splitting.characters import CJK
from polyseme.text.words import Splitter

_log = logging.getLogger(__name__)
_CHINESE = re.compile(f"[{CJK}]")
Paragraphs = str | Sequence[Sentence]
"""One text, or several; each of several may be words."""


@dataclass(frozen=True)
class _Targets:
    """What the loss compares with."""

    counts: list[int]
    """Paragraphs of each question."""
    owner: Tensor
    """(paragraphs,): the question of each."""
    start: Tensor
    """(paragraphs, words): True where a gold answer begins."""
    end: Tensor
    """(paragraphs, words): True where one ends."""
    spans: list[Tensor]
    """For each question its gold answers, (answers, 3): row of the paragraph, first and last word; empty: no answer."""


class Reading(SentencePairTask):
    """Answers questions with spans of paragraphs; an output is an `Answer`."""

    kind = "reading"
    config_type = ReadingConfig
    config: ReadingConfig
    main_metric = "f1"
    pair_description = "a question and a paragraph"

    def __init__(self, config: ReadingConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        assert config.rules is not None
        self.rules: ScoringRules = config.rules
        self.network: Bidaf | SpanHead
        if config.is_linear:
            self.network = SpanHead(features, dropout=config.dropout, none=bool(config.allow_no_answer))
            return
        self.network = Bidaf(
            features.width("input"),
            own=features.words.dim,
            hidden_size=config.hidden_size,
            dropout=config.dropout,
            output_inputs=features.width("output"),
            no_answer=bool(config.allow_no_answer),
        )

    @property
    def reads_words(self) -> bool:
        return not self.config.is_linear

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[ReadingQuestion]:
        found = read_squad(path, strict=config.strict)
        unknown = [question for question in found.questions if question.answers is None]
        if unknown and not config.strict and len(unknown) < len(found.questions):
            skipped = f"{len(unknown):,} of {len(found.questions):,} questions"
            _log.warning("%s: skipped %s without 'answers', such as %r", path, skipped, unknown[0].text)
            found = dataclasses.replace(found, questions=[each for each in found.questions if each.answers is not None])
        elif unknown:
            what = f"{len(unknown)} of {len(found.questions)} questions have no 'answers', such as {unknown[0].text!r}"
            raise FormatError(path, f"{what}; training and scores need them (an empty list where there is no answer)")
        lost = [question for question in found.questions if question.answers and not question.spans]
        _warn(path, found, len(lost), training)
        kept = [question for question in found.questions if question.spans or not question.answers]
        if training and not kept:
            raise FormatError(path, f"has no question to train on: none of {found.answers} answers is in its paragraph")
        return kept if training else found.questions

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[ReadingQuestion]) -> ReadingConfig:
        assert isinstance(config, ReadingConfig)
        gold = _gold(examples)
        lost = [example for example in examples if example.answers and not example.spans]
        if lost:
            given = f"{len(lost)} of {len(examples)} questions have answers without spans, such as {lost[0].text!r}"
            raise UsageError(f"{given}: give their spans, or remove them from the training data")
        without = sum(not answers for answers in gold)
        if config.allow_no_answer is False and without:
            raise ConfigError(f"{without} training questions have no answer: omit {arg('allow_no_answer', False)}")
        config = config.replace(allow_no_answer=bool(without) if config.allow_no_answer is None else config.allow_no_answer)
        if config.is_linear:
            config = config.replace(features=config.features.for_linear_head())
        return config if config.rules is not None else config.replace(rules=_rules(gold))

    @classmethod
    def split_groups(cls, examples: Sequence[ReadingQuestion], config: TaskConfig) -> list[list[Hashable]]:
        return [[same_text(*example.paragraphs) for example in examples]]

    @classmethod
    def collect_labels(cls, examples: Sequence[ReadingQuestion], config: TaskConfig) -> list[str]:
        assert isinstance(config, ReadingConfig)
        return [ANSWER, NO_ANSWER] if config.allow_no_answer else [ANSWER]

    @classmethod
    def example_texts(cls, example: ReadingQuestion, splitter: Splitter) -> list[list[str]]:
        return [to_words(example.question, splitter), *(to_words(text, splitter) for text in example.paragraphs)]

    def data(self, examples: Sequence[ReadingQuestion]) -> TaskData:
        split: dict[str, Paragraph] = {}  # several questions share a paragraph
        questions = []
        for example in examples:
            paragraphs = [split_paragraph(text, self.splitter, split) for text in example.paragraphs]
            questions.append(TokenizedQuestion(example, paragraphs, word_spans(example.spans, paragraphs)))
        return ReadingData(questions, [self.words(example.question) for example in examples])

    # ---- training

    def prepare(self, batch: ExampleBatch) -> TaskBatch:
        most = self.config.max_paragraph_length
        if all(len(text) <= most for text in batch.texts[1]):
            return super().prepare(batch)
        if batch.cached is None and self.features.frozen:  # frozen encoders read whole paragraphs, cached or not
            read = [self.features.prepare(texts).frozen for texts in batch.texts]
            batch = dataclasses.replace(batch, cached=[[layers.cpu() for layers in each] for each in read])
        return super().prepare(truncate_paragraphs(batch, most))

    def _inputs(self, batch: ExampleBatch) -> list[Any]:
        if not isinstance(self.network, SpanHead):
            return super()._inputs(batch)
        pairs = zip(batch.examples, batch.texts[0], strict=True)
        questions = [words for question, words in pairs for _ in question.paragraphs]
        return [self.network.prepare(questions, batch.texts[1])]

    def vectors(self, inputs: Sequence[Any], *, training: bool = False) -> list[Any]:
        if not isinstance(self.network, SpanHead):
            return super().vectors(inputs, training=training)
        return [self.network.encode(each) for each in inputs]

    def make_targets(self, examples: Sequence[TokenizedQuestion], inputs: list[TextInputs]) -> _Targets:
        counts = [len(question.paragraphs) for question in examples]
        start, end = (torch.zeros(inputs[-1].mask.shape, dtype=torch.bool) for _ in range(2))
        spans, row = [], 0
        for question in examples:
            if not question.gold and (question.question.answers or not self.config.allow_no_answer):
                raise UsageError(
                    f"the question {question.question.text!r} has no gold span: give spans, or answers=() for no answer, "
                    f"where the network has {arg('allow_no_answer', True)}"
                )
            gold = [[row + paragraph, first, last] for paragraph, first, last in question.gold]
            spans.append(torch.tensor(gold, dtype=torch.int64).reshape(-1, 3))
            start[spans[-1][:, 0], spans[-1][:, 1]] = True
            end[spans[-1][:, 0], spans[-1][:, 2]] = True
            row += len(question.paragraphs)
        device = self.features.device
        return _Targets(
            counts,
            _owner(counts, device),
            to_device(start, device),
            to_device(end, device),
            [to_device(some, device) for some in spans],
        )

    def summed_loss(self, texts: list[TextVectors], targets: _Targets) -> tuple[Tensor, int]:
        scores, counts = self._scores(texts, targets.owner), targets.counts
        total = _log_total(scores, counts)
        if scores.none is not None:
            none = shared_log_total(scores.none, counts)
            found = [scores.start[some[:, 0], some[:, 1]] + scores.end[some[:, 0], some[:, 2]] for some in targets.spans]
            right = torch.stack([each.logsumexp(0) if len(each) else none[row] for row, each in enumerate(found)])
        else:
            right = shared_log_total(scores.start.masked_fill(~targets.start, MASKED_SCORE), counts)
            right = right + shared_log_total(scores.end.masked_fill(~targets.end, MASKED_SCORE), counts)
        return (total - right).sum(), len(counts)

    def _scores(self, texts: list[Any], owner: Tensor) -> AnswerScores:
        scores: AnswerScores
        if isinstance(self.network, SpanHead):
            scores = self.network(*texts)
            return scores
        question, paragraphs = texts
        if question.at_output is None or paragraphs.at_output is None:
            at_output = None
        else:
            at_output = question.at_output, paragraphs.at_output
        scores = self.network(
            (question.at_input, paragraphs.at_input),
            (question.mask, paragraphs.mask),
            owner,
            (question.lengths, paragraphs.lengths),
            at_output,
        )
        return scores

    # ---- predictions

    def decode(self, texts: list[TextVectors], examples: Sequence[TokenizedQuestion]) -> list[Answer]:
        counts = [len(question.paragraphs) for question in examples]
        scores = self._scores(texts, _owner(counts, self.features.device))
        best, first, last = (each.cpu() for each in best_spans(scores.start, scores.end, self.config.max_answer_length))
        total = _log_total(scores, counts)
        none = None if scores.none is None else (shared_log_total(scores.none, counts) - total).exp().tolist()
        split = zip(best.split(counts), first.split(counts), last.split(counts), total.tolist(), strict=True)
        answers = []
        for number, (question, (score, begin, end, log_total)) in enumerate(zip(examples, split, strict=True)):
            chosen = int(score.argmax())
            probability = math.exp(min(float(score[chosen]) - log_total, 0.0))
            paragraph = question.paragraphs[chosen]
            if not paragraph.words or (none is not None and none[number] > probability):
                answers.append(Answer("", None, 0.0 if none is None else none[number]))
                continue
            span = AnswerSpan(chosen, paragraph.spans[int(begin[chosen])][0], paragraph.spans[int(end[chosen])][1])
            answers.append(Answer(paragraph.text[span.begin : span.end], span, probability, paragraph.text))
        return answers

    def score(self, examples: Sequence[ReadingQuestion], outputs: Sequence[Answer]) -> dict[str, float]:
        """Return the means of F1 and exact match over questions."""
        pairs = list(zip(_gold(examples), outputs, strict=True))
        if not pairs:
            raise UsageError("there are no questions to score")
        f1 = [answer_f1(answer.text, gold, self.rules) for gold, answer in pairs]
        exact = [exact_match(answer.text, gold, self.rules) for gold, answer in pairs]
        return {"f1": sum(f1) / len(f1), "exact": sum(exact) / len(exact)}

    def score_counts(self, examples: Sequence[ReadingQuestion], outputs: Sequence[Answer]) -> np.ndarray:
        pairs = zip(_gold(examples), outputs, strict=True)
        return np.array([[answer_f1(answer.text, gold, self.rules), 1.0] for gold, answer in pairs]).reshape(-1, 2)

    def predict(self, questions: Sequence[tuple[Sentence, Paragraphs]]) -> Predictions[Answer]:
        """Answer each question from its paragraph: a string, or a list of several (strings, or lists of words)."""
        examples = []
        for pair in questions:
            if isinstance(pair, str) or not isinstance(pair, Sized) or len(pair) != 2:
                raise UsageError(f"expected a question and its paragraph, such as ('Who ran?', 'Ann ran.'); got {pair!r}")
            question, given = pair
            several = [given] if isinstance(given, str) else as_words(given)
            paragraphs = tuple(as_text(text) for text in several)
            examples.append(ReadingQuestion(as_text(question), paragraphs))
        return with_lines(self.predict_data(self.data(examples)), [_line(each) for each in examples])

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> tuple[Sentence, list[Sentence]]:
        """Return a question, and a list of one paragraph."""
        question, paragraph = super().parse_line(line, where, split_on_spaces=split_on_spaces)
        return question, [paragraph]

    def example_json(self, example: ReadingQuestion, output: Answer, path: str | Path) -> dict[str, Any]:
        gold = {"where": _location(example, path), "gold": list(_gold([example])[0])}
        return {**gold, **output.to_json(_line(example))}

    # ---- error analysis

    def confusion_matrix(self, examples: Sequence[ReadingQuestion], outputs: Sequence[Answer]) -> Confusion | None:
        """Whether there is an answer, where the network may say that there is none."""
        if not self.config.allow_no_answer:
            return None
        return confusion([str(example.label) for example in examples], [output.label for output in outputs])

    def example_errors(
        self, examples: Sequence[ReadingQuestion], outputs: Sequence[Answer], path: str | Path
    ) -> Iterator[ExampleError]:
        """Questions by 1 - F1 of their answers, with all gold answers."""
        for example, gold, output in zip(examples, _gold(examples), outputs, strict=True):
            lacking = 1.0 - answer_f1(output.text, gold, self.rules)
            if lacking > 0:
                right = " / ".join(dict.fromkeys(map(_one_line, gold))) or NO_ANSWER
                given = _one_line(output.text) or NO_ANSWER
                where, question = _location(example, path), _one_line(example.text)
                yield ExampleError.single(where, question, right, given, lacking, probability=output.score)

    @classmethod
    def unknown_labels(
        cls, examples: Sequence[ReadingQuestion], labels: Sequence[str], config: TaskConfig, path: str | Path
    ) -> list[UnknownLabel]:
        """Questions without an answer, where the network always gives one."""
        return unknown_example_labels(examples, labels, path)


# ---- examples


def _warn(path: str | Path, found: SquadData, lost: int, training: bool) -> None:
    """Warn of answers that are not where the file says."""
    kinds = (
        (found.repaired, "are not at their answer_start, and were found elsewhere"),
        (found.unplaced, "are not in their paragraphs: they count in scores, but not in training"),
    )
    for some, what in kinds:
        if some:
            first = f"the first: {some[0].where}, {some[0].text!r}"
            _log.warning("%s: %d of %d answers %s (%s)", path, len(some), found.answers, what, first)
    if lost and training:
        _log.warning("%s: skipped %d of %d questions, without an answer to train on", path, lost, len(found.questions))


def _location(example: ReadingQuestion, path: str | Path) -> str:
    return location(path, example.where) + (f" ({example.id})" if example.id else "")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _gold(examples: Sequence[ReadingQuestion]) -> list[tuple[str, ...]]:
    """Return the gold answers of all questions; refuse questions without."""
    found = [example.answers for example in examples if example.answers is not None]
    if len(found) < len(examples):
        missing = len(examples) - len(found)
        raise UsageError(f"{missing} of {len(examples)} questions have no answers; training and scores need them")
    return found


def _rules(gold: Sequence[Sequence[str]]) -> ScoringRules:
    """Return CMRC's rules for Chinese, else those of SQuAD's version."""
    texts = [answer for answers in gold for answer in answers]
    if 2 * sum(_CHINESE.search(text) is not None for text in texts) > len(texts):
        return "cmrc"
    return "squad" if all(gold) else "squad2"


# ---- scores


def _owner(counts: Sequence[int], device: torch.device) -> Tensor:
    """(paragraphs,): the question of each."""
    return to_device(torch.repeat_interleave(torch.arange(len(counts)), torch.tensor(counts, dtype=torch.int64)), device)


def _log_total(scores: AnswerScores, counts: Sequence[int]) -> Tensor:
    """Return the normalizer of each question, (questions,): all starts times all ends of its paragraphs.

    Where "no answer" is possible, starts pair with the ends of their own paragraph only.
    """
    if scores.none is None:
        return shared_log_total(scores.start, counts) + shared_log_total(scores.end, counts)
    spans = scores.start.logsumexp(1) + scores.end.logsumexp(1)
    return torch.logaddexp(shared_log_total(spans, counts), shared_log_total(scores.none, counts))


def _line(question: ReadingQuestion) -> str:
    """The texts as a line of `polyseme predict`."""
    return "\t".join(map(joined, (question.question, *question.paragraphs)))
