"""Vectors as bytes: JSON, base64 or raw numbers, streamed a part at a time, so that memory does not grow with a request."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from polyseme.serve.errors import CLIENT_CLOSED, ApiError

T = TypeVar("T")
RAW_TYPE = "application/octet-stream"
SEND_SECONDS = 60.0
"""A client that reads nothing of a part for so long is taken for gone, so that it does not keep its place for ever."""
Dtype = Literal["float32", "float16"]
_DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype("<f4"), "float16": np.dtype("<f2")}


@dataclass(frozen=True)
class Format:
    """How vectors are sent: as JSON, or raw in a number format."""

    raw: Dtype | None = None

    @property
    def bytes_per_number(self) -> int:
        return _DTYPES[self.raw or "float32"].itemsize

    def numbers(self, array: np.ndarray) -> bytes:
        """Little-endian numbers in the order of the shape."""
        with np.errstate(over="ignore"):
            return array.astype(_DTYPES[self.raw or "float32"], copy=False).tobytes()


def accepted_format(accept: str) -> Format:
    """What a client accepts: JSON unless it asks for raw numbers.

    >>> accepted_format("*/*"), accepted_format("application/octet-stream; dtype=float16")
    (Format(raw=None), Format(raw='float16'))
    """
    kinds = [[each.strip().casefold() for each in kind.split(";")] for kind in accept.split(",")]
    for kind, *parameters in kinds:
        if kind == RAW_TYPE:
            dtype = next((each.partition("=")[2].strip('" ') for each in parameters if each.startswith("dtype")), "float32")
            if dtype not in _DTYPES:
                raise ApiError(406, f"dtype={dtype} in Accept; allowed: {', '.join(_DTYPES)}")
            return Format(dtype)  # type: ignore[arg-type]
        if kind in ("application/json", "application/*", "*/*", ""):
            return Format()
    raise ApiError(406, f"Accept names no type that is known here; allowed: application/json, {RAW_TYPE}")


def json_bytes(value: Any) -> bytes:
    """A value as JSON in UTF-8; lone surrogates, which UTF-8 cannot have, are escaped.

    >>> json_bytes({"words": ["Straße"]}).decode()
    '{"words":["Straße"]}'
    """
    try:
        return to_json(value, inf_nan_mode="null")
    except ValueError:
        import json

        return json.dumps(value, separators=(",", ":")).encode()


def encoded(array: np.ndarray, encoding: str) -> Any:
    """An array as a JSON value: nested lists, or base64."""
    return base64.b64encode(Format().numbers(array)).decode() if encoding == "base64" else array.tolist()


class JsonResponse(Response):
    """A JSON value."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        return json_bytes(content)


class StreamedResponse(Response):
    """Sends what an iterator gives, and closes it when the client has gone."""

    def __init__(self, chunks: AsyncIterator[bytes], *, media_type: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(media_type=media_type, headers=headers)
        if "content-length" not in (headers or {}):
            del self.headers["content-length"]
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await while_connected(receive, self._send(send))
        except (ApiError, TimeoutError):  # the client has gone or reads nothing, and the status was sent before
            scope.setdefault("state", {})["status"] = CLIENT_CLOSED

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with aclosing(self._chunks) as chunks:  # type: ignore[type-var]
            async for chunk in chunks:
                async with asyncio.timeout(SEND_SECONDS):
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def while_connected(receive: Receive | Request, work: Awaitable[T]) -> T:
    """Wait for work, and cancel it if the client goes away before."""
    receive = receive.receive if isinstance(receive, Request) else receive
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(_disconnected(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ApiError(CLIENT_CLOSED, "the client has gone")
        return task.result()
    finally:
        unfinished = [each for each in (task, gone) if not each.done()]
        for each in unfinished:
            each.cancel()
        await asyncio.gather(*unfinished, return_exceptions=True)
        del task, gone, unfinished  # an exception of the task has this frame: the two would keep each other, and the body


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
