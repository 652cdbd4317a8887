"""Inputs by path or address: which are allowed, what is there, and how they are named without their secrets.

An address is only ever one that the user gave. `::` chains of fsspec are refused: they nest file systems (a zip in a cache in a
bucket), and some write to the disk. User names, passwords and queries (signatures of buckets) are needed to open a file and are
never shown or stored: a name has none of them.
"""

from __future__ import annotations

import glob
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from polyseme.base.errors import MissingExtraError, PolysemeError, UsageError
from polyseme.base.files import is_pipe, wrap_os_errors
from polyseme.text.files.sources import NO_TEXT, Source

_PROTOCOLS = {"s3": "s3", "gs": None, "gcs": None, "hf": None, "https": "https", "http": "https"}
"""Allowed protocols, and the extra with what they need."""
_READ_AHEAD = 1 << 20


@dataclass(frozen=True)
class InputFile:
    """A file of text, here or elsewhere."""

    name: str
    """For people: in messages, in the manifest and in the dataset."""
    address: str = field(repr=False)
    """For opening; may hold a secret."""
    size: int | None
    """In bytes; None: not known."""


def find_inputs(given: Sequence[str | Path]) -> list[InputFile]:
    """Return the files of paths, folders, globs and addresses: in the order given, and sorted within each."""
    if not given:
        raise UsageError("no text given: give files, folders, globs or addresses")
    found: dict[str, InputFile] = {}
    for each in map(str, given):
        for file in _remote(each) if is_address(each) else _local(each):
            found.setdefault(file.address, file)
    return list(found.values())


def is_address(text: str | Path) -> bool:
    """Whether a text names a file system elsewhere; raise an error for one that is not allowed."""
    text = str(text)
    if "::" in text and "://" in text:
        raise UsageError(f"{public_name(text)}: chains of addresses (::) are refused; give the address of the files themselves")
    protocol, found, _ = text.partition("://")
    if not found:
        return False
    if protocol not in _PROTOCOLS:
        raise UsageError(f"{public_name(text)}: unknown protocol {protocol!r}; allowed: {', '.join(_PROTOCOLS)}, or a path")
    return True


def public_name(address: str) -> str:
    """Return an address without user, password, query and fragment.

    >>> public_name("https://ann:secret@example.org/a.txt?signature=xyz"), public_name("s3://bucket/a.txt")
    ('https://example.org/a.txt', 's3://bucket/a.txt')
    """
    if "://" not in address:
        return address
    parts = urllib.parse.urlsplit(address)
    host = parts.netloc.rpartition("@")[2]
    if parts.scheme in ("http", "https"):
        return urllib.parse.urlunsplit((parts.scheme, host, parts.path, "", ""))
    return f"{parts.scheme}://{host}{address.partition('://')[2][len(parts.netloc) :]}"


def without_secrets(text: str, *addresses: str) -> str:
    """Return a message of another library with public names in place of addresses."""
    for address in addresses:
        text = text.replace(address, public_name(address))
        if query := urllib.parse.urlsplit(address).query if "://" in address else "":
            text = text.replace(query, "...")
        if "@" in (netloc := urllib.parse.urlsplit(address).netloc if "://" in address else ""):
            text = text.replace(netloc, netloc.rpartition("@")[2])
    return text


def file_system(address: str) -> tuple[Any, str]:
    """Return the fsspec file system of an address, and the path in it."""
    import fsspec

    protocol = address.partition("://")[0]
    try:
        return fsspec.core.url_to_fs(address)
    except ImportError as error:
        extra = _PROTOCOLS.get(protocol)
        if extra is not None:
            raise MissingExtraError(f"reading {protocol}:// needs another package", extra) from error
        raise PolysemeError(f"reading {protocol}:// needs another package: {error}") from error


def open_input(file_address: str, name: str) -> BinaryIO:
    """Open a file for reading; it can seek."""
    if "://" not in file_address:
        with wrap_os_errors(name, "read"):
            return Path(file_address).open("rb", buffering=0)
    with remote_errors(file_address, name):
        system, path = file_system(file_address)
        return system.open(path, "rb", block_size=_READ_AHEAD)


class remote_errors:
    """Turn whatever a file system raises into one sentence without secrets."""

    def __init__(self, address: str, name: str) -> None:
        self._address, self._name = address, name

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception) or isinstance(error, PolysemeError):
            return
        reason = without_secrets(str(error) or type(error).__name__, self._address)
        raise PolysemeError(f"cannot read {self._name}: {reason}") from None


def _local(given: str) -> Iterator[InputFile]:
    if given == "-" or is_pipe(Path(given).expanduser()):
        raise UsageError(f"{given}: standard input and pipes cannot be cut into shards; write the text to a file first")
    for file in Source(given).files:
        with wrap_os_errors(file.name, "read"):
            yield InputFile(file.name, str(file.path.absolute()), file.path.stat().st_size)


def _remote(address: str) -> Iterator[InputFile]:
    name = public_name(address)
    with remote_errors(address, name):
        system, path = file_system(address)
        if address.startswith(("http://", "https://")):  # folders and globs are no notions of the web
            yield InputFile(name, address, system.info(path).get("size"))
            return
        if glob.has_magic(path):
            entries = system.glob(path, detail=True)
        elif system.isdir(path):
            entries = system.find(path, detail=True)
        else:
            entries = {path: system.info(path)}
        files = sorted(key for key, entry in entries.items() if entry["type"] == "file" and not _hidden(key, path))
        if not files:
            raise PolysemeError(f"{name}: no files are there; those whose names begin with _ or . are not read")
        for key in files:
            full = system.unstrip_protocol(key)
            yield InputFile(public_name(full), full, entries[key].get("size"))


def _hidden(key: str, root: str) -> bool:
    inner = key[len(root) :] if key.startswith(root) else key
    *folders, name = inner.split("/")
    return any(folder.startswith(".") for folder in folders) or name.startswith(NO_TEXT)
