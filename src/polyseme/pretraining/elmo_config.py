"""How an ELMo or a TagLM is trained, and how one is adapted to a domain: the settings. Imports no torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from polyseme.base.config import Config, ConfigError, setting
from polyseme.base.errors import arg
from polyseme.encoders.elmo_config import SIZES, TRANSFORMERS, ElmoConfig, WordTableConfig
from polyseme.pretraining.defaults import (
    FULL_ON_CPU,
    MAX_VOCABULARY,
    MIN_COUNT,
    NEGATIVES_ON_CPU,
    WORDS_PER_ENTRY,
)
from polyseme.pretraining.method import MIN_VOCABULARY, SKIP_NORM, NeuralMethod
from polyseme.training.config import TrainConfig
from polyseme.training.optim_config import OptimConfig

if TYPE_CHECKING:
    from polyseme.base.run import Run

NEGATIVES = 8192  # as in bilm-tf
NEW_WORDS = 10_000
WORD_DIM = 100
TINY_LEARNING_RATE = 0.02
"""On 5 MB of English, 1,000 steps of 2,560 words end at a perplexity of 324 with 0.01, and of 279 with 0.03."""
Batching = Literal["packed", "stream", "sentences"]


@dataclass(frozen=True, kw_only=True)
class ArchitectureOverrides(Config):
    """Sizes that differ from those of the named size; None: as there."""

    cell_size: int | None = setting(None, "LSTM cell size.", min=1, default_text="by size", group="Architecture")
    projection_size: int | None = setting(
        None, "Output size of a layer in one direction.", min=1, default_text="by size", group="Architecture"
    )
    layers: int | None = setting(None, "Layers in each direction.", min=1, default_text="by size", group="Architecture")
    filters: tuple[tuple[int, int], ...] | None = setting(
        None,
        "Convolution filters over characters: width and number of each.",
        metavar="WIDTH:N,...",
        default_text="by size",
        group="Architecture",
    )
    highway_layers: int | None = setting(
        None, "Highway layers after the convolutions.", min=0, default_text="by size", group="Architecture"
    )
    character_dim: int | None = setting(
        None, "Size of a character vector.", min=1, default_text="by size", group="Architecture"
    )
    max_characters: int | None = setting(
        None,
        "Bytes of a word that are read, begin and end tokens included.",
        min=3,
        default_text="by size",
        group="Architecture",
    )

    def apply(self, base: ElmoConfig) -> ElmoConfig:
        """Return the config of an encoder with these sizes instead of its own.

        >>> ArchitectureOverrides(cell_size=512, layers=3).apply(SIZES["small"]).lstm.layers
        3
        """
        lstm = base.lstm.replace(**_given(cell_size=self.cell_size, projection_size=self.projection_size, layers=self.layers))
        characters = base.characters
        if characters is not None:
            changes = {"filters": self.filters, "highway_layers": self.highway_layers, "dim": self.character_dim}
            characters = characters.replace(**_given(**changes, max_length=self.max_characters))
        transformer = base.transformer and base.transformer.replace(**_given(layers=self.layers))
        return base.replace(lstm=lstm, characters=characters, transformer=transformer, dim=self.projection_size or base.dim)


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ElmoTraining(NeuralMethod):
    """Settings that pre-training and adaptation share."""

    batch_setting: ClassVar[str | None] = "batch_words"
    smallest_batch: ClassVar[int] = 8

    output: Literal["full", "sampled", "adaptive"] | None = setting(
        None,
        "Training loss: the full softmax, or for large vocabularies a sampled or an adaptive softmax (Grave et al. 2017). "
        "Validation always uses the full distribution.",
        default_text=f"full; on a CPU sampled for more than {FULL_ON_CPU:,} words",
        group="Model",
    )
    negatives: int | None = setting(
        None,
        "Samples of the sampled softmax.",
        min=1,
        metavar="N",
        default_text=f"{NEGATIVES:,}; {NEGATIVES_ON_CPU:,} where the output is not given",
        group="Model",
    )
    dropout: float = setting(
        0.1,
        "Dropout probability, at the input of each layer and at the output of the top one.",
        min=0,
        below=1,
        group="Training",
    )
    batching: Batching | None = setting(
        None,
        "How sentences are batched. packed: concatenated into rows of equal length; the LSTM state is reset at each sentence. "
        "stream: the same, but the state is carried over to the next sentence, as published. sentences: one per row, padded.",
        default_text="packed; sentences for Transformers",
        group="Training",
    )
    batch_words: int | None = setting(
        None, "Words per batch.", min=8, default_text="2,560; 20,480 on a GPU; less for little text or time", group="Training"
    )
    bptt: int = setting(
        20, "Length of truncated backpropagation through time in packed batches, in words.", min=1, group="Training"
    )
    document_fraction: float = setting(
        0.0,
        "Fraction of the text that is read as documents in packed batches: the LSTM state is carried over between sentences. "
        "Blank lines separate documents; without blank lines, each line is a document.",
        min=0,
        max=1,
        group="Training",
    )

    def problems(self) -> Iterable[str]:
        if self.document_fraction and self.batching not in (None, "packed"):
            yield f"{arg('document_fraction', self.document_fraction)} needs {arg('batching', 'packed')}, not {self.batching}"
        if self.negatives is not None and self.output not in (None, "sampled"):
            yield f"{arg('negatives', self.negatives)} needs {arg('output', 'sampled')}, not {self.output}"

    @property
    def samples(self) -> int | None:
        """Words that the training loss samples; None: it uses all."""
        return (self.negatives or NEGATIVES) if self._output == "sampled" else None

    @property
    def _output(self) -> str:
        return self.output or ("full" if self.negatives is None else "sampled")

    def resolved(self, words: int, run: Run, **changes: Any) -> Self:
        """Return a copy without open settings, for a text of so many words and a device."""
        default = 20_480 if run.device.type == "cuda" else 2560
        words //= run.world_size
        least = min(256, max(self.bptt, words // 10))  # ten steps per epoch, if a row is no longer than that
        for_text = max(8, least, words // 100)  # a hundred, and rows that are filled
        return self.replace(output=self._output, batch_words=self.batch_words or min(default, for_text), **changes)

    def resume_settings(self) -> dict[str, Any]:
        return super().resume_settings() | {"negatives": self.negatives or NEGATIVES}


def _train_config(epochs: float = 10.0, learning_rate: float = 1e-3) -> TrainConfig:
    return TrainConfig(epochs=epochs, optim=OptimConfig(learning_rate=learning_rate, skip_norm=SKIP_NORM))


@dataclass(frozen=True, kw_only=True)
class ElmoPretraining(ElmoTraining):
    """Train an ELMo (Peters et al. 2018): a bidirectional language model over words read by their characters.

    >>> ElmoPretraining(size="tiny", batching="stream").encoder_config(1000).start
    'warm'
    """

    name: ClassVar[str] = "elmo"
    job: ClassVar[str] = "polyseme.pretraining.elmo_job:ElmoJob"
    call_options: ClassVar[tuple[str, ...]] = ("vectors", *NeuralMethod.call_options)

    size: Literal["tiny", "small", "medium", "original"] = setting(
        "small", "Size of the model: tiny for a first trial; the others as published.", group="Model"
    )
    architecture: Literal["lstm", "transformer"] = setting(
        "lstm", "Network above the word vectors: two stacks of LSTMs as published, or two causal Transformers.", group="Model"
    )
    input: Literal["characters", "words", "both"] = setting(
        "characters", "Read words by their characters, by a word table, or by both, concatenated.", group="Model"
    )
    vocabulary_size: int | None = setting(
        None,
        "Words that the model predicts, special tokens included: the most frequent ones. All others are <UNK> at the output.",
        min=MIN_VOCABULARY,
        default_text=f"words that occur {MIN_COUNT} times; one for {WORDS_PER_ENTRY} words of text, {MAX_VOCABULARY:,} at most",
        group="Model",
    )
    tied: bool = setting(False, "Share the weights of the output layer with the word table.", group="Model")
    word_dim: int | None = setting(
        None,
        "Size of a vector of the word table.",
        min=1,
        default_text=f"{WORD_DIM}; the output size if tied; that of initial vectors",
        group="Architecture",
    )
    overrides: ArchitectureOverrides = setting(help="Sizes that differ from the named size.", factory=ArchitectureOverrides)
    train: TrainConfig = setting(help="Budget, optimizer and training loop.", factory=_train_config)

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if self.architecture == "transformer" and self.batching not in (None, "sentences"):
            yield f"{arg('batching', self.batching)} needs {arg('architecture', 'lstm')}: a Transformer carries no state"
        if self.tied and self.output == "adaptive":
            yield f"{arg('tied', True)} needs {arg('output')} full or sampled: an adaptive output has no row for each word"
        try:
            width = self._base.output
        except ConfigError as error:
            yield str(error)
            return
        if self.tied and self.input == "characters":
            yield f"{arg('tied', True)} needs a word table: give {arg('input')} words or both"
        elif self.tied and self.word_dim not in (None, width):
            yield f"{arg('word_dim')} is {self.word_dim}; allowed with {arg('tied', True)}: {width}, the size of the output"

    @classmethod
    def implied_options(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """The paper's Adagrad keeps its rate of 0.2; that of AdamW falls to zero. A tiny model learns by larger steps."""
        if given.get("optimizer") == "adagrad":
            return {"learning_rate": 0.2, "decay": "constant"}
        tiny = given.get("size") == "tiny" and given.get("architecture", "lstm") == "lstm"
        return {"learning_rate": TINY_LEARNING_RATE} if tiny else {}

    @property
    def default_learning_rate(self) -> float:
        implied = self.implied_options({"size": self.size, "architecture": self.architecture})
        return implied.get("learning_rate", super().default_learning_rate)

    @property
    def _base(self) -> ElmoConfig:
        transformer = TRANSFORMERS[self.size] if self.architecture == "transformer" else None
        return self.overrides.apply(SIZES[self.size].replace(transformer=transformer))

    def encoder_config(self, words: int) -> ElmoConfig:
        """Return the config of the encoder for a vocabulary of so many words."""
        base = self._base
        word_dim = self.word_dim or (base.output if self.tied else WORD_DIM)
        return base.replace(
            characters=base.characters if self.input != "words" else None,
            words=WordTableConfig(size=words, dim=word_dim) if self.input != "characters" else None,
            start="zero" if self.architecture == "transformer" else "warm" if self.batching == "stream" else "learned",
        )

    def resolve_defaults(self, words: int, run: Run, vocabulary: int = MAX_VOCABULARY) -> Self:
        """Return a copy without open settings, for a text of so many words, its fitted vocabulary and a device."""
        size = self.vocabulary_size or vocabulary
        changes: dict[str, Any] = {"vocabulary_size": size}
        if self.output is None and self.negatives is None and run.device.type == "cpu" and size > FULL_ON_CPU:
            changes["negatives"] = NEGATIVES_ON_CPU
        batching = self.batching or ("packed" if self.architecture == "lstm" else "sentences")
        return self.replace(**changes).resolved(words, run, batching=batching)


@dataclass(frozen=True, kw_only=True)
class TagLmPretraining(ElmoPretraining):
    """Train a TagLM (Peters et al. 2017): the language models of an ELMo, of which only the top layers are used."""

    name: ClassVar[str] = "taglm"

    def resume_settings(self) -> dict[str, Any]:
        return super().resume_settings() | {"method": self.name}


@dataclass(frozen=True, kw_only=True)
class ElmoAdaptation(ElmoTraining):
    """Continue the training of an ELMo on the text of a domain."""

    name: ClassVar[str] = "adapt"
    model_name: ClassVar[str] = "ELMo"
    job: ClassVar[str] = "polyseme.pretraining.adapt:ElmoAdaptationJob"

    output: Literal["full", "sampled"] | None = setting(
        None,
        "Training loss: the model's full softmax (an adaptive one by its clusters), or a sampled softmax. Validation always "
        "uses the full distribution.",
        default_text=f"full; sampled if negatives is given, and on a CPU for more than {FULL_ON_CPU:,} words",
        group="Model",
    )
    new_words: int | None = setting(
        None,
        "Frequent words of the text to add to the vocabulary, at most.",
        min=0,
        metavar="N",
        default_text=f"{NEW_WORDS:,}; 0 for an adaptive softmax",
        group="Model",
    )
    min_count: int = setting(2, "Add words that occur at least this often.", min=1, metavar="N", group="Model")
    vocabulary_size: int = setting(
        50_000,
        "Most frequent words to predict, special tokens included, for a model without a vocabulary.",
        min=MIN_VOCABULARY,
        metavar="N",
        group="Model",
    )
    freeze: tuple[str, ...] = setting(
        (), "Layer groups to freeze: tokens, layer1, layer2 ..., start, output.", metavar="GROUP", group="Training"
    )
    train: TrainConfig = setting(help="Budget, optimizer and training loop.", factory=lambda: _train_config(3.0, 3e-4))


def allowed_batchings(config: ElmoConfig) -> tuple[Batching, ...]:
    """Return the batchings in which a model can be adapted, the default first.

    A stream would not train a learned start state. A warm start state follows from all weights, and only a stream, which
    needs no start state, spares computing it in each step. Published models were trained on streams and start from zeros
    here: packed rows train them for that start; a stream suits models that go back to programs which carry the state.
    """
    if config.architecture == "transformer":
        return ("sentences",)
    if config.start == "learned":
        return ("packed", "sentences")
    return ("stream",) if config.start == "warm" else ("packed", "stream", "sentences")
