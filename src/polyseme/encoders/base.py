"""What all encoders share: sentences of words go in, a stack of vectors for each word comes out.

A new encoder subclasses `Encoder` and says how a batch is prepared and run, and how its files are written and read.
Embedding, pooling, freezing and the rest of a model folder come from here. Words are the unit everywhere, whatever subwords
an encoder splits them into. What an encoder can do is asked of its properties (`predicts_words`, `start_states`, `static`
...), not of its class.
"""

from __future__ import annotations

import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from polyseme.base.config import Config
from polyseme.base.errors import PolysemeError, UsageError, arg, nearest
from polyseme.base.hub import upload_folder
from polyseme.base.interrupts import computing
from polyseme.base.progress import progress
from polyseme.encoders import folder as folders
from polyseme.encoders.batch import Batch, Layers, Sentence, whole_number
from polyseme.encoders.embed_config import BATCH_CPU, BATCH_CUDA, TextPooling
from polyseme.encoders.language_model import LanguageModelApi
from polyseme.encoders.layer_choice import LayerChoice, LayerSelection, select_layers, to_arrays
from polyseme.encoders.script_check import unreadable
from polyseme.encoders.sentence_vectors import SentenceStatistics
from polyseme.encoders.sequence import SequenceOutput, combine_pair, split_texts
from polyseme.encoders.text_pooling import chunks_by_words, text_pooler
from polyseme.nn.config import Precision
from polyseme.nn.pooling import concat_pool, pool
from polyseme.text.batching.batches import batch_by_words
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter

ENCODED_BYTES = 1 << 28  # of word vectors that are in memory while `encode` pools them
_FUNCTIONS = ("analogy", "convert", "neighbors", "neighbours", "senses", "similar", "verify")
"""Public functions of a model that are looked for among its methods."""


class Encoder(LanguageModelApi, nn.Module, ABC):
    """A model that turns words into layers of vectors.

    >>> import polyseme                                               # doctest: +SKIP
    >>> model = polyseme.load("my-model")                             # doctest: +SKIP
    >>> vectors = model.embed(["The bank of the river .", ["A", "bank", "robber"]])   # doctest: +SKIP
    >>> vectors[1].shape                                              # doctest: +SKIP
    (3, 3, 1024)
    """

    kind: ClassVar[str]
    """The name in `config.json`."""
    config_type: ClassVar[type[Config]]

    # ---- what it can do: subclasses override what differs

    default_position: ClassVar[Literal["input", "between", "output"]] = "input"
    """Where its vectors enter a task's network by default."""
    default_head: ClassVar[Literal["hidden", "tanh", "linear"]] = "hidden"
    """The head of its paper, for tasks that are an encoder and a head."""
    has_static_vectors: ClassVar[bool] = True
    """Whether layer 0 has static vectors: the same for a word in every sentence."""
    comparable: ClassVar[bool] = True
    """Whether the cosine of two vectors says how similar the words are; of a few probabilities it does not."""
    static: ClassVar[bool] = False
    """Whether it is a table of word vectors, the same in every sentence."""
    can_adapt: ClassVar[bool] = False
    """Whether `polyseme adapt` can train it further."""
    reads_pairs: ClassVar[bool] = False
    """Whether it reads two texts together (`prepare_pair`)."""
    reads_subwords: ClassVar[bool] = False
    """Whether words are made of subwords, by the setting `subword_pooling`."""
    supports_precision: ClassVar[bool] = False
    """Whether `precision` can be set."""
    export_formats: ClassVar[tuple[str, ...]] = ()
    """Formats of other programs that can hold it, as `convert` names them."""
    precision: Precision = "fp32"
    """Number format of the matrix products in `embed`."""
    batch_rows: ClassVar[int] = 1
    """Texts that `embed` reads together on a CPU at least, if four times the usual words of a batch allow it."""
    bidirectional: ClassVar[bool] = False
    """Whether its log-probabilities have two directions."""
    predicts_words: bool = False
    """Whether it is a language model with an output layer."""
    predicts_next_word: bool = False
    """Whether `encode_sequence` can return a language-model loss."""
    can_fill: bool = False
    """Whether it predicts masked words."""
    closed_vocabulary: bool = False
    """Whether words outside its vocabulary all share one vector."""
    start_states: tuple[str, ...] = ()
    """The allowed values of `start`."""
    separator_tokens: tuple[str, ...] = ()
    """The tokens between two sentences of a document."""
    vocabulary: Vocabulary | None = None
    """Its words, where it has a list of them."""

    def __init__(self, config: Config, splitter: Splitter) -> None:
        super().__init__()
        self.config = config
        self.splitter = splitter
        self.card: str | None = None
        """The model card (README.md) that came with the weights."""
        self.source: str | None = None
        """Where the weights came from."""
        self.assumed: str | None = None
        """What its files did not say and their reader assumed."""
        self.sentence_statistics: SentenceStatistics | None = None
        """What the poolings of `encode` know about the model's text."""

    def __getattr__(self, name: str) -> Tensor | nn.Module:
        if name in _FUNCTIONS:  # in layers above this one
            raise AttributeError(f"a model has no method {name}: call polyseme.{name}(..., model=model)")
        return super().__getattr__(name)

    @property
    @abstractmethod
    def layers(self) -> int:
        """Layers in the stack, including the word's own vector (layer 0)."""

    @property
    def dim(self) -> int:
        """Size of a vector."""
        return int(self.config.dim)

    @abstractmethod
    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        """Turn sentences into the input of `forward`, on the model's device."""

    @abstractmethod
    def forward(self, batch: Batch) -> Layers:
        """Run a batch, with gradients where they are enabled."""

    @abstractmethod
    def layer_groups(self) -> dict[str, nn.Module]:
        """Return the groups that can be frozen one by one, from the bottom up."""

    def __call__(self, batch: Batch, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(batch, Batch):
            raise UsageError(
                f"a model is called with a prepared batch, got {type(batch).__name__}: call model.embed([...]) for arrays, "
                "or model(model.prepare([...])) for tensors with gradients"
            )
        return super().__call__(batch, *args, **kwargs)

    # ---- sequences: one vector for an example of one or two texts

    def sequence_dim(self, texts: int) -> int:
        """Size of the vector of an example of so many texts."""
        return 3 * self.dim * (1 if texts == 1 else 4)

    def sequence_tokens(self) -> Tensor | None:
        """Initial vectors (tokens, dim) of special tokens that `encode_sequence` needs besides the model's own.

        The task keeps them, and may train them. None: it needs none.
        """
        return None

    def prepare_sequence(self, examples: Sequence[Sequence[Sentence]], *, keep_end: bool = False) -> Any:
        """Turn examples of one text each, or of two each, into the input of `encode_sequence`.

        Where a network has a maximum length, the longer text of an example is truncated at its end, or with `keep_end` a
        first one at its beginning.
        """
        return [self.prepare(texts) for texts in split_texts(examples)]

    def encode_sequence(self, inputs: Any, tokens: Tensor | None = None, *, predict: bool = False) -> SequenceOutput:
        """Return one vector per example, with gradients where they are enabled; `predict`: a language-model loss, too.

        Here by concat pooling of the top layer, [last; max; mean], each text read alone; for a pair u, v
        [u; v; |u - v|; u * v].
        """
        if predict:
            raise UsageError(f"{arg('predict', True)} needs a left-to-right language model; {self.kind} is none")
        outputs = [self(batch) for batch in inputs]
        pooled = [concat_pool(each.states[-1], each.mask, self.final_state(each)) for each in outputs]
        return SequenceOutput(combine_pair(pooled))

    def final_state(self, layers: Layers) -> Tensor:
        """The top layer at the end of each text, (batch, dim)."""
        return pool(layers.states[-1], layers.mask, "last")

    def pooler(self) -> nn.Linear | None:
        """The pre-trained layer above the first token, where the network has one."""
        return None

    def prepare_pair(self, firsts: Sequence[Sentence], seconds: Sequence[Sentence]) -> Batch:
        """Prepare pairs of texts that are read together; `forward` then gives the words of the second ones."""
        raise UsageError(f"encoders of kind {self.kind} do not read two texts together: give a BERT or the like")

    def scale_dropout(self, factor: float) -> None:
        """Train with the dropout of pre-training times `factor`, where the encoder has its own dropout settings."""

    # ---- embedding

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def words(self, sentence: Sentence) -> list[str]:
        """Return the words of a sentence: a string is split as in training, a list is taken as it is."""
        if isinstance(sentence, str):
            return self.splitter(sentence)
        if not isinstance(sentence, Iterable):
            raise UsageError(f"a sentence is a string or a list of words; got {sentence!r}")
        words = list(sentence)
        for word in words:
            if not isinstance(word, str):
                raise UsageError(f"a sentence is a string or a list of words; this one holds {word!r}")
        return words

    def known(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each word has a vector of its own, (words,): by the vocabulary, by characters or by subwords."""
        if not self.closed_vocabulary:
            return np.ones(len(words), dtype=bool)
        special = {getattr(self.config, name, None) for name in ("begin", "end", "unknown")}
        return np.array([word in (self.vocabulary or ()) and word not in special for word in words], dtype=bool)

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
        """Return the vectors of every word of every sentence, a float32 array for each, in the order given.

        `layers`: "all" or a list of numbers gives (layers, words, dim); "top", "mean" or a number gives (words, dim).
        `start`: the start state of a sentence, for models that have a choice (`start_states`). Batches hold at most
        `batch_words` words and `batch_size` sentences (by default what suits the device); neither changes the vectors.
        `progress` is called with the number of sentences of each batch.
        """
        selection = select_layers(layers, self.layers)
        texts = self._texts(sentences)
        results: list[np.ndarray] = [np.zeros(0)] * len(texts)
        words, rows = self._batch_limits(batch_words, batch_size, start)
        least = self.batch_rows if batch_words is None and self.device.type == "cpu" else 1
        queue = self._batches(texts, start, words, rows, least)[::-1]
        waiting: list[tuple[np.ndarray, Callable[[], list[np.ndarray]]]] = []

        def collect() -> None:
            batch, arrays = waiting.pop(0)
            for row, array in zip(batch, arrays(), strict=True):
                results[row] = array[0] if selection.single else array
            if progress is not None:
                progress(len(batch))

        with torch.inference_mode(), computing():
            while queue:
                batch = queue.pop()
                try:
                    waiting.append((batch, self._embed_batch([texts[row] for row in batch], selection, start, words)))
                except torch.OutOfMemoryError:
                    if len(batch) == 1 or start == "carry":
                        raise
                    half = len(batch) // 2  # the device is smaller than the batch: continue with half of it at a time
                    queue += [batch[half:], batch[:half]]
                    continue
                if len(waiting) > 1:  # one batch behind, so that a GPU computes while the last vectors are copied
                    collect()
            while waiting:
                collect()
        return results

    def embed_documents(
        self,
        documents: Sequence[Sequence[Sentence]],
        *,
        layers: LayerChoice = "all",
        batch_words: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[list[np.ndarray]]:
        """Return vectors as `embed` does, of sentences that are read in their documents: a list of arrays per document.

        The sentences of a document are read as one text, with `separator_tokens` between them, so that each sees all
        before and after it. `progress` is called with the number of documents of each batch.
        """
        if isinstance(documents, str) or not isinstance(documents, Iterable):
            raise UsageError(f"expected a list of documents, each a list of sentences; got {documents!r}")
        texts = [self._texts(document) for document in documents]
        between = self.separator_tokens
        joined = [[word for sentence in text for word in (*between, *sentence)][len(between) :] for text in texts]
        arrays = self.embed(joined, layers=layers, batch_words=batch_words, progress=progress)
        return [self._by_sentence(array, text) for array, text in zip(arrays, texts, strict=True)]

    def _by_sentence(self, array: np.ndarray, sentences: list[list[str]]) -> list[np.ndarray]:
        """Split the vectors of a joined document (..., words with separators, dim) by sentences."""
        arrays, begin = [], 0
        for sentence in sentences:
            arrays.append(array[..., begin : begin + len(sentence), :])
            begin += len(sentence) + len(self.separator_tokens)
        return arrays

    def encode(
        self,
        sentences: str | Sequence[Sentence],
        *,
        batch_size: int = 32,
        show_progress_bar: bool | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        normalize_embeddings: bool = False,
        layers: LayerChoice | None = None,
        pooling: TextPooling | None = None,
        start: str | None = None,
    ) -> np.ndarray | Tensor:
        """Return one vector per text, (texts, dim), or (dim,) for a single string; names as in sentence-transformers.

        `pooling`: "sif+mean" is the default of models with statistics of their text (`fit_pooling`; the shipped models have
        them), "sif" suits similarity best; see `polyseme.encoders.sentence_vectors`. Without statistics the default is
        "mean", of the chosen layer or of the mean of all; "max", "first", "last" and "ends" pool likewise. Several layers are
        concatenated. The vector of a text does not depend on the other texts.
        """
        texts = self._texts([sentences] if isinstance(sentences, str) else sentences)
        pooler = text_pooler(self, pooling, layers)
        vectors: list[np.ndarray] = []
        with progress("encoding", len(texts), "texts") if show_progress_bar is not False else nullcontext() as advance:
            for some in chunks_by_words(texts, ENCODED_BYTES // (4 * self.layers * self.dim)):
                arrays = self.embed(some, layers=pooler.layers, start=start, batch_size=batch_size)
                vectors += [pooler(words, array) for words, array in zip(some, arrays, strict=True)]
                if advance is not None:
                    advance(len(arrays))
        result = torch.from_numpy(np.stack(vectors) if vectors else np.zeros((0, pooler.dim), np.float32))
        if normalize_embeddings:
            result = torch.nn.functional.normalize(result, dim=-1)
        result = result[0] if isinstance(sentences, str) else result
        return result if convert_to_tensor or not convert_to_numpy else result.numpy()

    def fit_pooling(self, sentences: Sequence[Sentence]) -> Self:
        """Estimate the statistics of the poolings "sif" and "sif+mean" of `encode` from a sample of unlabelled text.

        A few thousand sentences are enough: words after the first 100,000 are not read. `save_pretrained` keeps the result.
        """
        self.sentence_statistics = SentenceStatistics.fit(self, self._texts(sentences))
        return self

    def reset_state(self) -> None:
        """Forget the state that `start="carry"` carries from call to call."""

    def refresh(self) -> None:
        """Clear what is cached from the weights. Call it after changing weights through `.data`."""

    def forget_words(self) -> None:
        """Clear the cache of word vectors. A cached vector may differ in its last digits from one of another batch."""

    # ---- model folders

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """Load a polyseme model: a folder, a shipped name or a Hub id. `polyseme.load` reads other formats too."""
        model = folders.load(folder)
        if not isinstance(model, cls):
            raise PolysemeError(
                f"{folder} holds a model of kind {model.kind}, not {cls.__name__}: polyseme.load reads every kind"
            )
        return model

    def save_pretrained(self, folder: str | Path, *, precision: str = "fp32", card: str | None = None) -> Path:
        """Write a model folder atomically, in fp32, fp16 (half the size) or int8 (a quarter); `card` is its README.md."""
        return folders.save(self, folder, precision=precision, card=card)

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        """Write weights and words into a folder; `folder` writes what all kinds share (config.json, the card)."""
        raise PolysemeError(f"encoders of kind {self.kind} cannot be saved")

    @classmethod
    def read_files(cls, folder: Path, config: Any, splitter: Splitter) -> Self:
        """Read what `write_files` wrote."""
        raise PolysemeError(f"encoders of kind {cls.kind} cannot be loaded")

    def info(self) -> dict[str, Any]:
        """Return what the model is, as plain values: for its card and for `polyseme info`."""
        return {
            "encoder": self.kind,
            "layers": self.layers,
            "dim": self.dim,
            "parameters": sum(value.numel() for name, value in self.named_parameters() if not name.startswith("output.")),
            "splitter": self.splitter.name,
        }

    def push_to_hub(self, repo_id: str, *, private: bool = False, token: str | None = None) -> str:
        """Upload the model folder to the Hugging Face Hub; returns the address of the commit."""
        with tempfile.TemporaryDirectory() as folder:
            return upload_folder(self.save_pretrained(Path(folder) / "model"), repo_id, private=private, token=token)

    # ---- training

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

    # ---- for subclasses

    def _texts(self, sentences: Sequence[Sentence]) -> list[list[str]]:
        """Return the words of each sentence; a list of single words, probably one sentence, gets a warning."""
        if isinstance(sentences, str):
            raise UsageError("expected a list of sentences, got one string: put it into a list")
        try:
            given = list(sentences)
        except TypeError:
            raise UsageError(f"expected a list of sentences (strings, or lists of words), got {sentences!r}") from None
        texts = [self.words(sentence) for sentence in given]
        if len(given) > 1 and all(isinstance(each, str) and len(words) == 1 for each, words in zip(given, texts, strict=True)):
            warnings.warn(
                f"each of the {len(given)} sentences is a single word; pass one sentence as a list in a list, "
                f"[[{given[0]!r}, {given[1]!r}, ...]], or as one string",
                stacklevel=3,
            )
        if why := unreadable(self, given):
            warnings.warn(why, stacklevel=3)
        return texts

    def _some_texts(self, sentences: Sequence[Sentence]) -> list[list[str]]:
        """The same, where no sentence at all is an error."""
        texts = self._texts(sentences)
        if not texts:
            raise UsageError("a batch needs at least one sentence; got none")
        return texts

    def _batch_limits(self, batch_words: int | None, batch_size: int | None, start: str | None) -> tuple[int, int]:
        """The most words and sentences of a batch, as given or as suits the device."""
        default = BATCH_CUDA if self.device.type == "cuda" else BATCH_CPU
        if batch_words is None:
            batch_words = default[0]
        if batch_size is None:  # carried states depend on it, so there it must not depend on the device
            batch_size = BATCH_CPU[1] if start == "carry" else default[1]
        words, rows = whole_number(batch_words), whole_number(batch_size)
        if words is None or rows is None or min(words, rows) < 1:
            given = f"{arg('batch_words')} is {batch_words!r} and {arg('batch_size')} is {batch_size!r}"
            raise UsageError(f"{given}; allowed: whole numbers of 1 or more")
        return words, rows

    def _batches(
        self, texts: list[list[str]], start: str | None, batch_words: int, batch_size: int, least: int
    ) -> list[np.ndarray]:
        return batch_by_words([len(text) for text in texts], words=batch_words, batch_size=batch_size, least=least)

    def _embed_batch(
        self, texts: list[list[str]], selection: LayerSelection, start: str | None, batch_words: int
    ) -> Callable[[], list[np.ndarray]]:
        """Start a batch; the result returns its arrays (layers, words, dim) when called."""
        if start is not None:
            raise UsageError(f"{arg('start')} does not apply to embed for models of kind {self.kind}: leave it out")
        states = selection.stack(self(self.prepare(texts)).states)
        return to_arrays(states, [slice(0, len(text)) for text in texts])
