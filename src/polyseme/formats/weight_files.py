"""The weights of a bilm-tf model by name, whatever file has them: HDF5, or a TensorFlow checkpoint (its index file)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from torch import Tensor

from polyseme.formats import hdf5, tf_checkpoint
from polyseme.formats.weight_layout import Shape


def shapes(path: Path) -> dict[str, Shape]:
    """Return the shape of every array of a file, by the names of bilm-tf's HDF5 files."""
    return tf_checkpoint.shapes(path) if tf_checkpoint.is_checkpoint(path) else hdf5.shapes(path)


def reading(path: Path) -> AbstractContextManager[Callable[[str], Tensor]]:
    """Open a file and yield a function from such a name to its tensor."""
    return tf_checkpoint.reading(path) if tf_checkpoint.is_checkpoint(path) else hdf5.reading(path)
