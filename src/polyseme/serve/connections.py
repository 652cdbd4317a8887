"""Connections whose headers must arrive in time and be of a bounded size.

uvicorn waits for the end of the headers for ever, and keeps all of them: without this, clients that send nothing, or a header
without an end, would hold connections and memory. Bodies have limits of their own (`polyseme.serve.limits`).
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

MAX_HEADER_BYTES = 256 * 1024
"""Of the request line and all headers; browsers and proxies send at most 64 kB."""
_REFUSAL = "HTTP/1.1 {}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def guarded_protocol(seconds: float) -> type[asyncio.Protocol]:
    """The class that answers connections; headers must arrive within `seconds`."""

    class Guarded(AutoHTTPProtocol):  # type: ignore[valid-type,misc]
        transport: asyncio.Transport
        cycle: Any  # the request that is being answered, or was the last one
        _timer: asyncio.TimerHandle | None = None
        _received = 0

        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._awaits_headers():
                self._stop()
                return
            self._received += len(data)
            if self._received > MAX_HEADER_BYTES:
                self._refuse("431 Request Header Fields Too Large")
            elif self._timer is None:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop()
            super().connection_lost(exc)

        def _awaits_headers(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self) -> None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._late)

        def _stop(self) -> None:
            self._received = 0
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._timer = None
            if not self._awaits_headers():
                return
            if self._received:
                self._refuse("408 Request Timeout")
            else:  # opened in advance, by a browser or proxy that does not expect an answer
                self.transport.close()

        def _refuse(self, status: str) -> None:
            if not self.transport.is_closing():
                self.transport.write(_REFUSAL.format(status).encode())
                self.transport.close()

    return Guarded
