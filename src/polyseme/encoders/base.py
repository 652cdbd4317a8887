"""What every system shares: sentences of words go in, a stack of vectors for each word comes out.

A new system subclasses `Encoder` and says how a batch is prepared and run, and how its files are written and read back;
embedding, pooling and freezing come from here, the rest of a model folder from `folder`. Words are the unit everywhere,
whatever pieces a system cuts them into.
"""

from __future__ import annotations

import operator
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.base.config import Config
from polyseme.base.errors import PolysemeError, UsageError, nearest
from polyseme.base.hub import upload_folder
from polyseme.base.progress import progress
from polyseme.encoders.sequence import SequenceOutput, combine_pair, split_texts
from polyseme.nn.config import Pooling
from polyseme.nn.pooling import concat_pool, pool
from polyseme.text.batching.batches import batch_by_words
from polyseme.text.words import Splitter

Sentence = str | Sequence[str]
LayerChoice = Literal["all", "top", "mean"] | int
ENCODED = 4096  # texts whose words' vectors stand in memory while `encode` pools them
BATCH_CPU, BATCH_CUDA = (4096, 128), (32768, 1024)  # words and sentences of a batch


@dataclass(frozen=True)
class Batch:
    """What an encoder eats."""

    inputs: Any
    """The system's own tensors."""
    mask: Tensor
    """(batch, words): True where a word is."""
    lengths: Tensor
    """(batch,): words of each sentence."""


@dataclass(frozen=True)
class Layers:
    """What an encoder gives."""

    states: Tensor
    """(layers, batch, words, dim), zero on padding."""
    mask: Tensor
    """(batch, words): True where a word is."""
    ends: Tensor | None = None
    """(layers, batch, 2, dim): the vectors of the begin and end marks, where the system has them."""
    summary: Tensor | None = None
    """(batch, dim): one vector a text, where the system has one."""


class Encoder(nn.Module, ABC):
    """A system that turns words into layers of vectors that depend on their sentence.

    >>> import polyseme                                               # doctest: +SKIP
    >>> model = polyseme.load("my-model")                             # doctest: +SKIP
    >>> vectors = model.embed(["The bank of the river .", ["A", "bank", "robber"]])   # doctest: +SKIP
    >>> vectors[1].shape                                              # doctest: +SKIP
    (3, 3, 1024)
    """

    kind: ClassVar[str]
    """The name in `config.json`."""
    config_type: ClassVar[type[Config]]
    default_position: ClassVar[Literal["input", "between", "output"]] = "input"
    """Where its vectors stand in a task's network, where nobody says otherwise and the network has such a place."""
    has_own_vectors: ClassVar[bool] = True
    """Whether layer 0 is the word's own vector, whatever its sentence."""

    def __init__(self, config: Config, splitter: Splitter) -> None:
        super().__init__()
        self.config = config
        self.splitter = splitter
        self.card: str | None = None
        """The model card (README.md) that came with the weights."""
        self.source: str | None = None
        """Where the weights came from, for people to read."""

    @property
    @abstractmethod
    def layers(self) -> int:
        """Layers in the stack, the word's own vector (layer 0) counted."""

    @property
    @abstractmethod
    def dim(self) -> int:
        """Size of a vector."""

    @abstractmethod
    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        """Sentences -> the tensors that `forward` eats, on the model's device."""

    @abstractmethod
    def forward(self, batch: Batch) -> Layers:
        """Run a batch, with gradients where they are asked for."""

    @abstractmethod
    def layer_groups(self) -> dict[str, nn.Module]:
        """The parts that can be frozen one by one, from the bottom up."""

    # ---- whole examples: a subclass that can do better than by words says so

    @property
    def predicts(self) -> bool:
        """Whether `whole` can tell the loss of predicting the texts that it reads, word by word."""
        return False

    def sequence_dim(self, texts: int) -> int:
        """Size of the vector of an example that has so many texts."""
        return 3 * self.dim * (1 if texts == 1 else 4)

    def sequence_tokens(self) -> Tensor | None:
        """Vectors of marks (marks, dim) that `whole` needs beside the model's own, as they begin; who reads examples keeps
        them, and may let them learn. None: it needs none."""
        return None

    def prepare_sequence(self, examples: Sequence[Sequence[Sentence]], *, keep_end: bool = False) -> Any:
        """Examples of one text each, or of two each -> what `whole` eats, on the model's device.

        Where a network has a longest text, the longer one of an example loses its end, or with `keep_end` a first one its
        beginning: here are no windows.
        """
        return [self.prepare(texts) for texts in split_texts(examples)]

    def encode_sequence(self, inputs: Any, marks: Tensor | None = None, *, predict: bool = False) -> SequenceOutput:
        """One vector for each example, with gradients where they are asked for; `predict`: the loss of its words, too.

        Here concat pooling of the top layer, [last; max; mean], each text read alone; of two u and v [u; v; |u - v|; u * v].
        """
        if predict:
            raise UsageError(f"a {self.kind} does not tell the next word of what it reads here; leave `predict` out")
        found = [self(batch) for batch in inputs]
        pooled = [concat_pool(each.states[-1], each.mask, self.final_state(each)) for each in found]
        return SequenceOutput(combine_pair(pooled))

    def final_state(self, layers: Layers) -> Tensor:
        """What the top layer knows at the end of each text, (batch, dim)."""
        return pool(layers.states[-1], layers.mask, "last")

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return next(self.parameters()).device

    def words(self, sentence: Sentence) -> list[str]:
        """The words of a sentence: a string is split the way the model was trained, a list is taken as it is."""
        if isinstance(sentence, str):
            return self.splitter(sentence)
        if not isinstance(sentence, Iterable):
            raise UsageError(f"a sentence is a string or a list of words; got {sentence!r}")
        words = list(sentence)
        for word in words:
            if not isinstance(word, str):
                raise UsageError(f"a sentence is a string or a list of words; this one holds {word!r}")
        return words

    def embed(
        self,
        sentences: Sequence[Sentence],
        *,
        layers: LayerChoice = "all",
        start: str | None = None,
        batch_words: int | None = None,
        batch_size: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[np.ndarray]:
        """Vectors of every word of every sentence: float32 arrays (layers, words, dim), in the order given.

        `layers`: "all", "top", "mean", or the number of one; one layer, or the mean, is still (1, words, dim).
        `start`: how the model begins a sentence, for systems that have a choice. Batches hold at most `batch_words` words
        and `batch_size` sentences (by default what suits the device); neither changes the vectors. `progress` is told how
        many sentences each batch held.
        """
        choose = choose_layers(layers, self.layers)
        texts = self._texts(sentences)
        results: list[np.ndarray] = [np.zeros(0)] * len(texts)
        words, rows = self._batch_limits(batch_words, batch_size, start)
        queue = self._batches(texts, start, words, rows)[::-1]
        waiting: list[tuple[np.ndarray, Callable[[], list[np.ndarray]]]] = []

        def collect() -> None:
            batch, arrays = waiting.pop(0)
            for row, array in zip(batch, arrays(), strict=True):
                results[row] = array
            if progress is not None:
                progress(len(batch))

        with torch.inference_mode():
            while queue:
                batch = queue.pop()
                try:
                    waiting.append((batch, self._embed_batch([texts[row] for row in batch], choose, start, words)))
                except torch.OutOfMemoryError:
                    if len(batch) == 1 or start == "carry":
                        raise
                    half = len(batch) // 2  # the device is smaller than the batch: go on with half of it at a time
                    queue += [batch[half:], batch[:half]]
                    continue
                if len(waiting) > 1:  # one batch behind, so that a GPU computes while the vectors before are copied
                    collect()
            while waiting:
                collect()
        return results

    @property
    def separator_tokens(self) -> tuple[str, ...]:
        """The words that stand between two sentences of a document, where the system has marks for that."""
        return ()

    def embed_documents(
        self,
        documents: Sequence[Sequence[Sentence]],
        *,
        layers: LayerChoice = "all",
        batch_words: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[np.ndarray]]:
        """Vectors as `embed` gives them, of sentences that are read in their documents: for each document a list of arrays.

        A document is a list of sentences, which are read as one text (an ELMo has its marks between them, other systems read
        on); so each is known with all that stands before and behind it, and not alone. `progress` is told how many documents
        each batch held.
        """
        if isinstance(documents, str) or not isinstance(documents, Iterable):
            raise UsageError(f"expected a list of documents, each a list of sentences; got {documents!r}")
        texts = [self._texts(document) for document in documents]
        joined = [
            [word for sentence in text for word in (*self.separator_tokens, *sentence)][len(self.separator_tokens) :]
            for text in texts
        ]
        arrays = self.embed(joined, layers=layers, batch_words=batch_words, progress=progress)
        return [self._apart(array, text) for array, text in zip(arrays, texts, strict=True)]

    def _apart(self, array: np.ndarray, sentences: list[list[str]]) -> list[np.ndarray]:
        """The vectors of a joined document (layers, words with marks, dim) by sentences."""
        found, begin = [], 0
        for sentence in sentences:
            found.append(array[:, begin : begin + len(sentence)])
            begin += len(sentence) + len(self.separator_tokens)
        return found

    def encode(
        self,
        sentences: str | Sequence[Sentence],
        *,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        layers: LayerChoice = "mean",
        pooling: Pooling = "mean",
        start: str | None = None,
    ) -> np.ndarray | Tensor:
        """One vector a text, (texts, dim), or (dim,) for a single string; names as in sentence-transformers.

        The words' vectors (of the chosen layer, or the mean of all) are pooled under their mask. Several layers ("all")
        are laid side by side. Texts go through some at a time, so that only their pooled vectors are kept.
        """
        texts: Sequence[Sentence] = [sentences] if isinstance(sentences, str) else _listed(sentences)
        vectors: list[Tensor] = []
        with progress("encoding", len(texts), "texts") if show_progress_bar is not False else nullcontext() as advance:
            for begin in range(0, len(texts), ENCODED):
                some = self.embed(texts[begin : begin + ENCODED], layers=layers, start=start, batch_size=batch_size)
                vectors += [_pooled(array, pooling) for array in some]
                if advance is not None:
                    advance(len(some))
        width = self.dim * (self.layers if layers == "all" else 1) * (2 if pooling == "ends" else 1)
        result = torch.stack(vectors) if vectors else torch.zeros(0, width)
        if normalize_embeddings:
            result = torch.nn.functional.normalize(result, dim=-1)
        result = result[0] if isinstance(sentences, str) else result
        return result if convert_to_tensor or not convert_to_numpy else result.numpy()

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Read a model folder of ours, or a hub id; `polyseme.load` reads every other format too."""
        from polyseme.encoders.folder import load

        model = load(folder)
        if not isinstance(model, cls):
            raise PolysemeError(f"{folder} holds a {model.kind}, which is no {cls.__name__}: polyseme.load reads every kind")
        return model

    def save_pretrained(self, folder: str | Path, *, precision: str = "fp32", card: str | None = None) -> Path:
        """Write a model folder, whole or not at all; `precision="fp16"` halves it, `card` is its README.md."""
        from polyseme.encoders.folder import save

        return save(self, folder, precision=precision, card=card)

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        """Write weights and words into a folder; what all kinds share (config.json, the card) is written by `folder`."""
        raise PolysemeError(f"a {self.kind} cannot be kept in a folder")

    @classmethod
    def read_files(cls, folder: Path, config: Any, splitter: Splitter) -> Self:
        """The encoder of that config whose weights and words `write_files` wrote."""
        raise PolysemeError(f"a {cls.kind} cannot be read from a folder")

    def info(self) -> dict[str, Any]:
        """What the model is, as plain values: for its card and for `polyseme info`."""
        return {
            "encoder": self.kind,
            "layers": self.layers,
            "dim": self.dim,
            "parameters": sum(parameter.numel() for parameter in self.parameters()),
            "splitter": self.splitter.name,
        }

    def push_to_hub(self, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model folder to the Hugging Face Hub; gives the address of the commit."""
        with tempfile.TemporaryDirectory() as folder:
            return upload_folder(self.save_pretrained(Path(folder) / "model"), repo_id, private=private, token=token)

    def freeze(self, group: str | None = None) -> None:
        """Turn gradients off for a layer group (see `layer_groups`), or for all."""
        self._set_gradients(group, False)

    def unfreeze(self, group: str | None = None) -> None:
        """Turn gradients on for a layer group (see `layer_groups`), or for all."""
        self._set_gradients(group, True)

    def _set_gradients(self, group: str | None, on: bool) -> None:
        groups = self.layer_groups()
        if group is not None and group not in groups:
            raise UsageError(f"unknown layer group {group!r}{nearest(group, groups)}")
        module = self if group is None else groups[group]
        for parameter in module.parameters():
            parameter.requires_grad_(on)

    def _texts(self, sentences: Sequence[Sentence]) -> list[list[str]]:
        if isinstance(sentences, str):
            raise UsageError("expected a list of sentences, got one string: put it into a list")
        return [self.words(sentence) for sentence in _listed(sentences)]

    def _batch_limits(self, batch_words: int | None, batch_size: int | None, start: str | None) -> tuple[int, int]:
        """The most words and sentences of a batch, as asked for or as suits the device."""
        usual = BATCH_CUDA if self.device.type == "cuda" else BATCH_CPU
        if batch_words is None:
            batch_words = usual[0]
        if batch_size is None:  # carried states depend on it, so there it must not depend on the device
            batch_size = BATCH_CPU[1] if start == "carry" else usual[1]
        words, rows = whole_number(batch_words), whole_number(batch_size)
        if words is None or rows is None or min(words, rows) < 1:
            given = f"batch_words is {batch_words!r} and batch_size {batch_size!r}"
            raise UsageError(f"{given}; both must be whole numbers of at least 1")
        return words, rows

    def _batches(self, texts: list[list[str]], start: str | None, batch_words: int, batch_size: int) -> list[np.ndarray]:
        return batch_by_words([len(text) for text in texts], words=batch_words, batch_size=batch_size)

    def _embed_batch(
        self, texts: list[list[str]], choose: slice | Literal["mean"], start: str | None, batch_words: int
    ) -> Callable[[], list[np.ndarray]]:
        """Begin a batch; the result gives its arrays when called."""
        if start is not None:
            raise UsageError(f"{self.kind} has no choice of start state; leave `start` out")
        states = pick(self(self.prepare(texts)).states, choose)
        return to_arrays(states, [slice(0, len(text)) for text in texts])


def _listed(sentences: Iterable[Sentence]) -> list[Sentence]:
    try:
        found = iter(sentences)
    except TypeError:
        raise UsageError(f"expected a list of sentences (strings, or lists of words), got {sentences!r}") from None
    return list(found)


def whole_number(value: object) -> int | None:
    """A whole number of any library as Python's own; None for another thing."""
    try:
        return None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def _pooled(array: np.ndarray, how: Pooling) -> Tensor:
    """A text's words (layers, words, dim) -> one vector, layers side by side."""
    words = torch.from_numpy(array).transpose(0, 1).flatten(1).unsqueeze(0)  # (1, words, layers * dim)
    return pool(words, torch.ones(words.shape[:2], dtype=torch.bool), how)[0]


def choose_layers(choice: LayerChoice, count: int) -> slice | Literal["mean"]:
    """A choice of layers as a slice of the stack, or "mean".

    >>> choose_layers("top", 3), choose_layers(0, 3)
    (slice(2, 3, None), slice(0, 1, None))
    """
    if choice == "mean":
        return "mean"
    if choice == "all":
        return slice(0, count)
    number = count - 1 if choice == "top" else whole_number(choice)
    if number is None or not 0 <= number < count:
        raise UsageError(f"layers is {choice!r}; allowed: all, top, mean, or a number from 0 to {count - 1}")
    return slice(number, number + 1)


def pick(states: Tensor, choice: slice | Literal["mean"]) -> Tensor:
    """The chosen layers of a stack (layers, ...); the mean is a stack of one."""
    return states.mean(0, keepdim=True) if choice == "mean" else states[choice]


def to_arrays(states: Tensor, places: list[slice]) -> Callable[[], list[np.ndarray]]:
    """Begin to bring states (layers, batch, words, dim) to the host; the result cuts out each row's places when called."""
    if states.is_cuda:
        host = torch.empty(states.shape, dtype=torch.float32, pin_memory=True)
        host.copy_(states, non_blocking=True)
        done = torch.cuda.Event()
        done.record()
    else:
        host, done = states.float(), None
    whole = host.untyped_storage().nbytes() == host.nbytes  # and not some of many layers

    def arrays() -> list[np.ndarray]:
        if done is not None:
            done.synchronize()
        array = host.numpy()
        if done is None and len(places) == 1 and whole:  # a long text: no second copy of it
            return [array[:, 0, places[0]]]
        return [array[:, row, place].copy() for row, place in enumerate(places)]

    return arrays
