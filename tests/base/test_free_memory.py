"""Memory that is free between blocks that stay goes back to the system."""

from __future__ import annotations

import pytest

from polyseme.base.free_memory import free_memory, trim


@pytest.mark.skipif(trim() is None, reason="another allocator than glibc's")
def test_memory_between_blocks_that_stay_goes_back() -> None:
    blocks = [bytes(100_000) for _ in range(1000)]  # below the size that the system gives and takes by itself
    del blocks[::2]
    assert free_memory()
    del blocks
