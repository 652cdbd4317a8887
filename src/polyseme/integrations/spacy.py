"""spaCy: vectors of words in context, our trained tasks, and features for spaCy's own networks (extra `spacy`).

    import spacy, polyseme.integrations.spacy
    nlp = spacy.blank("en")
    nlp.add_pipe("polyseme", config={"model": "en"})                        # doc.tensor, token.vector, doc._.elmo
    nlp.add_pipe("polyseme_task", config={"task": "my-ner"})                # doc.ents, token.tag_ or doc.cats

The architecture `polyseme.Tok2Vec.v1` gives the same vectors, frozen, to components that spaCy trains. Tokens are spaCy's own:
they are read as words, sentence by sentence if the document has sentences. White space is no word, and has zeros.

Saved pipelines have the name and the hash of a model, or with `store_weights` its weights; a task is saved as a whole.
Processes that `nlp.pipe(n_process=2)` forks compute with one thread each: the threads of OpenMP do not survive a fork, and
waiting for them would never end.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.api.tasks import load_task
from polyseme.base.errors import MissingExtraError, UsageError
from polyseme.base.files import read_json, write_text
from polyseme.encoders.base import Encoder
from polyseme.encoders.layer_choice import LayerChoice, select_layers
from polyseme.integrations.model_reference import ModelReference, one_thread_after_fork, shared_model
from polyseme.integrations.packed_task import PackedTask
from polyseme.tasks.base import Task
from polyseme.tasks.tagging import Tagging

try:
    import srsly
    from spacy import registry
    from spacy.language import Language
    from spacy.pipeline import Pipe
    from spacy.tokens import Doc, Span
    from spacy.util import minibatch
    from thinc.api import Model
except ImportError as error:
    raise MissingExtraError("polyseme.integrations.spacy needs spaCy", "spacy") from error

REFERENCE, MODEL, TASK = "model.json", "model", "task"
_OPEN, _CLOSED = ("ADJ", "ADV", "INTJ", "NOUN", "PROPN", "VERB"), ("ADP", "AUX", "CCONJ", "DET", "NUM", "PART", "PRON", "SCONJ")
UPOS = frozenset([*_OPEN, *_CLOSED, "PUNCT", "SYM", "X"])

if not Doc.has_extension("elmo"):
    Doc.set_extension("elmo", default=None)


def doc_words(doc: Doc) -> list[list[Any]]:
    """Return the tokens of a document without white space, by sentences if it has any."""
    parts: Iterable[Any] = doc.sents if doc.has_annotation("SENT_START") else [doc]
    sentences = [[token for token in part if not token.is_space] for part in parts]
    return [tokens for tokens in sentences if tokens]


def embed_docs(model: Encoder, docs: Sequence[Doc]) -> list[NDArray[np.float32]]:
    """Return all layers of the tokens of each document, (layers, tokens, dim), with zeros for white space."""
    one_thread_after_fork()
    sentences = [doc_words(doc) for doc in docs]
    flat = list(itertools.chain.from_iterable(sentences))
    arrays = iter(model.embed([[token.text for token in tokens] for tokens in flat]))
    results = []
    for doc, own in zip(docs, sentences, strict=True):
        out = np.zeros((model.layers, len(doc), model.dim), dtype=np.float32)
        for tokens in own:
            out[:, [token.i for token in tokens]] = next(arrays)
        results.append(out)
    return results


def _chosen(stack: NDArray[np.float32], layers: LayerChoice) -> NDArray[np.float32]:
    """One vector for each token, (tokens, dim); several layers are concatenated."""
    rows = select_layers(layers, len(stack)).stack(torch.from_numpy(stack)).numpy()
    return np.ascontiguousarray(rows.transpose(1, 0, 2).reshape(stack.shape[1], len(rows) * stack.shape[2]))


class _Component(Pipe):
    """What the components share: streams in batches, and bytes made from files."""

    name: str

    def __call__(self, doc: Doc) -> Doc:
        self.annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Process documents in batches; a batch with an error goes to the error handler of the pipeline."""
        for batch in minibatch(stream, size=batch_size):
            docs = list(batch)
            try:
                self.annotate(docs)
            except Exception as error:
                self.get_error_handler()(self.name, self, docs, error)
            yield from docs

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Write the results into the documents."""
        raise NotImplementedError


class PolysemeVectors(_Component):
    """Fills `doc.tensor`, `token.vector` and, with all layers, `doc._.elmo` (layers, tokens, dim)."""

    def __init__(
        self,
        name: str = "polyseme",
        *,
        model: str = "en",
        layers: LayerChoice = "mean",
        keep_layers: bool = True,
        store_weights: bool = False,
        device: str | None = None,
    ) -> None:
        self.name, self.model, self.layers = name, model, layers
        self.keep_layers, self.store_weights, self.device = keep_layers, store_weights, device
        self._reference: ModelReference | None = None
        self._encoder: Encoder | None = None

    @property
    def encoder(self) -> Encoder:
        """The model, loaded when it is first needed."""
        if self._encoder is None:
            model = shared_model(self.model, self.device)
            self._encoder = model if self._reference is None else self._reference.check(model)
        return self._encoder

    def annotate(self, docs: Sequence[Doc]) -> None:
        for doc, stack in zip(docs, embed_docs(self.encoder, docs), strict=True):
            doc.tensor = _chosen(stack, self.layers)
            if self.keep_layers:
                doc._.elmo = stack
            if doc.vocab.vectors.size:  # which come first; without any, spaCy's own vectors are those of the tensor
                doc.user_token_hooks |= {"vector": _token_vector, "has_vector": _has_vector}
                doc.user_span_hooks["vector"] = _span_vector
                doc.user_hooks["vector"] = _doc_vector

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the name and the hash of the model, and its weights if `store_weights` says so."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / REFERENCE, srsly.json_dumps(self._state()))
        if self.store_weights:
            self.encoder.save_pretrained(folder / MODEL)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> PolysemeVectors:
        """Read what `to_disk` wrote; the model is loaded and its hash compared when it is first needed."""
        folder = Path(path)
        self._restore(read_json(folder / REFERENCE))
        if (folder / MODEL).is_dir():
            self.model = str(folder / MODEL)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the name and the hash of the model."""
        return srsly.json_dumps(self._state()).encode()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> PolysemeVectors:
        """Read what `to_bytes` returned."""
        self._restore(srsly.json_loads(data))
        return self

    def _state(self) -> dict[str, str]:
        reference = ModelReference.of(self.encoder if self._reference is None else self.model)
        return {"model": self.model, "sha256": reference.sha256}

    def _restore(self, state: dict[str, Any]) -> None:
        self.model, self._encoder = state["model"], None
        self._reference = ModelReference(state["model"], state["sha256"])

    def __reduce__(self) -> Any:
        settings = {name: getattr(self, name) for name in ("layers", "keep_layers", "store_weights", "device")}
        return _unpickled, (self.name, {"model": self.model, **settings}, self.to_bytes())


class PolysemeTask(_Component):
    """Runs a trained task: tags that mark spans become `doc.ents`, others `token.tag_` (and `pos_`), labels `doc.cats`."""

    def __init__(self, name: str = "polyseme_task", *, task: str | Task, device: str | None = None) -> None:
        self.name, self.task, self.device = name, task, device

    @property
    def loaded(self) -> Task:
        """The task, loaded when it is first needed."""
        if not isinstance(self.task, Task):
            self.task = load_task(self.task, device=self.device)
        if self.task.kind not in ("tagging", "classification"):
            raise UsageError(f"the task {self.name} is {self.task.kind}; spaCy has a place for tagging and classification")
        return self.task

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the task."""
        return tuple(self.loaded.labels)

    def annotate(self, docs: Sequence[Doc]) -> None:
        one_thread_after_fork()
        if isinstance(self.loaded, Tagging):
            self._tag(docs, self.loaded)
            return
        texts = [[token.text for token in doc if not token.is_space] for doc in docs]
        for doc, prediction in zip(docs, self.loaded.predict(texts), strict=True):
            doc.cats = {**doc.cats, **prediction.probabilities}

    def _tag(self, docs: Sequence[Doc], task: Tagging) -> None:
        sentences = [(doc, tokens) for doc in docs for tokens in doc_words(doc)]
        predictions = task.predict([[token.text for token in tokens] for _, tokens in sentences])
        found: dict[int, list[Span]] = {}
        universal = set(task.labels) <= UPOS
        for (doc, tokens), prediction in zip(sentences, predictions, strict=True):
            if task.scheme != "plain":
                found.setdefault(id(doc), []).extend(
                    Span(doc, tokens[begin].i, tokens[end - 1].i + 1, label=kind or "SPAN")
                    for begin, end, kind in prediction.spans
                )
                continue
            for token, tag in zip(tokens, prediction.tags, strict=True):
                token.tag_ = tag
                if universal:
                    token.pos_ = tag
        for doc in docs:
            if task.scheme != "plain":
                doc.set_ents(found.get(id(doc), []), default="outside")

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the task as a whole: `polyseme predict` opens the folder `task`."""
        folder = Path(path)
        folder.mkdir(parents=True, exist_ok=True)
        self.loaded.save(folder / TASK)

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> PolysemeTask:
        """Read what `to_disk` wrote."""
        self.task = load_task(Path(path) / TASK, device=self.device)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """Return the files of the task."""
        packed = PackedTask.of(self.loaded)
        return srsly.msgpack_dumps({"files": packed.files, "named": packed.named})

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> PolysemeTask:
        """Read what `to_bytes` returned."""
        self.task = PackedTask(**srsly.msgpack_loads(data)).load(self.device)
        return self

    def __reduce__(self) -> Any:
        return _unpickled_task, (self.name, self.device, self.to_bytes())


def _unpickled(name: str, settings: dict[str, Any], state: bytes) -> PolysemeVectors:
    return PolysemeVectors(name, **settings).from_bytes(state)


def _unpickled_task(name: str, device: str | None, state: bytes) -> PolysemeTask:
    return PolysemeTask(name, task="", device=device).from_bytes(state)


def _token_vector(token: Any) -> NDArray[np.float32]:
    return token.doc.tensor[token.i]


def _has_vector(token: Any) -> bool:
    return not token.is_space


def _span_vector(span: Any) -> NDArray[np.float32]:
    rows = span.doc.tensor[span.start : span.end]
    return rows.mean(0) if len(rows) else np.zeros(rows.shape[1], dtype=np.float32)


def _doc_vector(doc: Doc) -> NDArray[np.float32]:
    return _span_vector(doc[:])


# ---- what config files name


def _with_types(function: Callable[..., Any]) -> Callable[..., Any]:
    """Turn annotations that are strings into types: spaCy 3.8.2 checks configs by them, and cannot read strings."""
    function.__annotations__ = get_type_hints(function)
    return function


@Language.factory(
    "polyseme",
    assigns=["doc.tensor", "doc._.elmo"],
    default_config={"model": "en", "layers": "mean", "keep_layers": True, "store_weights": False, "device": None},
)
@_with_types
def make_vectors(
    nlp: Language, name: str, model: str, layers: Any, keep_layers: bool, store_weights: bool, device: str | None
) -> PolysemeVectors:
    """Make the component `polyseme`."""
    settings: dict[str, Any] = {"layers": layers, "keep_layers": keep_layers, "store_weights": store_weights}
    return PolysemeVectors(name, model=model, device=device, **settings)


@Language.factory("polyseme_task", default_config={"device": None})
@_with_types
def make_task(nlp: Language, name: str, task: str, device: str | None) -> PolysemeTask:
    """Make the component `polyseme_task`."""
    return PolysemeTask(name, task=task, device=device)


@registry.architectures("polyseme.Tok2Vec.v1")
@_with_types
def make_tok2vec(model: str = "en", layers: Any = "mean", device: str | None = None) -> Model[list[Doc], list[Any]]:
    """Frozen vectors of tokens for networks that spaCy trains: Model[List[Doc], List[Floats2d]]."""
    encoder = shared_model(model, device)
    width = encoder.dim * len(select_layers(layers, encoder.layers).stack(torch.zeros(encoder.layers, 1)))
    reference = ModelReference.of(encoder)
    attrs = {"model": model, "layers": layers, "device": device, "sha256": reference.sha256}
    return Model("polyseme", _forward, dims={"nO": width}, attrs=attrs)


def _forward(model: Model[list[Doc], list[Any]], docs: list[Doc], is_train: bool) -> tuple[list[Any], Any]:
    attrs = model.attrs
    encoder = ModelReference(attrs["model"], attrs["sha256"]).load(attrs["device"])
    vectors = [model.ops.asarray2f(_chosen(stack, attrs["layers"])) for stack in embed_docs(encoder, docs)]
    return vectors, lambda gradients: []
