"""The files of a folder of shards: when they are trusted, and how a folder appears complete or not at all."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from polyseme.base.config import Config, ConfigError, setting
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import read_json, wrap_os_errors, write_text
from polyseme.base.hashing import hash_file
from polyseme.base.lock import lock_file

TYPES, WORDS, SENTENCES, COUNTS, MANIFEST = "types.txt", "words.bin", "sentences.bin", "counts.bin", "manifest.json"
DOCUMENTS = "documents.bin"
FORMAT = 1
Built = TypeVar("Built")


@dataclass(frozen=True, kw_only=True)
class ShardManifest(Config):
    """The expected content of a folder of shards.

    Small files have checksums; large ones are checked by size, because reading them takes as long as using them.
    """

    polyseme_shards: int = setting(help="The version of the format.", option=False)
    fingerprint: str = setting(help="The fingerprint of the corpus.", option=False)
    words: int = setting(help="Words of the text.", min=0, option=False)
    sentences: int = setting(help="Sentences of the text.", min=0, option=False)
    types: int = setting(help="Distinct words.", min=0, option=False)
    documents: int = setting(0, "Documents of the text; 0: not known, in shards of earlier versions.", min=0, option=False)
    types_sha256: str = setting(help="The checksum of types.txt.", option=False)
    counts_sha256: str = setting(help="The checksum of counts.bin.", option=False)

    @classmethod
    def check(cls, folder: Path) -> ShardManifest:
        """Return the manifest of a folder; raise a `FormatError` if it is missing or the files do not match it."""
        path = folder / MANIFEST
        if not path.is_file():
            raise FormatError(folder, f"has no complete shards ({MANIFEST} is missing); build them again")
        try:
            manifest = cls.from_dict(read_json(path), MANIFEST)
        except ConfigError as error:
            raise FormatError(path, str(error)) from error
        if manifest.polyseme_shards != FORMAT:
            raise FormatError(path, f"has format {manifest.polyseme_shards}; this version reads {FORMAT}")
        manifest._check_files(folder)
        return manifest

    def _check_files(self, folder: Path) -> None:
        sizes = {WORDS: 4 * self.words, SENTENCES: 8 * (self.sentences + 1), COUNTS: 8 * self.types}
        sizes |= {DOCUMENTS: 8 * (self.documents + 1)} if self.documents else {}
        for name, size in sizes.items():
            path = folder / name
            actual = path.stat().st_size if path.is_file() else 0
            if actual != size:
                raise FormatError(path, f"has {actual:,} bytes; expected {size:,}")
        for name, checksum in {TYPES: self.types_sha256, COUNTS: self.counts_sha256}.items():
            if not (folder / name).is_file() or hash_file(folder / name) != checksum:
                raise FormatError(folder / name, "does not match the checksum of the manifest; it was changed or damaged")

    def write(self, folder: Path) -> None:
        """Write the manifest after all other files are on disk."""
        for name in (TYPES, WORDS, SENTENCES, DOCUMENTS, COUNTS):
            with wrap_os_errors(folder / name, "write"), (folder / name).open("rb") as file:
                os.fsync(file.fileno())
        write_text(folder / MANIFEST, json.dumps(self.to_dict(), indent=2) + "\n")


def build_once(target: Path, ready: Callable[[], Built | None], write: Callable[[Path], object]) -> Built:
    """Return what `ready` finds in the folder `target`; if it finds nothing, `write` fills a new folder first.

    If several processes want the same folder, one writes it and the others wait. Without locks all write their own and the
    first to end wins. An interrupted process leaves nothing behind that `ready` should accept.
    """
    result = ready()
    if result is None:
        with _remove_new_folders(target.parent), lock_target(target):
            result = ready()
            if result is None:
                with _new_folder(target, ready) as part:
                    write(part)
                result = ready()
    if result is None:
        raise FormatError(target, "is incomplete although it was just written; remove it and try again")
    return result


@contextlib.contextmanager
def _remove_new_folders(folder: Path) -> Iterator[None]:
    """Remove `folder` and its parents at an error, as far as they were not there before and hold nothing."""
    new = list(itertools.takewhile(lambda each: not each.exists(), (folder, *folder.parents)))
    try:
        yield
    except BaseException:
        with contextlib.suppress(OSError):  # not empty: another process writes there
            for each in new:
                each.rmdir()
        raise


def lock_target(target: Path) -> contextlib.AbstractContextManager[bool]:
    """Lock what is to be built at `target`; yields whether the lock is held, which it is not on disks without locks."""
    return lock_file(target.with_name(f".{target.name}.lock"))


@contextlib.contextmanager
def _new_folder(target: Path, ready: Callable[[], object | None]) -> Iterator[Path]:
    """Give an empty folder that becomes `target` at the end of the block; an incomplete `target` is replaced."""
    part = temporary_path(target)
    with wrap_os_errors(part, "write"):
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    try:
        yield part
        with wrap_os_errors(target, "write"):
            try:
                part.replace(target)
            except OSError:
                if ready() is None:
                    shutil.rmtree(target)
                    part.replace(target)
    except OSError as error:  # such as a full disk
        raise PolysemeError(f"cannot write {part}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def temporary_path(target: Path) -> Path:
    """Return where this process writes what will be at `target`; remove what killed processes of this machine left."""
    if os.name == "posix":
        for old in target.parent.glob(f".{target.name.partition('-')[0]}-*.{_host()}.*.part"):  # could be gigabytes
            number = old.name.split(".")[-2]
            if number.isdigit() and not _alive(int(number)):
                shutil.rmtree(old, ignore_errors=True) if old.is_dir() else old.unlink(missing_ok=True)
    return target.with_name(f".{target.name}.{_host()}.{os.getpid()}.part")


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
