"""Give memory that is free inside the service back to the system, again and again.

Answers need arrays of many sizes for a moment: after 36 sentences of up to 300 words, a third of all private memory was free
and kept.
"""

from __future__ import annotations

import asyncio

from polyseme.base.free_memory import free_memory

SECONDS = 30.0
"""Between two times."""


async def free_memory_regularly() -> None:
    """Give free memory back every `SECONDS`, beside other work, until cancelled."""
    while True:
        await asyncio.sleep(SECONDS)
        await asyncio.to_thread(free_memory)
