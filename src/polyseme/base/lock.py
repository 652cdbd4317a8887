"""Locks between processes of one machine. A killed process loses its lock by itself."""

from __future__ import annotations

import contextlib
import errno
import logging
from collections.abc import Iterator
from pathlib import Path

import filelock

from polyseme.base.errors import PolysemeError
from polyseme.base.files import wrap_os_errors

LOCK_NAME = ".lock"
"""Name of a lock file in the folder that it protects."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)
_log = logging.getLogger(__name__)


@contextlib.contextmanager
def lock_file(path: Path, *, busy: str | None = None, remove: bool = True) -> Iterator[bool]:
    """Hold a lock during a `with` block; unless `remove` is false, the file disappears at its end.

    If another process holds it, wait, or with `busy` raise an error with this text. Yields whether the lock is held: on file
    systems without locks, nobody waits.
    """
    lock = filelock.FileLock(path)
    with wrap_os_errors(path, "write"):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            held = _acquire(lock, busy)
        except FileNotFoundError:  # the process that held it failed, and removed the folder that it had made
            path.parent.mkdir(parents=True, exist_ok=True)
            held = _acquire(lock, busy)
    if not held:
        yield False
        return
    try:
        yield True
    finally:
        if remove:  # while it is held: processes that wait for it see that it is gone, and lock a new one
            path.unlink(missing_ok=True)
        lock.release()


def _acquire(lock: filelock.BaseFileLock, busy: str | None) -> bool:
    try:
        try:
            lock.acquire(timeout=0)
        except filelock.Timeout:
            if busy is not None:
                raise PolysemeError(busy) from None
            _log.info("waiting for another process, which holds %s", lock.lock_file)
            lock.acquire()
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        return False
    return True
