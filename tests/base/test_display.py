"""Bytes and seconds as a person says them."""

import pytest

from polyseme.base.display import format_duration, format_size


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (9_960, "10 kB"),
        (999_600, "1.0 MB"),
        (56_300_000, "56 MB"),
        (1_940_000_000, "1.9 GB"),
        (5e15, "5,000 TB"),
    ],
)
def test_size(count: float, said: str) -> None:
    assert format_size(count) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.31, "0.3 s"),
        (9.96, "10 s"),
        (119.4, "119 s"),
        (119.6, "2 min"),
        (7170, "2 h"),
        (12_001, "3 h 20 min"),
        (172_799, "2 d"),
        (200_000, "2 d 8 h"),
    ],
)
def test_duration(seconds: float, said: str) -> None:
    assert format_duration(seconds) == said
