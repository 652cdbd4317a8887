"""CRC-32C, the checksum of TensorFlow's checkpoints, in NumPy: Python's own `zlib.crc32` has another polynomial.

A checksum depends on the bytes one after another, but it is linear. So the buffer is split into rows, whose checksums are
computed side by side, four bytes at a time, and neighbouring rows are joined: the checksum of the left one is moved past as
many zeros as the right one has bytes, and added.
"""

from __future__ import annotations

import functools

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]
_POLYNOMIAL = 0x82F63B78  # Castagnoli's, reflected
_ROW = 256  # bytes of a row
_CHUNK = 1 << 22  # bytes that are split into rows at a time


def crc32c(data: bytes | memoryview | NDArray[np.uint8]) -> int:
    """Return the CRC-32C of bytes.

    >>> hex(crc32c(b"123456789"))
    '0xe3069283'
    """
    array = np.frombuffer(data, dtype=np.uint8)
    state = 0xFFFFFFFF
    for begin in range(0, len(array), _CHUNK):
        state = _advanced(state, array[begin : begin + _CHUNK])
    return state ^ 0xFFFFFFFF


def masked(checksum: int) -> int:
    """The checksum as TensorFlow stores it: rotated, and moved by a constant."""
    return (((checksum >> 15) | (checksum << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def _advanced(state: int, data: NDArray[np.uint8]) -> int:
    """The state after more bytes."""
    if len(data) < _ROW:
        table = _table()
        for byte in data.tolist():
            state = int(table[(state ^ byte) & 255]) ^ (state >> 8)
        return state
    rows = 1 << (-(-len(data) // _ROW) - 1).bit_length()
    padded = np.zeros(rows * _ROW, dtype=np.uint8)  # zeros in front change nothing, from a state of zero
    padded[-len(data) :] = data
    padded[len(padded) - len(data) :][:4] ^= np.frombuffer(state.to_bytes(4, "little"), dtype=np.uint8)
    states, four = np.zeros(rows, dtype=np.uint32), _zeros(0)
    for column in np.ascontiguousarray(padded.view("<u4").reshape(rows, _ROW // 4).T):
        states = _moved(states ^ column, four)
    level = (_ROW // 4).bit_length() - 1
    while len(states) > 1:
        states = _moved(states[0::2], _zeros(level)) ^ states[1::2]
        level += 1
    return int(states[0])


def _moved(states: Words, zeros: Words) -> Words:
    """States after zero bytes: the sum of what becomes of their two halves."""
    found: Words = zeros[0][states & 0xFFFF] ^ zeros[1][states >> 16]
    return found


@functools.cache
def _zeros(level: int) -> Words:
    """What becomes of each half of a state after 4 * 2**level zero bytes, (2, 65536)."""
    if level:
        return _moved(_zeros(level - 1), _zeros(level - 1))
    low = np.arange(1 << 16, dtype=np.uint32)
    states = np.stack([low, low << 16])
    for _ in range(4):
        states = _table()[states & 255] ^ states >> 8
    return states


@functools.cache
def _table() -> Words:
    """What a byte adds to a state, (256,)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, table >> 1 ^ np.uint32(_POLYNOMIAL), table >> 1)
    return table
