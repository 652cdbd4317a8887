"""Settings for all tests of encoders."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.encoders import small


@pytest.fixture(autouse=True, scope="module")
def short_warm_up() -> Iterator[None]:
    """A warm state after three readings: every save of an ELMo computes one, and fifty readings take 0.2 seconds."""
    assert small.WARM_UP == 50
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("polyseme.encoders.elmo.WARM_UP", 3)
        yield
