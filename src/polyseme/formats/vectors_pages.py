"""A file that a library rewrites here and there, and that is nevertheless whole after a kill at any moment.

HDF5 changes its tables in place, so a file that was open when its process died is often unreadable. The cure is a
database's rollback journal. The part of the file that the last commit settled is not touched between commits: changes
to it are held in memory, page by page (new data, which goes to the end, is written at once). A commit first saves the
pages' old content in a file of its own, then changes the pages. If the process dies in between, going on puts the old
pages back and cuts the end off.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from polyseme.formats.vectors import Damaged, Mark

PAGE = 4096
_HEAD = struct.Struct("<QI")  # where a page's old content belongs, and its length


class PageFile:
    """A file object (read, write, seek, truncate) with `commit`; h5py works on it as on any file."""

    def __init__(self, path: Path, mark: Mark | None) -> None:
        self.path = path
        self.failure: OSError | None = None
        """What the disk refused, as the library may wrap it into words of its own."""
        self._settled, self._commits = (mark["size"], mark["commits"]) if mark else (0, 0)
        self._pages: dict[int, bytearray] = {}
        self._place = 0
        self._given_back = False
        flags = os.O_RDWR | getattr(os, "O_BINARY", 0)
        try:
            self._file = os.open(path, flags if mark else flags | os.O_CREAT | os.O_TRUNC, 0o666)
        except FileNotFoundError as error:
            raise Damaged(f"{path.name} is gone") from error
        if mark:
            self._go_back()
        self._end = self._settled

    # ---- what a library asks of a file object

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._place = offset + (0, self._place, self._end)[whence]
        return self._place

    def tell(self) -> int:
        return self._place

    def read(self, size: int = -1) -> bytes:
        size = max(min(self._end - self._place, size if size >= 0 else self._end), 0)
        data = bytearray(os.pread(self._file, size, self._place).ljust(size, b"\0"))
        for page in self._pages.keys() & set(range(self._place // PAGE, (self._place + size) // PAGE + 1)):
            held = self._pages[page]
            first = max(self._place, page * PAGE)
            last = min(self._place + size, page * PAGE + len(held))
            if first < last:
                data[first - self._place : last - self._place] = held[first - page * PAGE : last - page * PAGE]
        self._place += size
        return bytes(data)

    def readinto(self, buffer: memoryview) -> int:
        data = self.read(memoryview(buffer).nbytes)
        memoryview(buffer).cast("B")[: len(data)] = data
        return len(data)

    def write(self, data: memoryview | bytes) -> int:
        size = memoryview(data).nbytes
        if size == 0:
            return 0
        view = memoryview(data).cast("B")
        self._reach(self._place)
        while view and self._place < self._settled:
            view = view[self._hold(view) :]
        with self._refusals() as alive:
            if alive:
                _write_all(self._file, view, self._place)
        self._place += len(view)
        self._end = max(self._end, self._place)
        return size

    def truncate(self, size: int | None = None) -> int:
        size = self._place if size is None else size
        self._reach(size)
        with self._refusals() as alive:
            if alive:
                os.ftruncate(self._file, max(size, self._settled))
        self._end = size
        return size

    def flush(self) -> None:
        """Nothing to do: only a commit makes anything safe."""

    # ---- what makes it safe

    def commit(self) -> Mark:
        """Everything written so far is on the disk when this returns, or the file is as it was."""
        os.ftruncate(self._file, max(self._end, self._settled))
        os.fsync(self._file)
        cut = range(self._end // PAGE, -(-self._settled // PAGE))  # pages that the library gave back, mostly none
        if changed := sorted({*self._pages, *cut}):
            self._save_old(changed)
            for page, held in self._pages.items():
                _write_all(self._file, memoryview(held), page * PAGE)
            os.fsync(self._file)
        self._undo(self._commits - 1).unlink(missing_ok=True)  # this commit's own stays until its mark is known
        self._pages, self._given_back = {}, self._end < self._settled
        self._settled, self._commits = self._end, self._commits + 1
        return {"size": self._settled, "commits": self._commits}

    def finish(self) -> Path:
        """Cut the file to its size."""
        os.ftruncate(self._file, self._end)
        os.fsync(self._file)
        return self.path

    def close(self) -> None:
        """Let go of it."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[bool]:
        """Remember what the disk refuses; after that the library may tidy up, but nothing more is written."""
        try:
            yield self.failure is None
        except OSError as error:
            self.failure = error
            raise

    def _reach(self, size: int) -> None:
        """Zeros from the end to a place behind it, where a part that was given back still has its old bytes."""
        if self._given_back and self.failure is None:  # the commit is known by now, so nobody needs them any more
            os.ftruncate(self._file, self._settled)
            self._given_back = False
        if self._end < min(size, self._settled):
            place, self._place = self._place, self._end
            zeros = memoryview(bytes(min(size, self._settled) - self._end))
            while zeros:
                zeros = zeros[self._hold(zeros) :]
            self._place = place

    def _hold(self, view: memoryview) -> int:
        """Take what falls into one settled page; gives how many bytes that were."""
        page, first = divmod(self._place, PAGE)
        if page not in self._pages:
            self._pages[page] = bytearray(self._old(page))
        count = min(len(view), len(self._pages[page]) - first)
        self._pages[page][first : first + count] = view[:count]
        self._place += count
        self._end = max(self._end, self._place)
        return count

    def _old(self, page: int) -> bytes:
        return os.pread(self._file, min(PAGE, self._settled - page * PAGE), page * PAGE)

    def _undo(self, commits: int) -> Path:
        return self.path.with_name(f"{self.path.name}.undo{commits}")

    def _save_old(self, pages: list[int]) -> None:
        """Old content of pages about to change, under the number of the commit that it leads back to."""
        undo = self._undo(self._commits)
        part = undo.with_suffix(".new")
        with part.open("wb") as file:
            for page in pages:
                old = self._old(page)
                file.write(_HEAD.pack(page * PAGE, len(old)) + old)
            file.flush()
            os.fsync(file.fileno())
        part.replace(undo)  # only a whole one bears the name
        sync_folder(undo.parent)

    def _go_back(self) -> None:
        """Bring the file to what the last commit settled."""
        undo = self._undo(self._commits)
        if undo.exists():
            data = memoryview(undo.read_bytes())
            while data:
                place, size = _HEAD.unpack_from(data)
                _write_all(self._file, data[_HEAD.size : _HEAD.size + size], place)
                data = data[_HEAD.size + size :]
        if os.fstat(self._file).st_size < self._settled:
            self.close()
            raise Damaged(f"{self.path.name} is shorter than it was")
        os.ftruncate(self._file, self._settled)
        os.fsync(self._file)
        undo.unlink(missing_ok=True)


def _write_all(file: int, view: memoryview, place: int) -> None:
    while view:
        done = os.pwrite(file, view, place)
        view, place = view[done:], place + done


def sync_folder(folder: Path) -> None:
    """Make new names in a folder safe on the disk, where the system can."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
