"""Batches made ready before they are asked for: on a GPU in a thread of their own, so that no step waits for its words.

A position is that of the batch after the last one *given*: what was made ahead and not yet given does not count, so that a
resumed run makes it again.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any

from polyseme.training.base import Batches

_Item = tuple[Any, dict[str, Any]] | BaseException | None
"""A batch and the position after it; or why there is none; or the end."""


class PrefetchedBatches:
    """Batches after `prepare`, `ahead` of them in stock; with 0 each is prepared when it is asked for, without a thread."""

    def __init__(self, batches: Batches, prepare: Callable[[Any], Any], *, ahead: int = 0) -> None:
        self._batches, self._prepare, self._ahead = batches, prepare, ahead
        self._given: dict[str, Any] | None = None
        self._stop: threading.Event | None = None

    @property
    def words_per_epoch(self) -> int:
        """The words that one pass gives, over all processes."""
        return self._batches.words_per_epoch

    def position(self) -> dict[str, Any]:
        """Where the next batch begins."""
        return self._batches.position() if self._given is None else self._given

    def seek(self, position: dict[str, Any]) -> None:
        """Go to a position; what was made ahead is thrown away."""
        self.close()
        self._batches.seek(position)

    def close(self) -> None:
        """End the thread, where there is one."""
        if self._stop is None:
            return
        self._stop.set()
        self._thread.join()
        position = self.position()
        self._stop = self._given = None
        self._batches.seek(position)

    def __iter__(self) -> Iterator[Any]:
        if not self._ahead:
            return map(self._prepare, self._batches)
        self.close()
        return self._from_thread()

    def _from_thread(self) -> Iterator[Any]:
        stock: queue.Queue[_Item] = queue.Queue(self._ahead)
        stop = self._stop = threading.Event()
        self._given = self._batches.position()
        self._thread = threading.Thread(target=self._fill, args=(stock, stop), name="batches", daemon=True)
        self._thread.start()
        while not stop.is_set():
            item = stock.get()
            if item is None:
                return
            if isinstance(item, BaseException):
                raise item
            batch, self._given = item
            yield batch

    def _fill(self, stock: queue.Queue[_Item], stop: threading.Event) -> None:
        def put(item: _Item) -> None:
            while not stop.is_set():
                try:
                    return stock.put(item, timeout=0.1)
                except queue.Full:
                    continue

        try:
            for batch in self._batches:
                put((self._prepare(batch), self._batches.position()))
                if stop.is_set():
                    return
            put(None)
        except BaseException as error:  # whatever it is, the one who waits for a batch must hear of it
            put(error)
