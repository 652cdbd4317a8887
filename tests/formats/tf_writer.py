"""A writer of TensorFlow checkpoints, from the description of the format: nothing here imports polyseme or TensorFlow.

Keys share prefixes, blocks are small, and data may be in several shards, so that all of the reader is used.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np

TYPES = {"float32": 1, "float64": 2, "int32": 3, "int64": 9, "float16": 19}


def _bits(state: int) -> int:
    for _ in range(8):
        state = state >> 1 ^ (0x82F63B78 if state & 1 else 0)
    return state


TABLE = [_bits(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """Byte by byte."""
    state = 0xFFFFFFFF
    for byte in data:
        state = state >> 8 ^ TABLE[(state ^ byte) & 255]
    return state ^ 0xFFFFFFFF


def masked(data: bytes) -> int:
    checksum = crc32c(data)
    return ((checksum >> 15 | checksum << 17) + 0xA282EAD8) & 0xFFFFFFFF


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


def field(number: int, value: int | bytes, *, fixed: bool = False) -> bytes:
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    return varint(number << 3 | 5) + struct.pack("<I", value) if fixed else varint(number << 3) + varint(value)


def entry(kind: int, shape: tuple[int, ...], shard: int, offset: int, size: int, checksum: int) -> bytes:
    dims = b"".join(field(2, field(1, each)) for each in shape)
    return b"".join(
        [field(1, kind), field(2, dims), field(3, shard), field(4, offset), field(5, size), field(6, checksum, fixed=True)]
    )


def write_table(path: Path, items: dict[bytes, bytes], *, per_block: int = 5) -> None:
    keys, out, index = sorted(items), bytearray(), {}
    for begin in range(0, len(keys), per_block):
        some = keys[begin : begin + per_block]
        index[some[-1]] = _append(out, _block({key: items[key] for key in some}))
    meta = _append(out, _block({}))
    footer = meta + _append(out, _block(index))
    path.write_bytes(bytes(out) + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57))


def _block(items: dict[bytes, bytes]) -> bytes:
    out, last, restarts = bytearray(), b"", [0]
    for number, (key, value) in enumerate(items.items()):
        shared = next((n for n, (a, b) in enumerate(zip(key, last, strict=False)) if a != b), min(len(key), len(last)))
        if number % 3 == 0:  # a place where the key is complete
            shared = 0
            restarts += [len(out)] if number else []
        out += varint(shared) + varint(len(key) - shared) + varint(len(value)) + key[shared:] + value
        last = key
    return bytes(out) + struct.pack(f"<{len(restarts) + 1}I", *restarts, len(restarts))


def _append(out: bytearray, block: bytes) -> bytes:
    handle = varint(len(out)) + varint(len(block))
    out += block + b"\0" + struct.pack("<I", masked(block + b"\0"))
    return handle


def write_checkpoint(prefix: Path, arrays: dict[str, np.ndarray], *, shards: int = 1) -> Path:
    """`<prefix>.index` and its data files; the path of the index."""
    data, items = [bytearray() for _ in range(shards)], {b"": field(1, shards)}
    for number, (name, array) in enumerate(sorted(arrays.items())):
        shard, content = number % shards, np.ascontiguousarray(array).tobytes()
        kind = TYPES[str(array.dtype)]
        items[name.encode()] = entry(kind, array.shape, shard, len(data[shard]), len(content), masked(content))
        data[shard] += content
    for shard, content in enumerate(data):
        prefix.with_name(f"{prefix.name}.data-{shard:05d}-of-{shards:05d}").write_bytes(bytes(content))
    path = prefix.with_name(f"{prefix.name}.index")
    write_table(path, items)
    return path


def training_names(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The variables of a bilm-tf training run for the datasets of its HDF5 file, with what the optimizer keeps."""
    found = {f"lm/{_variable(name)}": array for name, array in arrays.items()}
    found |= {f"{name}/Adagrad": np.full_like(array, 0.1) for name, array in found.items()}
    return found | {"global_step": np.array(12, dtype=np.int32), "train_perplexity": np.array(3.5, dtype=np.float32)}


def hub_names(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The variables of TensorFlow Hub's module: those of an inference graph, and the mix of layers."""
    found = {f"bilm/{_hub_variable(name)}": array for name, array in arrays.items()}
    found["bilm/char_embed"] = np.pad(found["bilm/char_embed"], ((1, 0), (0, 0)))
    mix = {"aggregation/weights": np.array([0.1, 0.3, -0.4], np.float32), "aggregation/scaling": np.array(1.5, np.float32)}
    return found | mix


def _variable(name: str) -> str:
    name = re.sub(r"/RNN/MultiRNNCell/Cell(\d+)/LSTMCell/", r"/rnn/multi_rnn_cell/cell_\1/lstm_cell/", name)
    return _leaf(name.replace("/RNN/LSTMCell/", "/rnn/lstm_cell/"))


def _hub_variable(name: str) -> str:
    return _leaf(name.replace("/LSTMCell/", "/rnn/lstm_cell/"))


def _leaf(name: str) -> str:
    for ours, theirs in (("/W_P_0", "/projection/kernel"), ("/W_0", "/kernel"), ("/B", "/bias")):
        if "lstm_cell" in name and name.endswith(ours):
            return name.removesuffix(ours) + theirs
    return name
