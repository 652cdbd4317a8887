"""Files: written atomically, recognised by content, archives unpacked safely."""

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
import threading
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from polyseme.base.display import format_size
from polyseme.base.errors import FormatError, PolysemeError

GZIP, ZIP, HDF5 = b"\x1f\x8b", b"PK\x03\x04", b"\x89HDF\r\n\x1a\n"
COMPRESSED = (ZIP, GZIP, b"BZh", b"\xfd7zXZ\0")
"""First bytes of archives and compressed files."""

# raised for damaged archives; so is an OSError without a number of the system (bz2, gzip)
_DAMAGE = (zipfile.BadZipFile, tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, RuntimeError, ValueError)
# system errors for names that only a bad archive has: too long, or a file in place of a folder
_BAD_NAMES = (errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EINVAL, errno.ELOOP)

_JSON = 1 << 24  # limit of decompressed JSON; configs have a few thousand bytes
_DECOMPRESSED = 1 << 30  # default limit of other decompressed files; vocabularies have a few million bytes
_CHUNK = 1 << 20  # bytes to decompress at a time


@contextlib.contextmanager
def atomic(path: str | Path, *, part: Path | None = None) -> Iterator[Path]:
    """Yield a temporary path beside `path` (or `part`) to write to; it replaces `path` when the block ends without an error.

    >>> import tempfile; folder = Path(tempfile.mkdtemp())
    >>> with atomic(folder / "a.txt") as part: _ = part.write_text("text")
    >>> [file.name for file in folder.iterdir()]
    ['a.txt']
    """
    path = Path(path)
    # the number of a thread is unique on a machine: two threads that write the same file do not share a temporary one
    part = part or path.with_name(f".{path.name}.{threading.get_native_id()}.part")
    with wrap_os_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield part
            with part.open("rb") as file:
                os.fsync(file.fileno())
            part.replace(path)
            sync_folder(path.parent)
        finally:
            part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Wait until the new names in a folder are on the disk: a file that is written later then never outlives them."""
    if os.name == "nt":
        return
    with contextlib.suppress(OSError):  # some network file systems cannot
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


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
    """Name `folder` in errors about `part`, its temporary folder."""
    try:
        yield
    except PolysemeError as error:
        if str(part) not in str(error):
            raise
        raise PolysemeError(str(error).replace(str(part), str(folder))) from error


@contextlib.contextmanager
def wrap_os_errors(path: str | Path, action: str) -> Iterator[None]:
    """Turn errors of the system (no such file, no permission, disk full) into a `PolysemeError` that names the file."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise PolysemeError(f"cannot {action} {path}: {reason}") from error


def write_text(path: str | Path, text: str) -> None:
    """Write a text file atomically."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8", newline="\n")


def is_pipe(path: Path) -> bool:
    """Whether a path can be read only once, such as a named pipe."""
    return path.exists() and not path.is_file() and not path.is_dir()


def starts_with(path: str | Path, magic: bytes) -> bool:
    """Whether a file begins with these bytes."""
    with wrap_os_errors(path, "read"), Path(path).open("rb") as file:
        return file.read(len(magic)) == magic


def read_bytes(path: str | Path, *, limit: int | None = None) -> bytes:
    """Read a file, and decompress it if it is gzip by its content; a content of more than `limit` bytes is an error.

    A gzip file can expand to a thousand times its size, so no more than `limit` bytes are ever decompressed. None: plain files
    have no limit, and compressed ones a limit of 1 GB.
    """
    with wrap_os_errors(path, "read"), Path(path).open("rb") as file:
        data = file.read(-1 if limit is None else limit + 1)
    compressed = data.startswith(GZIP)
    limit = max(_DECOMPRESSED, len(data)) if limit is None else limit
    if compressed and len(data) <= limit:
        try:
            data = _decompressed(data, limit + 1)
        except (EOFError, OSError, zlib.error) as error:
            raise FormatError(path, f"is a damaged gzip file ({error})") from error
    if len(data) > limit:
        what = "expands to" if compressed else "has"
        raise FormatError(path, f"{what} more than {format_size(limit)}, the limit for such a file: is it the right one?")
    return data


def _decompressed(data: bytes, limit: int) -> bytes:
    """The first `limit` bytes of the content of gzip data."""
    content = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        while len(content) < limit and (chunk := file.read(min(_CHUNK, limit - len(content)))):
            content += chunk
    return bytes(content)


def read_json(path: str | Path) -> dict[str, Any]:
    """Read a JSON object from a file, which may be compressed by gzip."""
    with wrap_os_errors(path, "read"):
        limit = max(_JSON, Path(path).stat().st_size)
    try:
        value = json.loads(read_bytes(path, limit=limit))
    except (ValueError, RecursionError) as error:
        raise FormatError(path, f"is not valid JSON ({error})") from error
    if not isinstance(value, dict):
        raise FormatError(path, f"has a JSON {type(value).__name__}; expected an object")
    return value


def unpack_archive(archive: str | Path, folder: str | Path) -> None:
    """Unpack a zip or tar file; refuse links, devices and entries that would leave the folder.

    An archive that is larger than the free space on the disk is refused before anything is written.
    """
    archive, folder = Path(archive), Path(folder)
    known = any(starts_with(archive, magic) for magic in COMPRESSED)
    try:
        if zipfile.is_zipfile(archive):
            _unpack_zip(archive, folder)
        elif tarfile.is_tarfile(archive):
            _unpack_tar(archive, folder)
        else:
            what = "is a damaged archive, or neither zip nor tar" if known else "is neither a zip nor a tar file"
            raise FormatError(archive, what)
    except _DAMAGE as error:
        raise FormatError(archive, f"is a damaged archive ({error})") from error
    except OSError as error:
        if error.errno is not None:
            raise PolysemeError(f"cannot unpack {archive}: {error.strerror}") from error
        raise FormatError(archive, f"is a damaged archive ({error})") from error


def archive_names(archive: str | Path) -> list[str]:
    """Return the paths of the entries of a zip or tar file."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as entries:
            return entries.namelist()
    with tarfile.open(archive) as entries:
        return entries.getnames()


def _unpack_zip(archive: Path, folder: Path) -> None:
    with zipfile.ZipFile(archive) as entries:
        _check_space(archive, folder, sum(entry.file_size for entry in entries.infolist()))
        for entry in entries.infolist():
            with _wrap_bad_names(archive, entry.filename):
                target = _inside(folder, entry.filename, archive)
                if entry.is_dir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                with entries.open(entry) as source:
                    _copy(source, target, entry.file_size)


def _unpack_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as entries:
        _check_space(archive, folder, sum(entry.size for entry in entries))  # reads a compressed one to its end
        for entry in entries:
            with _wrap_bad_names(archive, entry.name):
                target = _inside(folder, entry.name, archive)
                if entry.isdir():
                    target.mkdir(parents=True, exist_ok=True)
                    continue
                source = entries.extractfile(entry) if entry.isreg() else None
                if source is None:
                    raise FormatError(archive, f"has the entry {entry.name!r}, which is not a regular file; refused")
                with source:
                    _copy(source, target, entry.size)
        stream = entries.fileobj
        while stream is not None and stream.read(1 << 20):
            pass  # to the end of the stream, where its checksum is


@contextlib.contextmanager
def _wrap_bad_names(archive: Path, name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in _BAD_NAMES:
            raise
        short = name if len(name) <= 60 else f"{name[:60]}..."
        raise FormatError(archive, f"has the entry {short!r}, which cannot be unpacked ({error.strerror})") from error


def _check_space(archive: Path, folder: Path, needed: int) -> None:
    existing = next(parent for parent in (folder, *folder.resolve().parents) if parent.is_dir())
    free = shutil.disk_usage(existing).free
    if needed > free:
        space = f"its files need {format_size(needed)}, and the disk of {existing} has {format_size(free)} free"
        raise PolysemeError(f"cannot unpack {archive}: {space}: free some space, or unpack it elsewhere and give the folder")


def _copy(source: Any, target: Path, declared: int) -> None:
    """Write an entry; an entry larger than it declares, which the check of the space relied on, is an error."""
    target.parent.mkdir(parents=True, exist_ok=True)
    written = 0
    with target.open("wb") as file:
        while chunk := source.read(_CHUNK):
            written += len(chunk)
            if written > declared:
                raise ValueError(f"{target.name} is larger than the {declared:,} bytes that it declares")
            file.write(chunk)


def _inside(folder: Path, name: str, archive: Path) -> Path:
    root = folder.resolve()
    target = (root / name).resolve()
    if target != root and root not in target.parents:
        raise FormatError(archive, f"has the entry {name!r}, which would leave the folder; refused")
    return target
