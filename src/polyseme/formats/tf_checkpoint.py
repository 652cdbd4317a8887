"""TensorFlow checkpoints (`model.ckpt-*.index` and `.data-*`) and the variables of SavedModels, read without TensorFlow.

The index has for each variable its type, shape, file, offset, length and checksum. All of these are checked before anything is
allocated: a shape must fit the length, and the length the file. What an optimizer keeps (`<variable>/Adagrad`) is skipped, and
the names are those that bilm-tf gives to the datasets of its HDF5 files, so that one reader (`bilm`) suits both.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from polyseme.base.errors import FormatError
from polyseme.base.files import wrap_os_errors
from polyseme.formats.crc32c import crc32c, masked
from polyseme.formats.tf_table import fields, is_table, read_table
from polyseme.formats.weight_layout import Shape
from polyseme.formats.weight_names import BYTES, from_tensorflow

INDEX = ".index"
_TYPES: dict[int, np.dtype[Any]] = {1: np.dtype("<f4"), 2: np.dtype("<f8"), 19: np.dtype("<f2")}
_SIZES = {3: 4, 4: 1, 5: 2, 6: 1, 9: 8, 10: 1, 14: 2, 17: 2, 22: 4, 23: 8}  # bytes of numbers of other types, which are skipped


@dataclass(frozen=True)
class Variable:
    """Where a variable is."""

    kind: int
    shape: Shape
    file: Path
    offset: int
    bytes: int
    checksum: int
    """As stored."""


def is_checkpoint(path: Path) -> bool:
    """Whether a file is the index of a checkpoint, by its content."""
    return path.suffix == INDEX and is_table(path)


def shapes(path: Path) -> dict[str, Shape]:
    """Return the shapes of the weights of a language model, by the names of bilm-tf's HDF5 files."""
    found = _weights(path)
    result = {name: variable.shape for name, variable in found.items()}
    if result.get("char_embed", ())[:1] == (BYTES + 1,):  # of an inference graph: the first row is padding
        result["char_embed"] = (BYTES, *result["char_embed"][1:])
    return result


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Callable[[str], Tensor]]:
    """Yield a function from such a name to its tensor."""
    found = _weights(path)

    def read(name: str) -> Tensor:
        tensor = read_variable(path, name, found[name])
        return tensor[1:] if name == "char_embed" and len(tensor) == BYTES + 1 else tensor

    yield read


def read_variable(path: Path, name: str, variable: Variable) -> Tensor:
    """Read one variable as float32."""
    if variable.kind not in _TYPES:
        raise FormatError(path, f"variable {name} holds numbers of type {variable.kind}; expected floating-point numbers")
    with wrap_os_errors(variable.file, "read"), variable.file.open("rb") as file:
        file.seek(variable.offset)
        data = np.fromfile(file, dtype=np.uint8, count=variable.bytes)
    if len(data) != variable.bytes or masked(crc32c(data)) != variable.checksum:
        raise FormatError(variable.file, f"is damaged: the checksum of {name} is wrong")
    return torch.from_numpy(data.view(_TYPES[variable.kind]).astype(np.float32, copy=False).reshape(variable.shape))


def variables(path: Path) -> dict[str, Variable]:
    """Return all variables of an index, by their names in TensorFlow."""
    table = read_table(path)
    try:
        header = dict(fields(table.pop(b"")))
        if header.get(2):
            raise FormatError(path, "has numbers in big-endian order, which is not supported")
        shards = int(header.get(1, 1))
        return {key.decode("utf-8"): _variable(path, key.decode("utf-8"), value, shards) for key, value in table.items()}
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise FormatError(path, f"is not the index of a checkpoint of variables ({error})") from error


def _variable(path: Path, name: str, entry: bytes, shards: int) -> Variable:
    """Parse one entry, and check that its length fits its shape and its file."""
    sizes: list[int] = []
    values = {1: 0, 3: 0, 4: 0, 5: 0, 6: 0}
    for number, value in fields(entry):
        if number == 2 and isinstance(value, bytes):
            sizes = [int(dict(fields(each)).get(1, 0)) for field, each in fields(value) if field == 2]  # type: ignore[arg-type]
        elif number == 7:
            raise FormatError(path, f"variable {name} is stored in slices, which is not supported")
        elif isinstance(value, int):
            values[number] = value
    if not 0 <= values[3] < shards:
        raise FormatError(path, f"variable {name} is in file {values[3]} of {shards}")
    file = path.with_name(f"{path.name.removesuffix(INDEX)}.data-{values[3]:05d}-of-{shards:05d}")
    made = Variable(values[1], tuple(sizes), file, values[4], values[5], values[6])
    size = _TYPES[made.kind].itemsize if made.kind in _TYPES else _SIZES.get(made.kind)
    if any(each < 0 or each >= 1 << 40 for each in sizes):
        raise FormatError(path, f"variable {name} has the impossible shape {list(made.shape)}")
    if size is not None and made.bytes != size * math.prod(made.shape):
        raise FormatError(path, f"variable {name} of shape {list(made.shape)} has {made.bytes:,} bytes")
    if made.kind in _TYPES:
        if not file.is_file():
            raise FormatError(path, f"needs {file.name}, which is not beside it")
        if made.offset + made.bytes > file.stat().st_size:
            raise FormatError(file, f"is truncated: {name} ends behind it")
    return made


def _weights(path: Path) -> dict[str, Variable]:
    """The variables of the language model, without those of the optimizer."""
    found = variables(path)
    own = {name: each for name, each in found.items() if name.rpartition("/")[0] not in found and each.kind in _TYPES}
    root = next((name[: match.start()] for name in sorted(own) if (match := re.search(r"(?<![^/])RNN(_0)?/", name))), None)
    if root is None:
        names = ", ".join(sorted(own)[:4]) or "none"
        raise FormatError(path, f"has no LSTMs of a language model (RNN_0/...); its variables: {names}")
    weights = {from_tensorflow(name.removeprefix(root)): each for name, each in own.items() if name.startswith(root)}
    if "softmax/b" in weights and "softmax/W" not in weights and "embedding" in weights:
        weights["softmax/W"] = weights["embedding"]  # trained with share_embedding_softmax
    return weights
