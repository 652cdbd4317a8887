"""ELMoForManyLangs models: folders of pickled tensors and dictionaries, for 44 languages (Che et al. 2018).

Words are read by code points, by word embeddings, or by both, concatenated. The architecture is a JSON file that `config.json`
points to, mostly by a path on its author's machine; it is searched in the folder, and that of all published models is built
in. `manylangs_output` reads the output layer, where a folder has one.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.base.config import config_errors_of
from polyseme.base.errors import FormatError
from polyseme.base.files import read_bytes, read_json
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.formats import weight_names
from polyseme.formats.manylangs_output import read_output
from polyseme.formats.options import ManyLangsOptions, parse
from polyseme.formats.pickles import read_tensors
from polyseme.formats.weight_layout import Shape, WeightMapping, check_shapes, to_polyseme
from polyseme.nn.config import ORIGINAL_FILTERS, CharactersConfig, LstmConfig
from polyseme.nn.output.full import FullSoftmax
from polyseme.text.vocabulary import Vocabulary

log = logging.getLogger(__name__)
TOKENS, ENCODER = "token_embedder.pkl", "encoder.pkl"
_WORD_TOKENS = ("<oov>", "<bos>", "<eos>")
_TOKENS = {"unknown": "<oov>", "begin": "<bos>", "end": "<eos>"}
_FEW = 3  # rows that may lack a symbol
_CHARACTER_TOKENS = ("<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>")
_ENCODER = {"name": "elmo", "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096, "n_layers": 2}
_CNN = {"name": "cnn", "activation": "relu", "filters": ORIGINAL_FILTERS, "n_highway": 2}
_SIZES = {"word_dim": 100, "char_dim": 50, "max_characters_per_token": 50}
BUILT_IN: dict[str, dict[str, Any]] = {
    "cnn_50_100_512_4096_sample.json": {"encoder": _ENCODER, "token_embedder": _CNN | _SIZES}
}
"""The architecture of all published models."""


def read(folder: Path) -> Elmo:
    """Read an ELMo from an ELMoForManyLangs folder."""
    options, where = _architecture(folder)
    tokens, encoder = read_tensors(folder / TOKENS), read_tensors(folder / ENCODER)
    shapes: dict[str, Shape] = {name: tuple(value.shape) for name, value in tokens.items()}
    words = characters = None
    if options.token_embedder.word_dim:
        rows = _rows(shapes, weight_names.MANYLANGS_WORDS, folder / TOKENS)
        word_list = read_dictionary(folder / "word.dic", rows, _WORD_TOKENS)
        words = Vocabulary(word_list, **_TOKENS)
    if options.token_embedder.char_dim:
        rows = _rows(shapes, weight_names.MANYLANGS.table, folder / TOKENS)
        characters = read_dictionary(folder / "char.dic", rows, _CHARACTER_TOKENS)
    config = _config(options, words, characters, where)
    tensors: dict[str, Tensor] = {}
    parts: list[tuple[list[WeightMapping], dict[str, Tensor], str]] = [
        (weight_names.torch_words(weight_names.MANYLANGS, config), tokens, TOKENS),
        (weight_names.torch_lstm(config), encoder, ENCODER),
    ]
    for mappings, state, file in parts:
        check_shapes(mappings, {name: tuple(value.shape) for name, value in state.items()}, folder / file, thing="tensor")
        tensors |= to_polyseme(mappings, state.__getitem__)
    output = read_output(folder, config.lstm.output_size)
    if output is not None:
        words, output = _with_words(folder, words, output)
    return Elmo.from_weights(config, tensors, where=folder, vocabulary=words, alphabet=characters, output=output)


def _with_words(folder: Path, words: Vocabulary | None, output: FullSoftmax) -> tuple[Vocabulary | None, FullSoftmax | None]:
    """The words of an output layer, which a model of characters has for it alone; without them it is of no use."""
    if words is None and (folder / "word.dic").exists():
        words = Vocabulary(read_dictionary(folder / "word.dic", output.size, _WORD_TOKENS), **_TOKENS)
    if words is None or len(words) != output.size:
        have = "there is no word.dic" if words is None else f"word.dic has {len(words)} words"
        log.warning("%s: ignored its output layer of %d words, because %s", folder.name, output.size, have)
        return words, None
    return words, output


def read_dictionary(path: Path, rows: int, special: Sequence[str]) -> list[str]:
    """Read a `*.dic` file, lines of symbol, tab, id; return the symbol of each row of its table.

    The original reader strips lines, so an id alone is U+3000. A row without a symbol gets a name that no text contains; the
    original would not load such a file.
    """
    if not path.exists():
        raise FormatError(path, f"is missing; its table in {TOKENS} has {rows} rows")
    ids: dict[str, int] = {}
    try:
        lines = read_bytes(path).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(path, f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        symbol, _, row = line.rpartition("\t")
        if not row.strip().isdecimal():
            raise FormatError(f"{path}:{number}", f"is {line!r}; expected a symbol, a tab and an id")
        ids[symbol or "\u3000"] = int(row)
    missing = [token for token in special if token not in ids]
    if missing:
        raise FormatError(path, f"lacks {', '.join(missing)}")
    if max(ids.values()) >= rows:
        raise FormatError(path, f"has ids up to {max(ids.values())}, but its table in {TOKENS} has {rows} rows")
    if len(set(ids.values())) < len(ids):
        raise FormatError(path, "gives one id to several symbols")
    _check_gaps(path, ids.values(), rows)
    symbols = [f"<unused {row}>" for row in range(rows)]
    for symbol, place in ids.items():
        symbols[place] = symbol
    return symbols


def _check_gaps(path: Path, ids: Collection[int], rows: int) -> None:
    """Reject a dictionary that ends well before its table; warn of one that lacks its last rows or many others."""
    found, last = f"names {len(ids):,} of the {rows:,} rows of its table in {TOKENS}", max(ids)
    if last < rows - 1 - _FEW:
        raise FormatError(path, f"{found}, and none after row {last}: it is truncated; copy or download it again")
    if last < rows - 1 or rows - len(ids) > _FEW:
        log.warning("%s: %s: is it complete?", path, found)


def _architecture(folder: Path) -> tuple[ManyLangsOptions, Path]:
    path = folder / "config.json"
    if not path.exists():
        raise FormatError(folder, f"has {ENCODER} and {TOKENS} of ELMoForManyLangs, but lacks config.json")
    named = read_json(path).get("config_path")
    if not isinstance(named, str) or not named:
        raise FormatError(path, f"has the config_path {named!r}; expected the name of the architecture's file")
    base = re.split(r"[/\\]", named)[-1]
    inside = [place for place in (folder / named, folder / base) if folder.resolve() in place.resolve().parents]
    where = next((place for place in inside if place.is_file()), None)
    if where is None and base not in BUILT_IN:
        raise FormatError(path, f"names the architecture {named}, which is not built in: copy {base} into the folder")
    values = read_json(where) if where is not None else BUILT_IN[base]
    where = where or path
    also_known = frozenset({"classifier", "dropout"})
    _refuse_kinds(values, where)
    return parse(ManyLangsOptions, values, where, also_known=also_known), where


def _refuse_kinds(values: dict[str, Any], where: Path) -> None:
    """Reject other kinds of modules, which have other keys, before keys are checked."""
    for part, kind in (("token_embedder", "cnn"), ("encoder", "elmo")):
        found = values.get(part)
        name = found.get("name", kind) if isinstance(found, dict) else kind
        if name != kind:
            raise FormatError(where, f"has a {part} of the kind {name!r}, which is not supported; allowed: {kind!r}")


def _rows(shapes: dict[str, Shape], name: str, path: Path) -> int:
    if not shapes.get(name):
        raise FormatError(path, f"lacks the tensor {name}")
    return shapes[name][0]


def _config(options: ManyLangsOptions, words: Vocabulary | None, characters: list[str] | None, where: Path) -> ElmoConfig:
    tokens, encoder = options.token_embedder, options.encoder
    room = tokens.max_characters_per_token - 2  # words are truncated to it first
    with config_errors_of(where):
        cnn = None
        if characters is not None:
            cnn = CharactersConfig(
                alphabet="code_points",
                symbols=len(characters),
                dim=tokens.char_dim,
                filters=tokens.filters,
                activation=tokens.activation,
                highway_layers=tokens.n_highway or 0,
                max_length=tokens.max_characters_per_token,
            )
        return ElmoConfig(
            characters=cnn,
            words=None if words is None else WordTableConfig(size=len(words), dim=tokens.word_dim, max_characters=room),
            dim=encoder.projection_dim,
            lstm=LstmConfig(
                cell_size=encoder.dim,
                projection_size=encoder.projection_dim,
                layers=encoder.n_layers,
                cell_clip=encoder.cell_clip or None,
                projection_clip=encoder.proj_clip or None,
                residual=True,
            ),
            begin="<bos>",
            end="<eos>",
            unknown="<oov>",
        )
