"""Lines of a data file with their numbers, so that a message can name the line.

Plain, gzip, xz or zstd, recognised by content. Lines end at "\\n" or "\\r\\n".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from polyseme.base.errors import FormatError
from polyseme.base.files import wrap_os_errors
from polyseme.text.files.decompression import decompress, line_blocks


def numbered_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Yield (number, line) from line 1 on, without line ends; a line that is not UTF-8 is an error.

    >>> import tempfile; file = Path(tempfile.mkdtemp(), "a.txt"); _ = file.write_bytes(b"one\\r\\ntwo")
    >>> list(numbered_lines(file))
    [(1, 'one'), (2, 'two')]
    """
    path = Path(path).expanduser()
    with wrap_os_errors(path, "read"), path.open("rb") as file:
        magic = file.read(8)
    number = 0
    for block in line_blocks(decompress(path, str(path), magic), None):
        for line in block.removesuffix(b"\n").split(b"\n"):
            number += 1
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise FormatError(f"{path}:{number}", f"is not UTF-8 (byte 0x{line[error.start]:02x})") from None
            yield number, (text.removeprefix("\ufeff") if number == 1 else text).removesuffix("\r")
