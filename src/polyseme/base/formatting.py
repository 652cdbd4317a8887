"""Sizes and durations in readable units."""

from __future__ import annotations


def format_size(count: float) -> str:
    """Format a number of bytes.

    >>> format_size(812), format_size(1_940_000_000), format_size(56_300_000)
    ('812 bytes', '1.9 GB', '56 MB')
    """
    if count < 1000:
        return f"{count:.0f} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        count /= 1000
        if count < 999.5 or unit == "TB":
            break
    return f"{count:.1f} {unit}" if count < 9.95 else f"{count:,.0f} {unit}"


def format_duration(seconds: float) -> str:
    """Format seconds, in at most two units.

    >>> format_duration(0.31), format_duration(42), format_duration(12_001), format_duration(200_000)
    ('0.3 s', '42 s', '3 h 20 min', '2 d 8 h')
    """
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if round(seconds) < 120:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 120:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d {hours} h" if hours else f"{days} d"
