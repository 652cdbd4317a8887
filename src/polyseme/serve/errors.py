"""Errors as clients see them: a status, and OpenAI's shape `{"error": {"message", "type", "param", "code"}}`.

Every message says what was given, what is allowed and what to do. A limit is named by the flag that changes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from polyseme.base.errors import PolysemeError
from polyseme.serve.batching import QueueFullError

CLIENT_CLOSED = 499
"""Status in logs and metrics of requests whose client has gone; nobody receives it."""
_KINDS = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "unavailable_error",
}


class ApiError(Exception):
    """A request that is answered with an error."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.param, self.code = status, message, param, code
        self.headers = dict(headers or {})

    def to_json(self) -> dict[str, Any]:
        kind = _KINDS.get(self.status, "invalid_request_error")
        return {"message": self.message, "type": kind, "param": self.param, "code": self.code}

    def response(self) -> Response:
        body = json.dumps({"error": self.to_json()}, ensure_ascii=False).encode("utf-8", "backslashreplace")
        return Response(body, self.status, headers=self.headers, media_type="application/json")

    async def send(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with it, from middleware."""
        await self.response()(scope, receive, send)


def unreadable(message: str, param: str | None = None) -> ApiError:
    """The request cannot be read: what, and why."""
    return ApiError(422, message, param=param)


def not_ready(message: str = "the models are loading: try again later") -> ApiError:
    return ApiError(503, message, code="loading", headers={"Retry-After": "1"})


def too_many(message: str, retry_after: int) -> ApiError:
    return ApiError(429, message, code="overloaded", headers={"Retry-After": str(retry_after)})


def api_error(error: BaseException) -> ApiError:
    """What a client sees of an exception: our own errors in full, and nothing of a bug."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QueueFullError):
        return too_many(str(error), error.retry_after)
    if isinstance(error, PolysemeError):
        return unreadable(str(error))
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error) or type(error).__name__ == "OutOfMemoryError":
        return ApiError(503, "not enough memory for this text: send shorter texts", code="out_of_memory")
    return ApiError(500, "internal error of the service: its log says where", code="internal")
