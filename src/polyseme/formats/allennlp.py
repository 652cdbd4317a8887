"""The ELMo inside an AllenNLP model (`model.tar.gz`, unpacked), which is where fine-tuned weights are.

Sizes come from the tensors. What tensors do not show (clips, residual connections, activation) comes from the options file, if
the archive has one or the user gives it; otherwise from the settings of all published ELMos, with a warning. The task model
around the ELMo and its scalar mixes are ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from polyseme.base.config import config_errors_of
from polyseme.base.errors import FormatError, arg
from polyseme.base.files import read_json
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.formats import weight_names
from polyseme.formats.model_files import is_options
from polyseme.formats.options import BilmOptions, bilm_options
from polyseme.formats.pickles import read_tensors
from polyseme.formats.weight_layout import Shape, check_shapes, to_polyseme
from polyseme.nn.config import CharactersConfig, LstmConfig
from polyseme.text.words import get_splitter

log = logging.getLogger(__name__)
WEIGHTS = ("weights.th", "best.th")
ASSUMED = "clips of 3, residual connections and relu"
_TOKENS, _LSTM = "_token_embedder.", "_elmo_lstm."
_ANCHOR = _TOKENS + weight_names.ALLENNLP.table


def read(weights: Path, *, options: Path | None = None, folder: Path | None = None) -> Elmo:
    """Read an ELMo from a state dict, with options from `options` or from a file of the unpacked archive `folder`."""
    state = read_tensors(weights)
    root = _root(state, weights)
    state = {name.removeprefix(root): value for name, value in state.items() if name.startswith(root)}
    shapes: dict[str, Shape] = {name: tuple(value.shape) for name, value in state.items()}
    plain = _config(shapes, weights)
    given = [options] if options is not None else _options_inside(folder)
    chosen = _choose(given, plain)
    config = plain
    if chosen is not None:
        config = _behaviour(plain, *chosen)
    else:
        what = f"assumed {ASSUMED}, as in the published models; there is no options file"
        log.warning("%s: %s: give one with %s if yours is different", weights.name, what, arg("options"))
    mappings = weight_names.torch_words(weight_names.ALLENNLP, config, _TOKENS) + weight_names.torch_lstm(config, _LSTM)
    check_shapes(mappings, shapes, weights, thing="tensor")
    tensors = to_polyseme(mappings, state.__getitem__)
    model = Elmo.from_weights(config, tensors, where=weights, splitter=get_splitter("whitespace"))
    model.assumed = ASSUMED if chosen is None else None
    return model


def _root(state: Mapping[str, Tensor], weights: Path) -> str:
    """Return the prefix of the ELMo's names; of several equal ELMos, the first."""
    roots = sorted(name.removesuffix(_ANCHOR) for name in state if name.endswith(_ANCHOR))
    if not roots:
        what = f"has no ELMo: no tensor is named ...{_ANCHOR}"
        raise FormatError(weights, f"{what}; if the model has several files, give their folder")
    parts = [{name.removeprefix(root): t for name, t in state.items() if name.startswith(root)} for root in roots]
    for other in parts[1:]:
        if other.keys() != parts[0].keys() or not all(torch.equal(other[name], parts[0][name]) for name in other):
            raise FormatError(weights, f"has {len(roots)} different ELMos, under {', '.join(roots)}; expected one")
    return roots[0]


def _config(shapes: Mapping[str, Shape], weights: Path) -> ElmoConfig:
    """Read sizes from the tensors; the rest is as in the published models."""

    def size(name: str, rank: int) -> Shape:
        shape = shapes.get(name, ())
        if len(shape) != rank:
            found = f"has shape {list(shape)}" if name in shapes else "is missing"
            raise FormatError(weights, f"tensor {name} {found}; expected one of {rank} dimensions")
        return shape

    def count(name: str) -> int:
        return next(n for n in range(len(shapes) + 1) if name.format(n) not in shapes)

    tokens = {name: _TOKENS + getattr(weight_names.ALLENNLP, name) for name in ("convolution", "highway", "projection")}
    convolutions = [
        size(f"{tokens['convolution']}.weight".format(n), 3) for n in range(count(f"{tokens['convolution']}.weight"))
    ]
    symbols, dim = size(_ANCHOR, 2)
    with config_errors_of(weights):
        return ElmoConfig(
            characters=CharactersConfig(
                symbols=symbols,
                dim=dim,
                filters=tuple((shape[2], shape[0]) for shape in convolutions),
                highway_layers=count(f"{tokens['highway']}.weight"),
            ),
            dim=size(f"{tokens['projection']}.weight", 2)[0],
            lstm=LstmConfig(
                cell_size=size(f"{_LSTM}forward_layer_0.state_projection.weight", 2)[1],
                projection_size=size(f"{_LSTM}forward_layer_0.state_projection.weight", 2)[0],
                layers=count(_LSTM + "forward_layer_{}.state_projection.weight"),
            ),
        )


def _options_inside(folder: Path | None) -> list[Path]:
    """Find the ELMo options of an unpacked archive; AllenNLP gives them names of its own."""
    paths = sorted(folder.rglob("*")) if folder is not None else []
    return [path for path in paths if path.is_file() and is_options(path)]


def _choose(paths: list[Path], config: ElmoConfig) -> tuple[BilmOptions, Path] | None:
    """Return the options that fit the model; None if there are none at all."""
    read = [(bilm_options(read_json(path), path), path) for path in paths]
    fitting = [(options, path) for options, path in read if not _disagreements(options, config)]
    if read and not fitting:
        options, path = read[0]
        raise FormatError(path, f"belongs to another model: {'; '.join(_disagreements(options, config))}")
    if any(options != fitting[0][0] for options, _ in fitting):
        listed = ", ".join(str(path) for _, path in fitting)
        raise FormatError(fitting[0][1], f"is not the only options file: {listed}; give one with {arg('options')}")
    return fitting[0] if fitting else None


def _disagreements(options: BilmOptions, config: ElmoConfig) -> list[str]:
    cnn, lstm, characters = options.char_cnn, options.lstm, config.characters
    assert characters is not None
    pairs: dict[str, tuple[Any, Any]] = {
        "lstm.dim": (lstm.dim, config.lstm.cell_size),
        "lstm.projection_dim": (lstm.projection_dim, config.lstm.projection_size),
        "lstm.n_layers": (lstm.n_layers, config.lstm.layers),
    }
    if cnn is not None:
        pairs["char_cnn.embedding.dim"] = (cnn.embedding.dim, characters.dim)
        pairs["char_cnn.filters"] = (cnn.filters, characters.filters)
        pairs["char_cnn.n_highway"] = (cnn.n_highway or 0, characters.highway_layers)
    return [f"{name} is {said}, the weights have {found}" for name, (said, found) in pairs.items() if said != found]


def _behaviour(config: ElmoConfig, options: BilmOptions, where: Path) -> ElmoConfig:
    """Add to a config what only the options say."""
    lstm, cnn = options.lstm, options.char_cnn
    assert config.characters is not None
    with config_errors_of(where):
        characters = config.characters
        if cnn is not None:
            characters = characters.replace(activation=cnn.activation, max_length=cnn.max_characters_per_token)
        changed = config.lstm.replace(
            cell_clip=lstm.cell_clip or None,
            projection_clip=lstm.proj_clip or None,
            residual=bool(lstm.use_skip_connections),
        )
        return config.replace(characters=characters, lstm=changed)
