"""The table of an n-gram model in a safetensors file.

fp32, fp16   ORDER.keys (int64), ORDER.log_probs, ORDER.backoffs: the arrays of a `Level`, 12 to 16 bytes an n-gram.
int8         ORDER.words        the last word of each n-gram, uint16 or int32
             ORDER.tree         for each n-gram of the order below a 1 per n-gram that it begins, and a 0: packed bits
             ORDER.log_probs    numbers (uint8) in ORDER.log_probs.values, the 256 values with the least squared error
             ORDER.backoffs     likewise, only for n-grams that are a context of others; the highest order has none

The second form takes about 3.5 bytes an n-gram. Its probabilities after a context add up to 1 only nearly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from polyseme.base.errors import FormatError
from polyseme.base.files import wrap_os_errors
from polyseme.encoders.ngram_table import Level, NgramTable

_CODES, _ROUNDS = 256, 50
Arrays = dict[str, NDArray[Any]]


def write_table(table: NgramTable, path: Path, dtype: torch.dtype) -> None:
    """Write the n-grams; `dtype` is float32, float16 or int8."""
    arrays = _small(table) if dtype == torch.int8 else _plain(table, np.float16 if dtype == torch.float16 else np.float32)
    with wrap_os_errors(path, "write"):
        save_file(arrays, path)
        path.chmod(0o644)


def read_table(path: Path, order: int, size: int) -> NgramTable:
    """Read the n-grams of a model of this order and size of vocabulary; what does not fit is an error."""
    try:
        with wrap_os_errors(path, "read"):
            path.open("rb").close()  # safetensors reports every file that it cannot open as missing
            arrays = load_file(path)
    except SafetensorError as error:
        raise FormatError(path, f"is a damaged safetensors file ({error})") from error
    table = NgramTable(
        size, _read_small(arrays, order, size, path) if "1.log_probs.values" in arrays else _read_plain(arrays, order, path)
    )
    if problems := table.problems():
        raise FormatError(path, "; ".join(problems))
    return table


def _plain(table: NgramTable, number: type[np.floating]) -> Arrays:
    arrays: Arrays = {}
    for order, level in enumerate(table.levels, start=1):
        arrays[f"{order}.keys"] = np.ascontiguousarray(level.keys, dtype=np.int64)
        arrays[f"{order}.log_probs"] = np.ascontiguousarray(level.log_probs, dtype=number)
        arrays[f"{order}.backoffs"] = np.ascontiguousarray(level.backoffs, dtype=number)
    return arrays


def _read_plain(arrays: Arrays, order: int, path: Path) -> list[Level]:
    names = [f"{n}.{name}" for n in range(1, order + 1) for name in ("keys", "log_probs", "backoffs")]
    _check_names(arrays, names, path)
    for name, array in arrays.items():
        if array.ndim != 1 or (array.dtype != np.int64) is name.endswith(".keys"):
            raise FormatError(path, f"has {name} of type {array.dtype} and shape {array.shape}; expected one row of numbers")
    found: list[NDArray[Any]] = [
        arrays[name] if name.endswith(".keys") else arrays[name].astype(np.float32, copy=False) for name in names
    ]
    return [Level(*found[begin : begin + 3]) for begin in range(0, len(found), 3)]


# ---- eight bits


def _small(table: NgramTable) -> Arrays:
    arrays: Arrays = {}
    word = np.uint16 if table.size < 1 << 16 else np.int32
    for order, level in enumerate(table.levels, start=1):
        if order > 1:
            contexts, words = np.divmod(level.keys, table.size)
            arrays[f"{order}.words"] = words.astype(word)
            arrays[f"{order}.tree"] = _tree(contexts, len(table.levels[order - 2]))
        numbers = {"log_probs": level.log_probs}
        if order < table.order:
            numbers["backoffs"] = level.backoffs[_stored_backoffs(level, _parents(table.levels[order], len(level), table.size))]
        for name, values in numbers.items():
            arrays[f"{order}.{name}"], arrays[f"{order}.{name}.values"] = _encode(values.astype(np.float32))
    return arrays


def _stored_backoffs(level: Level, parents: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which back-off weights are written: those of contexts, or all where a file of another program has more."""
    return parents if not level.backoffs[~parents].any() else np.ones(len(level), dtype=bool)


def _parents(above: Level, count: int, size: int) -> NDArray[np.bool_]:
    """Which n-grams are contexts of the order above, (count,)."""
    parents = np.zeros(count, dtype=bool)
    parents[above.keys // size] = True
    return parents


def _tree(contexts: NDArray[np.int64], count: int) -> NDArray[np.uint8]:
    """The contexts of sorted n-grams, (n,), each below `count`, in n + count bits.

    >>> np.unpackbits(_tree(np.array([0, 2, 2]), 3)).tolist()      # one, none, two
    [1, 0, 0, 1, 1, 0, 0, 0]
    """
    bits = np.zeros(len(contexts) + count, dtype=np.uint8)
    bits[contexts + np.arange(len(contexts))] = 1
    return np.packbits(bits)


def _read_small(arrays: Arrays, order: int, size: int, path: Path) -> list[Level]:
    names = [f"{n}.{name}" for n in range(1, order + 1) for name in _small_names(n, order)]
    _check_names(arrays, names, path)
    for name, array in arrays.items():
        kind = np.float32 if name.endswith(".values") else None if name.endswith(".words") else np.uint8
        if array.ndim != 1 or (array.dtype != kind if kind else array.dtype not in (np.uint16, np.int32)):
            raise FormatError(path, f"has {name} of type {array.dtype} and shape {array.shape}")
    levels: list[Level] = []
    for number in range(1, order + 1):
        keys = np.arange(size) if number == 1 else _keys(arrays, number, len(levels[-1]), size, path)
        log_probs = _decode(arrays, f"{number}.log_probs", path)
        if len(log_probs) != len(keys):
            raise FormatError(path, f"has {len(keys):,} {number}-grams and probabilities of {len(log_probs):,}")
        if levels:
            below = levels[-1]
            parents = _parents(Level(keys, log_probs, log_probs), len(below), size)
            levels[-1] = Level(below.keys, below.log_probs, _read_backoffs(arrays, number - 1, parents, path))
        levels.append(Level(keys, log_probs, np.zeros(len(keys), dtype=np.float32)))
    return levels


def _small_names(number: int, order: int) -> list[str]:
    tree = ["words", "tree"] if number > 1 else []
    backoffs = ["backoffs", "backoffs.values"] if number < order else []
    return [*tree, "log_probs", "log_probs.values", *backoffs]


def _keys(arrays: Arrays, order: int, below: int, size: int, path: Path) -> NDArray[np.int64]:
    words = arrays[f"{order}.words"].astype(np.int64)
    bits = np.unpackbits(arrays[f"{order}.tree"])
    if not 0 <= len(bits) - len(words) - below < 8 or bits.sum() != len(words) or (len(words) and words.max() >= size):
        raise FormatError(path, f"has {order}-grams that do not fit the order below or the vocabulary")
    ones = np.flatnonzero(bits)
    contexts = ones - np.arange(len(ones))
    if len(contexts) and contexts[-1] >= below:
        raise FormatError(path, f"has {order}-grams that do not fit the order below or the vocabulary")
    return contexts * size + words


def _read_backoffs(arrays: Arrays, order: int, parents: NDArray[np.bool_], path: Path) -> NDArray[np.float32]:
    values = _decode(arrays, f"{order}.backoffs", path)
    if len(values) == len(parents):
        return values
    if len(values) != parents.sum():
        raise FormatError(path, f"has {len(values):,} back-off weights of {order}-grams for {parents.sum():,} contexts")
    backoffs = np.zeros(len(parents), dtype=np.float32)
    backoffs[parents] = values
    return backoffs


def _encode(values: NDArray[np.float32]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Numbers as codes, (n,), of at most 256 values, found by Lloyd's algorithm (k-means in one dimension).

    >>> codes, table = _encode(np.array([3, 1, 3], dtype=np.float32))
    >>> codes.tolist(), table.tolist()
    ([1, 0, 1], [1.0, 3.0])
    """
    ordered = np.sort(values)
    centres: NDArray[Any] = np.unique(ordered)
    if len(centres) > _CODES:
        sums = np.append(0.0, np.cumsum(ordered, dtype=np.float64))
        places = np.linspace(0, 1, _CODES)
        centres = (np.quantile(ordered, places) + np.quantile(centres, places)) / 2  # between their density and their range
        for _ in range(_ROUNDS):
            edges = np.concatenate([[0], np.searchsorted(ordered, (centres[1:] + centres[:-1]) / 2), [len(ordered)]])
            sizes = np.diff(edges)
            centres = np.where(sizes > 0, np.diff(sums[edges]) / np.maximum(sizes, 1), centres)
    table = np.unique(centres.astype(np.float32))
    middles = (table[1:].astype(np.float64) + table[:-1]) / 2
    return np.searchsorted(middles, values).astype(np.uint8), table


def _decode(arrays: Arrays, name: str, path: Path) -> NDArray[np.float32]:
    codes, table = arrays[name], arrays[f"{name}.values"]
    if len(codes) and codes.max() >= len(table):
        raise FormatError(path, f"has numbers of {name} beyond its {len(table)} values")
    found: NDArray[np.float32] = table[codes]
    return found


def _check_names(arrays: Arrays, names: list[str], path: Path) -> None:
    if set(names) != set(arrays):
        raise FormatError(path, f"holds {sorted(arrays)}; expected {names}")
