"""bilm-tf models, read and written: `options.json` beside HDF5 weights, the form in which most ELMos were published.

The checkpoints of its training are read the same way (`weight_files`).

Peters et al. 2018 (github.com/allenai/bilm-tf); AllenNLP, SeqVec and the NLPL repository use the same files. Where the options
are silent, the weights decide: there is a projection if its dataset exists. The vocabulary is read only for word embeddings or
an output layer, or if the user gives it; a character model needs none.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from polyseme.base.config import config_errors_of
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import atomic_folder, write_text
from polyseme.base.tensor_files import load_weights
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.encoders.folder import is_folder
from polyseme.formats import hdf5, weight_files, weight_names
from polyseme.formats.options import BilmOptions, bilm_options
from polyseme.formats.weight_layout import Shape, WeightMapping, check_shapes, to_foreign, to_polyseme
from polyseme.nn.config import CharactersConfig, LstmConfig
from polyseme.nn.meta_init import meta_init
from polyseme.nn.output.full import FullSoftmax
from polyseme.text.vocabulary import Vocabulary

log = logging.getLogger(__name__)
OPTIONS, WEIGHTS, SOFTMAX, VOCABULARY = "options.json", "weights.hdf5", "softmax_weights.hdf5", "vocab.txt"


def read(
    options: Mapping[str, Any],
    weights: Path,
    *,
    where: str | Path = "options",
    vocabulary: Path | None = None,
    softmax: Path | None = None,
    token_embeddings: Path | None = None,
) -> Elmo:
    """Read an ELMo from parsed options (`where` names their file) and weights.

    `softmax`: the output layer, if it is not in the weights file; `token_embeddings`: cached vectors of the vocabulary's
    words, used instead of the characters.
    """
    settings = bilm_options(options, where)
    found = weight_files.shapes(weights)
    if any(name.startswith("RNN/") for name in found):
        raise FormatError(weights, "has a unidirectional language model; an ELMo has RNN_0 and RNN_1")
    table = token_embeddings or (weights if settings.char_cnn is None else None)
    words = None if table is None else _word_table(table, vocabulary)
    config = elmo_config(settings, found, None if words is None else len(words), where)
    flat = config.lstm.layers == 1 and any(name.startswith("RNN_0/RNN/LSTMCell/") for name in found)
    mappings = weight_names.bilm_characters(config) + weight_names.bilm_lstm(config, flat=flat)
    _check_rest(mappings, found, weights, ignored=("CNN", "char_embed") if token_embeddings else ())
    tensors = _tensors(mappings, weights)
    if table is not None and words is not None:
        tensors |= _tensors(weight_names.bilm_words(len(words), config.dim), table)
    if softmax is None and "softmax/W" in found:
        softmax = weights
    output = None
    if softmax is not None:
        words, output = _output(softmax, words, vocabulary, config.lstm.output_size)
    elif words is None and vocabulary is not None:  # a vocabulary to search, without embeddings
        words = Vocabulary.read(vocabulary)
    return Elmo.from_weights(config, tensors, where=weights, vocabulary=words, output=output)


def elmo_config(options: BilmOptions, found: Mapping[str, Shape], words: int | None, where: str | Path) -> ElmoConfig:
    """Build the config from the options and the datasets; with word embeddings of `words` rows there are no characters."""
    lstm, cnn = options.lstm, options.char_cnn
    with config_errors_of(where):
        characters = None
        if words is None and cnn is not None:
            characters = CharactersConfig(
                dim=cnn.embedding.dim,
                filters=cnn.filters,
                activation=cnn.activation,
                highway_layers=cnn.n_highway or 0,
                max_length=cnn.max_characters_per_token,
            )
        # bilm-tf omits either matrix if it would not make vectors smaller
        same_size = characters is not None and characters.output_size == lstm.projection_dim
        project = characters is not None and ("CNN_proj/W_proj" in found or not same_size)
        projected = lstm.projection_dim < lstm.dim or any(name.endswith("LSTMCell/W_P_0") for name in found)
        return ElmoConfig(
            characters=characters,
            words=None if words is None else WordTableConfig(size=words, dim=lstm.projection_dim),
            dim=lstm.projection_dim,
            project=project,
            lstm=LstmConfig(
                cell_size=lstm.dim,
                projection_size=lstm.projection_dim if projected else None,
                layers=lstm.n_layers,
                cell_clip=lstm.cell_clip or None,
                projection_clip=lstm.proj_clip or None,
                residual=bool(lstm.use_skip_connections),
            ),
        )


def _tensors(mappings: list[WeightMapping], path: Path) -> dict[str, Tensor]:
    check_shapes(mappings, weight_files.shapes(path), path)
    with weight_files.reading(path) as get:
        return to_polyseme(mappings, get)


def _check_rest(mappings: list[WeightMapping], found: Mapping[str, Shape], weights: Path, ignored: tuple[str, ...]) -> None:
    """Check datasets without a mapping: those of an ELMo mean that the options do not fit; warn of others."""
    known = {name for mapping in mappings for name in mapping.foreign} | {"embedding", "softmax/W", "softmax/b"}
    rest = sorted(name for name in found if name not in known and not (ignored and name.startswith(ignored)))
    parts = [name for name in rest if name.startswith(("CNN", "RNN_", "char_embed"))]
    if parts:
        check_shapes(mappings, found, weights)  # a wrong shape says more
        more = f" (and {len(parts) - 3} more)" if len(parts) > 3 else ""
        raise FormatError(weights, f"has {', '.join(parts[:3])}{more}, which the options do not mention")
    if rest:
        log.warning("%s: ignored unknown datasets: %s", weights.name, ", ".join(rest[:8]))


def _word_table(table: Path, vocabulary: Path | None) -> Vocabulary:
    shape = weight_files.shapes(table).get("embedding")
    if shape is None:
        raise FormatError(table, "lacks the dataset embedding, which a model without char_cnn in its options needs")
    if vocabulary is None:
        raise FormatError(table, "has word embeddings, but there is no vocabulary: put it beside the weights as vocab.txt")
    return _vocabulary(vocabulary, shape[0] if shape else 0, f"embedding of {table.name}")


def _vocabulary(path: Path, rows: int, table: str) -> Vocabulary:
    words = Vocabulary.read(path)
    if len(words) != rows:
        raise FormatError(path, f"has {len(words)} words, but {table} has {rows} rows")
    missing = [mark for mark in (words.begin, words.end) if mark not in words]
    if missing:
        raise FormatError(path, f"lacks {' and '.join(missing)}, which begin and end every sentence")
    return words


def _output(
    softmax: Path, words: Vocabulary | None, vocabulary: Path | None, dim: int
) -> tuple[Vocabulary | None, FullSoftmax | None]:
    """Read the output layer and its vocabulary; warn if the model cannot use it."""
    rows = weight_files.shapes(softmax).get("softmax/W", (0,))[0]
    if words is not None and len(words) != rows:
        log.warning("%s: ignored, because its %d rows are not the %d words of the vocabulary", softmax.name, rows, len(words))
        return words, None
    if words is None and vocabulary is None:
        log.warning("%s: ignored the output layer, because there is no vocabulary beside it", softmax.name)
        return None, None
    if words is None and vocabulary is not None:
        words = _vocabulary(vocabulary, rows, f"softmax/W of {softmax.name}")
    with meta_init():
        output = FullSoftmax(rows, dim)
    load_weights(output, _tensors(weight_names.bilm_output(rows, dim), softmax), softmax)
    return words, output


def write(model: Elmo, folder: str | Path) -> Path:
    """Write a model for bilm-tf and AllenNLP: options, weights and, if it has them, vocabulary and output layer."""
    config, folder = model.config, Path(folder)
    if model.kind != Elmo.kind:
        raise PolysemeError(f"bilm-tf's format is for ELMo models with all layers; this is a {model.kind}")
    check_writable(config)
    files = {OPTIONS, WEIGHTS}
    output = _writable_output(model)
    files |= {SOFTMAX} if output else set()
    files |= {VOCABULARY} if model.vocabulary is not None else set()
    stale = sorted(name for name in {SOFTMAX, VOCABULARY} - files if (folder / name).exists())
    stale += ["config.json"] if is_folder(folder) else []  # it would be loaded instead
    if stale:
        raise PolysemeError(f"{folder} has {' and '.join(stale)} of another model: choose another folder")
    _warn_of_losses(model)
    mappings = weight_names.bilm_characters(config) + weight_names.bilm_lstm(config)
    if config.words is not None:
        mappings += weight_names.bilm_words(config.words.size, config.words.dim)
    texts = {OPTIONS: json.dumps(to_options(config, model.vocabulary), indent=2) + "\n"}
    if model.vocabulary is not None:
        texts[VOCABULARY] = model.vocabulary.to_text()
    with atomic_folder(folder, last=OPTIONS) as part:
        hdf5.write(part / WEIGHTS, to_foreign(mappings, model.state_dict()))
        if output:
            hdf5.write(part / SOFTMAX, to_foreign(weight_names.bilm_output(*output["weight"].shape), output))
        for name, text in texts.items():
            write_text(part / name, text)
    return folder


def _writable_output(model: Elmo) -> dict[str, Tensor]:
    """Return weight and bias of the output layer (a tied weight is the embeddings); empty if the format has none."""
    output = model.output
    return {"weight": output.weight, "bias": output.bias} if isinstance(output, FullSoftmax) else {}


def to_options(config: ElmoConfig, vocabulary: Vocabulary | None = None) -> dict[str, Any]:
    """Return options.json for a config that the format can express."""
    lstm, cnn = config.lstm, config.characters
    options: dict[str, Any] = {
        "bidirectional": True,
        "lstm": {
            "dim": lstm.cell_size,
            "projection_dim": config.dim,
            "n_layers": lstm.layers,
            "cell_clip": lstm.cell_clip,
            "proj_clip": lstm.projection_clip,
            "use_skip_connections": lstm.residual,
        },
    }
    if cnn is not None:
        options["char_cnn"] = {
            "activation": cnn.activation,
            "embedding": {"dim": cnn.dim},
            "filters": [list(pair) for pair in cnn.filters],
            "n_highway": cnn.highway_layers,
            "n_characters": 262,
            "max_characters_per_token": cnn.max_length,
        }
    if vocabulary is not None:
        options["n_tokens_vocab"] = len(vocabulary)
    return options


WRITABLE = "It is for models like the published ones, which read bytes of characters or words alone, such as en-v1"


def check_writable(config: ElmoConfig) -> None:
    """Raise if the format cannot express a model."""
    lstm, reasons = config.lstm, []
    if config.transformer is not None:
        raise PolysemeError("bilm-tf's format is for LSTMs; this model is a Transformer: use its polyseme folder")
    if config.characters is not None and config.characters.alphabet != "utf8":
        reasons.append("its characters are code points, not bytes")
    if config.characters is not None and config.words is not None:
        reasons.append("it has both characters and word embeddings")
    if config.characters is None and config.project:
        reasons.append("its word embeddings are followed by a projection")
    if (config.begin, config.end, config.unknown) != ("<S>", "</S>", "<UNK>"):
        reasons.append(f"its special tokens are {config.begin}, {config.end} and {config.unknown}, not <S>, </S> and <UNK>")
    if lstm.projection_size is not None and lstm.projection_size != config.dim:
        reasons.append(f"its words have size {config.dim}, its LSTM outputs {lstm.projection_size}")
    if lstm.projection_size is None and config.dim < lstm.cell_size:
        reasons.append(f"its cells of size {lstm.cell_size} are not projected to the size of its words, {config.dim}")
    if reasons:
        raise PolysemeError(f"bilm-tf's format cannot express this model: {'; '.join(reasons)}. {WRITABLE}")


def _warn_of_losses(model: Elmo) -> None:
    config = model.config
    if config.start != "zero":
        log.warning("bilm-tf's format has no %s start state: it is lost, and sentences start from zeros", config.start)
    if model.splitter.name != "whitespace":
        log.warning("bilm-tf's format does not store the splitter: %r is lost", model.splitter.name)
    if config.normalize_quotes:
        log.warning("bilm-tf's format does not normalise words: curly quotes and -LRB- no longer count as plain signs")
    if model.output is not None and not _writable_output(model):
        log.warning("bilm-tf's format has no adaptive output layer: it is lost, and the result cannot score words")
    needless = []
    if config.characters is not None and config.project and config.characters.output_size == config.dim:
        needless.append("CNN_proj/W_proj")
    if config.lstm.projection_size is not None and config.lstm.projection_size >= config.lstm.cell_size:
        needless.append("W_P_0")
    if needless:
        log.warning("%s: bilm-tf itself does not use a matrix of this size; AllenNLP and polyseme do", ", ".join(needless))
