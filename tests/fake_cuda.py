"""A fake GPU: tensors that report `cuda:0` and compute on the CPU. What a real GPU would refuse raises an error here.

So a machine without a GPU finds operations on tensors of two devices, GPU tensors read as if they were in memory, and types
that autocast to bfloat16 cannot combine. It counts operations and lists the lines that wait for the device. Not simulated:
Triton kernels (plain PyTorch runs instead), `torch.cuda` itself, and speed. cuDNN's LSTM returns what PyTorch makes of it
under autocast: float16, whatever autocast's own type is (aten/src/ATen/cudnn/AutocastRNN.cpp).
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

DEVICE, CPU = torch.device("cuda", 0), torch.device("cpu")
_aten = torch.ops.aten
_INDEX = {_aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default, _aten._index_put_impl_.default}
_READS = {_aten._local_scalar_dense.default, _aten.nonzero.default, _aten.masked_select.default, _aten.equal.default}
_RESHAPES = {_aten.squeeze_.dim, _aten.squeeze_.default, _aten.unsqueeze_.default, _aten.t_.default, _aten.transpose_.default}


class FakeCudaTensor(Tensor):
    """A tensor on the fake GPU; its data is in `held`."""

    held: Tensor
    device = property(lambda self: DEVICE)
    is_cuda = property(lambda self: True)
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, held: Tensor) -> FakeCudaTensor:
        made = Tensor._make_wrapper_subclass(
            cls, held.size(), strides=held.stride(), storage_offset=held.storage_offset(), dtype=held.dtype, device=CPU
        )
        made.held = held
        return made

    def cpu(self) -> Tensor:
        FakeCuda.now.wait("cpu()")
        return self.held.detach().clone()

    def tolist(self) -> Any:
        FakeCuda.now.wait("tolist()")
        return self.held.tolist()

    def to(self, *args: Any, **options: Any) -> Tensor:
        named = isinstance(args[0], str | torch.device) if args else False
        device = args[0] if named else options.pop("device", None)
        rest = args[1:] if named else args
        if device is not None and torch.device(device).type != "cuda":
            return self.cpu().to(*rest, **options)
        kind = [each for each in (*rest, options.get("dtype")) if isinstance(each, torch.dtype)]
        return super().to(kind[0]) if kind else self

    def pin_memory(self) -> Tensor:
        raise RuntimeError("cannot pin 'torch.cuda' tensor: only dense CPU tensors can be pinned")

    def numpy(self, *, force: bool = False) -> Any:
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return FakeCuda.now.run(func, args, dict(kwargs or {}))


class FakeCuda(TorchDispatchMode):
    """A mode in which `cuda:0` exists. `launches`: operations on it, by name; `waits`: lines that wait for it, and how."""

    now: FakeCuda

    def __init__(self) -> None:
        super().__init__()
        self._mode_key = torch._C._TorchDispatchModeKey.FAKE  # PyTorch then does not look for a driver
        self.launches, self.waits = Counter[str](), Counter[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.run(func, args, dict(kwargs or {}))

    def clear(self) -> None:
        """Reset the counts."""
        self.launches.clear()
        self.waits.clear()

    def wait(self, how: str) -> None:
        """Record that a line of the package waits for the device."""
        self.waits[f"{_line() or 'elsewhere'}: {how}"] += 1

    def run(self, func: Any, args: Any, options: dict[str, Any]) -> Any:
        """Run one operation of PyTorch."""
        if func is _aten.is_pinned.default:
            return False
        if func is _aten._pin_memory.default:
            return args[0].clone()
        tensors = list(_tensors((args, options)))
        here = any(isinstance(each, FakeCudaTensor) for each in tensors)
        goes = options.get("device") is not None and torch.device(options["device"]).type == "cuda"
        self._check(func, args, options, tensors if here else [], goes)
        if options.get("device") is not None:
            options["device"] = CPU
        options |= {name: False for name in ("pin_memory", "non_blocking") if name in options}
        if (here or goes) and not _free(func):
            self.launches[str(func)] += 1
        plain, named = _changed(_held, (args, options))
        found = func(*plain, **named)
        if func not in _RESHAPES and _in_place(func):
            return args[0]
        return _changed(_fake, found) if here or goes else found

    def _check(self, func: Any, args: Any, options: dict[str, Any], tensors: list[Tensor], goes: bool) -> None:
        others = [each for each in tensors if not isinstance(each, FakeCudaTensor) and each.dim()]
        if func is _aten.copy_.default and others:
            self.wait("copy_ between devices")
        elif func in _INDEX and tensors:
            if not isinstance(args[0], FakeCudaTensor):
                raise RuntimeError("indices should be either on cpu or on the same device as the indexed tensor (cpu)")
            if others or any(each is not None and each.dtype == torch.bool for each in args[1]):
                self.wait("index by a mask, or from the CPU")
        elif others and _line():  # gradients of PyTorch create zeros on the CPU
            raise RuntimeError(f"{func}: expected all tensors to be on the same device, found cuda:0 and cpu")
        if func in _READS and tensors:
            self.wait(str(func))
        if func is _aten._to_copy.default and goes and not tensors and not options.get("non_blocking"):
            self.wait("to the GPU, not pinned")


def _line() -> str | None:
    """Return the current line of the package; None: PyTorch computes gradients."""
    frame = sys._getframe(1)
    while frame is not None:
        _, found, path = frame.f_code.co_filename.rpartition("/polyseme/")
        if found:
            return f"{path}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def _tensors(value: Any) -> Iterator[Tensor]:
    """Those in an operation's arguments: many times faster than PyTorch's own trees."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _tensors(each)


def _changed(change: Callable[[Any], Any], value: Any) -> Any:
    """Arguments or results of an operation with every single value changed."""
    if isinstance(value, dict):
        return {name: _changed(change, each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return type(value)([_changed(change, each) for each in value])
    return change(value)


def _held(value: Any) -> Any:
    return value.held if isinstance(value, FakeCudaTensor) else value


def _fake(value: Any) -> Any:
    return FakeCudaTensor(value) if isinstance(value, Tensor) and not isinstance(value, FakeCudaTensor) else value


def _in_place(func: Any) -> bool:
    given, found = func._schema.arguments, func._schema.returns
    sides = [each.alias_info for each in (*given[:1], *found[:1])]
    return len(sides) == 2 and all(each is not None and each.is_write for each in sides)


def _free(func: Any) -> bool:
    """Whether it launches nothing: views, and uninitialized memory."""
    views = any(each.alias_info is not None and not each.alias_info.is_write for each in func._schema.returns)
    return views or func in _RESHAPES or "empty" in str(func) or func in (_aten.detach.default, _aten._unsafe_view.default)


class _CudnnLstm(torch.autograd.Function):
    """One launch that is opaque to autograd, like cuDNN's."""

    @staticmethod
    def forward(ctx: Any, run: Callable[[list[Tensor]], tuple[Tensor, ...]], *tensors: Any) -> tuple[Tensor, ...]:
        halves = torch.is_autocast_enabled("cpu")
        with _disable_current_modes(), torch.enable_grad(), torch.amp.autocast("cpu", enabled=False):
            ctx.given = [each.held.detach().float().requires_grad_() for each in tensors]
            ctx.found = run(ctx.given)
        FakeCuda.now.launches["cudnn_rnn"] += 1
        return tuple(_fake(each.detach().to(torch.float16 if halves else torch.float32, copy=True)) for each in ctx.found)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
        FakeCuda.now.launches["cudnn_rnn_backward"] += 1
        with _disable_current_modes():
            known = [_held(each).float() for each in grads]
            return None, *map(_fake, torch.autograd.grad(ctx.found, ctx.given, known))


def _lstm(plain: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.lstm`, which is cuDNN's for GPU tensors."""

    def lstm(words: Tensor, *rest: Any) -> Any:
        if not isinstance(words, FakeCudaTensor):
            return plain(words, *rest)
        sizes, (state, weights, *more) = ([rest[0]], rest[1:]) if isinstance(rest[0], Tensor) else ([], rest)
        assert all(isinstance(each, FakeCudaTensor) for each in (*state, *weights)), "a state or weight is on the CPU"
        assert not any(isinstance(each, FakeCudaTensor) for each in sizes), "batch sizes belong on the CPU"
        kinds = {each.dtype for each in (words, *state, *weights)}
        if len(kinds) > 1 and not torch.is_autocast_enabled("cpu"):
            raise RuntimeError(f"an LSTM got {kinds}")
        return _CudnnLstm.apply(lambda each: plain(each[0], *sizes, each[1:3], each[3:], *more), words, *state, *weights)

    return lstm


class _Autocast(torch.amp.autocast):
    """Autocast for the GPU, run as that of the CPU."""

    def __init__(self, device_type: str, *args: Any, **options: Any) -> None:
        super().__init__("cpu" if device_type == "cuda" else device_type, *args, **options)


@contextlib.contextmanager
def fake_cuda() -> Iterator[FakeCuda]:
    """A block in which `cuda:0` exists and Triton does not."""
    find = importlib.util.find_spec
    FakeCuda.now = mode = FakeCuda()

    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(torch._VF, "lstm", _lstm(torch._VF.lstm), create=True))
        stack.enter_context(mock.patch.object(torch, "autocast", _Autocast))
        stack.enter_context(
            mock.patch.object(importlib.util, "find_spec", lambda name: None if name == "triton" else find(name))
        )
        for switch in (torch.__future__.set_overwrite_module_params_on_conversion, torch._C._set_only_lift_cpu_tensors):
            switch(True)
            stack.callback(switch, False)
        stack.enter_context(mode)
        yield mode
