"""The settings that all tasks share: what a network reads of each word, and the head of networks that are one encoder.

Imports no torch, like all `*_config` modules of tasks: the command line makes its options and `--help` from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self

from polyseme.base.config import Config, setting
from polyseme.base.errors import arg
from polyseme.encoders.config import Unfreeze
from polyseme.nn.config import CharactersConfig

Position = Literal["input", "between", "output"]
POSITIONS: tuple[Position, ...] = ("input", "between", "output")
LayerNorm = Literal["words", "bilm", "none"]
LINEAR = "linear"
"""The name of the network that is an encoder and a head."""


@dataclass(frozen=True, kw_only=True)
class TaskWordConfig(Config):
    """A task's own word and character embeddings."""

    enabled: bool = setting(
        True,
        "Concatenate the encoder's vectors with word and character embeddings that the task learns. Default for classifiers "
        "with one encoder: no.",
        option="task_embeddings",
        group="Word features",
    )
    dim: int = setting(
        100,
        "Size of the task's word embeddings; 0: none. Word vectors from a file have the size of the file.",
        min=0,
        option="word_dim",
        group="Word features",
    )
    freeze_word_vectors: bool = setting(True, "Do not train word vectors that come from a file.", group="Word features")
    unknown_words: Literal["shared", "random"] = setting(
        "shared", "Vector of unknown words: one for all, or a random one for each word.", group="Word features"
    )
    word_dropout: float = setting(
        0.05,
        "Probability of replacing a known word by the unknown word in training. Default for taggers with frozen encoders: 0.4.",
        min=0,
        below=1,
        group="Word features",
    )
    characters: CharactersConfig | None = setting(
        factory=lambda: CharactersConfig(filters=((3, 128),), highway_layers=0),
        help="The character network; None: no characters.",
        option="characters",
        group="Word features",
    )

    def problems(self) -> Iterable[str]:
        if self.characters is not None and self.characters.alphabet != "utf8":
            yield "the character network of a task needs alphabet='utf8'; code_points belong to models with an alphabet"


@dataclass(frozen=True, kw_only=True)
class FeaturesConfig(Config):
    """What a network reads of each word."""

    words: TaskWordConfig = field(default_factory=TaskWordConfig)
    mode: Literal["frozen", "finetune"] = setting(
        "frozen", "frozen: encoders give fixed features. finetune: encoders train with the task."
    )
    positions: tuple[Position, ...] = setting(
        ("input",),
        "Where encoder vectors are concatenated to the network's vectors: at the input or output of its LSTM, or between the "
        "LSTM layers (taggers and generation only).",
        group="Encoders",
    )
    layers: Literal["mix", "top", "all"] = setting(
        "mix",
        "How encoder layers are read: mix (a learned weighted sum), top (the top layer only) or all (concatenated). "
        "Pairs with a small frozen encoder read all by default.",
        group="Encoders",
    )
    norm: LayerNorm = setting(
        "words",
        "Layer norm before the mix: of each word, over all words of a batch as published (bilm), or none.",
        group="Encoders",
    )
    word_features: bool = setting(
        False,
        "For text split into characters: each character gets the frozen encoder vectors and the word vector of its word.",
        group="Encoders",
    )
    l2: float = setting(0.001, "L2 penalty that pulls the mix towards equal weights.", min=0, group="Encoders")
    dropout: float = setting(
        0.5,
        "Dropout probability of encoder vectors. If only dropout is given, its value is used here too.",
        min=0,
        below=1,
        option="mix_dropout",
        also="dropout",
        group="Encoders",
    )
    encoder_lr_multiplier: float = setting(
        0.03, "Learning rate of a fine-tuned encoder, as a multiple of the task's.", above=0, group="Encoders"
    )
    layer_decay: float = setting(
        1.0, "Divide the learning rate by this for each layer group below the top (ULMFiT: 2.6).", min=1, group="Encoders"
    )
    unfreeze: Unfreeze = setting(
        "all",
        "Layer groups to fine-tune: all, only the top one, or gradually one more from the top down with each tenth of the run.",
        group="Encoders",
    )

    def problems(self) -> Iterable[str]:
        if len(set(self.positions)) != len(self.positions):
            yield f"{arg('positions', list(self.positions))} names a position twice: give each of {', '.join(POSITIONS)} once"
        if self.word_features and self.mode == "finetune":
            yield f"{arg('word_features', True)} needs {arg('mode', 'frozen')}"

    def for_linear_head(self) -> FeaturesConfig:
        """The same config without task embeddings and positions, for a network that is an encoder and a head."""
        return self.replace(positions=(), words=TaskWordConfig(enabled=False) if self.words.enabled else self.words)

    def linear_problems(self) -> Iterable[str]:
        """Settings here that such a network does not have."""
        default, own = FeaturesConfig(), TaskWordConfig()
        changed = {
            "word_dim": self.words.enabled and (self.words.dim, self.words.characters) != (own.dim, own.characters),
            "layers": self.layers != default.layers,
            "norm": self.norm not in (default.norm, "none"),
            "word_features": self.word_features,
            "positions": self.positions not in ((), default.positions, ("input", "output")),
        }
        if any(changed.values()):
            what = "has neither task embeddings nor a mix of layers"
            yield f"{arg('network', LINEAR)} {what}: omit {', '.join(arg(name) for name, is_so in changed.items() if is_so)}"


@dataclass(frozen=True, kw_only=True)
class TaskConfig(Config):
    """What the networks of all tasks have."""

    allows_between: ClassVar[bool] = False
    """Whether encoder vectors can enter between the layers of the network."""

    strict: bool = setting(
        False,
        "Refuse files with bad rows (no text, no label, wrong columns or tags) instead of skipping or repairing them.",
        group="Data",
    )
    features: FeaturesConfig = field(default_factory=FeaturesConfig)

    def problems(self) -> Iterable[str]:
        if "between" in self.features.positions and not self.allows_between:
            yield f"{arg('positions', list(self.features.positions))}: only taggers and generation have 'between'; " + (
                "allowed here: input, output"
            )

    def with_layout(self, given: Mapping[str, Any]) -> Self:
        """The config for data files that are laid out in another way than the training data."""
        return self.replace(**given)

    def with_guess(self, names: Iterable[str]) -> Self:
        """The config that remembers which of its settings are a guess by the training data."""
        return self

    @property
    def is_linear(self) -> bool:
        """Whether the network is an encoder and a head."""
        return getattr(self, "network", None) == LINEAR

    def between_problems(self, layers: int) -> Iterable[str]:
        """The position between layers needs two of them."""
        if "between" in self.features.positions and layers < 2:
            yield f"{arg('positions', list(self.features.positions))} needs {arg('network_layers', 2)} or more"


@dataclass(frozen=True, kw_only=True)
class LinearHeadConfig(Config):
    """The head on an encoder that reads whole examples (`network="linear"`)."""

    head: Literal["linear", "tanh", "hidden"] | None = setting(
        None,
        "Head of the linear network: one layer (GPT), a tanh layer first (BERT), or a hidden layer (ULMFiT).",
        default_text="as published for the encoder",
        group="Training",
    )
    encoder_dropout: float = setting(
        0.5, "Multiplier of a ULMFiT's dropout rates while it is fine-tuned.", min=0, below=2, group="Training"
    )
    lm_weight: float = setting(
        0.0, "Weight of the encoder's language-model loss beside the task's; GPT: 0.5.", min=0, group="Training"
    )


@dataclass(frozen=True, kw_only=True)
class SequenceTaskConfig(TaskConfig):
    """Of tasks whose network can be an encoder and a head."""

    linear_head: LinearHeadConfig = field(default_factory=LinearHeadConfig)

    def problems(self) -> Iterable[str]:
        yield from super().problems()
        if not self.is_linear:
            if self.linear_head != LinearHeadConfig():
                names = ", ".join(arg(name) for name in ("head", "encoder_dropout", "lm_weight"))
                yield f"{names} belong to {arg('network', LINEAR)}: omit them"
            return
        yield from self.features.linear_problems()
        if self.linear_head.lm_weight and self.features.mode == "frozen":
            yield f"{arg('lm_weight', self.linear_head.lm_weight)} needs {arg('mode', 'finetune')}: the encoder is frozen"
