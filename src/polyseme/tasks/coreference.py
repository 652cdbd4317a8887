"""Coreference resolution: clusters of the mentions in a document that refer to the same entity.

End-to-end span ranking (Lee et al. 2017 and 2018, `polyseme.nn.networks.span_ranking`), the baseline of Peters et al. 2018 on
OntoNotes. An example is a document; encoders and an LSTM read its sentences one by one, so that frozen layers are cached as in
other tasks, and a document may be as long as a book. Training reads some sentences of a long one, others each time.

Files are JSON lines or the columns of CoNLL-2012 (`polyseme.text.labelled.coreference`). The score is the mean F1 of MUC, B3
and CEAF (`polyseme.metrics.coreference`). Without `singletons`, entities with one mention are neither predicted nor counted.
"""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from polyseme.base.errors import FormatError, UsageError, arg
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
from polyseme.tasks.predictions import CoreferencePrediction, MentionSpan, Predictions
from polyseme.tasks.splits import same_text
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
_PART = re.compile(r"_\d+$")  # of a document, at the end of its name
_TOGETHER = 4096  # words of documents, and of sentences, in a batch of predictions
Clusters = list[list[Mention]]
Text = str | Sequence[str] | Sequence[Sequence[str]] | CoreferenceDocument
"""A text to be split, the words of a sentence, sentences of words, or a document whose clusters are ignored."""


@dataclass(frozen=True)
class _Target:
    """What the network and the loss need of a document."""

    sentences: Tensor
    """(words,): the number of each word's sentence."""
    speakers: Tensor
    """(words,): the number of the speaker, 0: unknown."""
    clusters: Mapping[Mention, int]
    """The number of each gold mention's cluster, from 1."""

    @property
    def mentions(self) -> Tensor:
        """(mentions, 2): first and last words of gold mentions."""
        return torch.tensor(list(self.clusters), dtype=torch.int64).reshape(-1, 2)


class _Documents(TaskData):
    """Documents and their sentences; the texts of a batch are all sentences of its documents, in order."""

    def __init__(self, documents: Sequence[CoreferenceDocument]) -> None:
        super().__init__(documents, [document.sentences for document in documents])
        self.lengths = [sum(map(len, sentences)) for sentences in self.texts]

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        return self._sentences([self.examples[row] for row in rows], [text for row in rows for text in self.texts[row]])

    def sentence_batches(self, rows: Sequence[int]) -> Iterator[tuple[list[int], ExampleBatch]]:
        """Yield the sentences of some documents in batches of similar length, with their numbers."""
        texts = [text for row in rows for text in self.texts[row]]
        for batch in batch_by_words([len(text) for text in texts], words=_TOGETHER, batch_size=_TOGETHER // 8):
            numbers = batch.tolist()
            yield numbers, self._sentences([], [texts[number] for number in numbers])

    def _sentences(self, examples: list[CoreferenceDocument], texts: list[list[str]]) -> ExampleBatch:
        cached = None
        if self._caches is not None:
            cached = [[self._layers(cache, texts) for cache in self._caches]]
        return ExampleBatch(examples, [texts], cached)


class Coreference(Task):
    """A coreference resolver; an output is a list of clusters, each a list of first and last words."""

    kind = "coreference"
    main_metric = "f1"
    multi_line = True
    config_type = CoreferenceConfig
    config: CoreferenceConfig

    def __init__(self, config: CoreferenceConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
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
        found = read_coreference(path, strict=config.strict)
        clusters = [cluster for document in found for cluster in document.clusters]
        if training and not clusters:
            raise FormatError(path, f"has {len(found)} documents, but no clusters: there is nothing to train on")
        if training and not config.singletons and max(map(len, clusters)) < 2:
            raise FormatError(path, f"has no cluster of two mentions: for single mentions give {arg('singletons', True)}")
        if training:
            _warn_wide_mentions(
                path, [last - first + 1 for cluster in clusters for first, last in cluster], config.max_span_width
            )
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
    def split_groups(cls, examples: Sequence[CoreferenceDocument], config: TaskConfig) -> list[list[Hashable]]:
        names: list[Hashable] = [_PART.sub("", example.key) or number for number, example in enumerate(examples)]
        return [names, [same_text(example.words) for example in examples]]

    @classmethod
    def collect_labels(cls, examples: Sequence[CoreferenceDocument], config: TaskConfig) -> list[str]:
        return ["mention"]

    @classmethod
    def example_texts(cls, example: CoreferenceDocument, splitter: Splitter) -> list[list[str]]:
        return example.sentences

    def data(self, examples: Sequence[CoreferenceDocument]) -> TaskData:
        """Return documents with the clusters that count."""
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

    # ---- training

    def prepare(self, batch: ExampleBatch) -> TaskBatch | ExampleBatch:  # type: ignore[override]
        """Leave documents that are truncated at random to `loss`: drawn here, random numbers would differ in a resumed run."""
        if all(len(each.sentences) <= self.config.max_training_sentences for each in batch.examples):
            return super().prepare(batch)
        if self.config.truncation == "random":
            return batch
        return super().prepare(_window(batch, [0] * len(batch.examples), self.config.max_training_sentences))

    def loss(self, batch: TaskBatch | ExampleBatch) -> Loss:
        if isinstance(batch, ExampleBatch):
            window = self.config.max_training_sentences
            most = [max(len(each.sentences) - window, 0) if self.training else 0 for each in batch.examples]
            begins = [int(torch.randint(last + 1, ())) for last in most]
            batch = super().prepare(_window(batch, begins, window))
        return super().loss(batch)

    def summed_loss(self, texts: list[TextVectors], targets: list[_Target]) -> tuple[Tensor, int]:
        add_gold = self.config.mention_loss or self.config.singletons  # links say nothing of singletons
        total, spans = texts[0].at_input.sum() * 0.0, 0  # also without words
        for target, ranking in zip(targets, self._rankings(texts[0], targets, add_gold=add_gold), strict=True):
            mentions = zip(ranking.first.tolist(), ranking.last.tolist(), strict=True)
            numbers = [target.clusters.get(mention, 0) for mention in mentions]
            cluster = to_device(torch.tensor(numbers, dtype=torch.int64), ranking.mention.device)
            total = total + ranking.loss(cluster)
            if add_gold:
                right = (cluster > 0).float()
                total = total + F.binary_cross_entropy_with_logits(ranking.mention, right, reduction="sum")
            spans += len(numbers)
        return total, spans

    def _vectors(self, text: TextVectors) -> tuple[Tensor, Tensor]:
        """(sentences, words, dim) and (sentences, words, own): contextual states, and the task's own embeddings."""
        states = self.recurrent(text.at_input, text.mask, text.lengths).float()
        if text.at_output is not None:
            states = torch.cat([states, text.at_output.float()], dim=2)
        return states, self.recurrent.dropout(text.at_input[:, :, : self.features.words.dim].float())

    def _rankings(self, text: TextVectors, targets: Sequence[_Target], *, add_gold: bool = False) -> Iterator[SpanRanking]:
        """Rank the spans of each document; `add_gold`: gold mentions are always among them."""
        words = _word_rows(text.lengths, text.mask.shape[1], text.mask.device)
        states, own = (vectors.flatten(0, 1).index_select(0, words) for vectors in self._vectors(text))  # of all documents
        return self._ranked(states, own, targets, add_gold=add_gold)

    def _ranked(
        self, states: Tensor, own: Tensor, targets: Sequence[_Target], *, add_gold: bool = False
    ) -> Iterator[SpanRanking]:
        counts = [len(target.sentences) for target in targets]
        for target, some, heads in zip(targets, states.split(counts), own.split(counts), strict=True):
            words = DocumentWords(some, heads, target.sentences, target.speakers)
            yield self.ranker(words, target.mentions if add_gold else None)

    # ---- predictions

    def decode(self, texts: list[TextVectors], examples: Sequence[CoreferenceDocument]) -> list[Clusters]:
        return [self._clusters(each) for each in self._rankings(texts[0], self.make_targets(examples, []))]

    @torch.no_grad()
    def predict_data(self, data: TaskData) -> list[Clusters]:
        """Return the clusters of each document, in their order.

        Of a long document only the LSTM states are in memory together; encoder layers are for some sentences at a time.
        """
        assert isinstance(data, _Documents)
        was_training, outputs = self.training, list[Clusters]([[]] * len(data))
        self.eval()
        for batch in batch_by_words(data.lengths, words=_TOGETHER, batch_size=256):
            rows = batch.tolist()
            targets = self.make_targets([data.examples[row] for row in rows], [])
            for row, ranking in zip(rows, self._ranked(*self._read(data, rows), targets), strict=True):
                outputs[row] = self._clusters(ranking)
        self.train(was_training)
        return outputs

    def _read(self, data: _Documents, rows: Sequence[int]) -> tuple[Tensor, Tensor]:
        """(words, dim) and (words, own) of some documents, some sentences at a time."""
        lengths = [len(text) for row in rows for text in data.texts[row]]
        begins = torch.tensor([0, *np.cumsum(lengths).tolist()], device=self.features.device)
        dims = self.ranker.sizes[0], self.ranker.sizes[2]
        states = tuple(torch.zeros(sum(lengths), dim, device=self.features.device) for dim in dims)
        for numbers, batch in data.sentence_batches(rows):
            (inputs,) = self._inputs(batch)
            mask = inputs.mask
            at = begins[numbers, None] + torch.arange(mask.shape[1], device=mask.device)  # (sentences, words)
            for vectors, some in zip(states, self._vectors(self.features(inputs)), strict=True):
                vectors[at[mask]] = some[mask]
        return states[0], states[1]

    def _clusters(self, ranking: SpanRanking) -> Clusters:
        """Linked spans are in one cluster; with singletons, a likely mention is one by itself."""
        owner: list[int] = []
        clusters: dict[int, list[Mention]] = {}
        for number, (link, *mention) in enumerate(
            zip(ranking.links(), ranking.first.tolist(), ranking.last.tolist(), strict=True)
        ):
            owner.append(number if link < 0 else owner[link])
            clusters.setdefault(owner[-1], []).append((mention[0], mention[1]))
        likely = (ranking.mention > 0).tolist() if self.config.singletons else [False] * len(owner)
        return [some for number, some in clusters.items() if len(some) > 1 or likely[number]]

    def score(self, examples: Sequence[CoreferenceDocument], outputs: Sequence[Clusters]) -> dict[str, float]:
        """Return the mean F1 of the first three metrics, the F1 of each, and that of mentions."""
        sums = self.score_counts(examples, outputs).sum(0)
        each = {name: found.f1 for name, found in coreference_scores_from_sums(sums).items()}
        sides = [[self._mentions(some) for some in side] for side in ([one.clusters for one in examples], outputs)]
        right = sum(len(a & b) for a, b in zip(*sides, strict=True))
        mentions = PRFScore(sum(map(len, sides[0])), sum(map(len, sides[1])), right)
        return {"f1": float(self.score_from_counts(sums)), **each, "mentions": mentions.f1}

    def _mentions(self, clusters: Clusters) -> set[Mention]:
        """Those that count."""
        return {mention for cluster in self._counted(clusters) for mention in cluster}

    def score_counts(self, examples: Sequence[CoreferenceDocument], outputs: Sequence[Clusters]) -> np.ndarray:
        """(documents, 16): numerators and denominators of four metrics."""
        gold = [example.clusters for example in examples]
        return coreference_statistics(gold, outputs, singletons=self.config.singletons)

    @classmethod
    def score_from_counts(cls, sums: np.ndarray) -> np.ndarray:
        """The mean F1 of the first three metrics."""
        return conll_score(sums)

    # ---- predictions of new texts

    def predict(self, texts: Sequence[Text]) -> Predictions[CoreferencePrediction]:
        """Resolve coreference in each text: a string, the words of one sentence, or sentences of words.

        >>> resolver.predict(["Ann left. She was tired."])[0].clusters             # doctest: +SKIP
        [[MentionSpan(text='Ann', first=0, last=0, begin=0, end=3),
          MentionSpan(text='She', first=3, last=3, begin=10, end=13)]]
        """
        documents = [self._document(text) for text in check_texts(texts)]
        given = [text if isinstance(text, str) else None for text in texts]
        outputs = self.predict_data(self.data(documents))
        return Predictions(_prediction(*each) for each in zip(documents, given, outputs, strict=True))

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

    def example_json(self, example: CoreferenceDocument, output: Clusters, path: str | Path) -> dict[str, Any]:
        gold = {"where": location(path, example.where), "gold": self._counted(example.clusters)}
        return {**gold, **_prediction(example, None, output).to_json()}

    # ---- error analysis

    def example_errors(
        self, examples: Sequence[CoreferenceDocument], outputs: Sequence[Clusters], path: str | Path
    ) -> Iterator[ExampleError]:
        """Documents by the number of their wrong mentions."""
        for example, output in zip(examples, outputs, strict=True):
            errors = list(_errors(example.words, self._counted(example.clusters), output))
            if errors:
                yield ExampleError(location(path, example.where), example.key or " ".join(example.words), errors, len(errors))


# ---- documents


def _word_rows(lengths: Tensor, width: int, device: torch.device) -> Tensor:
    """(words,): rows of the words of sentences among (sentences * width); lengths (sentences,) are on the CPU."""
    return to_device((torch.arange(width) < lengths[:, None]).flatten().nonzero().squeeze(1), device)


def _warn_wide_mentions(path: str | Path, lengths: Sequence[int], longest: int) -> None:
    """Warn of mentions that are wider than any span."""
    long = sum(length > longest for length in lengths)
    if long:
        text = "%s: %d of %d mentions have more than %d words (%s), up to %d: they will not be found"
        _log.warning(text, path, long, len(lengths), longest, arg("max_span_width"), max(lengths))


def _window(batch: ExampleBatch, begins: Sequence[int], window: int) -> ExampleBatch:
    """Return some sentences of each document, from one on."""
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


def _prediction(document: CoreferenceDocument, text: str | None, clusters: Clusters) -> CoreferencePrediction:
    words = document.words
    text = join(words) if text is None else text
    offsets = word_offsets(words, text)
    found = []
    for cluster in clusters:
        spans = [(first, last, offsets[first][0], offsets[last][1]) for first, last in cluster]
        found.append([MentionSpan(text[begin:end], first, last, begin, end) for first, last, begin, end in spans])
    return CoreferencePrediction(text, document.sentences, found)


def _errors(words: Sequence[str], gold: Clusters, predicted: Clusters) -> Iterator[PredictionError]:
    """Mentions with a wrong antecedent, spurious ones and misses."""
    right, found = _before(gold), _before(predicted)
    same = {mention: set(cluster) for cluster in gold for mention in cluster}

    def antecedent(mention: Mention, side: Mapping[Mention, Mention | None]) -> str:
        before = side.get(mention)
        return _text(words, before) if before is not None else "new" if mention in side else "none"

    for mention in sorted({**right, **found}):
        before = found.get(mention)
        agree = mention in right and mention in found and (right[mention] is None) == (before is None)
        if not agree or (before is not None and before not in same[mention]):
            yield PredictionError(_text(words, mention), antecedent(mention, right), antecedent(mention, found))


def _before(clusters: Clusters) -> dict[Mention, Mention | None]:
    """The mention before each in its cluster."""
    return {mention: before for some in clusters for before, mention in zip([None, *some], some, strict=False)}


def _text(words: Sequence[str], mention: Mention) -> str:
    return join(words[mention[0] : mention[1] + 1])
