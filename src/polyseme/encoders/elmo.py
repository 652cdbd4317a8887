"""ELMo (Peters et al. 2018, "Deep contextualized word representations"): a bidirectional language model over words.

Words are read from their characters, from a table, or both, by two stacks of LSTMs or causal Transformers, one per direction.
Layer 0 is the word's own vector (twice, so that all layers have the same size). Layer l concatenates the forward layer l, which
has read the word and all to its left, and the backward layer l, which has read the word and all to its right. Sentences do not
influence each other unless `start="carry"`: each begins from the same start state, so order, batch size and padding do not
change a vector. Transformers have no state.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, UsageError, arg, nearest
from polyseme.base.files import write_text
from polyseme.base.tensor_files import as_stored, load_weights, read_tensors, write_tensors
from polyseme.encoders import elmo_files
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Layers, Sentence
from polyseme.encoders.bidirectional import BidirectionalLanguageModel
from polyseme.encoders.carried_state import CarriedState
from polyseme.encoders.elmo_config import ElmoConfig, Start
from polyseme.encoders.elmo_words import ElmoInputs, WordEncoder, WordInputs, character_encoder, first_layer, number_words
from polyseme.encoders.layer_choice import LayerSelection, to_arrays
from polyseme.encoders.word_cache import WordCache
from polyseme.nn.config import Precision
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import LstmState
from polyseme.nn.meta_init import meta_init
from polyseme.nn.output.full import OutputLayer, TiedSoftmax
from polyseme.nn.packing import Packing
from polyseme.nn.pauses import pause, piece
from polyseme.nn.stacked_bilstm import final_states
from polyseme.nn.to_device import to_device
from polyseme.nn.transformer import BiTransformer
from polyseme.nn.weight_version import weight_version
from polyseme.text.batching.batches import batch_in_order
from polyseme.text.characters import Utf8Characters
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import WHITESPACE, Splitter, normalise_quotes, plain_word

WARM_UP = 50  # times that the model reads "<S> . </S>" until its state hardly changes


class Elmo(BidirectionalLanguageModel, Encoder):
    """A bidirectional language model whose layers are vectors of words in context; `polyseme.load` reads one.

    It is an `nn.Module`: `embed` returns arrays, calling it returns tensors with gradients. Made from a config, it has random
    weights.

    >>> from polyseme.nn.config import CharactersConfig
    >>> from polyseme.nn.config import LstmConfig
    >>> characters = CharactersConfig(dim=4, filters=((1, 8), (2, 8)))
    >>> model = Elmo(ElmoConfig(characters=characters, dim=8, lstm=LstmConfig(cell_size=16, projection_size=8)))
    >>> [vectors.shape for vectors in model.eval().embed(["A river bank", ["Money"]])]    # layers, words, numbers
    [(3, 3, 16), (3, 1, 16)]
    >>> other = Elmo(model.config)
    >>> other.load_state_dict(model.state_dict())
    <All keys matched successfully>
    """

    kind = "elmo"
    config_type = ElmoConfig
    config: ElmoConfig
    can_adapt = True
    bidirectional = True
    batch_rows = 32  # a step of few rows waits for the weights: long texts are read 1.5 times as fast
    supports_precision = True
    export_formats = ("bilm",)
    shown: ClassVar[slice] = slice(None)
    """The layers of the network that are layers of the encoder."""

    def __init__(
        self,
        config: ElmoConfig,
        *,
        splitter: Splitter = WHITESPACE,
        vocabulary: Vocabulary | None = None,
        alphabet: Sequence[str] | None = None,
        output: OutputLayer | None = None,
    ) -> None:
        super().__init__(config, splitter)
        if (config.words is not None or output is not None) and vocabulary is None:
            raise ConfigError("a word table or an output layer needs a vocabulary")
        self.vocabulary = vocabulary
        self.alphabet = list(alphabet) if alphabet is not None else None
        self.speller = character_encoder(config, self.alphabet)
        self.tokens = WordEncoder(config)
        if config.transformer is None:  # a model has one of the two: `contextualizer`
            self.lstm = ElmoLstm(config.dim, config.lstm)
        else:
            self.transformer = BiTransformer(config.dim, config.transformer)
        self.output = output
        self.learned: nn.ParameterDict | None = None
        if config.start == "learned":
            shape = (2, config.lstm.layers, 1)
            self.learned = nn.ParameterDict(
                {"hidden": torch.zeros(*shape, config.lstm.output_size), "cell": torch.zeros(*shape, config.lstm.cell_size)}
            )
        self.cache = WordCache()
        self._warm: tuple[Any, LstmState] | None = None
        self._carried = CarriedState()

    def __getstate__(self) -> dict[str, Any]:
        """A copy computes its warm state again and carries no state."""
        return {**super().__getstate__(), "_warm": None, "_carried": CarriedState()}

    def forget_words(self) -> None:
        self.cache.clear()

    def refresh(self) -> None:
        self.forget_words()
        self._warm = None
        if self.config.architecture == "lstm":
            self.lstm._prepared = None

    @property
    def contextualizer(self) -> ElmoLstm | BiTransformer:
        """The network above the word vectors: two stacks of LSTMs, or two Transformers."""
        return self.lstm if self.config.architecture == "lstm" else self.transformer

    @property
    def predicts_words(self) -> bool:  # type: ignore[override]
        return self.output is not None and self.vocabulary is not None

    @property
    def closed_vocabulary(self) -> bool:  # type: ignore[override]
        return self.config.characters is None

    @property
    def start_states(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.config.architecture == "transformer":
            return ("zero",)
        return get_args(Start) if self.learned is not None else get_args(Start)[1:]

    @property
    def layers(self) -> int:
        return len(range(self.config.num_layers + 1)[self.shown])

    @property
    def dim(self) -> int:
        return 2 * self.config.half

    @property
    def precision(self) -> Precision:
        """Number format of the LSTMs' matrix products in `embed`: fp32, or fp16, bf16, int8 for speed on a CPU.

        Transformers have fp32 only.
        """
        return self.lstm.precision if self.config.architecture == "lstm" else "fp32"

    @precision.setter
    def precision(self, value: Precision) -> None:
        if value not in get_args(Precision):
            raise UsageError(f"unknown precision {value!r}{nearest(value, get_args(Precision))}")
        if self.config.architecture == "lstm":
            self.lstm.precision = value
        elif value != "fp32":
            raise UsageError(f"{arg('precision')} is {value!r}, which applies only to LSTMs; Transformers compute with fp32")

    @property
    def word_table(self) -> nn.Embedding | None:
        """The word table, where the model has one."""
        return self.tokens.words

    def set_word_rows(self, rows: nn.Parameter) -> None:
        """Replace the rows of the word table, (words, dim)."""
        assert self.tokens.words is not None and self.config.words is not None
        self.tokens.words.weight, self.tokens.words.num_embeddings = rows, len(rows)
        self.config = self.config.replace(words=self.config.words.replace(size=len(rows)))

    def tie_output(self) -> TiedSoftmax:
        """Tie the output layer to the word table; it has its own bias."""
        self.config.check_tied(0 if self.vocabulary is None else len(self.vocabulary))
        assert self.tokens.words is not None
        self.output = tied = TiedSoftmax(self.tokens.words)
        return tied

    def layer_groups(self) -> dict[str, nn.Module]:
        parts: dict[str, nn.Module] = {"tokens": self.tokens}
        for level, pair in enumerate(
            zip(self.contextualizer.forward_layers, self.contextualizer.backward_layers, strict=True), start=1
        ):
            parts[f"layer{level}"] = nn.ModuleList(pair)
        if self.learned is not None:
            parts["start"] = self.learned
        if self.output is not None:
            parts["output"] = self.output
        return parts

    # ---- model folders

    @classmethod
    def from_weights(
        cls,
        config: ElmoConfig,
        weights: dict[str, Tensor],
        *,
        where: str | Path,
        splitter: Splitter = WHITESPACE,
        vocabulary: Vocabulary | None = None,
        alphabet: Sequence[str] | None = None,
        output: OutputLayer | None = None,
    ) -> Self:
        """Build a model from its config and weights, in evaluation mode; `where` names the source in errors."""
        with meta_init():  # no time for random weights that are replaced at once
            model = cls(config, splitter=splitter, vocabulary=vocabulary, alphabet=alphabet)
        load_weights(model, weights, where)
        if output is not None:
            model.set_output(output, where)
        if config.words is not None and vocabulary is not None and len(vocabulary) > config.words.size:
            raise FormatError(where, f"has a word table of {config.words.size} rows for {len(vocabulary)} words")
        return model.eval()

    def set_output(self, output: OutputLayer, where: str | Path) -> None:
        """Give the model an output layer, which must fit."""
        if self.vocabulary is None or output.size != len(self.vocabulary):
            have = "none" if self.vocabulary is None else f"{len(self.vocabulary)} words"
            raise FormatError(where, f"has an output layer of {output.size} rows, but its vocabulary has {have}")
        if output.dim != self.config.output:
            raise FormatError(where, f"has an output layer of width {output.dim}; the encoder gives {self.config.output}")
        self.output = output.train(self.training)

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        weights = {name: value for name, value in self.state_dict().items() if not name.startswith("output.")}
        exact: dict[str, Tensor] = {}
        if self.config.architecture == "lstm":
            warm = self._converted(dtype).warm_state()
            exact = {"warm.hidden": warm.hidden, "warm.cell": warm.cell}
        write_tensors(weights, folder / elmo_files.WEIGHTS, dtype, exact=exact)
        if self.output is not None:
            write_tensors(self.output.state_dict(), folder / elmo_files.OUTPUT, dtype)
        if self.vocabulary is not None:
            write_text(folder / elmo_files.VOCABULARY, self.vocabulary.to_text())
        if self.alphabet is not None:
            write_text(folder / elmo_files.CHARACTERS, "".join(f"{symbol}\n" for symbol in self.alphabet))

    def _converted(self, dtype: torch.dtype) -> Elmo:
        """The model with its weights as they will be read: in fewer bits they have a warm state of their own."""
        if dtype == torch.float32:
            return self
        model = copy.deepcopy(self)
        for name, parameter in model.named_parameters():
            if not name.startswith("output."):
                parameter.data = as_stored(parameter.data, dtype)
        model.refresh()
        return model

    @classmethod
    def read_files(cls, folder: Path, config: ElmoConfig, splitter: Splitter) -> Self:
        alphabet, vocabulary = elmo_files.read_alphabet(folder, config), elmo_files.read_vocabulary(folder, config)
        where = folder / elmo_files.WEIGHTS
        weights = read_tensors(where)
        warm: dict[str, Tensor] = {}
        if config.architecture == "lstm":
            warm = {name: weights.pop(f"warm.{name}") for name in ("hidden", "cell") if f"warm.{name}" in weights}
        model = cls.from_weights(config, weights, where=where, splitter=splitter, vocabulary=vocabulary, alphabet=alphabet)
        if (folder / elmo_files.OUTPUT).exists():
            path = folder / elmo_files.OUTPUT
            model.set_output(elmo_files.read_output(path, model.tie_output), path)
        if len(warm) == 2:
            zero = model.lstm.zero_state(1)
            if warm["hidden"].shape != zero.hidden.shape or warm["cell"].shape != zero.cell.shape:
                raise FormatError(where, "has a warm state of another size than its LSTMs")
            model.set_warm_state(LstmState(warm["hidden"], warm["cell"]))
        return model

    def info(self) -> dict[str, Any]:
        config, blocks = self.config, self.config.transformer
        return {
            "encoder": self.kind,
            "layers": self.layers,
            "dim": self.dim,
            "parameters": sum(p.numel() for name, p in self.named_parameters() if not name.startswith("output.")),
            "trunk": config.architecture,
            "lstm": f"{config.lstm.cell_size}/{config.lstm.output_size}" if blocks is None else None,
            "transformer": f"{blocks.heads} heads, {blocks.feedforward_size}/{config.dim}" if blocks is not None else None,
            "characters": config.characters.alphabet if config.characters else None,
            "word_table": config.words.size if config.words else None,
            "vocabulary": len(self.vocabulary) if self.vocabulary else None,
            "language_model": self.output is not None,
            "start": config.start,
            "splitter": self.splitter.name,
        }

    # ---- words -> tensors

    @property
    def separator_tokens(self) -> tuple[str, ...]:  # type: ignore[override]
        """End and begin, as in running text."""
        return (self.config.end, self.config.begin)

    def words(self, sentence: Sentence) -> list[str]:
        if not self.config.normalize_quotes:
            return super().words(sentence)
        if isinstance(sentence, str):
            return super().words(normalise_quotes(sentence))
        return [plain_word(word) for word in super().words(sentence)]

    def word_inputs(self, words: list[str]) -> WordInputs:
        """Return distinct words as tensors on the model's device."""
        characters = lengths = rows = None
        if self.speller is not None:
            ids, used = self.speller.encode(words)
            characters, lengths = torch.from_numpy(ids).to(self.device), torch.from_numpy(used)
        if self.config.words is not None:
            assert self.vocabulary is not None
            rows = torch.from_numpy(self.vocabulary.ids([w[: self.config.words.max_characters] for w in words])).to(self.device)
        return WordInputs(characters, lengths, rows)

    def _read_part(self, word: str) -> str:
        """Return the part of a word that is read, so that the cache holds no words of a million letters."""
        if (
            len(word) <= 1000
            or self.speller is None
            or (self.config.words is not None and self.config.words.max_characters is None)
        ):
            return word
        if isinstance(self.speller, Utf8Characters):  # which drops lone surrogates before it counts
            word = word.encode("utf-8", "ignore").decode("utf-8")
        return word[: self.speller.max_length]

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        texts = self._some_texts(sentences)
        words, index, lengths = number_words(texts, self.config)
        mask = torch.arange(index.shape[1] - 2) < (lengths - 2)[:, None]
        inputs = ElmoInputs(self.word_inputs(words), index)
        return Batch(inputs, mask.to(self.device), (lengths - 2).to(self.device))

    # ---- tensors -> layers

    def forward(self, batch: Batch, *, start: Start | None = None) -> Layers:
        """Run a prepared batch; `start` as in `embed`: with "carry", each row reads on from that row of the batch before."""
        full = self._full(batch, start)[self.shown]
        lengths = batch.lengths.cpu() + 2
        states = full[:, :, 1:-1].masked_fill(~batch.mask[..., None], 0.0)
        rows = torch.arange(len(lengths))
        ends = torch.stack([full[:, :, 0], full[:, rows, lengths - 1]], dim=2)
        return Layers(states=states, mask=batch.mask, ends=ends)

    def final_state(self, layers: Layers) -> Tensor:
        """The forward half at the last word, the backward half at the first."""
        return final_states(layers.states[-1], layers.mask)

    def top_states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """Return the top layer of each direction, begin and end tokens included, (batch, words + 2, output) each."""
        full = self._full(batch, None)
        width, half = self.config.output, self.config.half
        return full[-1, :, :, :width], full[-1, :, :, half : half + width]

    def _full(self, batch: Batch, start: Start | None) -> Tensor:
        """Run a batch with begin and end tokens, (layers, batch, words + 2, dim); padding is undefined."""
        inputs: ElmoInputs = batch.inputs
        distinct = self.tokens(inputs.distinct)
        lengths = batch.lengths.cpu() + 2
        state = self._begin(start, len(lengths))
        full, end = self._run(lambda rows: distinct.index_select(0, rows.to(distinct.device)), inputs.index, lengths, state)
        if start == "carry":
            self._carried.keep(end)
        return full

    def _run(
        self,
        vectors: Callable[[Tensor], Tensor],
        index: Tensor,
        lengths: Tensor,
        state: LstmState,
        chunk: int | None = None,
    ) -> tuple[Tensor, LstmState]:
        """Run numbered words (batch, steps): return all layers (layers, batch, steps, dim) and the end state.

        LSTMs read long texts in chunks of steps: the directions are independent, so the forward one reads on from the left
        while the backward one reads on from the right, and only the results have the full length. Transformers look back at
        all words, so their memory grows linearly with the text.
        """
        chunk = None if self.config.architecture == "transformer" else piece(chunk)
        half, width = self.config.half, self.config.output
        # padding stays unwritten, and callers do not read it; only layers narrower than others need zeros
        make = torch.empty if self.config.dim == width else torch.zeros
        out = make(self.config.num_layers + 1, *index.shape, 2 * half, device=self.device, dtype=state.cell.dtype)
        steps, every = index.shape[1], torch.arange(int(index.max()) + 1)
        for begin in range(0, steps, chunk or steps):
            if begin:
                pause()
            alive = (lengths > begin).nonzero()[:, 0]
            packing = Packing((lengths[alive] - begin).clamp(max=chunk or steps))
            rows = alive[packing.rows]
            positions = torch.stack([begin + packing.steps, lengths[rows] - 1 - begin - packing.steps])
            wanted = index[rows, positions]  # (2, words)
            unchunked = (chunk or steps) >= steps
            numbers, back = (every, wanted) if unchunked else torch.unique(wanted, return_inverse=True)
            table = vectors(numbers).to(out.dtype)  # under autocast the words have fewer bits
            order = to_device(alive[packing.order], self.device)
            rows, positions, back = (to_device(each, self.device) for each in (rows, positions, back))
            read, end = self.contextualizer(table, back, packing.sizes, state.rows(order))
            read = read.to(out.dtype)
            for d in (0, 1):
                out[0, rows, positions[d], d * half : d * half + self.config.dim] = table[back[d]]
                out[1:, rows, positions[d], d * half : d * half + width] = read[:, d]
            hidden, cell = end.hidden.to(state.hidden.dtype), end.cell.to(state.cell.dtype)
            state = LstmState(state.hidden.index_copy(2, order, hidden), state.cell.index_copy(2, order, cell))
        return out, state

    # ---- start states

    def start_state(self, start: Start | None, rows: int) -> LstmState:
        """Return the state from which each of `rows` sentences starts."""
        start = self.config.start if start is None else start
        if start == "zero":
            return self.contextualizer.zero_state(rows)
        self._check_start(start)
        if start == "carry":
            raise UsageError(f"{arg('start', 'carry')} is no fixed state: the batch before decides")
        if start == "warm":
            return self.warm_state().expand(rows)
        assert self.learned is not None
        return LstmState(self.learned["hidden"], self.learned["cell"]).expand(rows)

    def _begin(self, start: Start | None, rows: int) -> LstmState:
        """As `start_state`, and for "carry" the state at the end of the batch before."""
        if start != "carry":
            return self.start_state(start, rows)
        self._check_start(start)
        return self._carried.take(self.lstm, rows)

    def _check_start(self, start: Start) -> None:
        if start not in get_args(Start):
            raise UsageError(f"unknown start {start!r}{nearest(start, get_args(Start))}")
        if start not in self.start_states:
            why = "Transformers have no state" if self.config.architecture == "transformer" else "it has no learned state"
            allowed = ", ".join(self.start_states)
            raise UsageError(f"{arg('start')} is {start!r}, which this model lacks ({why}); allowed: {allowed}")

    def warm_state(self) -> LstmState:
        """Return the state after reading "<S> . </S>" fifty times, computed once for given weights."""
        self._check_start("warm")
        now = weight_version(self)
        if self._warm is None or self._warm[0] != now:
            with torch.no_grad():
                words, index, lengths = number_words([["."]], self.config)
                distinct = self.tokens(self.word_inputs(words))
                state = self.lstm.zero_state(1)
                for _ in range(WARM_UP):
                    _, state = self._run(lambda rows: distinct[rows.to(distinct.device)], index, lengths, state)
            self._warm = (now, state)
        return self._warm[1]

    def set_warm_state(self, state: LstmState) -> None:
        """Set a warm state that was computed before from these weights."""
        self._warm = (weight_version(self), state)

    def reset_state(self) -> None:
        self._carried.reset()

    # ---- embedding

    def _batches(
        self, texts: list[list[str]], start: str | None, batch_words: int, batch_size: int, least: int
    ) -> list[np.ndarray]:
        if start == "carry":
            return batch_in_order(len(texts), batch_size)
        return super()._batches(texts, start, batch_words, batch_size, least)

    def _embed_batch(
        self, texts: list[list[str]], selection: LayerSelection, start: str | None, batch_words: int
    ) -> Callable[[], list[np.ndarray]]:
        if selection.only_first and start != "carry" and self.shown == slice(None):  # the LSTMs need not run
            words, index, _ = number_words(texts, self.config)
            kind = self.start_state(start, 1).cell.dtype  # type: ignore[arg-type]
            states = first_layer(self._word_vectors(words).to(kind), index, self.config.half)
        else:
            states = self.read(texts, start=start, chunk=batch_words)[0][self.shown]  # type: ignore[arg-type]
        return to_arrays(selection.stack(states), [slice(1, len(text) + 1) for text in texts])

    def _word_vectors(self, words: list[str]) -> Tensor:
        """The words' own vectors, (words, dim); those that were read before come from the cache."""
        parts = [self._read_part(word) for word in words]
        return self.cache.lookup(parts, weight_version(self.tokens), lambda some: self.tokens(self.word_inputs(some)))

    @torch.no_grad()
    def read(self, texts: list[list[str]], *, start: Start | None, chunk: int = 4096) -> tuple[Tensor, Tensor]:
        """Run texts with begin and end tokens, without gradients: (layers, batch, words + 2, dim), and their lengths."""
        words, index, lengths = number_words(texts, self.config)
        begin = self._begin(start, len(texts))
        states, end = self._run(
            lambda numbers: self._word_vectors([words[row] for row in numbers.tolist()]), index, lengths, begin, chunk
        )
        if start == "carry":
            self._carried.keep(end)
        return states, lengths
