"""Batches across requests: the same vectors as `embed`, bounded, and one bad text fails alone."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest

from polyseme.nn.pauses import pause
from polyseme.serve.batching import FEW, Batcher, Item, Operation, QueueFullError
from tests.encoders.small import elmo, sentences

Texts = list[list[str]]


class Recorder:
    """An operation that waits until it may go on, and keeps the batches that it got."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.free, self.began = threading.Event(), threading.Event()

    def operation(self, key: str = "recorded") -> Operation:
        return Operation(key, self.compute)

    def compute(self, contents: list[Any]) -> list[Any]:
        self.batches.append(list(contents))
        self.began.set()
        assert self.free.wait(10)
        return [content * 2 for content in contents]


@asynccontextmanager
async def batcher(**settings: Any) -> AsyncIterator[Batcher]:
    made = Batcher(**settings)
    yield made
    await made.close()


def items(*contents: Any, words: int = 1) -> list[Item]:
    return [Item(content, words) for content in contents]


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        await asyncio.wait_for(test(), 20)

    asyncio.run(limited())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def blocked(queue: Batcher, recorder: Recorder) -> asyncio.Task[list[Any]]:
    """A request that is being computed until the recorder is free."""
    task = asyncio.create_task(queue.run(recorder.operation(), items(0)))
    await until(recorder.began.is_set)
    return task


def test_concurrent_requests_get_the_vectors_of_embed() -> None:
    models = {"first": elmo(), "second": elmo(seed=1)}
    texts = sentences(60, longest=20)
    choices: list[tuple[str, Any]] = [("first", "top"), ("first", "all"), ("second", "mean"), ("first", "top")]

    async def client(queue: Batcher, number: int) -> None:
        name, layers = choices[number % len(choices)]
        model, own = models[name], texts[number * 5 : number * 5 + 5]
        operation = Operation((name, layers), lambda some: model.embed(some, layers=layers))
        found = await queue.run(operation, [Item(text, len(text)) for text in own])
        for array, expected in zip(found, model.embed(own, layers=layers), strict=True):
            np.testing.assert_allclose(array, expected, atol=1e-6)

    async def test() -> None:
        async with batcher(batch_words=100) as queue:
            await asyncio.gather(*(client(queue, number) for number in range(12)))
            assert queue.queue_words == 0

    run(test)


def test_texts_of_several_requests_share_a_batch() -> None:
    recorder = Recorder()

    async def test() -> None:
        async with batcher(batch_words=4) as queue:
            first = await blocked(queue, recorder)
            others = [asyncio.create_task(queue.run(recorder.operation(), items(n, n + 1))) for n in (10, 20, 30)]
            await until(lambda: queue.queue_words == 6)
            recorder.free.set()
            assert await asyncio.gather(first, *others) == [[0], [20, 22], [40, 42], [60, 62]]
        assert recorder.batches == [[0], [10, 11, 20, 21], [30, 31]]

    run(test)


def test_other_operations_have_batches_of_their_own() -> None:
    recorder = Recorder()

    async def test() -> None:
        async with batcher() as queue:
            first = await blocked(queue, recorder)
            calls = [queue.run(recorder.operation(key), items(n)) for n, key in enumerate("abab", start=1)]
            others = [asyncio.create_task(call) for call in calls]
            await until(lambda: queue.queue_words == 4)
            recorder.free.set()
            await asyncio.gather(first, *others)
        assert recorder.batches == [[0], [1, 3], [2, 4]]

    run(test)


def test_a_request_that_would_wait_too_long_is_refused() -> None:
    recorder = Recorder()

    def slow(contents: list[Any]) -> list[Any]:
        time.sleep(0.05)
        return contents

    async def test() -> None:
        async with batcher(batch_words=8, max_wait=0.05) as queue:
            await queue.run(Operation("slow", slow), items(*range(8)))  # now it is known that 8 words take 0.05 s
            first = await blocked(queue, recorder)
            some = [asyncio.create_task(queue.run(Operation("slow", slow), items(n))) for n in range(120)]
            await until(lambda: sum(task.done() for task in some) > 0)
            refused = [task for task in some if task.done()]
            assert 40 <= len(refused) <= 57  # a burst of 0.15 s are 24 words of this speed, but 64 requests are never refused
            with pytest.raises(QueueFullError, match=r"longer than 0.05 seconds \(--max-wait\)"):
                await refused[0]
            assert queue.refusal_of_next(len(some)) is not None and queue.expected_wait() > 0.05
            recorder.free.set()
            await asyncio.gather(first, *some, return_exceptions=True)
            assert queue.refusal_of_next(0) is None and queue.expected_wait() == 0
            assert await queue.run(Operation("slow", slow), items(1)) == [1]

    run(test)


def test_a_few_requests_wait_for_a_slow_model() -> None:
    recorder = Recorder()

    async def test() -> None:
        async with batcher(batch_words=4, max_wait=0.001) as queue:
            first = await blocked(queue, recorder)
            others = [asyncio.create_task(queue.run(recorder.operation(), items(n, words=4))) for n in range(63)]
            await until(lambda: queue.queue_words == 252)
            recorder.free.set()
            assert len(await asyncio.gather(first, *others)) == FEW

    run(test)


def test_a_large_request_is_split_and_lets_others_in() -> None:
    recorder = Recorder()

    async def test() -> None:
        async with batcher(batch_words=2, max_queue_words=8) as queue:
            first = await blocked(queue, recorder)
            large = asyncio.create_task(queue.run(recorder.operation(), items(*range(1, 101))))
            await until(lambda: queue.queue_words == 4)  # two parts of it, not a hundred words
            small = asyncio.create_task(queue.run(recorder.operation(), items(1000)))
            await until(lambda: queue.queue_words == 5)
            recorder.free.set()
            assert await large == [2 * n for n in range(1, 101)]
            await asyncio.gather(first, small)
        assert max(map(len, recorder.batches)) == 2
        assert next(n for n, batch in enumerate(recorder.batches) if 1000 in batch) == 3

    run(test)


def test_a_text_larger_than_a_batch_and_than_the_queue_is_computed() -> None:
    recorder = Recorder()
    recorder.free.set()

    async def test() -> None:
        async with batcher(batch_words=2, max_queue_words=3) as queue:
            assert await queue.run(recorder.operation(), items(1, 2, 3, words=5)) == [2, 4, 6]

    run(test)


class Long:
    """An operation with one long text, which goes on to its pauses when it may."""

    def __init__(self, pauses: int) -> None:
        self.pauses, self.paused = pauses, 0
        self.began, self.free, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.operation = Operation("long", self.compute)

    def compute(self, contents: list[Any]) -> list[Any]:
        self.began.set()
        assert self.free.wait(10)
        try:
            for _ in range(self.pauses):
                pause()
                self.paused += 1
        finally:
            self.ended.set()
        return contents


def test_short_texts_go_first_in_the_pauses_of_a_long_one() -> None:
    long, order = Long(pauses=2), list[list[Any]]()

    def short(contents: list[Any]) -> list[Any]:
        pause()  # nothing: a short text has no pauses inside of another's
        order.append([long.paused, *contents])
        return contents

    async def test() -> None:
        async with batcher(batch_words=8) as queue:
            first = asyncio.create_task(queue.run(long.operation, items("long", words=100)))
            await until(long.began.is_set)
            operations = [Operation("a", short), Operation("b", short), Operation("quiet", short, background=True)]
            given = [(0, 1, 1), (1, 2, 1), (1, 3, 3), (0, 4, 2), (0, 5, 1), (2, 6, 1)]  # operation, content, words
            others = [asyncio.create_task(queue.run(operations[n], items(each, words=words))) for n, each, words in given]
            await until(lambda: queue.queue_words == 8)
            long.free.set()
            await asyncio.gather(first, *others)
            assert queue.queue_words == 0 and queue.expected_wait() >= 0
        assert order == [[0, 1, 4, 5], [1, 2], [2, 3], [2, 6]]  # the third of "b" has more than a quarter of a batch

    run(test)


def test_a_long_text_that_nobody_waits_for_ends_at_the_next_pause() -> None:
    long = Long(pauses=1000)

    async def test() -> None:
        async with batcher() as queue:
            gone = asyncio.create_task(queue.run(long.operation, items("long", words=100)))
            await until(long.began.is_set)
            gone.cancel()
            await asyncio.wait({gone})
            long.free.set()
            await until(long.ended.is_set)
            assert long.paused == 0
            assert await queue.run(Operation("next", lambda some: some), items(1)) == [1]
            assert queue.refusal_of_next(0) is None and queue.expected_wait() == 0

    run(test)


def test_a_full_queue_refuses_and_names_the_limit() -> None:
    recorder = Recorder()

    async def test() -> None:
        async with batcher(max_queue_words=3) as queue:
            first = await blocked(queue, recorder)
            second = asyncio.create_task(queue.run(recorder.operation(), items(1, 2, 3)))
            await until(lambda: queue.queue_words == 3)
            with pytest.raises(QueueFullError, match=r"3 words wait.*the limit is 3 \(--max-queue-words\)") as refused:
                await queue.run(recorder.operation(), items(4))
            assert refused.value.retry_after >= 1
            recorder.free.set()
            await asyncio.gather(first, second)
            assert await queue.run(recorder.operation(), items(4)) == [8]

    run(test)


def test_background_work_takes_its_turn_and_takes_no_room() -> None:
    recorder = Recorder()

    async def test() -> None:
        async with batcher(max_queue_words=3) as queue:
            first = await blocked(queue, recorder)
            behind = Operation("behind", recorder.compute, background=True)
            quiet = asyncio.create_task(queue.run(behind, items(7, words=100)))
            await asyncio.sleep(0)
            assert queue.queue_words == 0
            second = asyncio.create_task(queue.run(recorder.operation(), items(1, 2, 3)))
            await until(lambda: queue.queue_words == 3)
            also = asyncio.create_task(queue.run(behind, items(8)))  # not refused
            recorder.free.set()
            assert await asyncio.gather(first, quiet, second, also) == [[0], [14], [2, 4, 6], [16]]
            assert queue.queue_words == 0

    run(test)


def test_a_cancelled_request_is_dropped() -> None:
    recorder = Recorder()

    async def test() -> None:
        async with batcher() as queue:
            first = await blocked(queue, recorder)
            gone = asyncio.create_task(queue.run(recorder.operation(), items(1, 2)))
            stays = asyncio.create_task(queue.run(recorder.operation(), items(3)))
            await until(lambda: queue.queue_words == 3)
            gone.cancel()
            await until(lambda: queue.queue_words == 1)
            recorder.free.set()
            await asyncio.gather(first, stays)
        assert recorder.batches == [[0], [3]]

    run(test)


def test_one_bad_text_fails_alone() -> None:
    def inverse(numbers: Sequence[int]) -> list[float]:
        return [1 / number for number in numbers]

    async def test() -> None:
        async with batcher() as queue:
            operation = Operation("inverse", inverse)
            bad, good = await asyncio.gather(queue.run(operation, items(1, 0, 2)), queue.run(operation, items(4, 5)))
            assert [type(each) for each in bad] == [float, ZeroDivisionError, float] and good == [0.25, 0.2]
            assert await queue.run(operation, items(8)) == [0.125]

    run(test)


def test_closing_finishes_what_waits() -> None:
    recorder = Recorder()

    async def test() -> None:
        async with batcher() as queue:
            first = await blocked(queue, recorder)
            second = asyncio.create_task(queue.run(recorder.operation(), items(1)))
            await until(lambda: queue.queue_words == 1)
            recorder.free.set()
        assert await asyncio.gather(first, second) == [[0], [2]]

    run(test)
