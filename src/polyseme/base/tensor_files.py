"""Tensors in safetensors files, and from there into modules: strict, and with errors that name the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import wrap_os_errors
from polyseme.base.quantization import Quantized, fits, quantize, worth_quantizing

SCALE = ".scale"
"""What the scales of an int8 tensor are called, after its name."""
_CHECKED = 1 << 24  # numbers of a large tensor that are checked together


def write_tensors(
    tensors: Mapping[str, Tensor], path: Path, dtype: torch.dtype = torch.float32, exact: Mapping[str, Tensor] | None = None
) -> None:
    """Write tensors as `dtype`, those of `exact` as float32, whole numbers as they are; what is not finite is an error.

    With `torch.int8`, large matrices are written as whole numbers and scales (`NAME.scale`), all else as float32.
    """
    converted: dict[str, Tensor] = {}
    for name, value in tensors.items():
        if dtype == torch.int8 and worth_quantizing(value):
            _check_finite(name, value.detach(), dtype)
            converted[name], converted[name + SCALE] = quantize(value)
        else:
            converted[name] = value.detach().to("cpu", _stored_type(value, dtype))
    converted |= {name: value.detach().to("cpu", torch.float32) for name, value in (exact or {}).items()}
    for name, value in converted.items():
        _check_finite(name, value, dtype)
    write_unchanged(converted, path)


def as_stored(value: Tensor, dtype: torch.dtype) -> Tensor:
    """A tensor as it is read after `write_tensors` with this type."""
    if dtype == torch.int8 and worth_quantizing(value):
        return quantize(value).weights().to(value.device)
    stored = value.detach().to(_stored_type(value, dtype))
    return stored.float() if value.is_floating_point() else stored


def _stored_type(value: Tensor, dtype: torch.dtype) -> torch.dtype:
    if not value.is_floating_point():
        return value.dtype
    return torch.float32 if dtype == torch.int8 else dtype


def _check_finite(name: str, value: Tensor, dtype: torch.dtype) -> None:
    if value.is_floating_point() and not all(bool(torch.isfinite(block).all()) for block in value.reshape(-1).split(_CHECKED)):
        why = "numbers too large for fp16: save it in fp32" if dtype == torch.float16 else "numbers that are not finite"
        raise PolysemeError(f"{name} has {why}")


def write_unchanged(tensors: Mapping[str, Tensor], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors in their own types; those that share memory, which safetensors refuses, are copied."""
    separate: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, value in tensors.items():
        value = value.detach().cpu()
        alone = value.untyped_storage().nbytes() == value.nbytes and value.data_ptr() not in seen
        separate[name] = value if alone and value.is_contiguous() else value.contiguous().clone()
        seen.add(value.data_ptr())
    try:
        save_file(separate, path, metadata)
    except SafetensorError as error:  # raised for a full disk, too
        reason = str(error).removeprefix("Error while serializing: I/O error: ")
        raise PolysemeError(f"cannot write {path}: {reason}") from error
    path.chmod(0o644)  # safetensors lets only the owner read


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read the tensors of a safetensors file as float32, whatever floats or scaled int8 it holds; other numbers as they are."""
    try:
        with wrap_os_errors(path, "read"):
            path.open("rb").close()  # safetensors reports every file that it cannot open as missing
            with safe_open(path, framework="pt") as file:
                scaled = _scaled(file, path)
                scales = {name + SCALE for name in scaled}
                return {
                    name: _dequantized(file, name, path) if name in scaled else _as_float(file.get_tensor(name))
                    for name in file.keys()  # noqa: SIM118 - the file is no dictionary
                    if name not in scales
                }
    except SafetensorError as error:
        raise FormatError(path, f"is a damaged safetensors file ({error})") from error


def _scaled(file: Any, path: Path) -> set[str]:
    """The names of int8 tensors, whose scales are checked by what the file declares, before any tensor is read."""
    declared = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118
    names = {name for name, part in declared.items() if part.get_dtype() == "I8"}
    for name in sorted(names):
        scale = declared.get(name + SCALE)
        if scale is None:
            raise FormatError(path, f"has {name} in int8 without its scales ({name}{SCALE})")
        shape, given = declared[name].get_shape(), scale.get_shape()
        if scale.get_dtype() != "F32" or not fits(shape, given):
            what = f"has scales of type {scale.get_dtype()} and shape {tuple(given)} for {name} of shape {tuple(shape)}"
            raise FormatError(path, f"{what}; expected F32, one for each row or column")
    return names


def _dequantized(file: Any, name: str, path: Path) -> Tensor:
    found = Quantized(file.get_tensor(name), file.get_tensor(name + SCALE))
    if not bool(torch.isfinite(found.scale).all()):
        raise FormatError(path, f"has scales of {name} that are not finite")
    return found.weights()


def _as_float(value: Tensor) -> Tensor:
    return value.float() if value.is_floating_point() else value


def load_weights(module: nn.Module, weights: Mapping[str, Tensor], where: str | Path) -> None:
    """Load tensors into a module; a missing or unknown tensor or a wrong shape is an error."""
    expected = module.state_dict()
    problems = [f"lacks {name}" for name in expected if name not in weights]
    problems += [f"has an unknown tensor {name}" for name in weights if name not in expected]
    problems += [
        f"{name} has shape {tuple(weights[name].shape)}, expected {tuple(value.shape)}"
        for name, value in expected.items()
        if name in weights and weights[name].shape != value.shape
    ]
    if problems:
        more = f" (and {len(problems) - 3} more problems)" if len(problems) > 3 else ""
        raise FormatError(where, "; ".join(problems[:3]) + more)
    module.load_state_dict(weights, assign=True)
    for parameter in module.parameters():
        parameter.requires_grad_(True)
