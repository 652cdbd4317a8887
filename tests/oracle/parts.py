"""The parts of the oracle: an LSTM cell with projection and clips, a character encoder, three sources of word vectors.

One canonical form for all file formats: matrices multiply from the right (`x @ W`), gates are kept apart by name, and a
highway's gate is the share of the *transformed* value. Loops stay loops: this code is to be read, not to be fast.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

Array = np.ndarray
GATES = ("i", "f", "g", "o")  # input, forget, candidate, output

WORD_BEGIN, WORD_END, CHARACTER_PADDING = 258, 259, 260
SENTENCE_BEGIN, SENTENCE_END = 256, 257


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), through tanh so that nothing overflows."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def float64(x: object) -> Array:
    """Any array, HDF5 dataset or tensor as a float64 NumPy array."""
    return np.asarray(x, dtype=np.float64)


@dataclass(frozen=True)
class Gate:
    """One gate before its squashing function: x @ input + h @ state + bias."""

    input: Array  # (input size, D)
    state: Array  # (output size, D)
    bias: Array  # (D,)


@dataclass(frozen=True)
class Cell:
    """An LSTM cell. The forget bias is complete: where a format asks for +1, it is already in."""

    gates: dict[str, Gate]
    projection: Array | None  # (D, P); None: the output has size D and is never clipped
    cell_clip: float = 0.0  # 0: off
    projection_clip: float = 0.0  # 0: off
    clipped: Counter = field(default_factory=Counter)  # how many values each clip has changed

    def start(self) -> tuple[Array, Array]:
        """The zero state (h, c)."""
        rows, dim = self.gates["i"].state.shape
        return np.zeros(rows), np.zeros(dim)

    def step(self, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
        """One word: the input and the state before, to the state (h, c) after. The output is h."""
        z = {name: x @ gate.input + h @ gate.state + gate.bias for name, gate in self.gates.items()}
        c = sigmoid(z["f"]) * c + sigmoid(z["i"]) * np.tanh(z["g"])
        c = self._clip(c, self.cell_clip, "cell")
        h = sigmoid(z["o"]) * np.tanh(c)
        if self.projection is not None:
            h = self._clip(h @ self.projection, self.projection_clip, "projection")
        return h, c

    def run(self, inputs: Array, state: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        """All words in the order given: (n, input size) to outputs (n, output size) and the state at the end."""
        h, c = state
        outputs = []
        for x in inputs:
            h, c = self.step(x, h, c)
            outputs.append(h)
        return np.array(outputs), (h, c)

    def _clip(self, x: Array, bound: float, name: str) -> Array:
        if not bound:
            return x
        self.clipped[name] += int(np.sum(np.abs(x) > bound))
        return np.clip(x, -bound, bound)


@dataclass(frozen=True)
class Highway:
    """y = t * relu(x @ weight + bias) + (1 - t) * x with t = sigmoid(x @ gate_weight + gate_bias)."""

    weight: Array  # (F, F)
    bias: Array  # (F,)
    gate_weight: Array  # (F, F)
    gate_bias: Array  # (F,)

    def __call__(self, x: Array) -> Array:
        t = sigmoid(x @ self.gate_weight + self.gate_bias)
        return t * np.maximum(x @ self.weight + self.bias, 0.0) + (1.0 - t) * x


@dataclass(frozen=True)
class CharacterEncoder:
    """Character ids of one word to the vector before the projection, (F,)."""

    table: Array  # (characters, E)
    kernels: list[Array]  # each (w, E, n)
    biases: list[Array]  # each (n,)
    activation: str  # "relu" or "tanh"
    highways: list[Highway]

    def __call__(self, ids: list[int]) -> Array:
        characters = self.table[ids]  # (M, E)
        pieces = []
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            width, _, size = kernel.shape
            windows = [characters[k : k + width].ravel() for k in range(len(ids) - width + 1)]
            values = np.array(windows) @ kernel.reshape(-1, size) + bias  # (M - w + 1, n)
            pieces.append(self._squash(values.max(axis=0)))
        x = np.concatenate(pieces)
        for highway in self.highways:
            x = highway(x)
        return x

    def _squash(self, x: Array) -> Array:
        if self.activation not in ("relu", "tanh"):
            raise ValueError(f"activation {self.activation!r} is neither relu nor tanh")
        return np.tanh(x) if self.activation == "tanh" else np.maximum(x, 0.0)


class WordVectors(Protocol):
    """Where a word's vector without context comes from. `begin` and `end` are the two sentence ends."""

    def word(self, word: str) -> Array: ...

    def begin(self) -> Array: ...

    def end(self) -> Array: ...


def byte_ids(body: list[int], max_characters: int) -> list[int]:
    """Word begin, body, word end, padding to the fixed length. Values as in training, 0..260."""
    ids = [WORD_BEGIN, *body[: max_characters - 2], WORD_END]
    return ids + [CHARACTER_PADDING] * (max_characters - len(ids))


@dataclass(frozen=True)
class SpelledWords:
    """Words by the bytes of their spelling. `ends` are the literal words that mean a sentence end."""

    encoder: CharacterEncoder
    projection: tuple[Array, Array] | None  # (F, P), (P,)
    max_characters: int
    ends: dict[str, int]

    def word(self, word: str) -> Array:
        body = [self.ends[word]] if word in self.ends else list(word.encode("utf-8", errors="ignore"))
        return self._vector(body)

    def begin(self) -> Array:
        return self._vector([SENTENCE_BEGIN])

    def end(self) -> Array:
        return self._vector([SENTENCE_END])

    def _vector(self, body: list[int]) -> Array:
        x = self.encoder(byte_ids(body, self.max_characters))
        if self.projection is not None:
            weight, bias = self.projection
            x = x @ weight + bias
        return x


@dataclass(frozen=True)
class ListedWords:
    """Words by their row in a table; a word that is not listed is `<UNK>`."""

    table: Array  # (V, P)
    ids: dict[str, int]

    def word(self, word: str) -> Array:
        return self.table[self.ids[word] if word in self.ids else self.ids["<UNK>"]]

    def begin(self) -> Array:
        return self.table[self.ids["<S>"]]

    def end(self) -> Array:
        return self.table[self.ids["</S>"]]


@dataclass(frozen=True)
class ManyLangsWords:
    """[word ; characters] projected, as ELMoForManyLangs does; either part may be missing."""

    words: tuple[Array, dict[str, int]] | None  # table (Nw, word_dim), ids
    encoder: CharacterEncoder | None
    characters: dict[str, int]
    projection: tuple[Array, Array]  # (word_dim + F, P), (P,)
    max_characters: int

    def word(self, word: str) -> Array:
        word = word[: self.max_characters - 2]
        parts = []
        if self.words is not None:
            table, ids = self.words
            parts.append(table[ids.get(word, ids["<oov>"])])
        if self.encoder is not None:
            parts.append(self.encoder(self._spell(word)))
        weight, bias = self.projection
        return np.concatenate(parts) @ weight + bias

    def begin(self) -> Array:
        return self.word("<bos>")

    def end(self) -> Array:
        return self.word("<eos>")

    def _spell(self, word: str) -> list[int]:
        symbols = [word] if word in ("<bos>", "<eos>") else list(word)
        known = self.characters
        body = [known.get(symbol, known["<oov>"]) for symbol in symbols]
        ids = [known["<eow>"], *body, known["<bow>"]]  # swapped, as in the original code
        return ids + [known["<pad>"]] * (self.max_characters - len(ids))
