"""What is checked of every request before it is read: its host, its key, its type, its size, its depth.

These are plain ASGI middlewares. They hold back a body until it is complete and within the limits, so that nothing behind them
sees an oversized or half-sent one. `Host` is checked against DNS rebinding, by which a web page could call a service on the
user's own machine; JSON is required, because a browser sends other types to foreign addresses without asking first.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import re
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyseme.serve.config import ServeConfig
from polyseme.serve.errors import CLIENT_CLOSED, ApiError, too_many, unreadable
from polyseme.serve.page_files import is_page

MAX_DEPTH = 8
"""Brackets within brackets in JSON; our own requests have at most three."""
MAX_FIELDS = 64
"""Of a body; our own requests have at most eight."""
MAX_OTHER_VALUES = 1024
"""Numbers and lists of a body besides its texts: a weight or number of each layer."""
MAX_NAME = 100
"""Characters of a field's name that an error repeats."""
PARSED = "polyseme.json"
"""Where the parsed body is in the ASGI scope."""
_HELD, _HELD_BODIES = "polyseme.held", 16  # where the bytes of a body are counted; bodies of the largest size at a time
OPEN_PATHS = ("/livez", "/readyz")
"""Health checks of load balancers have neither a key nor our host name."""
_WITH_BODY = ("POST", "PUT", "PATCH")
_DISCARDED, _DISCARD_SECONDS = 8, 5.0  # of a body that is too large: times the limit, and seconds
_NO_SIGNS = bytes(set(range(256)) - set(b'[]{},:"'))
_STEPS = bytes.maketrans(b'[]{},:"', b"\x01\xff\x01\xff\0\0\0")  # what a sign adds to the depth
_LONG_BODY = 100_000  # bytes; more are read in a thread, so that other requests go on


class HostCheck:
    """Refuses requests for host names that are not ours."""

    def __init__(self, app: ASGIApp, config: ServeConfig) -> None:
        self._app = app
        self._names = {name.casefold() for name in ("localhost", config.host, *config.allow_host)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS and not self._is_ours(Headers(scope=scope)):
            message = "the Host header names another host: start the service with --allow-host NAME to accept it"
            await ApiError(421, message, code="wrong_host").send(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_ours(self, headers: Headers) -> bool:
        given = headers.getlist("host")
        if len(given) != 1:
            return False
        name = host_name(given[0])
        return "*" in self._names or name in self._names or _is_address(name)


def host_name(host: str) -> str:
    """The name in a `Host` header, without the port.

    >>> host_name("Example.org:8000"), host_name("[::1]:8000"), host_name("::1")
    ('example.org', '::1', '::1')
    """
    found = re.fullmatch(r"\[([^]]*)\](?::\d*)?", host)
    if found:
        return found[1].casefold()
    return (host if host.count(":") > 1 else host.partition(":")[0]).casefold()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Gate:
    """Checks the key, reads the body within the limits and parses it; what passes has its JSON in the scope."""

    def __init__(self, app: ASGIApp, config: ServeConfig, refusal: Callable[[int], ApiError | None]) -> None:
        self._app, self._config, self._refusal = app, config, refusal
        self._key = config.api_key.encode() if config.api_key else None
        self._open = 0
        self._held = 0  # bytes of bodies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        if scope["method"] not in _WITH_BODY:  # cheap: pages, lists, metrics
            await self._pass(scope, receive, send)
            return
        refusal = self._full()
        if refusal is not None:
            await refusal.send(scope, receive, send)
            return
        self._open += 1
        try:
            await self._pass(scope, receive, send)
        finally:
            self._open -= 1
            self._held -= scope.get(_HELD, 0)

    def _full(self) -> ApiError | None:
        """Why a request is refused before it is read, which costs least; None: there is room."""
        if self._open >= self._config.max_requests:
            return too_many(f"{self._open} requests are open, which is the limit (--max-requests): try again later", 1)
        return self._refusal(self._open)

    async def _pass(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._app(scope, await self._checked(scope, receive), send)
        except ApiError as error:
            await error.send(scope, receive, send)

    async def _checked(self, scope: Scope, receive: Receive) -> Receive:
        headers = Headers(scope=scope)
        if not is_page(scope["path"]):
            self._check_key(headers)
        if scope["method"] not in _WITH_BODY:
            return receive
        _check_type(headers)
        body, gzip = await self._body(headers, scope, receive)
        if gzip or len(body) > _LONG_BODY:
            body, scope[PARSED] = await asyncio.to_thread(self._opened, body, gzip)
        else:
            body, scope[PARSED] = self._opened(body, gzip)
        return _replayed(body, receive)

    def _opened(self, body: bytes, gzip: bool) -> tuple[bytes, Any]:
        """A body as text, and the JSON in it."""
        body = self._decompressed(body) if gzip else body
        return body, parsed(body, max_texts=self._config.max_texts, max_text_words=self._config.max_text_words)

    def _check_key(self, headers: Headers) -> None:
        if self._key is None:
            return
        kind, _, given = headers.get("authorization", "").partition(" ")
        right = hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), self._key)
        if not right or kind.casefold() != "bearer":
            message = "the key is missing or wrong: send the header `Authorization: Bearer KEY`"
            raise ApiError(401, message, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})

    async def _body(self, headers: Headers, scope: Scope, receive: Receive) -> tuple[bytes, bool]:
        """The body as it was sent, and whether that is gzip."""
        encoding = headers.get("content-encoding", "identity").strip().casefold()
        if encoding not in ("identity", "gzip"):
            raise ApiError(415, "the body is encoded in a way that is not known here; allowed: gzip, or none")
        try:
            async with asyncio.timeout(self._config.read_timeout):
                body = await self._read(headers, scope, receive)
        except TimeoutError:
            limit = f"{self._config.read_timeout:g} seconds (--read-timeout)"
            raise ApiError(408, f"the body did not arrive within {limit}", headers={"Connection": "close"}) from None
        return body, encoding == "gzip"

    async def _read(self, headers: Headers, scope: Scope, receive: Receive) -> bytes:
        limit, chunks, size = self._config.max_body_bytes, list[bytes](), 0
        declared = headers.get("content-length", "")
        too_large = declared.isdecimal() and int(declared[:20]) > limit
        deadline = time.monotonic() + _DISCARD_SECONDS
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ApiError(CLIENT_CLOSED, "the client has gone")
            chunk = message.get("body", b"")
            size += len(chunk)
            too_large = too_large or size > limit
            if too_large:
                # most clients read an answer only after they have sent everything: what comes is thrown away, for a while
                chunks.clear()
                more = message.get("more_body") and size < _DISCARDED * limit and time.monotonic() < deadline
                if not more:
                    raise self._too_large("the body")
                continue
            chunks.append(chunk)
            self._hold(scope, len(chunk))
            if not message.get("more_body"):
                return b"".join(chunks)

    def _hold(self, scope: Scope, size: int) -> None:
        """Count bytes that are in memory until the request is answered."""
        scope[_HELD] = scope.get(_HELD, 0) + size
        self._held += size
        if self._held > _HELD_BODIES * self._config.max_body_bytes and self._open > 1:
            raise too_many("the bodies of the open requests are too large together: try again later", 1)

    def _decompressed(self, body: bytes) -> bytes:
        limit, reader = self._config.max_body_bytes, zlib.decompressobj(wbits=31)
        try:
            text = reader.decompress(body, limit + 1)
        except zlib.error:
            raise unreadable("the body is said to be gzip, and is not") from None
        if len(text) > limit:
            raise self._too_large("the decompressed body")
        if not reader.eof or reader.unused_data:
            raise unreadable("the gzip body is cut off, or something follows it")
        return text

    def _too_large(self, what: str) -> ApiError:
        limit = f"{self._config.max_body_bytes:,} bytes (--max-body-bytes)"
        message = f"{what} is larger than {limit}: send fewer texts per request, or raise the limit"
        return ApiError(413, message, code="body_too_large", headers={"Connection": "close"})


def _check_type(headers: Headers) -> None:
    kind, _, rest = headers.get("content-type", "").partition(";")
    charset = rest.replace('"', "").replace(" ", "").casefold()
    if kind.strip().casefold() != "application/json" or (charset and charset not in ("charset=utf-8", "charset=utf8")):
        raise ApiError(415, "the body must be JSON in UTF-8: send the header `Content-Type: application/json`")


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body, and after it what the real one does: the client leaves."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again


def parsed(body: bytes, *, max_texts: int, max_text_words: int) -> Any:
    """Parse JSON in UTF-8 of a bounded depth, with as many lists as texts are allowed.

    The parser stops all threads until it is done, so what it would build is counted before: four million lists take it seconds.

    >>> parsed(b'{"input": ["a [b"]}', max_texts=1, max_text_words=2)
    {'input': ['a [b']}
    """
    signs = signs_of(body)
    if depth(signs) > MAX_DEPTH:
        raise unreadable(f"the JSON is nested too deeply; allowed: {MAX_DEPTH} brackets within each other")
    _check_count("fields", signs.count(b":"), MAX_FIELDS, "with the names that /openapi.json lists")
    values = max(signs.count(b"[") + signs.count(b"{"), signs.count(b",") - signs.count(b'"'))  # or more
    _check_count("lists and numbers", values, max_texts + MAX_OTHER_VALUES, "a list for each text (--max-texts) and some more")
    try:
        value = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise unreadable(f"the body is not UTF-8: byte {error.start} is wrong") from None
    except json.JSONDecodeError as error:
        raise unreadable(f"the body is not JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError):
        raise unreadable("the body has a number that cannot be read") from None
    _check_lengths(value, max(max_texts, max_text_words))
    return value


def _check_count(what: str, count: int, most: int, allowed: str) -> None:
    if count > most:
        raise unreadable(f"the body has {count:,} {what}; allowed: {most:,}, {allowed}")


def _check_lengths(value: Any, most: int) -> None:
    """Refuse a list of far too many texts or words before each of them is looked at."""
    for name, items in value.items() if isinstance(value, dict) else ():
        if isinstance(items, list) and len(items) > most + MAX_OTHER_VALUES:
            limit = f"the limit is {most:,} (the larger of --max-texts and --max-text-words)"
            raise unreadable(f"a list has {len(items):,} items; {limit}: send fewer", name[:MAX_NAME])


def _refuse_constant(name: str) -> None:
    raise unreadable(f"the body has {name}, which is no JSON")


def signs_of(body: bytes) -> bytes:
    """The brackets, commas and colons of JSON, and one quotation mark for each text; what is inside of texts is left out.

    NumPy finds them in a tenth of a second in any body of 16 MB, and other threads go on meanwhile.

    >>> signs_of(rb'{"input": ["a [b", "c\\"d", 12]}')
    b'{":[",",]}'
    """
    unescaped = body.replace(rb"\\", b"").replace(rb"\"", b"")
    signs = np.frombuffer(unescaped.translate(None, _NO_SIGNS), np.uint8)
    inside = np.logical_xor.accumulate(signs == ord('"'))  # from the first quotation mark of a text to before its last
    return signs[~inside].tobytes()


def depth(signs: bytes) -> int:
    """The most brackets that are open at a time.

    >>> depth(b'[[],"]'), depth(b"[[[]]]"), depth(b"")
    (2, 3, 0)
    """
    steps = np.frombuffer(signs.translate(_STEPS), np.int8)
    return int(np.cumsum(steps, dtype=np.int32).max(initial=0))
