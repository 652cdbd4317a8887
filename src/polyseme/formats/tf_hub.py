"""TensorFlow Hub's module `google/elmo` (versions 1 to 3), unpacked: a SavedModel, of which only the variables are read.

It has no options file: sizes come from the shapes, and the rest (clips of 3, residual connections, relu, 50 characters per
word) is that of the one published module. Its trained mix of the layers is in `aggregation/weights` and
`aggregation/scaling`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError
from polyseme.encoders.elmo import Elmo
from polyseme.formats import bilm, tf_checkpoint
from polyseme.formats.weight_layout import Shape

_VARIABLES = Path("variables") / "variables.index"
_MIX = ("aggregation/weights", "aggregation/scaling")


def variables_of(folder: Path) -> Path | None:
    """Return the index of the variables of a SavedModel; None: the folder is none."""
    path = folder / _VARIABLES
    return path if (folder / "saved_model.pb").is_file() and path.is_file() else None


def read(index: Path) -> Elmo:
    """Read the ELMo of a SavedModel."""
    return bilm.read(_options(tf_checkpoint.shapes(index), index), index, where=index)


def read_mix(path: str | Path) -> tuple[list[float], float] | None:
    """Return the weights (before the softmax) and the scale of a module's mix of layers; None: the path is no such module."""
    index = variables_of(Path(path).expanduser())
    found = {} if index is None else tf_checkpoint.variables(index)
    names = [next((name for name in found if name.endswith(end)), None) for end in _MIX]
    if index is None or None in names:
        return None
    weights, scale = (tf_checkpoint.read_variable(index, str(name), found[str(name)]) for name in names)
    return weights.flatten().tolist(), float(scale)


def _options(shapes: Mapping[str, Shape], index: Path) -> dict[str, Any]:
    """The options of the published module, with the sizes of these weights."""
    filters = [shapes[name] for n in range(len(shapes)) if (name := f"CNN/W_cnn_{n}") in shapes]
    lstm = [shapes.get(f"RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell/{leaf}", ()) for leaf in ("W_P_0", "B")]
    if not filters or any(len(each) != 4 for each in filters) or [len(each) for each in lstm] != [2, 1]:
        raise FormatError(index, "has no ELMo of TensorFlow Hub: it lacks CNN/W_cnn_0 or RNN_0/.../lstm_cell/projection/kernel")
    layers = sum(f"RNN_0/RNN/MultiRNNCell/Cell{n}/LSTMCell/W_0" in shapes for n in range(len(shapes)))
    return {
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": filters[0][2]},
            "filters": [[shape[1], shape[3]] for shape in filters],
            "n_highway": sum(f"CNN_high_{n}/W_carry" in shapes for n in range(len(shapes))),
            "max_characters_per_token": 50,
        },
        "lstm": {
            "dim": lstm[0][0],
            "projection_dim": lstm[0][1],
            "n_layers": layers,
            "cell_clip": 3,
            "proj_clip": 3,
            "use_skip_connections": True,
        },
    }
