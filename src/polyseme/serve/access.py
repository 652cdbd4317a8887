"""One line in the log for each request, without its texts, and its numbers in the metrics."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from polyseme.serve.metrics import Metrics

_REQUEST_ID = re.compile(r"[\w.-]{1,64}", re.ASCII)
OTHER = "other"
"""The endpoint of an address that there is not."""
_LONGEST = 80  # characters of such an address that the log shows
access_log = logging.getLogger("polyseme.serve.access")


class AccessLog:
    """The outermost middleware."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app, self._metrics = app, metrics
        self._paths: frozenset[str] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.monotonic(), 500
        given = Headers(scope=scope).get("x-request-id", "")
        request_id = given if _REQUEST_ID.fullmatch(given) else f"{random.getrandbits(128):032x}"  # to find a line, no secret
        state = scope.setdefault("state", {})

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers["x-request-id"] = request_id
                headers["x-content-type-options"] = "nosniff"
            await send(message)

        self._metrics.open_requests.inc()
        try:
            await self._app(scope, receive, noted)
        except asyncio.CancelledError:  # the service stops, and did not want to wait longer
            state["status"] = 503
            raise
        finally:
            self._metrics.open_requests.dec()
            self._note(scope, state.get("status", status), time.monotonic() - begin, request_id)

    def _known(self, scope: Scope) -> str:
        """The endpoint of a request that was refused before it got there; other: there is none at its address."""
        if self._paths is None:
            self._paths = frozenset(scope["app"].openapi()["paths"] if "app" in scope else ())
        return scope["path"] if scope["path"] in self._paths else OTHER

    def _note(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        endpoint = getattr(scope.get("route"), "path", None) or self._known(scope)
        self._metrics.request_done(endpoint, status, seconds)
        if endpoint in ("/livez", "/readyz", "/metrics") and (status < 400 or status == 503):  # 503: while loading
            return
        state, client = scope["state"], scope.get("client")
        fields: dict[str, Any] = {
            "client": client[0] if client else None,
            "method": scope["method"],
            # with the name of the task where it is known; of other requests the address may be anything
            "endpoint": scope["path"] if "{" in endpoint and status < 300 else endpoint,
            "path": _shown(scope["path"]) if endpoint == OTHER and status in (404, 405) else None,
            "status": status,
            "texts": state.get("texts"),
            "words": state.get("words"),
            "milliseconds": round(1000 * seconds, 1),
            "request_id": request_id,
        }
        if access_log.isEnabledFor(logging.INFO):  # not by `info`, which looks for the line of code that called it
            extra = {"fields": {name: value for name, value in fields.items() if value is not None}}
            access_log.handle(access_log.makeRecord(access_log.name, logging.INFO, "", 0, "request", (), None, extra=extra))


def _shown(path: str) -> str:
    """An address that there is not, for the log: percent-encoded, so that it is one word, and cropped; without its query."""
    escaped = quote(path.encode("utf-8", "surrogatepass"))
    return escaped if len(escaped) <= _LONGEST else f"{escaped[:_LONGEST]}..."
