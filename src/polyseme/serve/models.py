"""The models and trained tasks of a service, by name, with what their questions need: an index of words in context, a table of
static vectors. Requests name them; they never name a path, an address or a Hub id."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.serve.errors import ApiError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from polyseme.analysis.index import Index
    from polyseme.encoders.base import Encoder
    from polyseme.tasks.base import Task

SHIPPED = ("en", "zh")
MAX_STACK_BYTES = 1 << 30
"""Of all layers of the searched text in memory: 700,000 words of three layers of 256 numbers."""
_REPORT_SECONDS, _LOOKED_AT = 10.0, 200  # between two lines of the log; sentences whose script is looked at
_log = logging.getLogger(__name__)


@dataclass(eq=False)
class ServedModel:
    """A loaded model."""

    name: str
    encoder: Encoder
    index: Index | None = None
    """The words of the searched text in context."""
    no_index: str = "the service has no text to search for this model: start it with --corpus"
    """Why there is no index."""
    source: str = "samples"
    """What the index is of: `samples` or `corpus`."""
    stack: NDArray[np.float16] | None = None
    """All layers of the words of the index, unless they are too large."""

    @property
    def language(self) -> str | None:
        """The language of its sample sentences, if it has any."""
        return _language(self.encoder)

    @property
    def has_word_space(self) -> bool:
        """Whether its words can be compared out of context."""
        encoder = self.encoder
        return encoder.has_static_vectors and (encoder.vocabulary is not None or encoder.static)

    def to_json(self) -> dict[str, Any]:
        from polyseme.analysis.next_words import predicts_next

        encoder = self.encoder
        able = {
            "neighbours": self.index is not None,
            "similar": self.has_word_space,
            "score": encoder.predicts_words,
            "substitutes": encoder.predicts_words and encoder.bidirectional,
            "fill": encoder.can_fill,
            "next": predicts_next(encoder),
        }
        return {
            "id": self.name,
            "object": "model",
            "created": 0,
            "owned_by": "polyseme",
            "kind": encoder.kind,
            "layers": encoder.layers,
            "dim": encoder.dim,
            "static": encoder.static,
            "splitter": encoder.splitter.name,
            "language": self.language,
            "searches": None if self.index is None else self.source,
            "endpoints": ["words", "tokenize", "embeddings", *(name for name, can in able.items() if can)],
        }


@dataclass(eq=False)
class ServedModels:
    """All that a service has loaded; the first model is the default."""

    models: Mapping[str, ServedModel]
    tasks: Mapping[str, Task] = field(default_factory=dict)

    def model(self, name: str | None) -> ServedModel:
        """A loaded model by name; None: the first."""
        if name is None:
            return next(iter(self.models.values()))
        if name not in self.models:
            message = f"no model of this name is loaded; loaded: {', '.join(self.models)}"
            raise ApiError(404, message, param="model", code="model_not_found")
        return self.models[name]

    def task(self, name: str) -> Task:
        """A loaded task by name."""
        if name not in self.tasks:
            loaded = (
                f"loaded: {', '.join(self.tasks)}" if self.tasks else "none is loaded: start the service with --task FOLDER"
            )
            raise ApiError(404, f"no task of this name is loaded; {loaded}", param="task", code="task_not_found")
        return self.tasks[name]

    def to_json(self) -> dict[str, Any]:
        tasks = [
            {
                "id": name,
                "object": "task",
                "kind": task.kind,
                "language": _language(task),
                "labels": task.predicted_labels(),
                "layer_weights": {place: list(each.values()) for place, each in task.layer_weights().weights.items()},
            }
            for name, task in self.tasks.items()
        ]
        return {"object": "list", "data": [model.to_json() for model in self.models.values()], "tasks": tasks}

    def warm_up(self) -> None:
        """Compute once with each, so that the first request is not slower than the others."""
        for model in self.models.values():
            model.encoder.embed([["."]])


def _language(reader: Encoder | Task) -> str | None:
    """The language of what a splitter splits, if it tells."""
    from polyseme.analysis.samples import language_of

    try:
        return language_of(reader)
    except UsageError:
        return None


def names_of(given: Iterable[str], what: str) -> dict[str, str]:
    """Read `NAME=PATH`, or a path whose last part is the name; a name may occur once.

    >>> names_of(["en", "news=models/news-2", "models/old"], "models")
    {'en': 'en', 'news': 'models/news-2', 'old': 'models/old'}
    """
    found: dict[str, str] = {}
    for each in given:
        name, equals, path = each.partition("=")
        if not equals:
            name, path = Path(each).name or each, each
        if not name or not path:
            raise UsageError(f"{arg(what)} is {each!r}; allowed: a path, or NAME=PATH")
        if name in found:
            raise UsageError(f"two {what} have the name {name!r}: give one of them another, NAME={path}")
        found[name] = path
    return found


def load_models(
    models: Sequence[str], tasks: Sequence[str] = (), corpus: Sequence[str | Path] = (), **options: Any
) -> ServedModels:
    """Load models and tasks, and index the text that `neighbours` searches: the corpus, or the sample sentences.

    `options`: keyword arguments of `polyseme.load`.
    """
    from polyseme.api.models import load
    from polyseme.api.tasks import load_task

    served = {name: ServedModel(name, load(where, **options)) for name, where in names_of(models or SHIPPED, "models").items()}
    trained = {name: load_task(where, device=options.get("device")) for name, where in names_of(tasks, "task").items()}
    languages = {model.language for model in served.values()} - {None}
    for model in served.values():
        own = len(languages) < 2 or not corpus or reads_script(model, corpus)
        if not own:
            _log.info("%s: the text of --corpus is in another script, so the sample sentences are searched", model.name)
        add_index(model, corpus if own else ())
    return ServedModels(served, trained)


def reads_script(model: ServedModel, corpus: Sequence[str | Path]) -> bool:
    """Whether a text is in the script that a model reads, Chinese or another, by its first sentences."""
    from polyseme.text.config import TextConfig

    text = TextConfig().open([str(path) for path in corpus], model.encoder.splitter)
    letters = [letter for sentence in islice(text, _LOOKED_AT) for word in sentence for letter in word if letter.isalpha()]
    chinese = sum("\u3400" <= letter <= "\u9fff" for letter in letters)
    return model.language is None or (2 * chinese > len(letters)) == (model.language == "zh")


def add_index(model: ServedModel, corpus: Sequence[str | Path] = ()) -> None:
    """Index a text for a model, or keep the reason why it cannot be."""
    from polyseme.analysis.index import Index
    from polyseme.analysis.samples import language_of, samples
    from polyseme.analysis.sense_map import LayerStack
    from polyseme.text.config import TextConfig

    try:
        if corpus:
            sentences: Any = TextConfig().open([str(path) for path in corpus], model.encoder.splitter)
        else:
            sentences = [sample.sentence for sample in samples(language_of(model.encoder))]
        layers = LayerStack(MAX_STACK_BYTES)
        model.index = Index.build(model.encoder, sentences, progress=_reported(model.name), keep_stack=layers.add)
        model.stack, model.source = layers.stack, "corpus" if corpus else "samples"
    except UsageError as error:
        model.no_index = str(error)
    except PolysemeError as error:
        if corpus:
            raise
        model.no_index = str(error)


def _reported(name: str) -> Callable[[int], None]:
    """Count sentences of a text that is indexed, and write into the log every ten seconds how many there are."""
    done, told = 0, time.monotonic()

    def advance(count: int) -> None:
        nonlocal done, told
        done += count
        if time.monotonic() - told >= _REPORT_SECONDS:
            told = time.monotonic()
            _log.info("%s: %s sentences of the searched text are indexed", name, f"{done:,}")

    return advance
