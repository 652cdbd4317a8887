"""Coreference: which words of a document mean the same thing, and are put into one cluster.

End-to-end span ranking (Lee et al. 2017 and 2018, `polyseme.nn.networks.span_ranking`), the baseline of Peters et al. 2018 on
OntoNotes. An example is a document; its sentences are read one by one, by encoders and by an LSTM, so that frozen layers are
kept on the disk as in other tasks, and a document may be as long as a book. Of a long one training looks at some sentences,
others each time.

Files are JSON lines or the columns of CoNLL-2012 (`polyseme.text.labelled.coreference`). The score is the mean F1 of MUC, B3
and CEAF (`polyseme.metrics.coreference`). Unless `singletons` are asked for, what is mentioned once is neither given nor
counted.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from polyseme.base.errors import FormatError, UsageError
from polyseme.metrics.coreference import conll_score, coreference_scores_from_sums, coreference_statistics
from polyseme.metrics.spans import PRFScore
from polyseme.nn.networks.span_ranking import DocumentWords, SpanRanker, SpanRankerConfig, SpanRanking
from polyseme.nn.stacked_bilstm import StackedBiLstm
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import Task, TaskBatch, check_texts
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.coreference_config import CoreferenceConfig
from polyseme.tasks.data import ExampleBatch, TaskData
from polyseme.tasks.error_analysis import ExampleError, PredictionError, location
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.text.batching.batches import batch_by_words
from polyseme.text.labelled.coreference import CoreferenceDocument, Mention, read_coreference
from polyseme.text.sentences import SentenceSplitter
from polyseme.text.splitting.alignment import join
from polyseme.text.splitting.characters import CJK
from polyseme.text.splitting.offsets import word_offsets
from polyseme.text.words import Splitter
from polyseme.training.base import Loss

_log = logging.getLogger(__name__)
_CHINESE = re.compile(f"[{CJK}]")
_TOGETHER = 4096  # words of documents, and of sentences, that are read together when they are answered
Clusters = list[list[Mention]]
Text = str | Sequence[str] | Sequence[Sequence[str]] | CoreferenceDocument
"""A text to be split, the words of a sentence, sentences of words, or a document whose clusters are not looked at."""


@dataclass(frozen=True, slots=True)
class MentionSpan:
    """A mention as it stands in its text."""

    text: str
    first: int
    """Word, counted from 0 through the text."""
    last: int
    """Word, itself in the mention."""
    begin: int
    """Character of the text."""
    end: int
    """The character behind it."""


@dataclass(frozen=True, slots=True)
class CoreferencePrediction:
    """A text and what in it means the same."""

    text: str
    """As it was given; words are joined by blanks."""
    sentences: list[list[str]]
    clusters: list[list[MentionSpan]]

    def to_lines(self, asked: str) -> list[str]:
        """The text with its mentions in brackets, and then each cluster on a line."""
        rows = [[str(number), *(each.text for each in some)] for number, some in enumerate(self.clusters, 1)]
        return [self.marked(), *("\t".join(" ".join(cell.split()) for cell in row) for row in rows)]

    def to_values(self, asked: str) -> dict[str, Any]:
        """With sentences and clusters of first and last words, as JSON lines of labelled data have them."""
        return {
            "text": self.text,
            "sentences": self.sentences,
            "clusters": [[[each.first, each.last] for each in cluster] for cluster in self.clusters],
            "mentions": [[{"text": each.text, "place": [each.begin, each.end]} for each in some] for some in self.clusters],
        }

    def marked(self) -> str:
        """The text with its mentions in brackets: `[1 Ann] saw [2 Bob]. [1 She] left.`"""
        mentions = [(each, number) for number, some in enumerate(self.clusters, 1) for each in some]
        begins: dict[int, str] = {}
        ends: dict[int, str] = {}
        for each, number in sorted(mentions, key=lambda pair: -pair[0].end):  # of two that begin here the longer comes first
            begins[each.begin] = begins.get(each.begin, "") + f"[{number} "
            ends[each.end] = ends.get(each.end, "") + "]"
        signs = [*(f"{ends.get(at, '')}{begins.get(at, '')}{sign}" for at, sign in enumerate(self.text))]
        return "".join(signs) + ends.get(len(self.text), "")


@dataclass(frozen=True)
class _Target:
    """What is known of a document."""

    sentences: Tensor
    """(words,): the number of each word's sentence."""
    speakers: Tensor
    """(words,): the number of who speaks, 0 where that is not known."""
    clusters: Mapping[Mention, int]
    """The number of each right mention's cluster, from 1."""

    @property
    def mentions(self) -> Tensor:
        """(mentions, 2): first and last words of what is in a cluster."""
        return torch.tensor(list(self.clusters), dtype=torch.int64).reshape(-1, 2)


class _Documents(TaskData):
    """Documents and their sentences; the text of a batch are all sentences of its documents, one after another."""

    def __init__(self, documents: Sequence[CoreferenceDocument]) -> None:
        super().__init__(documents, [document.sentences for document in documents])
        self.lengths = [sum(map(len, sentences)) for sentences in self.texts]

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        return self._sentences([self.examples[row] for row in rows], [text for row in rows for text in self.texts[row]])

    def pieces(self, rows: Sequence[int]) -> Iterator[tuple[list[int], ExampleBatch]]:
        """All sentences of some documents once, those of like length together, with their places among them."""
        texts = [text for row in rows for text in self.texts[row]]
        for batch in batch_by_words([len(text) for text in texts], words=_TOGETHER, batch_size=_TOGETHER // 8):
            places = batch.tolist()
            yield places, self._sentences([], [texts[place] for place in places])

    def _sentences(self, examples: list[CoreferenceDocument], texts: list[list[str]]) -> ExampleBatch:
        cached = None
        if self._caches is not None:
            cached = [[self._layers(cache, texts) for cache in self._caches]]
        return ExampleBatch(examples, [texts], cached)


class Coreference(Task):
    """A finder of what means the same; an answer is a list of clusters, each a list of first and last words."""

    kind = "coreference"
    main_metric = "f1"
    multi_line = True
    config_type = CoreferenceConfig
    config: CoreferenceConfig

    def __init__(self, config: CoreferenceConfig, features: Features, labels: Sequence[str], cut: Splitter) -> None:
        super().__init__(config, features, labels, cut)
        self.recurrent = StackedBiLstm(features.width("input"), config.hidden_size, config.layers, dropout=config.dropout)
        self.ranker = SpanRanker(
            self.recurrent.dim + features.width("output"),
            features.words.dim,
            SpanRankerConfig(
                hidden_size=config.scorer_size,
                feature_size=config.feature_dim,
                max_span_width=config.max_span_width,
                spans_per_word=config.spans_per_word,
                max_antecedents=config.max_antecedents,
                dropout=config.scorer_dropout,
            ),
        )

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[CoreferenceDocument]:
        assert isinstance(config, CoreferenceConfig)
        found = read_coreference(path)
        clusters = [cluster for document in found for cluster in document.clusters]
        if training and not clusters:
            raise FormatError(path, f"has {len(found)} documents, but no cluster in any: there is nothing to learn")
        if training and not config.singletons and max(map(len, clusters)) < 2:
            what = "has no cluster of two mentions, so nothing refers to anything"
            raise FormatError(path, f"{what}; give --singletons where single mentions are to be found")
        if training:
            _tell_long_ones(path, [last - first + 1 for cluster in clusters for first, last in cluster], config.max_span_width)
        return found

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[CoreferenceDocument]) -> CoreferenceConfig:
        assert isinstance(config, CoreferenceConfig)
        if config.sentence_splitter is not None:
            return config
        words = [word for document in examples for sentence in document.sentences for word in sentence]
        chinese = 2 * sum(_CHINESE.search(word) is not None for word in words) > len(words)
        return config.replace(sentence_splitter="chinese" if chinese else "english")

    @classmethod
    def collect_labels(cls, examples: Sequence[CoreferenceDocument], config: TaskConfig) -> list[str]:
        return ["mention"]

    @classmethod
    def example_texts(cls, example: CoreferenceDocument, cut: Splitter) -> list[list[str]]:
        return example.sentences

    def data(self, examples: Sequence[CoreferenceDocument]) -> TaskData:
        """Documents with the clusters that count."""
        return _Documents([dataclasses.replace(each, clusters=self._counted(each.clusters)) for each in examples])

    def _counted(self, clusters: Clusters) -> Clusters:
        return [cluster for cluster in clusters if self.config.singletons or len(cluster) > 1]

    def make_targets(self, examples: Sequence[CoreferenceDocument], inputs: list[TextInputs]) -> list[_Target]:
        return [self._target(example) for example in examples]

    def _target(self, document: CoreferenceDocument) -> _Target:
        lengths = torch.tensor([len(sentence) for sentence in document.sentences], dtype=torch.int64)
        sentences = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        numbers = {name: number for number, name in enumerate(dict.fromkeys(filter(None, document.speakers)), 1)}
        speakers = torch.tensor([numbers.get(name, 0) for name in document.speakers] or [0] * len(sentences), dtype=torch.int64)
        clusters = {mention: number for number, cluster in enumerate(document.clusters, 1) for mention in cluster}
        device = self.features.device
        return _Target(to_device(sentences, device), to_device(speakers, device), clusters)

    # ---- learning

    def prepare(self, batch: ExampleBatch) -> TaskBatch | ExampleBatch:  # type: ignore[override]
        """Documents that are to be cut at random wait for `loss`: random numbers are drawn there, or a resumed run differs."""
        if all(len(each.sentences) <= self.config.max_training_sentences for each in batch.examples):
            return super().prepare(batch)
        if self.config.truncation == "random":
            return batch
        return super().prepare(_cut(batch, [0] * len(batch.examples), self.config.max_training_sentences))

    def loss(self, batch: TaskBatch | ExampleBatch) -> Loss:
        if isinstance(batch, ExampleBatch):
            window = self.config.max_training_sentences
            most = [max(len(each.sentences) - window, 0) if self.training else 0 for each in batch.examples]
            begins = [int(torch.randint(last + 1, ())) for last in most]
            batch = super().prepare(_cut(batch, begins, window))
        return super().loss(batch)

    def losses(self, texts: list[TextVectors], targets: list[_Target]) -> tuple[Tensor, int]:
        taught = self.config.mention_loss or self.config.singletons  # links do not tell what is mentioned once
        total, spans = texts[0].at_input.sum() * 0.0, 0  # a batch without words has a loss, too
        for target, ranking in zip(targets, self._rankings(texts[0], targets, taught=taught), strict=True):
            mentions = zip(ranking.first.tolist(), ranking.last.tolist(), strict=True)
            numbers = [target.clusters.get(mention, 0) for mention in mentions]
            cluster = to_device(torch.tensor(numbers, dtype=torch.int64), ranking.mention.device)
            total = total + ranking.loss(cluster)
            if taught:
                right = (cluster > 0).float()
                total = total + F.binary_cross_entropy_with_logits(ranking.mention, right, reduction="sum")
            spans += len(numbers)
        return total, spans

    def _vectors(self, text: TextVectors) -> tuple[Tensor, Tensor]:
        """(sentences, words, dim) and (sentences, words, own): words in their sentences, and by themselves."""
        states = self.recurrent(text.at_input, text.mask, text.lengths).float()
        if text.at_output is not None:
            states = torch.cat([states, text.at_output.float()], dim=2)
        return states, self.recurrent.dropout(text.at_input[:, :, : self.features.words.dim].float())

    def _rankings(self, text: TextVectors, targets: Sequence[_Target], *, taught: bool = False) -> Iterator[SpanRanking]:
        """Of each document; with `taught`, all right mentions are looked at."""
        words = _places(text.lengths, text.mask.shape[1], text.mask.device)
        states, own = (vectors.flatten(0, 1).index_select(0, words) for vectors in self._vectors(text))  # of all documents
        return self._ranked(states, own, targets, taught=taught)

    def _ranked(
        self, states: Tensor, own: Tensor, targets: Sequence[_Target], *, taught: bool = False
    ) -> Iterator[SpanRanking]:
        counts = [len(target.sentences) for target in targets]
        for target, some, heads in zip(targets, states.split(counts), own.split(counts), strict=True):
            words = DocumentWords(some, heads, target.sentences, target.speakers)
            yield self.ranker(words, target.mentions if taught else None)

    # ---- answers

    def answers(self, texts: list[TextVectors], examples: Sequence[CoreferenceDocument]) -> list[Clusters]:
        return [self._clusters(each) for each in self._rankings(texts[0], self.make_targets(examples, []))]

    @torch.no_grad()
    def answer(self, data: TaskData) -> list[Clusters]:
        """The clusters of each document, in their order.

        Of a long document, only what the LSTM gives stands in memory as a whole; layers of encoders do for some sentences.
        """
        assert isinstance(data, _Documents)
        was, found = self.training, list[Clusters]([[]] * len(data))
        self.eval()
        for batch in batch_by_words(data.lengths, words=_TOGETHER, batch_size=256):
            rows = batch.tolist()
            targets = self.make_targets([data.examples[row] for row in rows], [])
            for row, ranking in zip(rows, self._ranked(*self._read(data, rows), targets), strict=True):
                found[row] = self._clusters(ranking)
        self.train(was)
        return found

    def _read(self, data: _Documents, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """(words, dim) and (words, own) of some documents, from some sentences at a time."""
        lengths = [len(text) for row in rows for text in data.texts[row]]
        begins = torch.tensor([0, *np.cumsum(lengths).tolist()], device=self.features.device)
        dims = self.ranker.sizes[0], self.ranker.sizes[2]
        whole = tuple(torch.zeros(sum(lengths), dim, device=self.features.device) for dim in dims)
        for places, batch in data.pieces(rows):
            (inputs,) = self._inputs(batch)
            mask = inputs.mask
            at = begins[places, None] + torch.arange(mask.shape[1], device=mask.device)  # (sentences, words)
            for vectors, some in zip(whole, self._vectors(self.features(inputs)), strict=True):
                vectors[at[mask]] = some[mask]
        return whole[0], whole[1]

    def _clusters(self, ranking: SpanRanking) -> Clusters:
        """Spans that are linked are in one cluster; with singletons, so is a likely mention alone."""
        owner: list[int] = []
        clusters: dict[int, list[Mention]] = {}
        for number, (link, *mention) in enumerate(
            zip(ranking.links(), ranking.first.tolist(), ranking.last.tolist(), strict=True)
        ):
            owner.append(number if link < 0 else owner[link])
            clusters.setdefault(owner[-1], []).append((mention[0], mention[1]))
        likely = (ranking.mention > 0).tolist() if self.config.singletons else [False] * len(owner)
        return [some for number, some in clusters.items() if len(some) > 1 or likely[number]]

    def score(self, examples: Sequence[CoreferenceDocument], answers: Sequence[Clusters]) -> dict[str, float]:
        """The mean F1 of the first three measures, that of each, and that of finding mentions at all."""
        sums = self.score_counts(examples, answers).sum(0)
        each = {name: found.f1 for name, found in coreference_scores_from_sums(sums).items()}
        sides = [[self._mentions(some) for some in side] for side in ([one.clusters for one in examples], answers)]
        right = sum(len(a & b) for a, b in zip(*sides, strict=True))
        mentions = PRFScore(sum(map(len, sides[0])), sum(map(len, sides[1])), right)
        return {"f1": float(self.score_from_counts(sums)), **each, "mentions": mentions.f1}

    def _mentions(self, clusters: Clusters) -> set[Mention]:
        """Those that count."""
        return {mention for cluster in self._counted(clusters) for mention in cluster}

    def score_counts(self, examples: Sequence[CoreferenceDocument], answers: Sequence[Clusters]) -> np.ndarray:
        """(documents, 16): numerators and denominators of four measures."""
        gold = [example.clusters for example in examples]
        return coreference_statistics(gold, answers, singletons=self.config.singletons)

    @classmethod
    def score_from_counts(cls, sums: np.ndarray) -> np.ndarray:
        """The mean F1 of the first three measures."""
        return conll_score(sums)

    # ---- new texts

    def predict(self, texts: Sequence[Text]) -> list[CoreferencePrediction]:
        """What means the same in each text: a string, the words of one sentence, or sentences of words.

        >>> resolver.predict(["Ann left. She was tired."])[0].clusters             # doctest: +SKIP
        [[MentionSpan(text='Ann', first=0, last=0, begin=0, end=3),
          MentionSpan(text='She', first=3, last=3, begin=10, end=13)]]
        """
        documents = [self._document(text) for text in check_texts(texts)]
        given = [text if isinstance(text, str) else None for text in texts]
        answers = self.answer(self.data(documents))
        return [_resolved(*each) for each in zip(documents, given, answers, strict=True)]

    def _document(self, text: Text) -> CoreferenceDocument:
        if isinstance(text, CoreferenceDocument):
            return text
        if isinstance(text, str):
            assert self.config.sentence_splitter is not None
            return CoreferenceDocument([self.words(each) for each in SentenceSplitter(self.config.sentence_splitter)(text)], [])
        sentences: list[Any] = [text] if not isinstance(text, Sequence) or (text and isinstance(text[0], str)) else list(text)
        for sentence in sentences:
            words = [] if isinstance(sentence, str) or not isinstance(sentence, Sequence) else sentence
            if words is not sentence or not all(isinstance(word, str) for word in words):
                raise UsageError(f"got {text!r}; expected a text, the words of a sentence, or a list of sentences of words")
        return CoreferenceDocument([list(sentence) for sentence in sentences], [])

    def parse_line(self, line: str, where: str, *, split_on_spaces: bool = False) -> Text:
        if not split_on_spaces:
            return line
        assert self.config.sentence_splitter is not None
        return [each.split() for each in SentenceSplitter(self.config.sentence_splitter)(line)]

    # ---- mistakes

    def example_errors(
        self, examples: Sequence[CoreferenceDocument], answers: Sequence[Clusters], path: str | Path
    ) -> Iterable[ExampleError]:
        for example, answer in zip(examples, answers, strict=True):
            wrong = list(_wrong(example.words, self._counted(example.clusters), answer))
            if wrong:
                yield ExampleError(location(path, example.where), example.key or " ".join(example.words), wrong, len(wrong))


# ---- documents and answers


def _places(lengths: Tensor, width: int, device: torch.device) -> Tensor:
    """(words,): where the words of sentences stand among (sentences * width) places; lengths (sentences,) are on the CPU."""
    return to_device((torch.arange(width) < lengths[:, None]).flatten().nonzero().squeeze(1), device)


def _tell_long_ones(path: str | Path, lengths: Sequence[int], longest: int) -> None:
    """Warn of mentions that no span is long enough for."""
    long = sum(length > longest for length in lengths)
    if long:
        told = "%s: %d of %d mentions have more than %d words (--longest), the longest %d; none of these will be found"
        _log.warning(told, path, long, len(lengths), longest, max(lengths))


def _cut(batch: ExampleBatch, begins: Sequence[int], window: int) -> ExampleBatch:
    """Some sentences of each document, from one on."""
    rows: list[int] = []
    start = 0
    for document, begin in zip(batch.examples, begins, strict=True):
        rows += range(start + begin, start + min(begin + window, len(document.sentences)))
        start += len(document.sentences)
    documents = [document.sentence_slice(begin, window) for document, begin in zip(batch.examples, begins, strict=True)]
    texts = [batch.texts[0][row] for row in rows]
    longest = max(map(len, texts), default=0)
    cached = batch.cached and [[layers[:, rows, :longest] for layers in batch.cached[0]]]
    return ExampleBatch(documents, [texts], cached)


def _resolved(document: CoreferenceDocument, text: str | None, clusters: Clusters) -> CoreferencePrediction:
    words = document.words
    text = join(words) if text is None else text
    places = word_offsets(words, text)
    found = []
    for cluster in clusters:
        spans = [(first, last, places[first][0], places[last][1]) for first, last in cluster]
        found.append([MentionSpan(text[begin:end], first, last, begin, end) for first, last, begin, end in spans])
    return CoreferencePrediction(text, document.sentences, found)


def _wrong(words: Sequence[str], gold: Clusters, answer: Clusters) -> Iterator[PredictionError]:
    """Mentions that mean again what they do not, or are none, or were not found."""
    truth, found = _before(gold), _before(answer)
    same = {mention: set(cluster) for cluster in gold for mention in cluster}

    def told(mention: Mention, side: Mapping[Mention, Mention | None]) -> str:
        before = side.get(mention)
        return _text(words, before) if before is not None else "new" if mention in side else "none"

    for mention in sorted({**truth, **found}):
        before = found.get(mention)
        again = mention in truth and mention in found and (truth[mention] is None) == (before is None)
        if not again or (before is not None and before not in same[mention]):
            yield PredictionError(_text(words, mention), told(mention, truth), told(mention, found))


def _before(clusters: Clusters) -> dict[Mention, Mention | None]:
    """For each mention the one before it in its cluster."""
    return {mention: before for some in clusters for before, mention in zip([None, *some], some, strict=False)}


def _text(words: Sequence[str], mention: Mention) -> str:
    return join(words[mention[0] : mention[1] + 1])
