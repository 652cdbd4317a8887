"""PyTorch files of tensors, read without executing code.

Such files are pickles, and a pickle is a program. `torch.load(weights_only=True)` allows only the operations that build
tensors; a file with any other operation is rejected.
"""

from __future__ import annotations

import pickle
import warnings
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from polyseme.base.errors import FormatError
from polyseme.base.files import starts_with, wrap_os_errors

_OLD = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # a number that files of torch before 1.6 begin with
# torch raises many errors for damage, depending on where it is
_DAMAGE: tuple[type[Exception], ...] = (pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, RuntimeError, OSError)
_DAMAGE += (EOFError, LookupError, ValueError, TypeError, AttributeError)


def is_torch_file(path: Path) -> bool:
    """Whether a file was written by torch.save: a zip with data.pkl, or the older form."""
    if any(starts_with(path, head + _OLD) for head in (b"\x80\x02", b"\x80\x04\x95\x0d" + bytes(7))):  # protocols 2 and 4
        return True
    if not starts_with(path, b"PK") or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as entries:
        return any(name.endswith("/data.pkl") for name in entries.namelist())


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a state dict, by name, as float32."""
    with wrap_os_errors(path, "read"):
        path.open("rb").close()  # report an unreadable file apart from a damaged one
    try:
        _check_sums(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's advice on pickles is not for our users
            state = torch.load(path, map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise FormatError(path, _reason(error)) from error
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise FormatError(path, f"has a {type(state).__name__}; expected a dictionary of tensors")
    return {str(name): value.detach().float() for name, value in state.items()}


def _check_sums(path: Path) -> None:
    """Verify the checksums of a zip file, which torch does not: a flipped bit would be another model."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as entries:
            damaged = entries.testzip()
        if damaged is not None:
            raise ValueError(f"wrong checksum of {damaged}")


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, pickle.UnpicklingError) and text.startswith("Weights only load failed"):
        return "has code or objects besides tensors: it was rejected, and nothing in it was executed"
    return f"is a truncated or damaged PyTorch file ({text.strip().splitlines()[0] if text.strip() else type(error).__name__})"
