"""Writers of small random models in the published formats, deterministic by seed and without polyseme.

Every array is drawn by (seed, name), so two models that differ in one setting share the arrays they have in common.
The default scale makes both clips at 3 change many values on ordinary sentences.
"""

import io
import json
import tarfile
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import torch

if TYPE_CHECKING:
    from .elmo import OracleElmo

Array = np.ndarray
Filters = tuple[tuple[int, int], ...]

VOCABULARY = ["<S>", "</S>", "<UNK>", "the", ".", "a", "of", "bank", "river", "café", "今天", "Winfrey"]
CHARACTERS = [*"abcdefghijklmnopqrstuvwxyzABCDEFG.,'-0123456789é今天是周日她手里抱着一个小红包袱", "\u3000", "\u2028"]
WORDS = ["the", "of", "Bank", "bank", "river", ".", "今天", "是", "周日", "她", "包袱", "小", "café"]
ARCHIVE_PREFIX = "text_field_embedder.token_embedder_elmo._elmo."
EMBEDDER_KEY = "model.text_field_embedder.token_embedders.elmo."


@dataclass(frozen=True)
class BilmSettings:
    """A bilm-tf model. None leaves a key out of options.json; 0 writes 0."""

    dim: int = 24  # cell size D
    projection: int = 8  # P; with P >= D the cells have no projection
    layers: int = 2
    filters: Filters = ((1, 4), (2, 6), (3, 8))
    embedding: int = 5  # size of a character vector
    highways: int | None = 2
    activation: str = "relu"
    max_characters: int = 50
    cell_clip: float | None = 3
    projection_clip: float | None = 3
    residual: bool | None = True
    characters: int = 262  # what options.json says; the file always holds 261 rows
    vocabulary: list[str] | None = None
    softmax: bool = False
    words_only: bool = False
    scale: float = 1.5
    flat_single_layer: bool = False  # without the level MultiRNNCell/Cell0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.flat_single_layer and self.layers != 1:
            raise ValueError(f"flat_single_layer needs layers=1, not {self.layers}")
        if self.softmax and self.projection > self.dim:
            raise ValueError("softmax needs projection <= dim: its rows have size P, the top layer has size D")

    @property
    def features(self) -> int:
        return sum(size for _, size in self.filters)

    @property
    def output(self) -> int:
        return min(self.projection, self.dim)

    @property
    def words(self) -> list[str] | None:
        needed = self.softmax or self.words_only
        return VOCABULARY if self.vocabulary is None and needed else self.vocabulary

    def options(self) -> dict[str, Any]:
        lstm = {
            "dim": self.dim,
            "projection_dim": self.projection,
            "n_layers": self.layers,
            "cell_clip": self.cell_clip,
            "proj_clip": self.projection_clip,
            "use_skip_connections": self.residual,
        }
        options: dict[str, Any] = {"lstm": {key: value for key, value in lstm.items() if value is not None}}
        if not self.words_only:
            cnn = {
                "activation": self.activation,
                "embedding": {"dim": self.embedding},
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.highways,
                "n_characters": self.characters,
                "max_characters_per_token": self.max_characters,
            }
            options["char_cnn"] = {key: value for key, value in cnn.items() if value is not None}
        return options


@dataclass(frozen=True)
class ManyLangsSettings:
    """An ELMoForManyLangs model; a size of 0 leaves that input out."""

    word_dim: int
    char_dim: int
    dim: int = 24
    projection: int = 8
    layers: int = 2
    filters: Filters = ((1, 4), (2, 6), (3, 8))
    highways: int = 2
    activation: str = "relu"
    max_characters: int = 50
    cell_clip: float = 3
    projection_clip: float = 3
    words: tuple[str, ...] = tuple(WORDS)
    characters: tuple[str, ...] = tuple(CHARACTERS)
    config_path: str = "cnn.json"  # what config.json says; the file is written into the folder under its last part
    legacy: bool = False  # the tensor file format of torch before 1.6, as the published models have it
    scale: float = 1.5
    seed: int = 0

    def architecture(self) -> dict[str, Any]:
        return {
            "encoder": {
                "name": "elmo",
                "projection_dim": self.projection,
                "cell_clip": self.cell_clip,
                "proj_clip": self.projection_clip,
                "dim": self.dim,
                "n_layers": self.layers,
            },
            "token_embedder": {
                "name": "cnn",
                "activation": self.activation,
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.highways,
                "word_dim": self.word_dim,
                "char_dim": self.char_dim,
                "max_characters_per_token": self.max_characters,
            },
            "classifier": {"name": "sampled_softmax", "n_samples": 8192},
            "dropout": 0.1,
        }


def draw(seed: int, name: str, shape: tuple[int, ...], spread: float, centre: float = 0.0) -> Array:
    """Normal float32 numbers that depend on the seed, the name and the shape alone."""
    generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
    return (centre + spread * generator.standard_normal(shape)).astype(np.float32)


def bilm_arrays(settings: BilmSettings) -> dict[str, Array]:
    """All datasets of `weights.hdf5` by path."""
    arrays: dict[str, Array] = {}

    def put(name: str, *shape: int, spread: float, centre: float = 0.0) -> None:
        arrays[name] = draw(settings.seed, name, shape, spread, centre)

    scale, features = settings.scale, settings.features
    if settings.words_only:
        put("embedding", len(settings.words or []), settings.projection, spread=scale)
    else:
        put("char_embed", 261, settings.embedding, spread=scale)
        for i, (width, size) in enumerate(settings.filters):
            put(f"CNN/W_cnn_{i}", 1, width, settings.embedding, size, spread=scale / (width * settings.embedding) ** 0.5)
            put(f"CNN/b_cnn_{i}", size, spread=0.2 * scale)
        for k in range(settings.highways or 0):
            put(f"CNN_high_{k}/W_carry", features, features, spread=1 / features**0.5)
            put(f"CNN_high_{k}/W_transform", features, features, spread=1 / features**0.5)
            put(f"CNN_high_{k}/b_carry", features, spread=1.0, centre=-1.0)
            put(f"CNN_high_{k}/b_transform", features, spread=0.3)
        if features != settings.projection:
            put("CNN_proj/W_proj", features, settings.projection, spread=1 / features**0.5)
            put("CNN_proj/b_proj", settings.projection, spread=0.3)
    for d in (0, 1):
        for index in range(settings.layers):
            level = "" if settings.flat_single_layer else f"MultiRNNCell/Cell{index}/"
            place = f"RNN_{d}/RNN/{level}LSTMCell/"
            rows = (settings.projection if index == 0 else settings.output) + settings.output
            put(place + "W_0", rows, 4 * settings.dim, spread=scale / rows**0.5)
            put(place + "B", 4 * settings.dim, spread=scale / 2)
            if settings.projection < settings.dim:
                put(place + "W_P_0", settings.dim, settings.projection, spread=0.6 * scale)
    if settings.softmax:
        put("softmax/W", len(settings.words or []), settings.projection, spread=0.5 * scale)
        put("softmax/b", len(settings.words or []), spread=0.5)
    return arrays


def write_hdf5(path: Path, arrays: dict[str, Array]) -> Path:
    """Datasets by path, groups made as needed."""
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return path


def write_bilm(folder: Path, **settings: Any) -> Path:
    """`options.json`, `weights.hdf5` and, where there is a vocabulary, `vocab.txt`. See `BilmSettings`."""
    model = BilmSettings(**settings)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "options.json").write_text(json.dumps(model.options()), encoding="utf-8")
    write_hdf5(folder / "weights.hdf5", bilm_arrays(model))
    if model.words is not None:
        _write_lines(folder / "vocab.txt", model.words)
    return folder


def write_token_embeddings(folder: Path, oracle: "OracleElmo", vocabulary: list[str]) -> Path:
    """`token_embeddings.hdf5`, row k = line k of `vocab.txt`, without a padding row; the path of the former."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = {"<S>": oracle.words.begin, "</S>": oracle.words.end}
    rows = [ends[word]() if word in ends else oracle.words.word(word) for word in vocabulary]
    _write_lines(folder / "vocab.txt", vocabulary)
    return write_hdf5(folder / "token_embeddings.hdf5", {"embedding": np.array(rows, dtype=np.float32)})


def write_manylangs(folder: Path, *, word_dim: int, char_dim: int, **settings: Any) -> Path:
    """`config.json`, the architecture, the dictionaries and the two tensor files. See `ManyLangsSettings`."""
    model = ManyLangsSettings(word_dim=word_dim, char_dim=char_dim, **settings)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"config_path": model.config_path}), encoding="utf-8")
    (folder / Path(model.config_path).name).write_text(json.dumps(model.architecture(), indent=1), encoding="utf-8")
    if word_dim:
        _write_dictionary(folder / "word.dic", ["<oov>", "<bos>", "<eos>", "<pad>", *model.words])
    if char_dim:
        specials = ["<bos>", "<eos>", "<oov>", "<pad>", "<bow>", "<eow>"]
        _write_dictionary(folder / "char.dic", [*specials, *model.characters])
    (folder / "token_embedder.pkl").write_bytes(_torch_bytes(_manylangs_embedder(model), legacy=model.legacy))
    (folder / "encoder.pkl").write_bytes(_torch_bytes(_manylangs_encoder(model), legacy=model.legacy))
    return folder


def write_allennlp_archive(
    path: Path,
    *,
    options_inside: bool,
    prefix: str = ARCHIVE_PREFIX,
    mixes: int = 1,
    legacy: bool = False,
    **settings: Any,
) -> Path:
    """A `model.tar.gz` whose ELMo has the arrays of `write_bilm` with the same settings.

    `options_inside` adds what AllenNLP packed along: `files_to_archive.json` and, under `fta/`, the options and the
    weights that training started from. Those weights are other ones (seed + 1): `weights.th` is what counts.
    """
    model = BilmSettings(**settings)
    unlike = model.words_only or model.projection >= model.dim or model.features == model.projection
    if unlike or model.max_characters != 50:
        raise ValueError("AllenNLP knows only character models with both projections and 50 characters per word")
    state = {prefix + name: array for name, array in allennlp_state(model, mixes).items()}
    state["tag_projection_layer._module.weight"] = draw(model.seed, "tag", (4, 2 * model.projection), 1.0)
    state["tag_projection_layer._module.bias"] = draw(model.seed, "tag bias", (4,), 1.0)
    outside = {"options_file": "elmo/options.json", "weight_file": "elmo/lm_weights.hdf5"}
    embedder = {"type": "elmo_token_embedder", **outside}
    config = {
        "dataset_reader": {"type": "conll2003", "token_indexers": {"elmo": {"type": "elmo_characters"}}},
        "model": {"type": "simple_tagger", "text_field_embedder": {"token_embedders": {"elmo": embedder}}},
        "trainer": {"num_epochs": 5, "optimizer": "adam"},
    }
    members = {
        "config.json": json.dumps(config, indent=4).encode(),
        "weights.th": _torch_bytes(state, legacy=legacy),
        "vocabulary/labels.txt": b"O\nU-ORG\nU-PER\nU-LOC\n",
        "vocabulary/non_padded_namespaces.txt": b"*labels\n*tags\n",
    }
    if options_inside:
        start = BilmSettings(**{**settings, "seed": model.seed + 1})
        members["files_to_archive.json"] = json.dumps({EMBEDDER_KEY + k: v for k, v in outside.items()}).encode()
        members[f"fta/{EMBEDDER_KEY}options_file"] = json.dumps(model.options()).encode()
        members[f"fta/{EMBEDDER_KEY}weight_file"] = _hdf5_bytes(bilm_arrays(start))
    path.parent.mkdir(parents=True, exist_ok=True)
    _write_archive(path, members)
    return path


def allennlp_state(model: BilmSettings, mixes: int) -> dict[str, Array]:
    """The arrays of a bilm-tf model under AllenNLP's names and in its layouts, plus `mixes` scalar mixes."""
    arrays = bilm_arrays(model)
    state: dict[str, Array] = {}
    token = "_elmo_lstm._token_embedder."
    state[token + "_char_embedding_weights"] = np.pad(arrays["char_embed"], ((1, 0), (0, 0)))
    for n in range(len(model.filters)):
        state[f"{token}char_conv_{n}.weight"] = arrays[f"CNN/W_cnn_{n}"][0].transpose(2, 1, 0)
        state[f"{token}char_conv_{n}.bias"] = arrays[f"CNN/b_cnn_{n}"]
    for k in range(model.highways or 0):
        name, place = f"{token}_highways._layers.{k}", f"CNN_high_{k}/"
        state[name + ".weight"] = np.vstack([arrays[place + "W_transform"].T, -arrays[place + "W_carry"].T])
        state[name + ".bias"] = np.concatenate([arrays[place + "b_transform"], -arrays[place + "b_carry"]])
    state[token + "_projection.weight"] = arrays["CNN_proj/W_proj"].T
    state[token + "_projection.bias"] = arrays["CNN_proj/b_proj"]
    for d, direction in enumerate(("forward", "backward")):
        for index in range(model.layers):
            level = "" if model.flat_single_layer else f"MultiRNNCell/Cell{index}/"
            place, name = f"RNN_{d}/RNN/{level}LSTMCell/", f"_elmo_lstm._elmo_lstm.{direction}_layer_{index}."
            i, candidate, f, o = np.split(np.vstack([arrays[place + "W_0"], arrays[place + "B"]]), 4, axis=1)
            f = f.copy()
            f[-1] += 1.0  # the last row is the bias
            blocks = np.hstack([i, f, candidate, o])
            state[name + "input_linearity.weight"] = blocks[: model.projection].T
            state[name + "state_linearity.weight"] = blocks[model.projection : -1].T
            state[name + "state_linearity.bias"] = blocks[-1]
            state[name + "state_projection.weight"] = arrays[place + "W_P_0"].T
    for k in range(mixes):
        for name in ("gamma", *(f"scalar_parameters.{n}" for n in range(model.layers + 1))):
            name = f"scalar_mix_{k}.{name}"
            state[name] = draw(model.seed, name, (1,), 0.5, centre=1.0 if "gamma" in name else 0.0)
    return state


def _manylangs_embedder(model: ManyLangsSettings) -> dict[str, Array]:
    state: dict[str, Array] = {}

    def put(name: str, *shape: int, spread: float) -> None:
        state[name] = draw(model.seed, name, shape, spread)

    features = sum(size for _, size in model.filters) if model.char_dim else 0
    if model.word_dim:
        put("word_emb_layer.embedding.weight", 4 + len(model.words), model.word_dim, spread=model.scale)
    if model.char_dim:
        put("char_emb_layer.embedding.weight", 6 + len(model.characters), model.char_dim, spread=model.scale)
        for i, (width, size) in enumerate(model.filters):
            spread = model.scale / (width * model.char_dim) ** 0.5
            put(f"convolutions.{i}.weight", size, model.char_dim, width, spread=spread)
            put(f"convolutions.{i}.bias", size, spread=0.2 * model.scale)
        for k in range(model.highways):
            put(f"highways._layers.{k}.weight", 2 * features, features, spread=1 / features**0.5)
            put(f"highways._layers.{k}.bias", 2 * features, spread=1.0)
    rows = model.word_dim + features
    put("projection.weight", model.projection, rows, spread=1 / rows**0.5)
    put("projection.bias", model.projection, spread=0.3)
    return state


def _manylangs_encoder(model: ManyLangsSettings) -> dict[str, Array]:
    state: dict[str, Array] = {}
    spread = model.scale / (2 * model.projection) ** 0.5
    for direction in ("forward", "backward"):
        for index in range(model.layers):
            name = f"{direction}_layer_{index}."
            for part in ("input_linearity", "state_linearity"):
                key, shape = f"{name}{part}.weight", (4 * model.dim, model.projection)
                state[key] = draw(model.seed, key, shape, spread)
            bias = draw(model.seed, name + "bias", (4 * model.dim,), model.scale / 2)
            bias[model.dim : 2 * model.dim] += 1.0  # forget gates mostly open, or no cell would reach its clip
            state[name + "state_linearity.bias"] = bias
            key = name + "state_projection.weight"
            state[key] = draw(model.seed, key, (model.projection, model.dim), 0.6 * model.scale)
    return state


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_bytes("".join(line + "\n" for line in lines).encode("utf-8"))


def _write_dictionary(path: Path, symbols: list[str]) -> None:
    _write_lines(path, [f"{symbol}\t{row}" for row, symbol in enumerate(symbols)])


def _torch_bytes(arrays: dict[str, Array], *, legacy: bool) -> bytes:
    buffer = io.BytesIO()
    tensors = OrderedDict((name, torch.from_numpy(np.ascontiguousarray(array))) for name, array in arrays.items())
    torch.save(tensors, buffer, _use_new_zipfile_serialization=not legacy)
    return buffer.getvalue()


def _hdf5_bytes(arrays: dict[str, Array]) -> bytes:
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, array in arrays.items():
            file[name] = array
    return buffer.getvalue()


def _write_archive(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as archive:
        folder = tarfile.TarInfo("vocabulary")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(folder)
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
