"""What the endpoints share: the loaded models, the batcher, the metrics, and the settings."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from starlette.requests import Request

from polyseme.encoders.static_vectors import vocabulary_words
from polyseme.nn.threads import intra_op_threads
from polyseme.serve.batching import Batcher, Item, Operation
from polyseme.serve.config import ServeConfig
from polyseme.serve.errors import ApiError, api_error, not_ready, unreadable
from polyseme.serve.free_memory import free_memory_regularly
from polyseme.serve.metrics import Metrics
from polyseme.serve.models import ServedModel, ServedModels
from polyseme.serve.read_sentences import ReadSentences
from polyseme.serve.responses import while_connected
from polyseme.text.splitting.offsets import CharSpan, offsets_if_same
from polyseme.text.word_vectors import WordVectors

if TYPE_CHECKING:
    from polyseme.analysis.words import WordSpace
    from polyseme.encoders.base import Encoder

T = TypeVar("T")
Loader = Callable[[], ServedModels]
_WORDS_AT_ONCE = 1024  # of a vocabulary whose static vectors are computed: other requests go in between
_LONGEST_WORD = 50  # characters; a text of longer words on average is refused as if it had words of this length
_LONG_INPUT = 20_000  # characters; more are split in a thread, so that other requests go on
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SplitText:
    """A text as the model reads it."""

    words: list[str]
    offsets: list[CharSpan] | None
    """Where the words are in the text; None for a list of words."""


class Service:
    """The state of a process that answers requests; `threads`: how many compute, by default as PyTorch chooses."""

    def __init__(self, config: ServeConfig, load: Loader, threads: int | None = None) -> None:
        self.config, self.metrics, self.sentences = config, Metrics(), ReadSentences()
        self._load, self._threads = load, threads
        self._spaces: dict[str, asyncio.Task[WordSpace]] = {}
        self._loaded: ServedModels | None = None
        self._batcher: Batcher | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self.failure: Exception | None = None
        """Why the models could not be loaded."""

    # ---- life

    async def start(self) -> None:
        """Start the batcher and begin to load."""
        self._batcher = Batcher(
            batch_words=self.config.batch_words,
            max_queue_words=self.config.max_queue_words,
            max_wait=self.config.max_wait,
            observer=self.metrics,
            around=nullcontext if self._threads is None else partial(intra_op_threads, self._threads),
        )

    async def load(self) -> None:
        """Load and warm up; then the service is ready."""
        try:
            loaded = await _in_thread(self._load)
            warm = Operation("warm-up", lambda some: [each.warm_up() for each in some])
            await self.batcher.run(warm, [Item(loaded, 1)])
            self._loaded = loaded
        except Exception as error:
            self.failure = error
            raise
        self._tasks += [asyncio.create_task(self._prepare(loaded)), asyncio.create_task(free_memory_regularly())]

    async def stop(self) -> None:
        for task in (*self._tasks, *self._spaces.values()):
            task.cancel()
        if self._batcher is not None:
            await self._batcher.close()

    @property
    def ready(self) -> bool:
        return self._loaded is not None

    @property
    def batcher(self) -> Batcher:
        assert self._batcher is not None, "the service has not started"
        return self._batcher

    @property
    def loaded(self) -> ServedModels:
        """The models, or a 503 while they are loading."""
        if self._loaded is None:
            raise not_ready()
        return self._loaded

    # ---- for endpoints

    def refusal(self, requests: int) -> ApiError | None:
        """Why one more request than those that are open would be refused, before its body is read; None: there is room."""
        full = None if self._batcher is None else self._batcher.refusal_of_next(requests)
        return None if full is None else api_error(full)

    async def split(self, model: ServedModel, texts: Sequence[str | list[str]], param: str = "input") -> list[SplitText]:
        """Split texts into words; refuse one that is too long, and too many."""
        self.check_texts(texts, param)
        if sum(len(text) for text in texts) > _LONG_INPUT:
            found = await asyncio.to_thread(_split, model, texts)
        else:
            found = _split(model, texts)
        for number, text in enumerate(found):
            self.check_words(len(text.words), number, param)
        return found

    def check_texts(self, texts: Sequence[str | list[str]], param: str = "input") -> None:
        """Refuse too many texts, and those that are too long whatever their words are, before they are split."""
        most = self.config.max_texts
        if len(texts) > most:
            raise unreadable(f"there are {len(texts):,} texts; the limit is {most:,} (--max-texts): send fewer", param)
        for number, text in enumerate(texts):
            long = len(text) // _LONGEST_WORD if isinstance(text, str) else len(text)
            self.check_words(long, number, param)

    def check_words(self, words: int, number: int, param: str = "input") -> None:
        """Refuse a text of too many words."""
        limit = self.config.max_text_words
        if words > limit:
            message = f"item {number} has {words:,} words or more; the limit is {limit:,} (--max-text-words)"
            raise unreadable(f"{message}: send it in parts", f"{param}[{number}]")

    async def _prepare(self, loaded: ServedModels) -> None:
        """Compute what the first `similar` of each model would otherwise wait for."""
        for model in loaded.models.values():
            if model.has_word_space:
                await self.word_space(model)

    async def word_space(self, model: ServedModel) -> WordSpace:
        """The vocabulary of a model as static vectors: computed once, between other requests."""
        if model.name not in self._spaces:
            self._spaces[model.name] = asyncio.create_task(self._make_space(model))
        task = self._spaces[model.name]
        try:
            return await asyncio.shield(task)  # a client that goes away does not stop it for the others
        except Exception:
            self._spaces.pop(model.name, None)
            raise

    async def _make_space(self, model: ServedModel) -> WordSpace:
        from polyseme.analysis.words import WordSpace

        encoder = model.encoder
        if encoder.static or not model.has_word_space:  # a table, or the reason why not
            return await self._in_background(("space", model.name), lambda _: [WordSpace(encoder)], Item(None, 1))
        words, arrays = vocabulary_words(encoder), list[np.ndarray]()
        for begin in range(0, len(words), _WORDS_AT_ONCE):
            some = words[begin : begin + _WORDS_AT_ONCE]  # the sentence does not matter
            arrays.append(await self._in_background(("space", model.name), partial(_static, encoder), Item(some, len(some))))
        return WordSpace(encoder, WordVectors(words, np.concatenate(arrays), len(words)))

    async def _in_background(self, key: tuple[str, str], compute: Callable[[list[Any]], Sequence[Any]], item: Item) -> Any:
        (result,) = await self.batcher.run(Operation(key, compute, background=True), [item])
        if isinstance(result, BaseException):
            raise result
        return result

    async def ask(self, request: Request, operation: Operation, content: Any, words: int) -> Any:
        """Compute one answer while the client waits for it."""
        return (await self.ask_all(request, operation, [Item(content, words)]))[0]

    async def ask_all(self, request: Request, operation: Operation, items: Sequence[Item], param: str = "input") -> list[Any]:
        """Compute all answers; the first that failed is reported."""
        note_words(request, items)
        results = await while_connected(request, self.batcher.run(operation, items))
        for number, result in enumerate(results):
            if isinstance(result, BaseException):
                error = api_error(result)
                where = f"{param}[{number}]" if len(items) > 1 else error.param
                raise ApiError(error.status, error.message, param=where, code=error.code, headers=error.headers)
        return results


def _static(encoder: Encoder, texts: list[list[str]]) -> list[np.ndarray]:
    """Static vectors, on one thread: several wait for each other, and need four times the processor time on a busy machine."""
    with intra_op_threads(1):
        return encoder.embed(texts, layers=0)


async def _in_thread(function: Callable[[], T]) -> T:
    """Call a function in a thread that does not keep the process alive."""
    loop, future = asyncio.get_running_loop(), asyncio.get_running_loop().create_future()

    def deliver(set_result: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            set_result(value)

    def call() -> None:
        try:
            outcome = (future.set_result, function())
        except BaseException as error:
            outcome = (future.set_exception, error)  # type: ignore[assignment]
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(deliver, *outcome)

    threading.Thread(target=call, name="polyseme-load", daemon=True).start()
    return await future


def note_words(request: Request, items: Sequence[Item]) -> None:
    """Keep the size of a request for its line in the log."""
    state = request.scope.setdefault("state", {})
    state["texts"], state["words"] = len(items), sum(item.words for item in items)


def _split(model: ServedModel, texts: Sequence[str | list[str]]) -> list[SplitText]:
    return [_split_one(model, text) for text in texts]


def _split_one(model: ServedModel, text: str | list[str]) -> SplitText:
    words = model.encoder.words(text)
    return SplitText(words, offsets_if_same(words, text) if isinstance(text, str) else None)
