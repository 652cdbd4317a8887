"""PyTorch files that hold objects besides tensors, read without running their code.

`torch.load(weights_only=True)` rejects such files (`pickles` uses it for all others), and it does not know the newer pickle
protocols, in which some are written. Here a pickle may name dictionaries, tensors and the classes that the caller lists, and
nothing else; an object becomes a plain record of its attributes. The order is: scan the pickle, which builds nothing; build
it, with tensors as mere descriptions; compare what they declare with what the file holds; only then read numbers.

    zip (torch 1.6 and later)      NAME/data.pkl, NAME/data/0, NAME/data/1, ...
    before                         five pickles one after another, then each storage: its length and its numbers
"""

from __future__ import annotations

import io
import math
import os
import pickle
import pickletools
import struct
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from polyseme.base.errors import FormatError
from polyseme.base.files import starts_with, wrap_os_errors

_STORAGES = {"FloatStorage": torch.float32, "HalfStorage": torch.float16, "DoubleStorage": torch.float64}
_STORAGES |= {"LongStorage": torch.int64, "BFloat16Storage": torch.bfloat16}
_BUILDERS = ("_rebuild_tensor_v2", "_rebuild_parameter")
_FORBIDDEN = {"EXT1", "EXT2", "EXT4", "INST", "OBJ", "NEXT_BUFFER", "READONLY_BUFFER"}
_MAX_PICKLE = 1 << 26  # bytes: without the numbers, models have far less
_SHARED = 4  # tensors may share a storage, but not so many
_MAGIC, _VERSION = 0x1950A86A20F9469CFC6C, 1001  # what old files begin with
_DAMAGE: tuple[type[Exception], ...] = (
    pickle.UnpicklingError,
    zipfile.BadZipFile,
    EOFError,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
)
_DAMAGE += (struct.error, zlib.error, OverflowError, RuntimeError)


class Record:
    """Stands for an object of a listed class: its attributes, none of its code."""


@dataclass(frozen=True)
class _Storage:
    key: str
    dtype: torch.dtype
    numel: int

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.itemsize


@dataclass(frozen=True)
class _Declared:
    """What a file says of a tensor."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    def check(self) -> None:
        values = (self.offset, *self.shape, *self.stride)
        if not all(isinstance(value, int) and value >= 0 for value in values) or len(self.shape) != len(self.stride):
            raise ValueError(f"a tensor declares shape {self.shape}, strides {self.stride} and offset {self.offset}")
        last = self.offset + sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))
        count = math.prod(self.shape)
        if count > self.storage.numel or (count and last >= self.storage.numel):
            raise ValueError(f"a tensor of shape {self.shape} has a storage of {self.storage.numel} numbers")


def read_objects(path: Path, classes: Collection[tuple[str, str]]) -> Any:
    """Read what torch.save wrote: dictionaries, lists, plain values, tensors, and a `Record` for each object of `classes`.

    A class is a module and a name. Anything else in the file is an error, and nothing of it is executed.
    """
    try:
        with wrap_os_errors(path, "read"), path.open("rb") as file:
            return _read_zip(file, classes) if starts_with(path, b"PK") else _read_old(file, classes)
    except _DAMAGE as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise FormatError(path, f"cannot be read as a PyTorch file ({reason})") from error


def names_class(path: Path, module: str, name: str) -> bool:
    """Whether the pickle of a torch file mentions a class; nothing is built to see it."""
    with wrap_os_errors(path, "read"), path.open("rb") as file:
        if not starts_with(path, b"PK"):
            head = file.read(1 << 20)
        else:
            with zipfile.ZipFile(file) as entries:
                found = [entry for entry in entries.infolist() if entry.filename.endswith("/data.pkl")]
                head = entries.open(found[0]).read(1 << 20) if found else b""
    return module.encode() in head and name.encode() in head


def _read_zip(file: BinaryIO, classes: Collection[tuple[str, str]]) -> Any:
    with zipfile.ZipFile(file) as entries:
        found = [each for each in entries.infolist() if each.filename.endswith("/data.pkl")]
        if len(found) != 1:
            raise ValueError(f"it has {len(found)} files data.pkl; expected 1")
        (head,) = found
        folder = head.filename.removesuffix("data.pkl")
        if f"{folder}byteorder" in entries.namelist() and entries.read(f"{folder}byteorder") != b"little":
            raise ValueError("its numbers are big-endian")
        if head.file_size > _MAX_PICKLE:
            raise ValueError(f"its pickle has {head.file_size:,} bytes; allowed: {_MAX_PICKLE:,}")
        with entries.open(head) as stream:
            unpickler = _Unpickler(_scanned(stream.read()), classes)
            value = unpickler.load()
        for storage in unpickler.storages.values():
            entry = entries.getinfo(f"{folder}data/{storage.key}")
            if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != storage.nbytes:
                raise ValueError(f"storage {storage.key} has {entry.file_size:,} bytes; its pickle says {storage.nbytes:,}")
        return _with_numbers(value, lambda storage: entries.read(f"{folder}data/{storage.key}"))


def _read_old(file: BinaryIO, classes: Collection[tuple[str, str]]) -> Any:
    def value() -> Any:
        return _Unpickler(_scanned(_one_pickle(file)), ()).load()

    if value() != _MAGIC or value() != _VERSION or not value().get("little_endian"):
        raise ValueError("it does not begin as such files do, or its numbers are big-endian")
    unpickler = _Unpickler(_scanned(_one_pickle(file)), classes)
    found, keys = unpickler.load(), value()
    if sorted(keys) != sorted(unpickler.storages):
        raise ValueError("its storages are not those that its pickle names")
    numbers: dict[str, bytes] = {}
    for key in keys:
        storage = unpickler.storages[key]
        (count,) = struct.unpack("<q", file.read(8))
        if storage.nbytes > os.fstat(file.fileno()).st_size - file.tell():
            raise EOFError("it is cut off")
        if count != storage.numel:
            raise ValueError(f"storage {key} has {count:,} numbers; its pickle says {storage.numel:,}")
        numbers[key] = file.read(storage.nbytes)
    return _with_numbers(found, lambda storage: numbers[storage.key])


def _one_pickle(file: BinaryIO) -> bytes:
    """The bytes up to the end of the next pickle."""
    begin = file.tell()
    for _, _, position in pickletools.genops(file):
        if position is not None and position - begin > _MAX_PICKLE:
            raise ValueError(f"its pickle has more than {_MAX_PICKLE:,} bytes")
    end = file.tell()
    file.seek(begin)
    return file.read(end - begin)


def _scanned(content: bytes) -> BinaryIO:
    """The bytes of a pickle as a file, if all of its operations are allowed."""
    for count, (code, argument, _) in enumerate(pickletools.genops(content)):
        if code.name in _FORBIDDEN:
            raise ValueError(f"it has the pickle operation {code.name}")
        if code.name in ("PUT", "BINPUT", "LONG_BINPUT") and int(argument or 0) > count:
            raise ValueError("its pickle asks for more memory than it has operations")  # the reader would allocate it
    return io.BytesIO(content)


class _Unpickler(pickle.Unpickler):
    """Builds dictionaries, lists, plain values, descriptions of tensors, and records."""

    def __init__(self, file: BinaryIO, classes: Collection[tuple[str, str]]) -> None:
        super().__init__(file, encoding="latin1")
        self.storages: dict[str, _Storage] = {}
        # made anew for each file: a pickle may set attributes of what it names
        self._allowed: dict[tuple[str, str], Any] = {each: type(each[1], (Record,), {}) for each in classes}
        self._allowed |= {("torch", name): dtype for name, dtype in _STORAGES.items()}
        self._allowed |= {("torch._utils", name): _builder(name) for name in _BUILDERS}
        self._allowed["collections", "OrderedDict"] = OrderedDict
        self._allowed["collections", "defaultdict"] = lambda *_: {}  # its items follow
        # what missing items of such a dictionary would be: a number, in the words of both protocols
        self._allowed |= dict.fromkeys([("builtins", "int"), ("__builtin__", "int"), ("__builtin__", "long")])
        self._allowed["_codecs", "encode"] = _latin_bytes()

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._allowed:
            raise pickle.UnpicklingError(f"it has an object of {module}.{name}, which was rejected; nothing was executed")
        return self._allowed[module, name]

    def persistent_load(self, given: Any) -> _Storage:
        kind, dtype, key, _, numel, *_ = given
        if kind != "storage" or not isinstance(dtype, torch.dtype) or not isinstance(numel, int) or numel < 0:
            raise ValueError("it has a storage of an unknown kind")
        storage = _Storage(str(key), dtype, numel)
        if self.storages.setdefault(storage.key, storage) != storage:
            raise ValueError(f"it describes storage {storage.key} in two ways")
        return storage


def _builder(name: str) -> Callable[..., Any]:
    def tensor(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> _Declared:
        if not isinstance(storage, _Storage):
            raise ValueError("it has a tensor without a storage")
        declared = _Declared(storage, offset, tuple(shape), tuple(stride))
        declared.check()
        return declared

    def parameter(data: Any, *_: Any) -> Any:
        return data

    return tensor if name == "_rebuild_tensor_v2" else parameter


def _latin_bytes() -> Callable[..., bytes]:
    def encode(text: Any, encoding: Any) -> bytes:
        if not isinstance(text, str) or encoding != "latin1":
            raise ValueError(f"it has text in the encoding {encoding!r}")
        return text.encode("latin1")

    return encode


def _with_numbers(value: Any, read: Callable[[_Storage], bytes]) -> Any:
    """Replace the descriptions in dictionaries by tensors, each storage read once and each dictionary filled once."""
    numbers: dict[_Storage, Tensor] = {}
    done: dict[int, dict[Any, Any]] = {}
    copied = 0

    def filled(each: Any) -> Any:
        if isinstance(each, dict):
            if id(each) not in done:
                done[id(each)] = {name: filled(inner) for name, inner in each.items()}
            return done[id(each)]
        return tensor(each) if isinstance(each, _Declared) else each

    def tensor(declared: _Declared) -> Tensor:
        nonlocal copied
        if declared.storage not in numbers:
            content = bytearray(read(declared.storage))
            numbers[declared.storage] = torch.frombuffer(content, dtype=declared.storage.dtype) if content else torch.zeros(0)
        copied += math.prod(declared.shape)
        if copied > _SHARED * sum(each.numel for each in numbers):
            raise ValueError("its tensors are far larger than its storages")
        return numbers[declared.storage].as_strided(declared.shape, declared.stride, declared.offset).clone()

    return filled(value)
