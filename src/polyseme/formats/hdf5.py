"""HDF5 files of weights: what is in them, and their numbers as float32 tensors.

Every way in which a cut or damaged file can fail (when it is opened, listed or read) becomes one `FormatError` that
names the file. Datasets whose numbers are kept in other files are refused: a weights file must not make us read
others.
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

# h5py tells damage in many voices, depending on which structure of the file is hit
_DAMAGE = (OSError, RuntimeError, KeyError, ValueError, TypeError, MemoryError)


def is_hdf5(path: Path) -> bool:
    """Whether a file is HDF5, told by its first bytes."""
    return starts_with(path, HDF5)


def shapes(path: Path) -> dict[str, Shape]:
    """The shape of every dataset of a file, by its full name; links to elsewhere are not followed."""
    found: dict[str, Shape] = {}

    def keep(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = tuple(item.shape or ())

    with _opened(path) as file, _damage_as_format_error(path):
        file.visititems(keep)
    return found


def top(path: Path, *names: str) -> tuple[list[str], int]:
    """Which of these names a file has, and how many entries at its top: quick also for files of a million datasets."""
    with _opened(path) as file, _damage_as_format_error(path):
        return [name for name in names if name in file], len(file)


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Callable[[str], Tensor]]:
    """A function from the name of a dataset to its numbers, while the file is open."""
    with _opened(path) as file:
        yield lambda name: _tensor(file, name, path)


def in_memory() -> h5py.File:
    """A new file that never touches the disk: HDF5 crashes where a disk is full, plain bytes do not."""
    return h5py.File("in-memory", "w", driver="core", backing_store=False, block_size=1 << 20)


def write(path: Path, arrays: Mapping[str, Tensor]) -> None:
    """Write datasets by their full names as float32, the file whole or not at all."""
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
        raise FormatError(path, f"dataset {name} keeps its numbers in another file; refused")
    with _damage_as_format_error(path):
        result = torch.empty(dataset.shape, dtype=torch.float32)
        dataset.read_direct(result.numpy())  # straight into the tensor: no second copy, and any precision is converted
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
        raise FormatError(path, f"is a cut or damaged HDF5 file ({reason})") from error
