"""scikit-learn: vectors of texts as a transformer, and our classifier and tagger as estimators (extra `sklearn`).

    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from polyseme.integrations.sklearn import Embedder

    classifier = make_pipeline(Embedder("en"), LogisticRegression(max_iter=1000))

All can be cloned, searched with `GridSearchCV` and pickled. A pickle has the name and the hash of a model instead of its
weights, and the trained network of a task. The checks of `check_estimator` that need no tables of numbers hold; it skips
the others for estimators of texts.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import MissingExtraError, UsageError
from polyseme.base.run_config import RunConfig
from polyseme.encoders.base import Encoder
from polyseme.encoders.embed_config import TextPooling
from polyseme.encoders.layer_choice import LayerChoice
from polyseme.encoders.text_pooling import text_pooler
from polyseme.integrations.model_reference import AnyModel, ModelReference, shared_model
from polyseme.integrations.packed_task import PackedTask
from polyseme.studies.train import DataFiles, Encoders, TaskJob, load_encoders
from polyseme.tasks.base import Task
from polyseme.tasks.classification import LabelledText
from polyseme.tasks.fit import Splits
from polyseme.tasks.registry import configure_task, task_class
from polyseme.tasks.splits import split_plan
from polyseme.text.labelled.conll import TaggedSentence

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_consistent_length, check_is_fitted
except ImportError as error:
    raise MissingExtraError("polyseme.integrations.sklearn needs scikit-learn", "sklearn") from error

_log = logging.getLogger(__name__)


class InputError(UsageError, ValueError):
    """Input that is not text. A `ValueError` too, as scikit-learn's own."""


class _TextInput(BaseEstimator):
    """What the estimators share: texts as input, and clones that share a loaded model."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags

    def __sklearn_clone__(self) -> Self:
        return type(self)(**self.get_params(deep=False))


class Embedder(ClassNamePrefixFeaturesOutMixin, TransformerMixin, _TextInput):
    """Texts to vectors, as `Encoder.encode` makes them.

    `model`: a name, a folder, or a loaded model. `layers`, `pooling`: as in `encode`. A text is a string, or a list of words.
    It learns nothing: `fit` may be left out.

    >>> from polyseme.integrations.sklearn import Embedder                     # doctest: +SKIP
    >>> Embedder("en").transform(["The bank of the river.", "Money."]).shape   # doctest: +SKIP
    (2, 1024)
    """

    def __init__(
        self,
        model: AnyModel = "en",
        *,
        layers: LayerChoice | None = None,
        pooling: TextPooling | None = None,
        normalize: bool = False,
        batch_size: int = 32,
        device: str | None = None,
    ) -> None:
        self.model = model
        self.layers = layers
        self.pooling = pooling
        self.normalize = normalize
        self.batch_size = batch_size
        self.device = device

    def fit(self, X: Sequence[Any], y: object = None) -> Self:
        """Check the settings; nothing is learned."""
        text_pooler(self._encoder(), self.pooling, self.layers)
        _texts(X)
        return self

    def transform(self, X: Sequence[Any]) -> NDArray[np.float32]:
        """Return the vectors of texts, (texts, dim)."""
        vectors = self._encoder().encode(
            _texts(X),
            batch_size=self.batch_size,
            show_progress_bar=False,
            normalize_embeddings=self.normalize,
            layers=self.layers,
            pooling=self.pooling,
        )
        return np.asarray(vectors)

    def _encoder(self) -> Encoder:
        model = shared_model(self.model, self.device)
        expected: ModelReference | None = getattr(self, "_reference", None)
        return model if expected is None else expected.check(model)

    @property
    def _n_features_out(self) -> int:
        return text_pooler(self._encoder(), self.pooling, self.layers).dim

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.transformer_tags.preserves_dtype = []
        return tags

    def __sklearn_clone__(self) -> Self:
        clone = super().__sklearn_clone__()
        if hasattr(self, "_reference"):
            clone._reference = self._reference
        return clone

    def __getstate__(self) -> dict[str, Any]:
        reference = ModelReference.of(self.model)
        return {**super().__getstate__(), "model": reference.name, "_reference": reference}


class _TaskEstimator(_TextInput):
    """A task of ours as an estimator: `fit` holds out a tenth of the data to choose the best network by.

    `encoder`: a name, several joined by +, "none", or loaded models. `settings`: all other settings of `polyseme.train`, by
    name. `out`: a folder to keep the trained task in, for `polyseme predict`. None stands for the default of the task.
    """

    _task: ClassVar[str]
    task_: Task

    def __init__(
        self,
        encoder: Encoders = "en",
        *,
        mode: Literal["frozen", "finetune"] = "frozen",
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        hidden_size: int | None = None,
        dropout: float | None = None,
        settings: dict[str, Any] | None = None,
        random_state: int = 0,
        device: str | None = "cpu",
        out: str | Path | None = None,
    ) -> None:
        self.encoder = encoder
        self.mode = mode
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.hidden_size = hidden_size
        self.dropout = dropout
        self.settings = settings
        self.random_state = random_state
        self.device = device
        self.out = out

    def _train(self, examples: list[Any]) -> Task:
        given = {
            name: getattr(self, name)
            for name in ("mode", "epochs", "batch_size", "learning_rate", "hidden_size", "dropout")
            if getattr(self, name) is not None
        }
        if not isinstance(self.settings, dict | None):
            raise InputError(f"settings is {self.settings!r}; expected a dictionary, such as {{'min_steps': 100}}, or None")
        if not isinstance(self.random_state, int | np.integer):
            raise InputError(f"random_state is {self.random_state!r}; expected a whole number, such as 0")
        options = {**given, **(self.settings or {})}
        kind, (config, _) = task_class(self._task), configure_task(self._task, options)
        fewest = kind.min_dev_examples(config)
        if len(examples) <= fewest:
            least = f"give {fewest + 1} or more"
            raise InputError(f"{len(examples)} examples are too few to train on and to hold some out: {least}")
        kept, held = split_plan(kind, examples, config).hold_out(self.random_state, fewest=fewest)
        data = Splits([examples[number] for number in kept], [examples[number] for number in held])
        self._encoders = load_encoders(self.encoder)
        temporary = tempfile.TemporaryDirectory(prefix="polyseme-") if self.out is None else nullcontext(self.out)
        with temporary as folder:
            files = DataFiles("the data")
            job = TaskJob(self._task, files, folder, self._encoders, options=options, data=data, display="none", in_memory=True)
            return job.train(RunConfig(seed=self.random_state, device=self.device).run(), notify=_log.info).task

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "task_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        encoders = state.pop("_encoders", [])
        if not isinstance(self.encoder, str | Path):
            state["encoder"] = [ModelReference.of(each).name for each in load_encoders(self.encoder)]
        if "task_" in state:
            state["task_"] = PackedTask.of(self.task_, encoders)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if isinstance(packed := state.get("task_"), PackedTask):
            state["task_"] = packed.load(state["device"])
            state["_encoders"] = [shared_model(name) for name in packed.named.values()]
        super().__setstate__(state)


class TextClassifier(ClassifierMixin, _TaskEstimator):
    """Our text classifier: X are texts (strings or lists of words), y their labels.

    >>> from polyseme.integrations.sklearn import TextClassifier                    # doctest: +SKIP
    >>> TextClassifier("en", epochs=5).fit(texts, labels).predict(["A fine day."])  # doctest: +SKIP
    """

    _task = "classification"
    classes_: NDArray[Any]

    def fit(self, X: Sequence[Any], y: Sequence[Any]) -> Self:
        """Train the task."""
        texts = _texts(X)
        _check_target(texts, y, "a label")
        for number, label in enumerate(y):
            if label is None or (isinstance(label, float) and np.isnan(label)):
                raise InputError(f"text {number} has the label {label}: give it a label, or leave the text out")
        self.classes_ = np.unique(np.asarray(y))
        examples = [LabelledText(text, str(label)) for text, label in zip(texts, np.asarray(y).tolist(), strict=True)]
        self.task_ = self._train(examples)
        return self

    def predict_proba(self, X: Sequence[Any]) -> NDArray[np.float64]:
        """Return the probabilities of the classes, (texts, classes), in the order of `classes_`."""
        check_is_fitted(self)
        names = [str(label) for label in self.classes_.tolist()]
        predictions = self.task_.predict(_texts(X))
        rows = [[each.probabilities.get(name, 0.0) for name in names] for each in predictions]
        return np.array(rows, dtype=np.float64).reshape(-1, len(names))

    def predict(self, X: Sequence[Any]) -> NDArray[Any]:
        """Return the most probable class of each text."""
        best = self.predict_proba(X).argmax(axis=1)
        return self.classes_[best]


class Tagger(_TaskEstimator):
    """Our tagger: X are sentences (lists of words), y lists of as many tags: names, parts of speech, chunks.

    `score` is the F1 of spans where tags mark spans (B-PER, I-PER, O), else the accuracy over words.

    >>> from polyseme.integrations.sklearn import Tagger                                        # doctest: +SKIP
    >>> Tagger("en").fit([["Ann", "left"]], [["NOUN", "VERB"]]).predict([["Bob", "slept"]])     # doctest: +SKIP
    """

    _task = "tagging"

    def fit(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> Self:
        """Train the task."""
        self.task_ = self._train(_tagged(X, y))
        return self

    def predict(self, X: Sequence[Any]) -> list[list[str]]:
        """Return the tags of each sentence; a string is split into words as in training."""
        check_is_fitted(self)
        return [list(each.tags) for each in self.task_.predict(_texts(X))]

    def score(self, X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> float:
        """Return the F1 of spans, or the accuracy over words."""
        check_is_fitted(self)
        examples = _tagged(X, y)
        return float(self.task_.score(examples, self.predict(X))[self.task_.main_metric])


def _texts(X: Any) -> list[Any]:
    """Texts in any container of one dimension: a list, an array, a column of a table."""
    if isinstance(X, str):
        raise InputError("expected a list of texts, got one string: put it into a list")
    if isinstance(X, Mapping):
        raise InputError("expected a list of texts, got a dictionary: give one of its values, such as data['text']")
    if getattr(X, "ndim", 1) != 1:
        raise InputError(f"expected one column of texts, got a table of shape {X.shape}: give a column, such as table['text']")
    if not isinstance(X, Iterable):
        raise InputError(f"expected a list of texts, got {type(X).__name__}: give strings, or lists of words, in a list")
    return [_text(text) for text in X]


def _text(text: Any) -> str | list[str]:
    if isinstance(text, str):
        return str(text)
    words = list(text) if isinstance(text, list | tuple | np.ndarray) else [text]
    if any(not isinstance(word, str) for word in words):
        raise InputError(f"a text is a string or a list of words; got {text!r}")
    return [str(word) for word in words]


def _check_target(texts: list[Any], y: Any, what: str) -> None:
    if y is None:
        raise InputError(f"requires y to be passed, but the target y is None: give {what} for each text")
    if isinstance(y, str):
        raise InputError(f"y is the string {y!r}; expected a list with {what} for each text")
    check_consistent_length(texts, y)


def _tagged(X: Sequence[Sequence[str]], y: Sequence[Sequence[str]]) -> list[TaggedSentence]:
    texts = _texts(X)
    _check_target(texts, y, "a list of tags")
    sentences = []
    for number, (words, tags) in enumerate(zip(texts, y, strict=True)):
        if isinstance(words, str) or not isinstance(tags, list | tuple | np.ndarray) or len(words) != len(tags):
            raise InputError(f"sentence {number} is {words!r} with {tags!r}; expected words and as many tags, in lists")
        sentences.append(TaggedSentence(words, [str(tag) for tag in tags]))
    return sentences
