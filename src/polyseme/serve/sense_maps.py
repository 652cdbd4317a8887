"""Endpoints of the sense map and the layer mix: uses of a word as points, what a text has, neighbours by a mix of layers."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from polyseme.analysis.index import Index
from polyseme.analysis.neighbours import other_sentences, same_words
from polyseme.analysis.plane import aligned, common_words, glide
from polyseme.analysis.samples import samples
from polyseme.analysis.sense_map import SenseMap, Uses, find_uses, indexed_uses, search_mix, sense_map
from polyseme.base.errors import PolysemeError
from polyseme.encoders.language_model import find_position
from polyseme.serve.batching import Item, Operation
from polyseme.serve.errors import unreadable
from polyseme.serve.explorer_schemas import MAP, MIX, TEXT_WORDS, MapRequest, MixRequest, TextWordsRequest
from polyseme.serve.models import ServedModel
from polyseme.serve.recently_used import RecentlyUsed, text_bytes
from polyseme.serve.responses import JsonResponse
from polyseme.serve.service import Service
from polyseme.text.sentences import SentenceSplitter

MAX_GIVEN_WORDS = 200_000
"""Of a text that comes with a request."""
MIN_USES, FREQUENT = 4, 60
SHORT_TEXT, FUNCTION_WORDS = 1000, 150
"""Sentences of a text that is too short to tell which words are common; then they are the first of the model's vocabulary."""
_MEGABYTE = 1024 * 1024
_TEXTS, _VECTORS, _MAPS, _COMMON = 32 * _MEGABYTE, 96 * _MEGABYTE, 64 * _MEGABYTE, 2 * _MEGABYTE  # most that is kept of each


def add_routes(router: APIRouter, service: Service) -> None:
    """Add the endpoints to those under /v1."""
    maps = _Maps(service)

    @router.post("/map", tags=["explorer"], summary="Uses of a word as points, layer by layer.", responses=MAP)
    async def sense_map_of(request: Request, body: MapRequest) -> Response:
        return await maps.map(request, body)

    @router.post("/text-words", tags=["explorer"], summary="Words of the searched text.", responses=TEXT_WORDS)
    async def text_words(body: TextWordsRequest) -> Response:
        return await maps.text_words(body)

    @router.post("/mix", tags=["explorer"], summary="Nearest words by a mix of layers.", responses=MIX)
    async def mix(request: Request, body: MixRequest) -> Response:
        return await maps.mix(request, body)


class _Maps:
    """Answers, and the texts and vectors that were used last."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._texts = RecentlyUsed[list[list[str]]](_TEXTS)
        self._vectors = RecentlyUsed[tuple[Uses, np.ndarray]](_VECTORS)
        self._maps = RecentlyUsed[SenseMap](_MAPS)
        self._common = RecentlyUsed[set[str]](_COMMON)

    async def map(self, request: Request, body: MapRequest) -> Response:
        model = self._service.loaded.model(body.model)
        weights = _checked_weights(body.weights, model)
        key = (model.name, _hash(body.text), body.word.casefold(), body.count)
        uses, stack = await self._uses(request, model, body, key)
        common = await self._common_words(model, body.text)

        def compute(some: list[Any]) -> list[Any]:
            found = self._maps.get((key, body.groups))
            if found is None:
                found = sense_map(uses, stack, groups=body.groups, common=common)
                self._maps.keep((key, body.groups), found, found.points.nbytes + _uses_bytes(uses))
            if weights is not None:
                mixed = np.tensordot(np.array(weights, dtype=np.float32), stack.astype(np.float32), axes=1)
                found = replace(found, points=aligned(glide(mixed[None])[0], found.points[-1])[None])
            return [found.to_json() for _ in some]

        answer = await self._service.ask(
            request, Operation(("map", model.name, id(compute)), compute), None, max(len(uses) // 20, 1)
        )
        return JsonResponse({"model": model.name, "word": body.word, "source": _source(model, body.text), **answer})

    async def text_words(self, body: TextWordsRequest) -> Response:
        model = self._service.loaded.model(body.model)
        if body.text is None and model.index is None:
            raise unreadable(model.no_index, "model")
        sentences = None if body.text is None else await self._given(model, body.text)
        answer = await asyncio.to_thread(_text_words, model, sentences, await self._common_words(model, body.text))
        return JsonResponse({"model": model.name, "source": _source(model, body.text), **answer})

    async def mix(self, request: Request, body: MixRequest) -> Response:
        model = self._service.loaded.model(body.model)
        index, stack = model.index, model.stack
        _checked_weights(body.weights, model)
        if index is None or stack is None:
            reason = model.no_index if index is None else "the searched text is too large to keep all layers of it in memory"
            raise unreadable(reason, "model")
        text = (await self._service.split(model, [body.text], "text"))[0]
        try:
            place = find_position(body.text, text.words, body.word, body.position)
        except PolysemeError as error:
            raise unreadable(str(error), "word" if body.position is None else "position") from None

        def compute(some: list[list[str]]) -> list[Any]:
            read = self._service.sentences
            return [_nearest(read.vectors(model, words), index, stack, words, place, body) for words in some]

        operation = Operation(("mix", model.name, id(compute)), compute)
        found = await self._service.ask(request, operation, text.words, len(text.words))
        head = {"model": model.name, "words": text.words, "offsets": text.offsets, "position": place}
        return JsonResponse({**head, "searched": len(index), "in_context": found})

    async def _uses(self, request: Request, model: ServedModel, body: MapRequest, key: Hashable) -> tuple[Uses, np.ndarray]:
        """The uses of a word and their vectors, (layers, uses, dim)."""
        kept = self._vectors.get(key)
        if kept is not None:
            return kept
        rows: np.ndarray | None = None
        if body.text is not None:
            uses = find_uses(await self._given(model, body.text), body.word, body.count)
        elif model.index is None:
            raise unreadable(model.no_index, "model")
        else:
            uses, rows = await asyncio.to_thread(indexed_uses, model.index, body.word, body.count)
        if not len(uses):
            raise unreadable("the text has no use of this word as the model splits it: choose another word", "word")
        if rows is not None and model.stack is not None:
            found = uses, model.stack[:, rows]
        else:
            found = uses, await self._embedded(request, model, uses)
        self._vectors.keep(key, found, found[1].nbytes + _uses_bytes(uses))
        return found

    async def _embedded(self, request: Request, model: ServedModel, uses: Uses) -> np.ndarray:
        def compute(some: list[tuple[list[str], int]]) -> list[np.ndarray]:
            arrays = model.encoder.embed([words for words, _ in some])
            return [array[:, place].astype(np.float16) for array, (_, place) in zip(arrays, some, strict=True)]

        pairs = zip(uses.sentences, uses.positions, strict=True)
        items = [Item((words, place), len(words)) for words, place in pairs]
        vectors = await self._service.ask_all(request, Operation(("uses", model.name), compute), items, "text")
        return np.stack(vectors, axis=1)

    async def _given(self, model: ServedModel, text: str) -> list[list[str]]:
        """The sentences of a text that came with a request."""
        key = (model.name, _hash(text))
        found = self._texts.get(key)
        if found is None:
            found = await asyncio.to_thread(_sentences, model, text)
            words = sum(map(len, found))
            if words > MAX_GIVEN_WORDS:
                message = f"the text has {words:,} words; the limit is {MAX_GIVEN_WORDS:,}"
                raise unreadable(f"{message}: start the service with --corpus to search more", "text")
            if not words:
                raise unreadable("the text has no words", "text")
            self._texts.keep(key, found, sum(map(text_bytes, found)))
        return found

    async def _common_words(self, model: ServedModel, text: str | None) -> set[str]:
        key = (model.name, _hash(text))
        found = self._common.get(key)
        if found is None:
            index = model.index
            if text is not None:
                made: Callable[[], set[str]] = partial(common_words, await self._given(model, text))
            elif index is None:
                return set()
            else:
                every = max(index.manifest.sentences // 20_000, 1)  # enough to know what is common
                made = partial(common_words, (index.sentence(each) for each in range(0, index.manifest.sentences, every)))
            found = await asyncio.to_thread(made)
            self._common.keep(key, found, _COMMON // 16 + text_bytes(found))  # of a few texts, whatever their size
        return found


def _hash(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _uses_bytes(uses: Uses) -> int:
    return sum(map(text_bytes, uses.sentences)) + 64 * len(uses)


def _source(model: ServedModel, text: str | None) -> str:
    return model.source if text is None else "given"


def _sentences(model: ServedModel, text: str) -> list[list[str]]:
    split = SentenceSplitter({"en": "english", "zh": "chinese"}.get(model.language or "", "lines"))
    return [words for line in text.splitlines() for each in split(line) if (words := model.encoder.words(each))]


def _checked_weights(weights: Sequence[float] | None, model: ServedModel) -> list[float] | None:
    if weights is None:
        return None
    if len(weights) != model.encoder.layers:
        raise unreadable(
            f"{len(weights)} weights; {model.name} has {model.encoder.layers} layers: give one for each", "weights"
        )
    if not any(weights):
        raise unreadable("all weights are 0: give one layer a weight", "weights")
    return list(weights)


def _text_words(model: ServedModel, sentences: list[list[str]] | None, common: set[str]) -> dict[str, Any]:
    """The size of a text, and words worth a map: those of the samples, or frequent ones that are not in most sentences."""
    counts: dict[str, int] = {}
    if sentences is None:
        assert model.index is not None
        types, numbers = model.index.types, np.bincount(model.index.words, minlength=len(model.index.types))
        size = {"sentences": model.index.manifest.sentences, "words": len(model.index)}
        pairs: Any = zip(types, numbers.tolist(), strict=True)
    else:
        size = {"sentences": len(sentences), "words": sum(map(len, sentences))}
        pairs = ((word, 1) for words in sentences for word in words)
    for word, number in pairs:
        folded = word.casefold()
        counts[folded] = counts.get(folded, 0) + number
    if sentences is None and model.source == "samples":
        wanted = list(dict.fromkeys(sample.word for sample in samples(model.language)))  # type: ignore[arg-type]
    else:
        if size["sentences"] < SHORT_TEXT and model.encoder.vocabulary is not None:  # where most words are in many sentences
            common = {word.casefold() for word in itertools.islice(model.encoder.vocabulary, FUNCTION_WORDS)}
        able = (word for word in counts if word not in common and any(map(str.isalpha, word)))
        wanted = sorted(able, key=lambda word: (-counts[word], word))
    found = [{"word": word, "uses": counts[word]} for word in wanted if counts.get(word, 0) >= MIN_USES]
    return {**size, "frequent": found[:FREQUENT]}


def _nearest(
    vectors: np.ndarray, index: Index, stack: np.ndarray, words: list[str], place: int, body: MixRequest
) -> list[dict[str, Any]]:
    """Search all layers of a text, (layers, occurrences, dim), for a word of a sentence with vectors (layers, words, dim)."""
    vector = np.tensordot(np.array(body.weights, dtype=np.float32), vectors[:, place], axes=1)
    same = same_words(index.types, words[place])[index.words]
    among = np.ones(len(index), dtype=bool) if body.same_word is None else same == body.same_word
    elsewhere = other_sentences(index, words)
    among = among if elsewhere is None else among & elsewhere
    found = []
    for row, cosine in search_mix(stack, body.weights, vector, body.count, among).pairs():
        number, at = index.position(row)
        sentence = index.sentence(number)
        found.append({"word": sentence[at], "cosine": cosine, "words": sentence, "position": at})
    return found
