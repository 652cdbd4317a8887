"""How rows reach a part."""

from __future__ import annotations

import threading

import pytest

from polyseme.scale.part import one_behind


def test_calls_run_in_order_one_behind() -> None:
    seen: list[int] = []
    may_run = threading.Event()

    def slow(number: int) -> None:
        assert may_run.wait(60)
        seen.append(number)

    with one_behind(slow) as call:
        call(1)  # comes back while the call waits
        assert seen == []
        may_run.set()
        for number in (2, 3, 4):
            call(number)
            assert seen[: number - 1] == list(range(1, number))
    assert seen == [1, 2, 3, 4]


def test_errors_come_with_the_next_call_or_at_the_end() -> None:
    def fail(number: int) -> None:
        raise OSError(f"no room for {number}")

    with pytest.raises(OSError, match="no room for 1"), one_behind(fail) as call:
        call(1)
        call(2)
    with pytest.raises(OSError, match="no room for 1"), one_behind(fail) as call:
        call(1)


def test_an_error_between_calls_is_the_one_that_is_raised() -> None:
    done: list[int] = []
    with pytest.raises(KeyError), one_behind(done.append) as call:
        call(1)
        raise KeyError
    assert done == [1]
