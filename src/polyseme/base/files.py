"""Files: written whole or not at all, recognised by their content, and unpacked only where they belong."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import json
import lzma
import os
import shutil
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.formatting import format_size

GZIP, ZIP, HDF5 = b"\x1f\x8b", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"
COMPRESSED = (ZIP, GZIP, b"BZh", b"\xfd7zXZ\0")
"""How archives begin, packed ones included."""

# what the readers of archives raise at damage; an OSError is damage too where it is not the system's (bz2, gzip)
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, RuntimeError, ValueError)
# the system's refusals of names that only a bad archive has: too long, or a file where a folder should be
_BAD_NAMES = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.ELOOP)

_JSON = 1 << 24  # bytes that packed JSON may unpack to; configs have a few thousand
_PACKED = 1 << 30  # bytes that another packed file may unpack to, where nobody says; vocabularies have a few million
_PIECE = 1 << 20  # bytes that are unpacked at a time


@contextlib.contextmanager
def atomic(path: str | Path, *, part: Path | None = None) -> Iterator[Path]:
    """A path beside `path` to write to (`part`, where given); it takes the name `path` when the block ends well, and is
    removed when not.

    >>> import tempfile; folder = Path(tempfile.mkdtemp())
    >>> with atomic(folder / "a.txt") as part: _ = part.write_text("whole")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    part = part or path.with_name(f".{path.name}.{os.getpid()}.part")
    with wrap_os_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(folder: str | Path, *, last: str, remove: Iterable[str] = ()) -> Iterator[Path]:
    """Yield a new folder beside `folder` to write to; its content moves there when the block ends without an error.

    A folder that exists keeps what else it holds, except the files named in `remove`. Its file `last`, without which the
    folder is not valid, goes first and comes back last.
    """
    folder = Path(folder)
    with wrap_os_errors(folder, "write"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
        try:
            with replace_path_in_errors(folder, part):
                yield part
            part.chmod(0o755)
            if folder.exists():
                _move_content(part, folder, last, set(remove))
            else:
                part.replace(folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def _move_content(part: Path, folder: Path, last: str, remove: set[str]) -> None:
    new = sorted(part.iterdir(), key=lambda file: file.name == last)
    for name in [last, *sorted(remove - {file.name for file in new} - {last})]:
        (folder / name).unlink(missing_ok=True)
    for file in new:
        if file.is_dir():
            shutil.rmtree(folder / file.name, ignore_errors=True)
        file.replace(folder / file.name)


@contextlib.contextmanager
def replace_path_in_errors(folder: Path, part: Path) -> Iterator[None]:
    """Name the folder that the user knows in an error about `part`, the place where it is made."""
    try:
        yield
    except PolysemeError as error:
        if str(part) not in str(error):
            raise
        raise PolysemeError(str(error).replace(str(part), str(folder))) from error


@contextlib.contextmanager
def wrap_os_errors(path: str | Path, doing: str) -> Iterator[None]:
    """Turn the system's refusals (no such file, no permission, disk full) into one sentence that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise PolysemeError(f"cannot {doing} {path}: {reason}") from error


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole or not at all."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def is_pipe(path: Path) -> bool:
    """Whether there is something that can be read once only, such as a named pipe: it is gone when it was opened."""
    return path.exists() and not path.is_file() and not path.is_dir()


def starts_with(path: str | Path, magic: bytes) -> bool:
    """Whether a file begins with these bytes."""
    with wrap_os_errors(path, "read"), Path(path).open("rb") as file:
        return file.read(len(magic)) == magic


def read_bytes(path: str | Path, *, most: int | None = None) -> bytes:
    """The content of a file, unpacked when it is gzip (told by content, not by name); more than `most` bytes are refused.

    A small gzip file can hold a thousand times its size, so no more than `most` bytes are ever unpacked. None: a plain file may
    be of any size, and a packed one holds 1 GB at most.
    """
    with wrap_os_errors(path, "read"), Path(path).open("rb") as file:
        data = file.read(-1 if most is None else most + 1)
    packed = data.startswith(GZIP)
    most = max(_PACKED, len(data)) if most is None else most
    if packed and len(data) <= most:
        try:
            data = _unpacked(data, most + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise FormatError(path, f"is a damaged gzip file ({error})") from error
    if len(data) > most:
        what = "unpacks to" if packed else "holds"
        raise FormatError(path, f"{what} more than {format_size(most)}, the limit for such a file: is it the right one?")
    return data


def _unpacked(data: bytes, most: int) -> bytes:
    """The first `most` bytes that gzip data holds."""
    found = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while len(found) < most and (piece := file.read(min(_PIECE, most - len(found)))):
            found += piece
    return bytes(found)


def read_json(path: str | Path) -> dict[str, Any]:
    """A JSON object from a file, or one sentence on why it is none; a plain file may be of any size."""
    with wrap_os_errors(path, "read"):
        most = max(_JSON, Path(path).stat().st_size)
    try:
        value = json.loads(read_bytes(path, most=most))
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"is not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise FormatError(path, f"holds a JSON {type(value).__name__}; expected an object")
    return value


def unpack_archive(archive: str | Path, folder: str | Path) -> None:
    """Unpack a zip or tar file; an entry that would leave the folder, a link or a device is refused.

    So is, before anything is written, an archive that is larger than the room on the disk.
    """
    archive, folder = Path(archive), Path(folder)
    packed = any(starts_with(archive, magic) for magic in COMPRESSED)
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, folder)
        elif tarfile.is_tarfile(archive):
            _unpack_tar(archive, folder)
        else:
            what = "is a damaged archive, or none of zip or tar" if packed else "is neither a zip nor a tar file"
            raise FormatError(archive, what)
    except _DAMAGE as error:
        raise FormatError(archive, f"is a damaged archive ({error})") from error
    except OSError as error:
        if error.errno is not None:
            raise PolysemeError(f"cannot unpack {archive}: {error.strerror}") from error
        raise FormatError(archive, f"is a damaged archive ({error})") from error


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as entries:
        _check_room(archive, folder, sum(entry.file_size for entry in entries.infolist()))
        for entry in entries.infolist():
            with _telling_names(archive, entry.filename):
                target = _inside(folder, entry.filename, archive)
                if entry.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                with entries.open(entry) as source:
                    _copy(source, target, entry.file_size)


def _unpack_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as entries:
        _check_room(archive, folder, sum(entry.size for entry in entries))  # reads a packed one to its end
        for entry in entries:
            with _telling_names(archive, entry.name):
                target = _inside(folder, entry.name, archive)
                if entry.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                source = entries.extractfile(entry) if entry.isreg() else None
                if source is None:
                    raise FormatError(archive, f"holds {entry.name!r}, which is no plain file; refused")
                with source:
                    _copy(source, target, entry.size)
        stream = entries.fileobj
        while stream is not None and stream.read(1 << 20):
            pass  # to its end, where a packed stream has its checksum


@contextlib.contextmanager
def _telling_names(archive: Path, name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _BAD_NAMES:
            raise
        short = name if len(name) <= 60 else f"{name[:60]}..."
        raise FormatError(archive, f"holds the entry {short!r}, which cannot be unpacked ({error.strerror})") from error


def _check_room(archive: Path, folder: Path, needed: int) -> None:
    place = next(place for place in (folder, *folder.resolve().parents) if place.is_dir())
    free = shutil.disk_usage(place).free
    if needed > free:
        room = f"its files take {format_size(needed)}, and the disk of {place} has {format_size(free)} free"
        raise PolysemeError(f"cannot unpack {archive}: {room}: make room, or unpack it elsewhere and give the folder")


def _copy(source: Any, target: Path, declared: int) -> None:
    """Write an entry; more than the size that it declares, by which the room was checked, is damage."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with target.open("wb") as file:
        while some := source.read(1 << 20):
            written += len(some)
            if written > declared:
                raise ValueError(f"{target.name} is larger than the {declared:,} bytes that it declares")
            file.write(some)


def _inside(folder: Path, name: str, archive: Path) -> Path:
    root = folder.resolve()
    target = (root / name).resolve()
    if target != root and root not in target.parents:
        raise FormatError(archive, f"holds the entry {name!r}, which leaves the folder; refused")
    return target
