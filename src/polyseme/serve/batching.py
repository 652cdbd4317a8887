"""Batches across requests: texts that wait for the same operation are computed together, whoever sent them.

One thread computes. As soon as it is free it takes what has waited longest, and with it as many more texts for the same
operation as fit into a batch by words; there is no fixed wait. `Encoder.embed` sorts a batch by length. Each text is read alone
from the model's start state, so its vectors do not depend on the texts beside it.

- A large request enters the queue a part at a time, so it neither fills the queue nor the memory, and others go in between.
- A request is refused at once if what is before it will take longer than a limit, by the speed of the last batches, or has more
  words than another limit. Words alone would mean a long wait on a slow machine, and on a fast one refusals without need. The
  refusal says when to try again. Some requests may always wait: a slow model takes long for each.
- A long text is computed a piece at a time (`polyseme.nn.pauses`), and after each piece a batch of short ones goes first.
- Texts of a request that was cancelled, because its client has gone, are dropped; a long one also while it is computed.
- If a batch fails, its halves are tried, and so on: the text that cannot be computed fails alone.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from polyseme.base.errors import PolysemeError
from polyseme.nn.pauses import pausing
from polyseme.serve.logs import error_without_texts
from polyseme.serve.speed import SpeedMeter

BATCH_WORDS, MAX_QUEUE_WORDS, MAX_WAIT = 2048, 32768, 1.0
FEW = 64
"""Up to this many requests are queued whatever the expected wait, so that a slow model can serve several clients."""
_PARTS = 4  # parts of a large request that make a batch: many large requests take turns in small steps; longer texts are long
_BATCHES_AHEAD = 2  # a large request fills the queue up to this, so that the thread never waits for it; the rest waits outside
_BURST, _BURST_SECONDS = 3, 2.0  # for so long, so many times the wait is allowed: a short burst or stall is no overload
_MAX_RETRY_SECONDS = 60
_log = logging.getLogger(__name__)


class _Abandoned(BaseException):
    """Nobody waits any more for what is being computed."""


class QueueFullError(PolysemeError):
    """A request does not fit into the queue now."""

    def __init__(self, message: str, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds until it may fit."""


@dataclass(frozen=True)
class Operation:
    """What is done with texts; texts of equal operations share batches."""

    key: Hashable
    """Operations with the same key are equal."""
    compute: Callable[[list[Any]], Sequence[Any]]
    """Gives one result for each text."""
    background: bool = False
    """Whether no request waits for it: then it takes its turn, but fills neither the queue nor the metrics."""

    @property
    def kind(self) -> Hashable:
        """What it does and with which model, the first two of its key: operations of a kind are about equally fast."""
        return self.key[:2] if isinstance(self.key, tuple) else self.key


@dataclass(frozen=True)
class Item:
    """One text of a request."""

    content: Any
    """What `compute` gets."""
    words: int
    """Its cost."""


class BatchObserver(Protocol):
    """Hears of every batch."""

    def batch_done(self, words: int, waited: Sequence[float], seconds: float) -> None:
        """A batch is computed: its words, seconds that each text waited, and seconds of computing."""

    def queue_changed(self, words: int) -> None:
        """So many words wait now."""


@dataclass(eq=False)
class _Part:
    """Texts of a request that are in the queue together."""

    kind: Hashable
    future: asyncio.Future[list[Any]]
    results: list[Any]
    missing: int
    dropped: bool = False
    queued_words: int = 0
    unfinished_words: int = 0
    """Those that wait or are being computed."""


@dataclass
class _Entry:
    """One text in the queue."""

    number: int
    part: _Part
    position: int
    item: Item
    arrived: float = field(default_factory=time.monotonic)

    @property
    def words(self) -> int:
        return max(self.item.words, 1)


class Batcher:
    """The queue and the thread that computes; made and used in a running event loop.

    `around`: a context that the thread computes in.
    """

    def __init__(
        self,
        *,
        batch_words: int = BATCH_WORDS,
        max_queue_words: int = MAX_QUEUE_WORDS,
        max_wait: float = MAX_WAIT,
        observer: BatchObserver | None = None,
        around: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.batch_words, self.max_queue_words, self.max_wait = batch_words, max_queue_words, max_wait
        self._observer, self._around, self._loop = observer, around, asyncio.get_running_loop()
        self._queues: dict[Hashable, deque[_Entry]] = {}
        self._operations: dict[Hashable, Operation] = {}
        self._numbers = itertools.count()
        self._arrived = threading.Condition()
        self._taken = asyncio.Event()
        self._closed = False
        self.queue_words = 0
        """Words of the texts that wait."""
        self._unfinished: Counter[Hashable] = Counter()  # words that wait or are being computed, by the kind of operation
        self._parts_unfinished = 0
        self._crowded_since: float | None = None
        self._speed = SpeedMeter(batch_words)
        self._computed: list[_Entry] = []  # by the thread, outside of pauses
        self._paused = 0.0  # seconds
        self._thread = threading.Thread(target=self._work, name="polyseme-compute", daemon=True)
        self._thread.start()

    # ---- for requests, in the event loop

    async def run(self, operation: Operation, items: Sequence[Item]) -> list[Any]:
        """Return the results of all items in their order; an item that failed has its exception as the result."""
        return [result async for part in self.stream(operation, items) for result in part]

    async def stream(self, operation: Operation, items: Sequence[Item]) -> AsyncIterator[list[Any]]:
        """Yield the results in their order, a part at a time, as soon as they are there.

        Raises `QueueFullError` before the first part, and never after it. If the caller stops or is cancelled, what is left
        is dropped.
        """
        parts = self._parts(items)
        waiting: deque[_Part] = deque()
        try:
            for number, some in enumerate(parts):
                if number == 0:
                    if not operation.background:
                        self._check_room(operation, some)
                else:
                    while waiting and (waiting[0].future.done() or not self._is_short(operation, some)):
                        yield await waiting[0].future
                        waiting.popleft()
                    await self._room(operation, some)
                waiting.append(self._put(operation, some))
            while waiting:
                yield await waiting[0].future
                waiting.popleft()
        finally:
            for part in waiting:
                self._drop(part)

    async def close(self) -> None:
        """Finish what is in the queue, and end the thread."""
        with self._arrived:
            self._closed = True
            self._arrived.notify()
        await asyncio.to_thread(self._thread.join)

    def refusal_of_next(self, requests: int) -> QueueFullError | None:
        """Why the next request would be refused, before anyone has looked at it; None: there is room.

        `requests` are open. Those that are not yet here count as large as the others.
        """
        coming = requests - self._parts_unfinished
        if coming <= 0 or not self._unfinished:
            return self.refusal()
        kind, words = max(self._unfinished.items(), key=lambda pair: pair[1])
        return self.refusal(kind, coming * words // max(self._parts_unfinished, 1))

    def refusal(self, kind: Hashable = None, words: int = 0) -> QueueFullError | None:
        """Why words for a kind of operation would be refused now; None: there is room."""
        if self._parts_unfinished == 0:
            return None
        if self.queue_words and self.queue_words + max(words, 1) > self.max_queue_words:
            full = f"{self.queue_words:,} words wait to be computed, and {words:,} more do not fit"
            return self._full(f"{full}: the limit is {self.max_queue_words:,} (--max-queue-words)")
        if self._parts_unfinished >= FEW and self._is_overloaded(self.expected_wait(kind, words)):
            return self._full(f"a request would wait longer than {self.max_wait:g} seconds (--max-wait)")
        return None

    def _is_overloaded(self, wait: float) -> bool:
        """Whether a wait is too long now; remembers since when it has been."""
        if wait <= self.max_wait:
            return False
        now = time.monotonic()
        self._crowded_since = now if self._crowded_since is None else self._crowded_since
        return wait > _BURST * self.max_wait or now - self._crowded_since > _BURST_SECONDS

    def expected_wait(self, kind: Hashable = None, words: int = 0) -> float:
        """Seconds until what waits now, and more words, would be computed, as far as the speed so far tells."""
        waiting = self._unfinished + Counter({kind: words})
        return sum(self._speed.seconds(each, count) for each, count in waiting.items())

    def _full(self, message: str) -> QueueFullError:
        seconds = min(max(math.ceil(self.expected_wait()), 1), _MAX_RETRY_SECONDS)
        return QueueFullError(f"{message}; try again later", seconds)

    def _parts(self, items: Sequence[Item]) -> Iterator[list[Item]]:
        """Divide a request into parts of at most a fraction of a batch."""
        some: list[Item] = []
        words, limit = 0, max(self.batch_words // _PARTS, 1)
        for item in items:
            if some and words + item.words > limit:
                yield some
                some, words = [], 0
            some.append(item)
            words += max(item.words, 1)
        if some:
            yield some

    def _is_short(self, operation: Operation, items: list[Item]) -> bool:
        """Whether the queue is so short that a request with texts in it may add more; half of it is left to others."""
        words = _words(items)
        few = self.queue_words + words <= _BATCHES_AHEAD * self.batch_words
        return few and self.expected_wait(operation.kind, words) <= self.max_wait / 2

    def _check_room(self, operation: Operation, items: list[Item]) -> None:
        refusal = self.refusal(operation.kind, _words(items))
        if refusal is not None:
            raise refusal

    async def _room(self, operation: Operation, items: list[Item]) -> None:
        while self.refusal(operation.kind, _words(items)) is not None:
            self._taken.clear()
            await self._taken.wait()

    def _put(self, operation: Operation, items: list[Item]) -> _Part:
        part = _Part(operation.kind, self._loop.create_future(), [None] * len(items), len(items))
        entries = [_Entry(next(self._numbers), part, position, item) for position, item in enumerate(items)]
        part.queued_words = 0 if operation.background else sum(entry.words for entry in entries)
        with self._arrived:
            self._operations[operation.key] = operation
            self._queues.setdefault(operation.key, deque()).extend(entries)
            self._count(part.queued_words)
            self._arrived.notify()
        if not operation.background:
            self._parts_unfinished += 1
            self._unfinish(part, part.queued_words)
        return part

    def _drop(self, part: _Part) -> None:
        with self._arrived:
            part.dropped = True
            self._count(-part.queued_words)
            part.queued_words = 0
        part.future.cancel()
        self._unfinish(part, -part.unfinished_words)
        self._taken.set()

    def _unfinish(self, part: _Part, words: int) -> None:
        """Count words of a part that came, or that are done."""
        part.unfinished_words += words
        self._unfinished[part.kind] += words
        if words < 0 and part.unfinished_words == 0:
            self._parts_unfinished -= 1

    def _count(self, words: int) -> None:
        self.queue_words += words
        if self._observer is not None:
            self._observer.queue_changed(self.queue_words)

    def _deliver(self, batch: list[_Entry], results: list[Any]) -> None:
        for entry, result in zip(batch, results, strict=True):
            part = entry.part
            part.results[entry.position] = result
            part.missing -= 1
            self._unfinish(part, -min(entry.words, part.unfinished_words))
            if part.missing == 0 and not part.future.done():
                part.future.set_result(part.results)
        if self._crowded_since is not None and self.expected_wait() < self.max_wait / 4:
            self._crowded_since = None
        self._taken.set()

    # ---- the thread that computes

    def _work(self) -> None:
        with self._around(), pausing(self._pause):
            while (taken := self._next_batch()) is not None:
                self._computed = taken[1]
                with suppress(_Abandoned):
                    self._compute(*taken)
                self._computed, taken = [], None  # nothing is held while it waits for the next

    def _compute(self, operation: Operation, batch: list[_Entry]) -> None:
        begin, paused = time.monotonic(), self._paused
        results = compute_alone(operation, [entry.item.content for entry in batch])
        if not operation.background:
            self._measure(operation, batch, begin, time.monotonic() - begin - (self._paused - paused))
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._deliver, batch, results)

    def _pause(self) -> None:
        """Compute a batch of short texts that wait while a long one is being computed; stop that if nobody waits for it."""
        if all(entry.part.dropped for entry in self._computed):
            raise _Abandoned
        begin = time.monotonic()
        with self._arrived:
            self._forget_dropped()
            taken = self._take(longest=max(self.batch_words // _PARTS, 1))
        if taken is not None:
            self._compute(*taken)
        self._paused += time.monotonic() - begin

    def _next_batch(self) -> tuple[Operation, list[_Entry]] | None:
        """Wait for texts, and take a batch; None: the batcher is closed and nothing is left."""
        with self._arrived:
            while True:
                self._forget_dropped()
                if (taken := self._take()) is not None:
                    return taken
                if self._closed:
                    return None
                self._arrived.wait()

    def _forget_dropped(self) -> None:
        for key in list(self._queues):
            queue = self._queues[key]
            while queue and queue[0].part.dropped:
                queue.popleft()
            if not queue:
                del self._queues[key], self._operations[key]

    def _take(self, longest: float = math.inf) -> tuple[Operation, list[_Entry]] | None:
        """Take the text that has waited longest, and what fits beside it; texts of more words than `longest` stay."""
        firsts = {key: number for key in self._queues if (number := self._first(key, longest)) is not None}
        if not firsts:
            return None
        key = min(firsts, key=firsts.__getitem__)
        queue, operation, batch, words = self._queues[key], self._operations[key], list[_Entry](), 0
        stay = list[_Entry]()
        while queue and (queue[0].words > longest or not batch or words + queue[0].words <= self.batch_words):
            entry = queue.popleft()
            if entry.part.dropped:
                continue
            if entry.words > longest:
                stay.append(entry)
                continue
            batch.append(entry)
            words += entry.words
            if not operation.background:
                entry.part.queued_words -= entry.words
        queue.extendleft(reversed(stay))
        if not operation.background:
            self._count(-words)
        if not queue:
            del self._queues[key], self._operations[key]
        return operation, batch

    def _first(self, key: Hashable, longest: float) -> int | None:
        """The number of the first text of a queue that may be taken; background work is not done in pauses."""
        if longest < math.inf and self._operations[key].background:
            return None
        return next((entry.number for entry in self._queues[key] if entry.words <= longest and not entry.part.dropped), None)

    def _measure(self, operation: Operation, batch: list[_Entry], begin: float, seconds: float) -> None:
        words = sum(entry.words for entry in batch)
        self._speed.observe(operation.kind, words, seconds)
        if self._observer is not None:
            self._observer.batch_done(words, [begin - entry.arrived for entry in batch], max(seconds, 1e-6))


def _words(items: Sequence[Item]) -> int:
    return sum(item.words for item in items)


def compute_alone(operation: Operation, contents: list[Any]) -> list[Any]:
    """Return a result for each text; a text that cannot be computed gets its exception, and the others their results.

    >>> compute_alone(Operation("inverse", lambda numbers: [1 / number for number in numbers]), [1, 0, 4])
    [1.0, ZeroDivisionError('division by zero'), 0.25]
    """
    try:
        results = list(operation.compute(contents))
        if len(results) != len(contents):
            raise RuntimeError(f"{operation.key} gave {len(results)} results for {len(contents)} texts")
        return results
    except Exception as error:
        if len(contents) == 1:
            if not isinstance(error, PolysemeError):
                _log.error("internal error on a text of %s: %s", operation.key, error_without_texts(error))
            return [_without_frames(error)]
    half = len(contents) // 2
    return compute_alone(operation, contents[:half]) + compute_alone(operation, contents[half:])


def _without_frames(error: Exception) -> Exception:
    """An error whose tracebacks are dropped: their frames would hold the texts, and those that called them the error itself."""
    each: BaseException | None = error
    while each is not None:
        each.__traceback__ = None
        each = each.__cause__ or each.__context__
    return error
