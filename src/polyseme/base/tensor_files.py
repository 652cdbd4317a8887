"""Tensors in safetensors files, and from there into modules: strict, and with errors that name the file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import wrap_os_errors

_CHECKED = 1 << 24  # numbers of a large tensor that are checked together


def write_tensors(
    tensors: Mapping[str, Tensor], path: Path, dtype: torch.dtype = torch.float32, exact: Mapping[str, Tensor] | None = None
) -> None:
    """Write tensors as `dtype`, those of `exact` as float32, whole numbers as they are; what is not finite is an error."""
    converted = {
        name: value.detach().to("cpu", dtype if value.is_floating_point() else value.dtype) for name, value in tensors.items()
    }
    converted |= {name: value.detach().to("cpu", torch.float32) for name, value in (exact or {}).items()}
    for name, value in converted.items():
        if not all(bool(torch.isfinite(block).all()) for block in value.reshape(-1).split(_CHECKED)):
            why = "numbers too large for fp16: save it in fp32" if dtype == torch.float16 else "numbers that are not finite"
            raise PolysemeError(f"{name} has {why}")
    write_unchanged(converted, path)


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
    """Read the tensors of a safetensors file as float32, and whole numbers as they are."""
    try:
        with wrap_os_errors(path, "read"):
            path.open("rb").close()  # safetensors reports every file that it cannot open as missing
            return {name: value.float() if value.is_floating_point() else value for name, value in load_file(path).items()}
    except SafetensorError as error:
        raise FormatError(path, f"is a damaged safetensors file ({error})") from error


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
