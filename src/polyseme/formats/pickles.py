"""PyTorch files of tensors, read without ever running what is in them.

Such files are pickles, and a pickle is a program. `torch.load(weights_only=True)` knows the few steps that build
tensors and stops at any other; a file that holds one is refused as a whole.
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

_OLD = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # how torch before 1.6 began its files
# torch tells damage in many voices, depending on where its reader stumbles
_DAMAGE = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    zlib.error,
    RuntimeError,
    OSError,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
)


def is_torch_file(path: Path) -> bool:
    """Whether a file was written by torch.save: a zip that holds data.pkl, or the older form."""
    if starts_with(path, _OLD):
        return True
    if not starts_with(path, b"PK") or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as entries:
        return any(name.endswith("/data.pkl") for name in entries.namelist())


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a state dict, by name; numbers in other precisions become float32."""
    with wrap_os_errors(path, "read"):
        path.open("rb").close()  # a file that may not be read is told apart from one that cannot be understood
    try:
        _check_sums(path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's advice on pickles, which is not for our users
            state = torch.load(path, map_location="cpu", weights_only=True)
    except _DAMAGE as error:
        raise FormatError(path, _reason(error)) from error
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise FormatError(path, f"holds a {type(state).__name__} that is not a table of named tensors")
    return {str(name): value.detach().float() for name, value in state.items()}


def _check_sums(path: Path) -> None:
    """torch does not look at the checksums of its zip files; a flipped bit would be another model."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as entries:
            damaged = entries.testzip()
        if damaged is not None:
            raise ValueError(f"wrong checksum of {damaged}")


def _reason(error: Exception) -> str:
    text = str(error)
    if isinstance(error, pickle.UnpicklingError) and text.startswith("Weights only load failed"):
        return "holds code or objects besides tensors; it was refused, and nothing in it was executed"
    return f"is a cut or damaged PyTorch file ({text.strip().splitlines()[0] if text.strip() else type(error).__name__})"
