"""Generation: a text from a text. Translation, summaries of sentences, questions from answers.

One LSTM reads the source, another writes the target with attention to the source (`polyseme.nn.networks.seq2seq`), as where
ELMo's vectors were used in translation (Edunov et al. 2019). Target words are those of the training data; rarer ones are
unknown and replaced by the source word with the highest attention weight (Luong et al. 2015). Words remember whether a space
was before them (`polyseme.text.splitting.glue`), so that outputs are running text, and BLEU is that of sacrebleu on it.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import re
import zlib
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence
from polyseme.metrics.translation import BleuTokenizer, bleu, bleu_score, bleu_statistics, chrf, sacrebleu_metrics
from polyseme.nn.networks.beam import Hypothesis, beam_search
from polyseme.nn.networks.sampling import SamplingConfig, sample
from polyseme.nn.networks.seq2seq import DecoderConfig, DecoderState, Seq2Seq, WordLosses
from polyseme.nn.stacked_bilstm import StackedBiLstm
from polyseme.nn.to_device import to_device
from polyseme.tasks.base import Task, as_text, check_texts, joined, to_words
from polyseme.tasks.config import TaskConfig
from polyseme.tasks.data import ExampleBatch, TaskData
from polyseme.tasks.error_analysis import ExampleError, location
from polyseme.tasks.features import Features, TextInputs, TextVectors
from polyseme.tasks.generation_config import STRATEGY_OPTIONS, DecodingConfig, GenerationConfig, TargetSplitter
from polyseme.tasks.predictions import GeneratedText, Predictions, with_lines
from polyseme.tasks.splits import same_text
from polyseme.text.labelled.parallel import TextPair, read_parallel
from polyseme.text.splitting.characters import CJK, unspaced_letter
from polyseme.text.splitting.joiners import JOINER, detokenize, tokenize_with_joiners
from polyseme.text.words import Splitter, get_splitter

_log = logging.getLogger(__name__)
MARKS = ("<S>", "</S>", "<UNK>", f"{JOINER}<UNK>")
"""The first labels: begin and end of a target, and unknown words, with a space before them or without."""
BEGIN, END, UNKNOWN, GLUED_UNKNOWN = range(len(MARKS))
MAX_SCORES = 1 << 26  # scores of words that stand in memory at a time
LONGER, MORE = 2, 20  # an answer has at most so many times the words of its source, and so many more
_WORDS_AT_A_TIME = 32  # of the target's vocabulary, as a sentence of an encoder whose first layer knows no context
_CJK = re.compile(f"[{CJK}]")
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_KANA = re.compile("[\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f]")  # without the dot of foreign names
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff\uffa0-\uffdc]")
_FOREIGN = 0.05  # of kana and Hangul in Chinese, at most; in Japanese there are about as many kana as Chinese characters


@dataclass(frozen=True, slots=True)
class _TokenizedPair:
    """A pair as words."""

    pair: TextPair
    words: list[str]
    """Of the source."""
    target: np.ndarray | None
    """Numbers of the target's words and the end token; None: it is to be generated."""


@dataclass(frozen=True)
class _Targets:
    """What the loss compares with."""

    words: Tensor
    """(batch, steps): numbers of words; the end token after them and on padding."""
    rows: Tensor
    """(words,): rows of the flat batch that are not padding."""


class _GenerationData(TaskData):
    """Pairs with the numbers of their target words."""

    def __init__(self, pairs: Sequence[_TokenizedPair]) -> None:
        super().__init__([one.pair for one in pairs], [[one.words] for one in pairs])
        self._pairs = list(pairs)
        self.lengths = [max(len(one.words), 0 if one.target is None else len(one.target)) for one in pairs]

    def gather(self, rows: Sequence[int]) -> ExampleBatch:
        return dataclasses.replace(super().gather(rows), examples=[self._pairs[row] for row in rows])


class Generation(Task):
    """A sequence-to-sequence network; an output is a `GeneratedText`. `decoding` may be changed at any time."""

    kind = "generation"
    config_type = GenerationConfig
    config: GenerationConfig
    main_metric = "bleu"

    def __init__(self, config: GenerationConfig, features: Features, labels: Sequence[str], splitter: Splitter) -> None:
        super().__init__(config, features, labels, splitter)
        assert config.target_splitter is not None and config.bleu_tokenizer is not None
        self.decoding = config.decoding
        self._target_splitter, self._bleu_tokenizer = get_splitter(config.target_splitter), config.bleu_tokenizer
        self._ids = {label: number for number, label in enumerate(self.labels) if number >= len(MARKS)}
        reader = StackedBiLstm(
            features.width("input"),
            config.hidden_size,
            config.layers,
            dropout=config.dropout,
            extra_inputs=features.width("between"),
        )
        sizes = DecoderConfig(
            vocabulary=len(self.labels),
            word_dim=config.target_dim,
            hidden_size=reader.dim,
            memory_dim=reader.dim + features.width("output"),
            layers=config.decoder_layers,
            dropout=config.dropout,
            score=config.attention,
            input_feeding=config.input_feeding,
            tied=config.tied,
        )
        self.network = Seq2Seq(reader, sizes, begin=BEGIN, label_smoothing=config.label_smoothing)

    @property
    def multi_line(self) -> bool:  # type: ignore[override]
        """Whether there are several texts for each source."""
        return self.decoding.num_return_sequences > 1

    # ---- building

    @classmethod
    def build(
        cls,
        config: TaskConfig,
        examples: Sequence[TextPair],
        encoders: Sequence[Encoder] = (),
        *,
        splitter: Splitter | None = None,
    ) -> Self:
        assert isinstance(config, GenerationConfig)
        start = None if config.target_encoder is None else _target_encoder(config.target_encoder)
        if start is not None:
            config = config.replace(target_dim=start.dim)
        task = super().build(config, examples, encoders, splitter=splitter)
        if start is not None:
            task.initialize_words(start)
        return task

    @torch.no_grad()
    def initialize_words(self, encoder: Encoder) -> None:
        """Initialize the vectors of target words from an encoder, scaled to a mean length of 1."""
        words = [word.removeprefix(JOINER) or JOINER for word in self.labels[len(MARKS) :]]
        sentences = [words[begin : begin + _WORDS_AT_A_TIME] for begin in range(0, len(words), _WORDS_AT_A_TIME)]
        vectors = np.concatenate(encoder.embed(sentences, layers=0))
        known = encoder.known(words) if encoder.static else np.ones(len(words), dtype=bool)
        if not known.any():
            raise PolysemeError(f"{arg('target_encoder')} has none of the {len(words)} target words: check its language")
        length = float(np.linalg.norm(vectors[known], axis=1).mean())
        rows = torch.from_numpy(np.flatnonzero(known) + len(MARKS))
        table = self.network.decoder.table.weight
        table[rows] = torch.from_numpy(vectors[known] / max(length, 1e-8)).to(table)

    # ---- data

    @classmethod
    def read(cls, path: str | Path, config: TaskConfig, *, training: bool = False) -> list[TextPair]:
        assert isinstance(config, GenerationConfig)
        data = read_parallel(path, source=config.source, target=config.target, header=config.header, strict=config.strict)
        if data.skipped:
            count = len(data.skipped) + len(data.pairs)
            what = f"with a blank text, the first on line {data.skipped[0].where}"
            _log.warning("%s: skipped %d of %d pairs %s", path, len(data.skipped), count, what)
        return data.pairs

    @classmethod
    def resolve_defaults(cls, config: TaskConfig, examples: Sequence[TextPair]) -> GenerationConfig:
        assert isinstance(config, GenerationConfig)
        sacrebleu_metrics()  # fails before anything is trained where sacrebleu is missing
        targets = _references(examples)
        splitter: TargetSplitter = config.target_splitter or ("characters" if _most_hold(_CJK, targets) else "english")
        return config.replace(
            target_splitter=splitter, bleu_tokenizer=config.bleu_tokenizer or _bleu_tokenizer(targets, splitter)
        )

    @classmethod
    def split_groups(cls, examples: Sequence[TextPair], config: TaskConfig) -> list[list[Hashable]]:
        return [[same_text(example.source) for example in examples]]

    @classmethod
    def collect_labels(cls, examples: Sequence[TextPair], config: TaskConfig) -> list[str]:
        """Return the special tokens, then the target words by falling frequency."""
        assert isinstance(config, GenerationConfig) and config.target_splitter is not None
        splitter = get_splitter(config.target_splitter)
        counts = Counter(word for example in examples for word in tokenize_with_joiners(_target(example), splitter))
        known = [word for word, count in counts.most_common() if count >= config.min_count and word not in MARKS]
        if not known:
            given = f"none of the {len(counts)} target words occurs {config.min_count} times"
            raise PolysemeError(f"{given}: give {arg('min_count', 1)}, or more data")
        return [*MARKS, *known[: config.max_vocabulary]]

    @classmethod
    def example_texts(cls, example: TextPair, splitter: Splitter) -> list[list[str]]:
        return [to_words(example.source, splitter)]

    def data(self, examples: Sequence[TextPair]) -> TaskData:
        return _GenerationData([_TokenizedPair(one, self.words(one.source), self._numbers(one)) for one in examples])

    def _numbers(self, pair: TextPair) -> np.ndarray | None:
        """Return the numbers of the target's words and the end token."""
        if pair.target is None:
            return None
        words = tokenize_with_joiners(pair.target, self._target_splitter)
        rare = (GLUED_UNKNOWN if word.startswith(JOINER) else UNKNOWN for word in words)
        return np.array([*map(self._ids.get, words, rare), END], dtype=np.int64)

    def make_targets(self, examples: Sequence[_TokenizedPair], inputs: list[TextInputs]) -> _Targets:
        targets = [one.target for one in examples if one.target is not None]
        _references([one.pair for one in examples])  # none is missing
        words = np.full((len(targets), max(map(len, targets))), END, dtype=np.int64)
        for row, target in enumerate(targets):
            words[row, : len(target)] = target
        rows = np.concatenate([row * words.shape[1] + np.arange(len(target)) for row, target in enumerate(targets)])
        device = self.features.device
        return _Targets(to_device(torch.from_numpy(words), device), to_device(torch.from_numpy(rows), device))

    # ---- network

    def _read(self, text: TextVectors) -> DecoderState:
        return self.network.read(text.at_input, text.mask, text.lengths, text.between, text.at_output)

    def _word_losses(self, texts: list[TextVectors], targets: _Targets) -> WordLosses:
        return self.network.losses(self._read(texts[0]), targets.words, targets.rows)

    def summed_loss(self, texts: list[TextVectors], targets: _Targets) -> tuple[Tensor, int]:
        return self._word_losses(texts, targets).total, len(targets.rows)

    def decode(self, texts: list[TextVectors], examples: Sequence[_TokenizedPair]) -> list[GeneratedText]:
        state, lengths = self._read(texts[0]), texts[0].lengths
        limits = torch.where(lengths > 0, (LONGER * lengths + MORE).clamp(max=self.decoding.max_length), 0)
        copies = self.decoding.num_beams if self.decoding.strategy == "beam" else self.decoding.num_return_sequences
        step = max(1, MAX_SCORES // (copies * len(self.labels)))
        outputs: list[GeneratedText] = []
        for begin in range(0, len(examples), step):
            some = slice(begin, begin + step)
            hypotheses = self._decode(state.select(some), limits[some], examples[some])
            outputs += [self._generated(each, pair.words) for each, pair in zip(hypotheses, examples[some], strict=True)]
        return outputs

    def _decode(self, state: DecoderState, limits: Tensor, examples: Sequence[_TokenizedPair]) -> list[list[Hypothesis]]:
        """Decode as many texts as asked for, for each source: best first, or as sampled."""
        chosen, limits = self.decoding, to_device(limits, self.features.device)
        step, count = self.network.decoder.step, chosen.num_return_sequences
        if chosen.strategy == "beam":
            beams = beam_search(
                step, state, limits, begin=BEGIN, end=END, beam=chosen.num_beams, length_penalty=chosen.length_penalty
            )
            return [[*several, *[Hypothesis([], [], -math.inf)] * count][:count] for several in beams]
        seeds = [[chosen.sampling_seed, _hash(pair.words), number] for pair in examples for number in range(count)]
        drawn = sample(
            step,
            state.repeat(count),
            limits.repeat_interleave(count),
            seeds,
            begin=BEGIN,
            end=END,
            config=SamplingConfig(temperature=chosen.temperature, top_k=chosen.top_k, top_p=chosen.top_p),
        )
        return [drawn[begin : begin + count] for begin in range(0, len(drawn), count)]

    def _generated(self, hypotheses: Sequence[Hypothesis], source: Sequence[str]) -> GeneratedText:
        """Return the first text, with the others in it."""
        first, *others = hypotheses
        words = [self._word(number, place, source) for number, place in zip(first.words, first.source_positions, strict=True)]
        plain = [word.removeprefix(JOINER) for word in words]
        return GeneratedText(detokenize(words), plain, first.score, [self._generated([each], source) for each in others])

    def _word(self, number: int, place: int, source: Sequence[str]) -> str:
        if number not in (UNKNOWN, GLUED_UNKNOWN) or not self.config.copy_unknown:
            return self.labels[number]
        return f"{JOINER if number == GLUED_UNKNOWN else ''}{source[place]}"

    # ---- predictions

    def score(self, examples: Sequence[TextPair], outputs: Sequence[GeneratedText]) -> dict[str, float]:
        """Return corpus BLEU and chrF, from 0 to 1."""
        references, texts = _references(examples), [output.text for output in outputs]
        return {"bleu": bleu(references, texts, self._bleu_tokenizer), "chrf": chrf(references, texts)}

    def score_counts(self, examples: Sequence[TextPair], outputs: Sequence[GeneratedText]) -> np.ndarray:
        return bleu_statistics(_references(examples), [output.text for output in outputs], self._bleu_tokenizer)

    @classmethod
    def score_from_counts(cls, sums: np.ndarray) -> np.ndarray:
        return bleu_score(sums)

    def evaluate(self, dev: TaskData) -> dict[str, float]:
        return {**super().evaluate(dev), "perplexity": self.perplexity(dev)}

    @torch.no_grad()
    def perplexity(self, data: TaskData) -> float:
        """Return the perplexity of target words, unknown ones and the end token included, without label smoothing."""
        was_training, total, count = self.training, 0.0, 0
        self.eval()
        for _, batch in data.by_length():
            prepared = self.prepare(batch)
            texts = [self.features(inputs) for inputs in prepared.inputs]
            total += float(self._word_losses(texts, prepared.targets).plain)
            count += len(prepared.targets.rows)
        self.train(was_training)
        return math.exp(min(total / max(count, 1), 700.0))

    def predict(self, texts: Sequence[Sentence], *, decoding: DecodingConfig | None = None) -> Predictions[GeneratedText]:
        """Generate a text for each text; a string is split into words. `decoding`: instead of the config's.

        >>> task.predict(["A dog runs ."], decoding=DecodingConfig(strategy="sample", top_p=0.9))   # doctest: +SKIP
        """
        examples = [TextPair(as_text(text)) for text in check_texts(texts)]
        default, self.decoding = self.decoding, decoding or self.decoding
        try:
            return with_lines(self.predict_data(self.data(examples)), [joined(each.source) for each in examples])
        finally:
            self.decoding = default

    def example_json(self, example: TextPair, output: GeneratedText, path: str | Path) -> dict[str, Any]:
        gold = {"where": location(path, example.where), "gold": _references([example])[0]}
        return {**gold, **output.to_json(joined(example.source))}

    def example_errors(
        self, examples: Sequence[TextPair], outputs: Sequence[GeneratedText], path: str | Path
    ) -> Iterator[ExampleError]:
        """Texts by 1 - chrF."""
        for example, reference, output in zip(examples, _references(examples), outputs, strict=True):
            if output.text != reference:
                lacking = 1.0 - chrf([reference], [output.text])
                where = location(path, example.where)
                yield ExampleError.single(where, joined(example.source), reference, output.text, lacking)

    def set_decoding(self, given: Mapping[str, Any]) -> None:
        """Change settings of `DecodingConfig`; those of the other strategy are refused."""
        try:
            decoding = self.decoding.replace(**given)
        except ConfigError as error:
            raise UsageError(str(error)) from error
        for strategy, names in STRATEGY_OPTIONS.items():
            if strategy != decoding.strategy and (idle := [name for name in names if name in given]):
                raise UsageError(f"{', '.join(map(arg, idle))} need {arg('strategy', strategy)}")
        self.decoding = decoding


def _target(pair: TextPair) -> str | list[str]:
    if pair.target is None:
        raise UsageError(f"the text {pair.source!r} has no target; training and scores need one")
    return pair.target


def _references(pairs: Sequence[TextPair]) -> list[str]:
    """Return the targets as running text; refuse pairs without."""
    targets = [_target(pair) for pair in pairs]
    return [target if isinstance(target, str) else detokenize(target) for target in targets]


def _most_hold(letter: re.Pattern[str], targets: Sequence[str]) -> bool:
    return 2 * sum(letter.search(text) is not None for text in targets) > len(targets)


def _bleu_tokenizer(targets: Sequence[str], splitter: TargetSplitter) -> BleuTokenizer:
    """Return the tokenizer of BLEU by the letters of the targets; of scripts with spaces only Korean counts.

    zh parts Chinese characters alone: runs of kana or Hangul stay together and hardly ever match, and BLEU is near 0.
    """
    unspaced = re.compile(unspaced_letter())
    if not _most_hold(unspaced, targets):
        return "13a"
    han, kana, hangul, letters = (sum(len(kind.findall(text)) for text in targets) for kind in (_HAN, _KANA, _HANGUL, unspaced))
    if 2 * hangul > letters:
        return "13a"
    if 2 * han > letters and kana + hangul <= _FOREIGN * han:
        return "zh"
    return "char" if 2 * (han + kana) > letters or splitter == "characters" else "13a"


def _hash(words: Sequence[str]) -> int:
    return zlib.crc32(" ".join(words).encode("utf-8", "surrogatepass"))


def _target_encoder(name: str) -> Encoder:
    if Path(name).expanduser().is_file():
        raise UsageError(f"target_encoder is {name}, a file; give a model folder: `polyseme convert` makes one of word vectors")
    return Encoder.from_pretrained(Path(name).expanduser() if Path(name).expanduser().exists() else name)
