"""The folder of a dataset, on a disk or in a bucket: parts appear whole or not at all.

    part-000000.parquet ...   the rows, in order
    _manifest.json            model, options, text and parts; `complete` when all parts are there
    _shards.jsonl             which lines of which files each part holds
    _lock                     held while a process works on the folder

Readers of Parquet datasets (pandas, Polars, DuckDB, Spark, Hugging Face datasets) skip files that begin with `_` or `.`.
On a disk a part is written beside its name and renamed; a bucket shows an object only when its upload is complete.
"""

from __future__ import annotations

import contextlib
import os
import socket
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from polyseme.base.errors import PolysemeError
from polyseme.base.files import atomic, wrap_os_errors, write_text
from polyseme.base.lock import lock_file
from polyseme.scale.addresses import file_system, is_address, public_name, without_secrets

MANIFEST, SHARDS, LOCK, PART = "_manifest.json", "_shards.jsonl", "_lock", ".parquet"


@dataclass(frozen=True)
class DatasetFolder:
    """Where a dataset is; it can be sent to other processes."""

    address: str = field(repr=False)
    """A path, made absolute, or an address, which may hold a secret."""
    name: str
    """For people."""

    @classmethod
    def at(cls, out: str | Path) -> DatasetFolder:
        """Return the folder of a path or an address."""
        text = str(out)
        if is_address(text):
            if text.startswith(("http://", "https://")):
                raise PolysemeError(
                    f"{public_name(text)}: cannot write to the web; give a folder or a bucket (s3://, gs://, hf://)"
                )
            return cls(text.rstrip("/"), public_name(text))
        return cls(str(Path(text).expanduser().absolute()), text)

    @property
    def remote(self) -> bool:
        return "://" in self.address

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the folder for this process, and remove it if it is new and nothing was written; a bucket has no locks."""
        if self.remote:
            yield
            return
        folder, busy = Path(self.address), f"another process is writing {self.name}: wait for it, or stop it"
        new = not folder.exists()
        try:
            with lock_file(folder / LOCK, busy=busy):
                yield
        finally:
            if new:
                with contextlib.suppress(OSError):  # it has files, as it should
                    folder.rmdir()

    def parts(self) -> list[str]:
        """Return the names of the parts that are there."""
        if not self.remote:
            folder = Path(self.address)
            with wrap_os_errors(self.name, "read"):
                names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
            return sorted(name for name in names if name.endswith(PART) and not name.startswith((".", "_")))
        with self._errors("read"):
            system, path = file_system(self.address)
            system.invalidate_cache()
            found = system.ls(path, detail=False) if system.exists(path) else []
        names = [key.rpartition("/")[2] for key in found]
        return sorted(name for name in names if name.endswith(PART) and not name.startswith((".", "_")))

    def has_manifest_only(self) -> bool:
        """Whether nothing else was written yet. Of a bucket it is not known, because another process may write there."""
        if self.remote:
            return False
        with wrap_os_errors(self.name, "read"):
            names = {path.name for path in Path(self.address).iterdir() if not path.name.startswith(".")}
        return names <= {MANIFEST, SHARDS, LOCK}

    def read(self, name: str) -> bytes | None:
        """Return the content of a file; None: it is not there."""
        if not self.remote:
            path = Path(self.address, name)
            with wrap_os_errors(path, "read"):
                return path.read_bytes() if path.is_file() else None
        with self._errors("read"):
            system, path_ = file_system(f"{self.address}/{name}")
            data: bytes | None = system.cat_file(path_) if system.exists(path_) else None
            return data

    def write(self, name: str, text: str) -> None:
        """Write a small text file, whole."""
        if not self.remote:
            write_text(Path(self.address, name), text)
            return
        with self._errors("write"):
            system, path = file_system(f"{self.address}/{name}")
            system.pipe_file(path, text.encode())

    @contextlib.contextmanager
    def new_part(self, name: str) -> Iterator[Path]:
        """Yield a path to write a part to; the part appears under its name when the block ends without an error."""
        unique = f".{name}.{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}.part"
        if not self.remote:
            with atomic(Path(self.address, name), part=Path(self.address, unique)) as part:
                yield part
            return
        with tempfile.TemporaryDirectory(prefix="polyseme-") as scratch:
            yield Path(scratch, unique)
            with self._errors("write"):
                system, path = file_system(f"{self.address}/{name}")
                system.put_file(str(Path(scratch, unique)), path)

    def open_part(self, name: str) -> BinaryIO:
        """Open a part for reading; a `FileNotFoundError` if it is not there."""
        if not self.remote:
            return Path(self.address, name).open("rb")
        with self._errors("read"):
            system, path = file_system(f"{self.address}/{name}")
            return system.open(path, "rb")

    def clean(self) -> None:
        """Remove what killed workers left half written. Call it only with the lock held and no worker running."""
        if not self.remote:
            for path in Path(self.address).glob(".part-*.part"):
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        try:
            yield
        except (PolysemeError, FileNotFoundError):
            raise
        except Exception as error:
            reason = without_secrets(str(error) or type(error).__name__, self.address)
            raise PolysemeError(f"cannot {action} {self.name}: {reason}") from None
