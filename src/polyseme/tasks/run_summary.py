"""What a run shows before it trains: classes, sizes of the data, and the recipe, within 80 columns."""

from __future__ import annotations

import itertools
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from polyseme.base.config import Config
from polyseme.base.display import count, plain, short
from polyseme.base.options import options_of
from polyseme.encoders.layer_cache import cache_size
from polyseme.metrics.spans import are_span_tags, spans
from polyseme.tasks.base import Task
from polyseme.tasks.data import TaskData

WIDTH = 80
_INDENT = 10
_LARGE = 1e9  # bytes on disk that are worth a line
_FIXED = "\u00a0"  # a blank where no line ends
_LAYERS = {"mix": "a mix of its layers", "top": "top layer", "all": "all layers"}
_NETWORK = ("network_layers", "hidden_size", "dropout", "mix_dropout", "crf", "pooling")
_WITHOUT_POOLING = ("bcn", "esim", "linear")  # networks that do not use network_layers and pooling
_TRAINING = ("epochs", "steps", "min_steps", "patience", "batch_size", "batch_words", "learning_rate", "warmup", "decay")


@dataclass(frozen=True)
class RunSummary:
    """What is about to be trained."""

    task: Task
    fitting: Config
    """The settings of the training."""
    data: Mapping[str, TaskData]
    """By name: train, dev, test."""
    steps_per_epoch: int

    def __str__(self) -> str:
        counts = label_counts(self.data["train"].examples)
        scores = getattr(self.task.config, "goal", None) == "score"
        rows = {
            "scores": _range([float(label) for label in counts]) if scores else "",
            "classes": "" if scores else class_list(counts, WIDTH - _INDENT),
            "data": self._sizes(),
            "network": self._network(),
            "encoder": self._encoders(),
            "disk": self._disk(),
            "training": self._training(),
        }
        return "\n".join(_wrapped(name, text) for name, text in rows.items() if text)

    def _sizes(self) -> str:
        each = (f"{name} {count(len(data), 'example')} ({count(data.words, 'word')})" for name, data in self.data.items())
        return ", ".join(map(_unbroken, each))

    def _network(self) -> str:
        weights = sum(weight.numel() for weight in self.task.parameters())
        name = getattr(self.task.config, "network", None) or self.task.kind
        wide = getattr(self.task.config, "wide_features", 0)  # features of n-grams
        ngrams = [_unbroken(f"n-grams ({count(wide, 'feature')})")] if wide else []
        unused = {"network_layers", "pooling"} if name in _WITHOUT_POOLING else set()
        words = ("word_dropout",) if self.task.config.features.words.enabled else ()
        settings = [each for each in (*_NETWORK, *words) if each not in unused]
        return ", ".join([name, *_values(self.task.config, settings), *ngrams, _unbroken(f"{weights:,} weights")])

    def _encoders(self) -> str:
        features = self.task.features
        mode = "frozen" if features.encoders else "fine-tuned"
        layers = "" if self.task.config.is_linear else f", {_LAYERS[features.config.layers]}"
        names = [f"{_name(encoder)} ({mode}{layers})" for encoder in features.contextual]
        loaded = features.words.loaded
        vectors = "no word vectors" if loaded is None else f"word vectors {_name(loaded)}"
        return ", ".join([*(names or ["none"]), _unbroken(vectors)])

    def _disk(self) -> str:
        """The room that the layers of frozen encoders need while it trains, where that is much."""
        words = sum(self.data[name].words for name in ("train", "dev") if name in self.data)
        size = sum(cache_size(words, encoder) for encoder in self.task.features.frozen)
        return f"about {size / 1e9:,.1f} GB for frozen layers while it trains" if size >= _LARGE else ""

    def _training(self) -> str:
        values = _values(self.fitting, _TRAINING)
        epochs, fewest = getattr(self.fitting, "epochs", None), getattr(self.fitting, "min_steps", 0)
        if epochs is not None and fewest > epochs * self.steps_per_epoch:
            values[0] = _unbroken(f"about {fewest / self.steps_per_epoch:.0f} epochs")
        return ", ".join([*values, _unbroken(f"{count(self.steps_per_epoch, 'step')} per epoch")])


def label_counts(examples: Sequence[Any]) -> Counter[str]:
    """Count the labels of examples, or the types of their spans, or their tags; none where they have no such thing."""
    if not examples:
        return Counter()
    if hasattr(examples[0], "tags"):
        tags = [example.tags for example in examples]
        if are_span_tags(itertools.chain.from_iterable(tags)):
            return Counter(kind or "span" for each in tags for _, _, kind in spans(each))
        return Counter(itertools.chain.from_iterable(tags))
    return Counter(example.label for example in examples if isinstance(getattr(example, "label", None), str))


def class_list(counts: Mapping[str, int], width: int) -> str:
    """Classes with their counts, the largest first, as many as fit.

    >>> class_list({"a": 5, "b": 1200, "c": 1, "d": 7}, 30)
    '4: b (1,200), d (7), 2 more'
    """
    names = sorted(counts, key=lambda name: (-counts[name], name))
    shown = [f"{short(name, 20)} ({counts[name]:,})" for name in names]
    for kept in range(len(names), 0, -1):
        more = [f"{len(names) - kept:,} more"] if kept < len(names) else []
        text = f"{len(names):,}: {', '.join([*shown[:kept], *more])}"
        if _cells(text) <= width:
            return text
    return f"{len(names):,}" if names else ""


def _range(scores: Sequence[float]) -> str:
    return f"from {min(scores):g} to {max(scores):g}" if scores else ""


def _cells(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _values(config: Config, names: Sequence[str]) -> list[str]:
    """Settings and their values, without those that are off."""
    options = options_of({"": config})
    found = {name: options[name].default for name in names if name in options}
    shown = {name: value for name, value in found.items() if value is not None and value not in (0, False)}
    return [_unbroken(f"{name.replace('_', ' ')} {plain(value)}") for name, value in shown.items()]


def _name(encoder: Any) -> str:
    return Path(encoder.source or "").name or str(encoder.kind)


def _unbroken(text: str) -> str:
    """Text that stays on one line."""
    return text.replace(" ", _FIXED)


def _wrapped(name: str, text: str) -> str:
    wrapper = textwrap.TextWrapper(WIDTH, f"{name:{_INDENT}}", " " * _INDENT, break_long_words=False, break_on_hyphens=False)
    return wrapper.fill(text).replace(_FIXED, " ")
