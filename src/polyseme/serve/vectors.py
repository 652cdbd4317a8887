"""Endpoints that give vectors: of words in context (`words`), and of texts in OpenAI's shape (`embeddings`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from polyseme.base.errors import PolysemeError
from polyseme.encoders.layer_choice import select_layers
from polyseme.encoders.text_pooling import TextPooler, text_pooler
from polyseme.serve.batching import Item, Operation
from polyseme.serve.errors import api_error, unreadable
from polyseme.serve.models import ServedModel
from polyseme.serve.requests import EmbeddingsRequest, TokenizeRequest, WordsRequest
from polyseme.serve.responses import (
    RAW_TYPE,
    Format,
    JsonResponse,
    StreamedResponse,
    accepted_format,
    encoded,
    json_bytes,
    while_connected,
)
from polyseme.serve.script_check import warned
from polyseme.serve.service import Service, SplitText, note_words

_MAX_HEADER = 4000  # bytes; many clients and proxies refuse headers over 8 kB


def embedding(model: ServedModel, layers: Any) -> Operation:
    """The operation that embeds words of a model."""
    key = tuple(layers) if isinstance(layers, list) else layers
    return Operation(("embed", model.name, key), lambda texts: model.encoder.embed(texts, layers=layers))


async def tokenize(service: Service, body: TokenizeRequest) -> Response:
    """Split texts into words, as the model reads them."""
    model = service.loaded.model(body.model)
    texts = await service.split(model, body.input)
    data = [{"index": number, "words": text.words, "offsets": text.offsets} for number, text in enumerate(texts)]
    return JsonResponse({"model": model.name, **warned(model, body.input), "data": data})


async def words(service: Service, request: Request, body: WordsRequest) -> Response:
    """Give the vectors of all words of all texts, a part at a time."""
    model = service.loaded.model(body.model)
    form = accepted_format(request.headers.get("accept", "*/*"))
    try:
        selection = select_layers(body.layers, model.encoder.layers)
    except PolysemeError as error:
        raise unreadable(str(error), "layers") from None
    layers = None if selection.single else len(np.arange(model.encoder.layers)[selection.index])
    texts = await service.split(model, body.input)
    items = [Item(text.words, len(text.words)) for text in texts]
    note_words(request, items)
    parts = service.batcher.stream(embedding(model, body.layers), items)
    first = await while_connected(request, anext(parts))  # what is refused is refused before the status is sent
    if len(items) == 1 and isinstance(first[0], BaseException):
        raise api_error(first[0])
    shape = (model.encoder.dim,) if layers is None else (layers, model.encoder.dim)
    told = warned(model, body.input, empty="whose list of vectors is empty")
    if form.raw is None:
        head = {"model": model.name, **told, "layers": body.layers, "dim": model.encoder.dim}
        return StreamedResponse(_json(head, texts, _resumed(first, parts), body.encoding_format), media_type="application/json")
    headers = _raw_headers(texts, shape, form) | _header(told)
    return StreamedResponse(_raw(texts, shape, _resumed(first, parts), form), media_type=RAW_TYPE, headers=headers)


async def _resumed(first: list[Any], parts: AsyncIterator[list[Any]]) -> AsyncIterator[list[Any]]:
    """All parts, of which the first is there."""
    async with aclosing(parts):  # type: ignore[type-var]
        yield first
        async for part in parts:
            yield part


async def _json(
    head: dict[str, Any], texts: Sequence[SplitText], parts: AsyncIterator[list[Any]], encoding: str
) -> AsyncIterator[bytes]:
    """`{"model": ..., "data": [...]}`, a part at a time."""
    yield json_bytes(head)[:-1] + b',"data":['
    done = 0
    async with aclosing(parts):  # type: ignore[type-var]
        async for part in parts:
            items = [_item(number, texts[number], result, encoding) for number, result in enumerate(part, done)]
            yield (b"," if done else b"") + b",".join(map(json_bytes, items))
            done += len(part)
    yield b"]}"


def _item(number: int, text: SplitText, result: Any, encoding: str) -> dict[str, Any]:
    item: dict[str, Any] = {"index": number, "words": text.words, "offsets": text.offsets}
    if isinstance(result, BaseException):
        return item | {"vectors": None, "error": api_error(result).to_json()}
    return item | {"shape": result.shape, "vectors": encoded(result, encoding)}


async def _raw(
    texts: Sequence[SplitText], shape: tuple[int, ...], parts: AsyncIterator[list[Any]], form: Format
) -> AsyncIterator[bytes]:
    """The numbers of each text; of one that failed, NaN."""
    done = 0
    async with aclosing(parts):  # type: ignore[type-var]
        async for part in parts:
            arrays = [
                np.full((*shape[:-1], len(texts[number].words), shape[-1]), np.nan, dtype=np.float32)
                if isinstance(result, BaseException)
                else result
                for number, result in enumerate(part, done)
            ]
            yield b"".join(map(form.numbers, arrays))
            done += len(part)


def _raw_headers(texts: Sequence[SplitText], shape: tuple[int, ...], form: Format) -> dict[str, str]:
    counts = [len(text.words) for text in texts]
    total = sum(counts)
    listed = ",".join(map(str, counts))
    headers = {
        "content-length": str(total * int(np.prod(shape)) * form.bytes_per_number),
        "x-dtype": form.raw or "float32",
        "x-dim": str(shape[-1]),
        "x-words": str(total),
    }
    if len(shape) == 2:
        headers["x-layers"] = str(shape[0])
    if len(listed) <= _MAX_HEADER:
        headers["x-word-counts"] = listed
    return headers


def _header(told: dict[str, str]) -> dict[str, str]:
    """The warning of an answer as a header, which has ASCII only."""
    return {f"x-{name}": text.encode("ascii", "backslashreplace").decode() for name, text in told.items()}


async def embeddings(service: Service, request: Request, body: EmbeddingsRequest) -> Response:
    """Give one vector per text, as `Encoder.encode` does."""
    model = service.loaded.model(body.model)
    pooler = text_pooler(model.encoder)
    if body.dimensions not in (None, pooler.dim):
        message = f"dimensions is {body.dimensions}; {model.name} has vectors of {pooler.dim} numbers: leave it out"
        raise unreadable(message, "dimensions")
    texts = await service.split(model, body.input)
    items = [Item(text.words, len(text.words)) for text in texts]
    operation = Operation(("encode", model.name), lambda some: _pooled(model, pooler, some))
    results = await service.ask_all(request, operation, items)
    data = [
        {"object": "embedding", "index": number, "embedding": encoded(vector, body.encoding_format)}
        for number, vector in enumerate(results)
    ]
    used = sum(item.words for item in items)
    usage = {"prompt_tokens": used, "total_tokens": used}
    told = warned(model, body.input, empty="whose vector is all zeros")
    return JsonResponse({"object": "list", **told, "data": data, "model": model.name, "usage": usage})


def _pooled(model: ServedModel, pooler: TextPooler, texts: list[list[str]]) -> list[np.ndarray]:
    arrays = model.encoder.embed(texts, layers=pooler.layers)
    return [pooler(words, array) for words, array in zip(texts, arrays, strict=True)]
