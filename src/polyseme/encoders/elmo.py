"""ELMo: words from their characters (or a table, or both), read by two stacks of LSTMs or Transformers, one from each side.

Peters et al. 2018, "Deep contextualized word representations". Layer 0 is the word's own vector (twice, so that all layers
have the same size); layer l has what the forward LSTM number l knows of the word and of all to its left, beside what the
backward one knows of the word and of all to its right. Sentences never influence each other unless `start="carry"` asks
for it: every sentence begins from the same start state, so order, batch size and padding do not change a vector.
Causal Transformers may stand in the place of the LSTMs; they read a sentence whole and have no state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor, nn

from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError, nearest
from polyseme.encoders.base import Batch, Encoder, Layers, Sentence, pick, to_arrays
from polyseme.encoders.elmo_config import ElmoConfig, Start
from polyseme.encoders.language_model import BidirectionalLanguageModel
from polyseme.encoders.word_cache import WordCache
from polyseme.nn.char_cnn import CharCnn
from polyseme.nn.config import Precision
from polyseme.nn.lstm.elmo_lstm import ElmoLstm
from polyseme.nn.lstm.layers import LstmState
from polyseme.nn.output.full import OutputLayer, TiedSoftmax
from polyseme.nn.packing import Packing
from polyseme.nn.stacked_bilstm import final_states
from polyseme.nn.transformer import BiTransformer
from polyseme.nn.weight_version import weight_version
from polyseme.text.batching.batches import batch_in_order
from polyseme.text.characters import CodePointCharacters, Utf8Characters
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import Splitter, get_splitter, normalise_quotes, plain_word

WARM_UP = 50  # times that the model reads "<S> . </S>" until its state hardly moves


class WordEncoder(nn.Module):
    """A word's own vector: the character network, the word table, or both, and the projection."""

    def __init__(self, config: ElmoConfig) -> None:
        super().__init__()
        self.characters = CharCnn(config.characters) if config.characters else None
        self.words = nn.Embedding(config.words.size, config.words.dim) if config.words else None
        self.projection = nn.Linear(config.inputs, config.dim) if config.project else None

    def forward(self, inputs: WordInputs) -> Tensor:
        """Distinct words -> (distinct, dim)."""
        found = []
        if self.words is not None:
            found.append(self.words(inputs.words))
        if self.characters is not None:
            found.append(self.characters(inputs.characters, inputs.lengths))
        vectors = torch.cat(found, dim=1)
        return self.projection(vectors) if self.projection is not None else vectors


@dataclass(frozen=True)
class WordInputs:
    """Distinct words as tensors."""

    characters: Tensor | None
    """(distinct, max_length): character ids."""
    lengths: Tensor | None
    """(distinct,): characters used, marks counted; on the CPU, where the cut is chosen."""
    words: Tensor | None
    """(distinct,): rows of the word table."""


@dataclass(frozen=True)
class ElmoInputs:
    """A batch for ELMo: its distinct words, and where they stand."""

    distinct: WordInputs
    index: Tensor
    """(batch, words + 2): distinct words, with the begin and end marks; on the CPU, where the layout is made."""


class Elmo(BidirectionalLanguageModel, Encoder):
    """A bidirectional language model whose layers are vectors of words in their sentences; `polyseme.load` reads one.

    As any `nn.Module` it trains, moves and saves; `embed` gives arrays, the call itself tensors with gradients. Of its own,
    made from a config, it has random weights.

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

    def __init__(
        self,
        config: ElmoConfig,
        *,
        splitter: Splitter = get_splitter("whitespace"),  # noqa: B008 (immutable)
        vocabulary: Vocabulary | None = None,
        alphabet: Sequence[str] | None = None,
        output: OutputLayer | None = None,
    ) -> None:
        super().__init__(config, splitter)
        if (config.words is not None or output is not None) and vocabulary is None:
            raise ConfigError("a word table or an output layer needs a vocabulary")
        self.vocabulary = vocabulary
        self.alphabet = list(alphabet) if alphabet is not None else None
        self.speller = _speller(config, self.alphabet)
        self.tokens = WordEncoder(config)
        if config.transformer is None:  # a model has one of the two: `trunk` is the one that it has
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
        self._carried: LstmState | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Copies compute the warm state anew and carry nothing over."""
        return {**super().__getstate__(), "_warm": None, "_carried": None}

    def refresh(self) -> None:
        """Forget all that was derived from the weights: for those who write them behind PyTorch's back, through `.data`."""
        self.cache.clear()
        self._warm = None
        if self.config.architecture == "lstm":
            self.lstm._prepared = None

    @property
    def contextualizer(self) -> ElmoLstm | BiTransformer:
        """What reads the words' vectors: the two stacks of LSTMs, or the two Transformers."""
        return self.lstm if self.config.architecture == "lstm" else self.transformer

    @property
    def layers(self) -> int:
        return self.config.num_layers + 1

    @property
    def dim(self) -> int:
        return 2 * self.config.half

    @property
    def precision(self) -> Precision:
        """Of the LSTMs' products in `embed`: fp32, or fp16, bf16, int8 to trade exactness for speed on a CPU.

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
            raise UsageError(f"precision is {value!r}, which is for LSTMs; this model has Transformers: leave fp32")

    def tie_output(self) -> TiedSoftmax:
        """Predict words by the rows of the word table itself, with a bias of their own."""
        table, width = self.tokens.words, self.config.output
        if table is None or self.vocabulary is None:
            raise ConfigError("a tied output layer needs a word table, and this model reads characters alone: give it one")
        rows, dim = table.weight.shape
        if dim != width:
            raise ConfigError(
                f"a tied output layer needs rows of the size that the encoder gives; the word table's have {dim}, "
                f"the encoder gives {width}: set words.dim to {width}, or take an output layer that is not tied"
            )
        if rows != len(self.vocabulary):
            raise ConfigError(
                f"a tied output layer needs a row for each word; the table has {rows} rows, the vocabulary "
                f"{len(self.vocabulary)} words: set words.size to {len(self.vocabulary)}"
            )
        self.output = tied = TiedSoftmax(table)
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

    # ---- in a folder

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        from polyseme.encoders.elmo_folder import write_elmo

        write_elmo(self, folder, dtype)

    @classmethod
    def read_files(cls, folder: Path, config: ElmoConfig, splitter: Splitter) -> Self:
        from polyseme.encoders.elmo_folder import read_elmo

        found = read_elmo(folder, config, splitter, cls)
        assert isinstance(found, cls)
        return found

    def info(self) -> dict[str, Any]:
        from polyseme.encoders.elmo_folder import elmo_info

        return elmo_info(self)

    # ---- words -> tensors

    @property
    def separator_tokens(self) -> tuple[str, ...]:
        """The marks of an end and a begin, as in running text."""
        return (self.config.end, self.config.begin)

    def words(self, sentence: Sentence) -> list[str]:
        if not self.config.normalize_quotes:
            return super().words(sentence)
        if isinstance(sentence, str):
            return super().words(normalise_quotes(sentence))
        return [plain_word(word) for word in super().words(sentence)]

    def word_inputs(self, words: list[str]) -> WordInputs:
        """Distinct words as tensors on the model's device."""
        characters = lengths = rows = None
        if self.speller is not None:
            ids, used = self.speller.encode(words)
            characters, lengths = torch.from_numpy(ids).to(self.device), torch.from_numpy(used)
        if self.config.words is not None:
            assert self.vocabulary is not None
            rows = torch.from_numpy(self.vocabulary.ids([w[: self.config.words.max_characters] for w in words])).to(self.device)
        return WordInputs(characters, lengths, rows)

    def _read_part(self, word: str) -> str:
        """As much of a word as can matter: nobody keeps a million letters in a cache."""
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
        texts = self._texts(sentences)
        if not texts:
            raise UsageError("a batch needs at least one sentence; got none")
        words, index, lengths = self._number(texts)
        mask = torch.arange(index.shape[1] - 2) < (lengths - 2)[:, None]
        inputs = ElmoInputs(self.word_inputs(words), index)
        return Batch(inputs, mask.to(self.device), (lengths - 2).to(self.device))

    def _number(self, texts: list[list[str]]) -> tuple[list[str], Tensor, Tensor]:
        """Texts -> distinct words, their numbers (batch, words + 2) with begin and end marks, lengths with marks."""
        numbers: dict[str, int] = {self.config.begin: 0, self.config.end: 1}
        lengths = np.array([len(text) + 2 for text in texts], dtype=np.int64)
        index = np.zeros((len(texts), int(lengths.max(initial=2))), dtype=np.int64)
        for row, text in enumerate(texts):
            index[row, 1 : len(text) + 1] = [numbers.setdefault(word, len(numbers)) for word in text]
            index[row, len(text) + 1] = 1
        return list(numbers), torch.from_numpy(index), torch.from_numpy(lengths)

    # ---- tensors -> layers

    def forward(self, batch: Batch, *, start: Start | None = None) -> Layers:
        """Run a prepared batch; `start` as in `embed`, except "carry"."""
        full = self._full(batch, start)
        lengths = batch.lengths.cpu() + 2
        states = full[:, :, 1:-1].masked_fill(~batch.mask[..., None], 0.0)
        rows = torch.arange(len(lengths))
        ends = torch.stack([full[:, :, 0], full[:, rows, lengths - 1]], dim=2)
        return Layers(states=states, mask=batch.mask, ends=ends)

    def final_state(self, layers: Layers) -> Tensor:
        """Where each direction ends: the forward half at the last word, the backward half at the first."""
        return final_states(layers.states[-1], layers.mask)

    def top_states(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What the two directions know at the top, marks included, (batch, words + 2, output) each, with gradients."""
        full = self._full(batch, None)
        width, half = self.config.output, self.config.half
        return full[-1, :, :, :width], full[-1, :, :, half : half + width]

    def _full(self, batch: Batch, start: Start | None) -> Tensor:
        """All layers of a prepared batch with its marks, (layers, batch, words + 2, dim); padding holds anything."""
        inputs: ElmoInputs = batch.inputs
        distinct = self.tokens(inputs.distinct)
        lengths = batch.lengths.cpu() + 2
        state = self.start_state(start, len(lengths))
        return self._run(lambda rows: distinct.index_select(0, rows.to(distinct.device)), inputs.index, lengths, state)[0]

    def _run(
        self,
        vectors: Callable[[Tensor], Tensor],
        index: Tensor,
        lengths: Tensor,
        state: LstmState,
        chunk: int | None = None,
    ) -> tuple[Tensor, LstmState]:
        """Numbered words (batch, words with marks) -> all layers (layers, batch, words with marks, dim), end state.

        Long texts go through in chunks of steps: a direction never needs what the other one knows, so the forward one
        reads on from the left while the backward one reads on from the right, and only the results are kept whole.
        Not so for Transformers, which look back at all words: their memory grows with the text, but only in proportion.
        """
        if self.config.architecture == "transformer":
            chunk = None
        half, width = self.config.half, self.config.output
        # padding is left unwritten, and so unread by callers; only layers narrower than others need their zeros
        make = torch.empty if self.config.dim == width else torch.zeros
        out = make(self.config.num_layers + 1, *index.shape, 2 * half, device=self.device, dtype=state.cell.dtype)
        steps, every = index.shape[1], torch.arange(int(index.max()) + 1)
        for begin in range(0, steps, chunk or steps):
            alive = (lengths > begin).nonzero()[:, 0]
            packing = Packing((lengths[alive] - begin).clamp(max=chunk or steps))
            rows = alive[packing.rows]
            places = torch.stack([begin + packing.steps, lengths[rows] - 1 - begin - packing.steps])
            wanted = index[rows, places]  # (2, words)
            whole = (chunk or steps) >= steps
            numbers, back = (every, wanted) if whole else torch.unique(wanted, return_inverse=True)
            table = vectors(numbers).to(out.dtype)  # under autocast the words come in fewer bits
            order = alive[packing.order].to(self.device)
            read, end = self.contextualizer(table, back.to(self.device), packing.sizes, state.rows(order))
            rows, places, back = rows.to(self.device), places.to(self.device), back.to(self.device)
            read = read.to(out.dtype)
            for d in (0, 1):
                out[0, rows, places[d], d * half : d * half + self.config.dim] = table[back[d]]
                out[1:, rows, places[d], d * half : d * half + width] = read[:, d]
            hidden, cell = end.hidden.to(state.hidden.dtype), end.cell.to(state.cell.dtype)
            state = LstmState(state.hidden.index_copy(2, order, hidden), state.cell.index_copy(2, order, cell))
        return out, state

    # ---- start states

    def start_state(self, start: Start | None, rows: int) -> LstmState:
        """The state from which every one of `rows` sentences begins."""
        start = self.config.start if start is None else start
        if start not in get_args(Start):
            raise UsageError(f"unknown start {start!r}{nearest(start, get_args(Start))}")
        if start == "zero":
            return self.contextualizer.zero_state(rows)
        self._needs_states(start)
        if start == "carry":
            raise UsageError("start 'carry' belongs to embed, which keeps its rows in order")
        if start == "warm":
            return self.warm_state().expand(rows)
        if self.learned is None:
            raise UsageError("this model has not learned a start state; allowed: zero, warm, carry")
        return LstmState(self.learned["hidden"], self.learned["cell"]).expand(rows)

    def _needs_states(self, start: Start) -> None:
        if self.config.architecture == "transformer":
            raise UsageError(f"start is {start!r}, but this model's Transformers have no state to start from; allowed: zero")

    def warm_state(self) -> LstmState:
        """The state after reading "<S> . </S>" fifty times, computed once for given weights."""
        self._needs_states("warm")
        now = weight_version(self)
        if self._warm is None or self._warm[0] != now:
            with torch.no_grad():
                words, index, lengths = self._number([["."]])
                distinct = self.tokens(self.word_inputs(words))
                state = self.lstm.zero_state(1)
                for _ in range(WARM_UP):
                    _, state = self._run(lambda rows: distinct[rows.to(distinct.device)], index, lengths, state)
            self._warm = (now, state)
        return self._warm[1]

    def set_warm_state(self, state: LstmState) -> None:
        """Take a warm state that was computed before with the weights as they are now."""
        self._warm = (weight_version(self), state)

    def reset_state(self) -> None:
        """Forget what `start="carry"` has carried; the next batch begins from zeros."""
        self._carried = None

    def _carry(self, rows: int) -> LstmState:
        """The first `rows` rows of the carried state, grown by zeros where there were fewer."""
        self._needs_states("carry")
        zero = self.lstm.zero_state(0)
        carried = self._carried or zero
        carried = LstmState(carried.hidden.to(zero.hidden), carried.cell.to(zero.cell))  # the model may have moved
        have = carried.cell.shape[2]
        if have < rows:
            more = self.lstm.zero_state(rows - have)
            carried = LstmState(torch.cat([carried.hidden, more.hidden], 2), torch.cat([carried.cell, more.cell], 2))
        self._carried = carried
        return LstmState(carried.hidden[:, :, :rows], carried.cell[:, :, :rows])

    def _keep(self, state: LstmState) -> None:
        assert self._carried is not None
        rows = state.cell.shape[2]
        self._carried = LstmState(
            torch.cat([state.hidden, self._carried.hidden[:, :, rows:]], 2),
            torch.cat([state.cell, self._carried.cell[:, :, rows:]], 2),
        )

    # ---- embedding

    def _batches(self, texts: list[list[str]], start: str | None, batch_words: int, batch_size: int) -> list[np.ndarray]:
        if start == "carry":
            return batch_in_order(len(texts), batch_size)
        return super()._batches(texts, start, batch_words, batch_size)

    def _embed_batch(
        self, texts: list[list[str]], choose: slice | Literal["mean"], start: str | None, batch_words: int
    ) -> Callable[[], list[np.ndarray]]:
        states, _ = self.read(texts, start=start, chunk=batch_words)  # type: ignore[arg-type]
        return to_arrays(pick(states, choose), [slice(1, len(text) + 1) for text in texts])

    @torch.no_grad()
    def read(self, texts: list[list[str]], *, start: Start | None, chunk: int = 4096) -> tuple[Tensor, Tensor]:
        """All layers of texts with their begin and end marks, without gradients: (layers, batch, words + 2, dim), lengths.

        Words seen before come from the cache.
        """
        words, index, lengths = self._number(texts)
        now = weight_version(self.tokens)

        def vectors(numbers: Tensor) -> Tensor:
            wanted = [self._read_part(words[number]) for number in numbers.tolist()]
            return self.cache.lookup(wanted, now, lambda missing: self.tokens(self.word_inputs(missing)))

        state = self._carry(len(texts)) if start == "carry" else self.start_state(start, len(texts))
        states, end = self._run(vectors, index, lengths, state, chunk)
        if start == "carry":
            self._keep(end)
        return states, lengths


def _speller(config: ElmoConfig, alphabet: list[str] | None) -> Utf8Characters | CodePointCharacters | None:
    if config.characters is None:
        return None
    if config.characters.alphabet == "utf8":
        return Utf8Characters(config.characters.max_length)
    if alphabet is None:
        raise ConfigError("a model over code points needs its alphabet (characters.txt)")
    return CodePointCharacters(alphabet, config.characters.max_length)
