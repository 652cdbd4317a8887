"""HDF5 files of weights: their datasets as float32 tensors.

Every error of a truncated or damaged file (when it is opened, listed or read) becomes one `FormatError` that names the file.
Datasets that refer to other files are rejected: a weights file must not make us read others.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import h5py
import torch
from torch import Tensor

from polyseme.base.errors import FormatError
from polyseme.base.files import HDF5, atomic, starts_with
from polyseme.formats.weight_layout import Shape

# h5py raises many errors for damage, depending on the damaged structure
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError)


def is_hdf5(path: Path) -> bool:
    """Whether a file is HDF5, by its first bytes."""
    return starts_with(path, HDF5)


def shapes(path: Path) -> dict[str, Shape]:
    """Return the shape of every dataset of a file, by full name; external links are not followed."""
    result: dict[str, Shape] = {}

    def keep(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            result[name] = tuple(item.shape or ())

    with _opened(path) as file, _damage_as_format_error(path):
        file.visititems(keep)
    return result


def top(path: Path, *names: str) -> tuple[list[str], int]:
    """Return which of these names a file has, and the number of its top-level entries: fast even for a million datasets."""
    with _opened(path) as file, _damage_as_format_error(path):
        return [name for name in names if name in file], len(file)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Callable[[str], Tensor]]:
    """Open a file and yield a function from the name of a dataset to its tensor."""
    with _opened(path) as file:
        yield lambda name: _tensor(file, name, path)


def in_memory() -> h5py.File:
    """Create a file in memory: HDF5 crashes if the disk is full, writing plain bytes does not."""
    return h5py.File("in-memory", "w", driver="core", backing_store=False, block_size=1 << 20)


def write(path: Path, arrays: Mapping[str, Tensor]) -> None:
    """Write datasets by full name as float32; the file is complete or absent."""
    with atomic(path) as part:
        with in_memory() as file:
            for name, value in arrays.items():
                file.create_dataset(name, data=value.contiguous().numpy())
            file.flush()
            image = file.id.get_file_image()
        part.write_bytes(image)


def _tensor(file: h5py.File, name: str, path: Path) -> Tensor:
    with _damage_as_format_error(path):
        dataset = file[name]
        kind, elsewhere = dataset.dtype, dataset.external or dataset.is_virtual
    if kind.kind != "f":
        raise FormatError(path, f"dataset {name} holds {kind}; expected floating-point numbers")
    if elsewhere:
        raise FormatError(path, f"dataset {name} refers to another file, which is not allowed")
    with _damage_as_format_error(path):
        result = torch.empty(dataset.shape, dtype=torch.float32)
        dataset.read_direct(result.numpy())  # directly into the tensor: no second copy, and any precision is converted
    return result


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[h5py.File]:
    if not is_hdf5(path):
        raise FormatError(path, "is not an HDF5 file")
    with _damage_as_format_error(path):
        file = h5py.File(path, "r")
    with file:
        yield file


@contextlib.contextmanager
def _damage_as_format_error(path: Path) -> Iterator[None]:
    try:
        yield
    except _DAMAGE as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise FormatError(path, f"is a truncated or damaged HDF5 file ({reason})") from error
