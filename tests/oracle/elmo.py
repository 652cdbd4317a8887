"""A plain, slow, obviously right ELMo in float64 NumPy: one sentence at a time, one word at a time.

Reads the three published forms: bilm-tf (`options.json` + HDF5; also AllenNLP's, SeqVec's and the NLPL repository's),
the state dict of an AllenNLP archive, and an ELMoForManyLangs folder.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import h5py
import numpy as np
import torch

from .mix import inner_mask, layer_norm_mix, pad_batch
from .parts import (
    GATES,
    SENTENCE_BEGIN,
    SENTENCE_END,
    Array,
    Cell,
    CharacterEncoder,
    Gate,
    Highway,
    ListedWords,
    ManyLangsWords,
    SpelledWords,
    WordVectors,
    float64,
)

__all__ = ["OracleElmo", "State", "inner_mask", "layer_norm_mix", "pad_batch"]

State = dict[tuple[int, int], tuple[Array, Array]]
"""(direction, layer) to (h, c). Direction 0 reads forward, 1 backward."""

Tensors = Mapping[str, Array]
ENDS = {"<S>": SENTENCE_BEGIN, "</S>": SENTENCE_END}


@dataclass
class OracleElmo:
    """Word vectors, two stacks of LSTM cells, and the softmax where the file has one."""

    words: WordVectors
    cells: list[list[Cell]]  # [direction][layer]
    residual: bool
    ids: dict[str, int] = field(default_factory=dict)  # vocabulary of the softmax
    softmax: tuple[Array, Array] | None = None  # (V, output size), (V,)
    clipped: Counter = field(default_factory=Counter)  # values changed by each clip so far: "cell", "projection"

    @classmethod
    def from_bilm(
        cls,
        options: dict,
        weights_path: str | Path,
        vocabulary: list[str] | None = None,
        *,
        embedding_path: str | Path | None = None,
        softmax_path: str | Path | None = None,
    ) -> "OracleElmo":
        """From bilm-tf files. `embedding_path`: cached word vectors; `softmax_path`: a separate softmax file.

        The literal words `<S>` and `</S>` mean the sentence ends when no vocabulary is given (AllenNLP) or when it
        lists them (bilm-tf); otherwise they are spelled.
        """
        file = _read_hdf5(weights_path)
        ids = _vocabulary_ids(vocabulary)
        softmax = file if softmax_path is None else _read_hdf5(softmax_path)
        if embedding_path is not None:
            words: WordVectors = ListedWords(_read_hdf5(embedding_path)["embedding"], ids)
        elif options.get("char_cnn"):
            ends = {word: code for word, code in ENDS.items() if vocabulary is None or word in ids}
            words = _bilm_spelled(options["char_cnn"], file, ends)
        else:
            words = ListedWords(file["embedding"], ids)
        clipped: Counter = Counter()
        lstm = options["lstm"]
        layers = lstm.get("n_layers") or 1
        cells = [[_bilm_cell(file, lstm, d, index, clipped) for index in range(layers)] for d in (0, 1)]
        return cls(
            words=words,
            cells=cells,
            residual=bool(lstm.get("use_skip_connections")),
            ids=ids,
            softmax=(softmax["softmax/W"], softmax["softmax/b"]) if "softmax/W" in softmax else None,
            clipped=clipped,
        )

    @classmethod
    def from_allennlp(cls, options: dict, state: Mapping, prefix: str) -> "OracleElmo":
        """From the state dict of an AllenNLP model and the options its configuration points to."""
        tensors = {name[len(prefix) :]: float64(value) for name, value in state.items() if name.startswith(prefix)}
        token = _under(tensors, "_elmo_lstm._token_embedder.")
        cnn = options["char_cnn"]
        names = {"table": "_char_embedding_weights", "conv": "char_conv_{}", "highway": "_highways._layers.{}"}
        encoder = _torch_encoder(token, cnn, names)
        encoder = replace(encoder, table=encoder.table[1:])  # without the padding row: ids as in training
        projection = (token["_projection.weight"].T, token["_projection.bias"])
        words = SpelledWords(encoder, projection, cnn.get("max_characters_per_token", 50), ENDS)
        clipped: Counter = Counter()
        cells = _torch_cells(_under(tensors, "_elmo_lstm._elmo_lstm."), options["lstm"], clipped)
        return cls(words, cells, bool(options["lstm"].get("use_skip_connections")), clipped=clipped)

    @classmethod
    def from_manylangs(cls, folder: str | Path) -> "OracleElmo":
        """From an ELMoForManyLangs folder."""
        folder = Path(folder)
        config_path = json.loads((folder / "config.json").read_text(encoding="utf-8"))["config_path"]
        candidates = [folder / config_path, folder / Path(config_path).name]
        architecture = json.loads(next(p for p in candidates if p.exists()).read_text(encoding="utf-8"))
        embedder = architecture["token_embedder"]
        token, encoder = (_read_torch(folder / name) for name in ("token_embedder.pkl", "encoder.pkl"))
        names = {
            "table": "char_emb_layer.embedding.weight",
            "conv": "convolutions.{}",
            "highway": "highways._layers.{}",
        }
        listed, spelled = embedder["word_dim"] > 0, embedder["char_dim"] > 0
        words = ManyLangsWords(
            words=(token["word_emb_layer.embedding.weight"], _read_dictionary(folder / "word.dic")) if listed else None,
            encoder=_torch_encoder(token, embedder, names) if spelled else None,
            characters=_read_dictionary(folder / "char.dic") if spelled else {},
            projection=(token["projection.weight"].T, token["projection.bias"]),
            max_characters=embedder["max_characters_per_token"],
        )
        clipped: Counter = Counter()
        return cls(words, _torch_cells(encoder, architecture["encoder"], clipped), residual=True, clipped=clipped)

    def token_vectors(self, words: list[str]) -> Array:
        """Vectors without context, (n, P)."""
        width = len(self.words.begin())
        return np.array([self.words.word(word) for word in words]).reshape(len(words), width)

    def start(self) -> State:
        """The zero state."""
        return {(d, index): cell.start() for d in (0, 1) for index, cell in enumerate(self.cells[d])}

    def embed_with_ends(self, sentence: list[str], state: State | None = None) -> tuple[Array, State]:
        """Layers (L, n + 2, W) with the rows of the sentence ends, and the state at the end of the sentence."""
        state = self.start() if state is None else state
        tokens = np.stack([self.words.begin(), *self.token_vectors(sentence), self.words.end()])  # (n + 2, P)
        end: State = {}
        halves: list[list[Array]] = []  # [direction][layer], in text order
        for d in (0, 1):
            x = tokens if d == 0 else tokens[::-1]
            reported = [tokens]
            for index, cell in enumerate(self.cells[d]):
                outputs, end[d, index] = cell.run(x, state[d, index])
                x = outputs + x if self.residual and index >= 1 else outputs
                reported.append(x if d == 0 else x[::-1])
            halves.append(reported)
        width = max(half.shape[1] for half in halves[0])
        forward, backward = ([_widen(half, width) for half in reported] for reported in halves)
        return np.array([np.hstack(pair) for pair in zip(forward, backward, strict=True)]), end

    def embed(self, sentence: list[str], state: State | None = None) -> tuple[Array, State]:
        """Layers (L, n, 2P) without the sentence ends, and the state at the end. Half widths differ only if P > D."""
        layers, end = self.embed_with_ends(sentence, state)
        return layers[:, 1:-1], end

    def embed_carry(self, batches: list[list[list[str]]]) -> list[list[Array]]:
        """Batch by batch: row k starts where row k of the batch before ended; rows beyond a batch keep their state."""
        rows: list[State] = []
        results = []
        for batch in batches:
            rows.extend(self.start() for _ in range(len(batch) - len(rows)))
            layers = []
            for k, sentence in enumerate(batch):
                vectors, rows[k] = self.embed(sentence, rows[k])
                layers.append(vectors)
            results.append(layers)
        return results

    def log_probs(self, sentence: list[str], state: State | None = None) -> tuple[Array, Array]:
        """Natural-log probabilities: forward (n + 1,) of w1..wn, </S>; backward (n + 1,) of <S>, w1..wn.

        Each forward word is told from the forward top layer one position before it, each backward word from the
        backward top layer one position after it. A word outside the vocabulary counts as `<UNK>`.
        """
        if self.softmax is None:
            raise ValueError("this model has no softmax/W")
        weight, bias = self.softmax
        layers, _ = self.embed_with_ends(sentence, state)
        forward, backward = np.split(layers[-1], 2, axis=1)  # each (n + 2, W)
        size = self.cells[0][-1].start()[0].size
        if weight.shape[1] != size:
            raise ValueError(f"softmax/W has {weight.shape[1]} columns, the top layer {size}")
        words = [self.ids.get(word, self.ids.get("<UNK>", -1)) for word in sentence]
        if -1 in words:
            raise ValueError("a word is not in the vocabulary and the vocabulary has no <UNK>")
        ahead = _log_softmax(forward[:-1, :size] @ weight.T + bias)  # (n + 1, V), positions 0..n
        back = _log_softmax(backward[1:, :size] @ weight.T + bias)  # (n + 1, V), positions 1..n + 1
        rows = np.arange(len(sentence) + 1)
        return ahead[rows, [*words, self.ids["</S>"]]], back[rows, [self.ids["<S>"], *words]]


def _log_softmax(logits: Array) -> Array:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def _widen(half: Array, width: int) -> Array:
    return np.pad(half, ((0, 0), (0, width - half.shape[1])))


def _read_hdf5(path: str | Path) -> dict[str, Array]:
    arrays: dict[str, Array] = {}

    def keep(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = float64(item)

    with h5py.File(path, "r") as file:
        file.visititems(keep)
    return arrays


def _read_torch(path: Path) -> dict[str, Array]:
    return {name: float64(value) for name, value in torch.load(path, map_location="cpu", weights_only=True).items()}


def _read_dictionary(path: Path) -> dict[str, int]:
    ids = {}
    for line in path.read_bytes().decode("utf-8").split("\n"):
        if line.strip():
            symbol, _, number = line.rpartition("\t")
            ids[symbol or "\u3000"] = int(number)
    return ids


def _vocabulary_ids(vocabulary: list[str] | None) -> dict[str, int]:
    listed = [word for word in vocabulary or [] if word != "!!!MAXTERMID"]
    return {word: row for row, word in enumerate(listed)}  # the last of two equal words wins


def _under(tensors: Tensors, prefix: str) -> dict[str, Array]:
    return {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}


def _bilm_spelled(cnn: dict, file: Tensors, ends: dict[str, int]) -> SpelledWords:
    count = range(len(cnn["filters"]))
    highways = [
        Highway(
            weight=file[f"CNN_high_{k}/W_transform"],
            bias=file[f"CNN_high_{k}/b_transform"],
            gate_weight=file[f"CNN_high_{k}/W_carry"],  # named carry, but it is the share of the transformed value
            gate_bias=file[f"CNN_high_{k}/b_carry"],
        )
        for k in range(cnn.get("n_highway") or 0)
    ]
    encoder = CharacterEncoder(
        table=file["char_embed"],  # 261 rows, so ids stay as in training: no +1 and no padding row
        kernels=[file[f"CNN/W_cnn_{i}"][0] for i in count],
        biases=[file[f"CNN/b_cnn_{i}"] for i in count],
        activation=cnn["activation"],
        highways=highways,
    )
    projection = (file["CNN_proj/W_proj"], file["CNN_proj/b_proj"]) if "CNN_proj/W_proj" in file else None
    return SpelledWords(encoder, projection, cnn.get("max_characters_per_token", 50), ends)


def _bilm_cell(file: Tensors, lstm: dict, direction: int, layer: int, clipped: Counter) -> Cell:
    place = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"
    if place + "W_0" not in file and layer == 0:
        place = f"RNN_{direction}/RNN/LSTMCell/"
    weight, bias, projection = file[place + "W_0"], file[place + "B"], file.get(place + "W_P_0")
    dim = bias.size // 4
    outputs = dim if projection is None else projection.shape[1]
    inputs = weight.shape[0] - outputs
    gates = {}
    for block, name in enumerate("igfo"):  # TensorFlow's order i, j, f, o; j is the candidate
        columns = slice(block * dim, (block + 1) * dim)
        shift = 1.0 if name == "f" else 0.0
        gates[name] = Gate(weight[:inputs, columns], weight[inputs:, columns], bias[columns] + shift)
    return Cell(gates, projection, lstm.get("cell_clip") or 0.0, lstm.get("proj_clip") or 0.0, clipped)


def _torch_encoder(tensors: Tensors, settings: dict, names: dict[str, str]) -> CharacterEncoder:
    highways = []
    for k in range(settings.get("n_highway") or 0):
        name = names["highway"].format(k)
        (weight, keep_weight), (bias, keep_bias) = (np.split(tensors[name + end], 2) for end in (".weight", ".bias"))
        highways.append(Highway(weight.T, bias, -keep_weight.T, -keep_bias))  # it stores the gate that keeps x
    convolutions = [names["conv"].format(i) for i in range(len(settings["filters"]))]
    return CharacterEncoder(
        table=tensors[names["table"]],
        kernels=[tensors[name + ".weight"].transpose(2, 1, 0) for name in convolutions],  # (n, E, w) to (w, E, n)
        biases=[tensors[name + ".bias"] for name in convolutions],
        activation=settings["activation"],
        highways=highways,
    )


def _torch_cells(tensors: Tensors, lstm: dict, clipped: Counter) -> list[list[Cell]]:
    clips = (lstm.get("cell_clip") or 0.0, lstm.get("proj_clip") or 0.0)
    cells = []
    for direction in ("forward", "backward"):
        stack = []
        for index in range(lstm["n_layers"]):
            cell = _under(tensors, f"{direction}_layer_{index}.")
            rows = ("input_linearity.weight", "state_linearity.weight", "state_linearity.bias")
            blocks = [np.split(cell[name], 4) for name in rows]  # order i, f, g, o; nothing to add to f
            gates = {name: Gate(w.T, u.T, b) for name, w, u, b in zip(GATES, *blocks, strict=True)}
            projection = cell.get("state_projection.weight")
            stack.append(Cell(gates, None if projection is None else projection.T, *clips, clipped))
        cells.append(stack)
    return cells
