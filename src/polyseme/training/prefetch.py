"""Prefetch batches: on a GPU they are prepared in a thread, so that no step waits for its batch.

`position()` is that of the batch after the last one *given out*: prefetched batches do not count, so a resumed run prepares
them again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from polyseme.training.base import Batches

_Item = tuple[Any, dict[str, Any]] | BaseException | None
"""A batch and the position after it; or an error; or None at the end."""


class PrefetchedBatches(Batches):
    """Batches after `prepare`, up to `prefetch` of them in advance; with 0, no thread is started."""

    def __init__(self, batches: Batches, prepare: Callable[[Any], Any], *, prefetch: int = 0) -> None:
        self._batches, self._prepare, self._prefetch = batches, prepare, prefetch
        self._position: dict[str, Any] | None = None
        self._stop: threading.Event | None = None

    @property
    def words_per_epoch(self) -> int:
        return self._batches.words_per_epoch

    @property
    def batches_per_epoch(self) -> int | None:
        """None: batches differ from epoch to epoch."""
        return getattr(self._batches, "batches_per_epoch", None)

    def position(self) -> dict[str, Any]:
        return self._batches.position() if self._position is None else self._position

    def seek(self, position: dict[str, Any]) -> None:
        self.close()
        self._batches.seek(position)

    def close(self) -> None:
        """End the thread, if there is one."""
        if self._stop is None:
            return
        self._stop.set()
        self._thread.join()
        position = self.position()
        self._stop = self._position = None
        self._batches.seek(position)

    def __iter__(self) -> Iterator[Any]:
        if not self._prefetch:
            return map(self._prepare, self._batches)
        self.close()
        return self._from_thread()

    def _from_thread(self) -> Iterator[Any]:
        items: queue.Queue[_Item] = queue.Queue(self._prefetch)
        stop = self._stop = threading.Event()
        self._position = self._batches.position()
        self._thread = threading.Thread(target=self._fill, args=(items, stop), name="batches", daemon=True)
        self._thread.start()
        while not stop.is_set():
            item = items.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            batch, self._position = item
            yield batch

    def _fill(self, items: queue.Queue[_Item], stop: threading.Event) -> None:
        def put(item: _Item) -> None:
            while not stop.is_set():
                try:
                    return items.put(item, timeout=0.1)
                except queue.Full:
                    continue

        try:
            for batch in self._batches:
                put((self._prepare(batch), self._batches.position()))
                if stop.is_set():
                    return
            put(None)
        except BaseException as error:  # of any kind: whoever waits for a batch must get it
            put(error)
