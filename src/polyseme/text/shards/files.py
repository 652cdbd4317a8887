"""The files of a folder of shards: what makes them trusted, and how a folder appears whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import read_json, wrap_os_errors, write_text

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger(__name__)
TYPES, WORDS, SENTENCES, COUNTS, MANIFEST = "types.txt", "words.bin", "sentences.bin", "counts.bin", "manifest.json"
FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class ShardManifest(Config):
    """What a folder of shards must be."""

    polyseme_shards: int
    """The version of the format."""
    fingerprint: str
    """Of the corpus."""
    words: int
    sentences: int
    types: int
    types_sha256: str
    counts_sha256: str
    """Of the small files; the large ones are known by their size, because to read them takes as long as to use them."""

    @classmethod
    def check(cls, folder: Path) -> ShardManifest:
        """The manifest of a folder whose files fit it; a `FormatError` where there is none or they do not."""
        path = folder / MANIFEST
        if not path.is_file():
            raise FormatError(folder, f"holds no whole shards ({MANIFEST} is missing); build them again")
        try:
            manifest = cls.from_dict(read_json(path), MANIFEST)
        except ConfigError as error:
            raise FormatError(path, str(error)) from error
        if manifest.polyseme_shards != FORMAT:
            raise FormatError(path, f"is of format {manifest.polyseme_shards}; this program reads {FORMAT}")
        manifest._check_files(folder)
        return manifest

    def _check_files(self, folder: Path) -> None:
        sizes = {WORDS: 4 * self.words, SENTENCES: 8 * (self.sentences + 1), COUNTS: 8 * self.types}
        for name, size in sizes.items():
            path = folder / name
            found = path.stat().st_size if path.is_file() else 0
            if found != size:
                raise FormatError(path, f"has {found:,} bytes; expected {size:,}")
        for name, checksum in {TYPES: self.types_sha256, COUNTS: self.counts_sha256}.items():
            if not (folder / name).is_file() or sha256(folder / name) != checksum:
                raise FormatError(folder / name, "does not have the checksum of the manifest; it was changed or damaged")

    def write(self, folder: Path) -> None:
        """Make the folder trusted; all other files are on the disk before."""
        for name in (TYPES, WORDS, SENTENCES, COUNTS):
            with wrap_os_errors(folder / name, "write"), (folder / name).open("rb") as file:
                os.fsync(file.fileno())
        write_text(folder / MANIFEST, json.dumps(self.to_dict(), indent=2) + "\n")


def sha256(path: Path) -> str:
    """The checksum of a file."""
    with wrap_os_errors(path, "read"), path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def published(place: Path, ready: Callable[[], bool]) -> Iterator[Path]:
    """An empty folder beside `place` to fill; it takes that name when the block ends well, and is removed when not.

    Several processes may do so at once: the first to end wins, and the others find it `ready` and drop theirs. What
    stands at `place` and is not ready is half of something, and is replaced.
    """
    part = part_of(place)
    with wrap_os_errors(part, "write"):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    try:
        yield part
        with wrap_os_errors(place, "write"):
            try:
                part.replace(place)
            except OSError:
                if not ready():
                    shutil.rmtree(place)
                    part.replace(place)
    except OSError as error:  # a full disk, told with the place that is full
        raise PolysemeError(f"cannot write {part}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextlib.contextmanager
def one_at_a_time(place: Path) -> Iterator[bool]:
    """A block that only one process of this machine is in, for what is to be built at `place`; the others wait.

    Gives whether it is so: where the system or the disk has no locks, all are in it at once. A killed process loses its
    lock by itself.
    """
    if fcntl is None:
        yield False
        return
    lock = place.with_name(f".{place.name}.lock")
    file, alone = _locked(lock, place)
    with file:
        try:
            yield alone
        finally:
            lock.unlink(missing_ok=True)


def _locked(lock: Path, place: Path) -> tuple[BinaryIO, bool]:
    """The open lock, and whether this process holds it."""
    while True:
        with wrap_os_errors(lock, "write"):
            lock.parent.mkdir(parents=True, exist_ok=True)
            file = lock.open("wb")
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _log.info("waiting for another process, which is making %s", place)
                fcntl.flock(file, fcntl.LOCK_EX)
        except OSError:  # a disk without locks
            return file, False
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), lock.stat()):
                return file, True
        file.close()  # its holder removed it while this one waited, and others may hold a new one


def part_of(place: Path) -> Path:
    """Where this process writes what will be at `place`; what killed processes of this machine left there is removed."""
    if os.name == "posix":
        for old in place.parent.glob(f".{place.name.partition('-')[0]}-*.{_host()}.*.part"):  # it could be gigabytes
            number = old.name.split(".")[-2]
            if number.isdigit() and not _alive(int(number)):
                shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    return place.with_name(f".{place.name}.{_host()}.{os.getpid()}.part")


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _host() -> str:
    return "".join(letter for letter in socket.gethostname() if letter.isalnum() or letter in "-_") or "here"
