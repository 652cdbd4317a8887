"""Links from Chinese pages to English ones that are not translated: `../../en/results/models.md` leads to the English site."""

from __future__ import annotations

import re
from typing import Any

LINK = re.compile(r"\]\(((?:\.\./)+en/[^)#\s]+)\.md(#[^)]*)?\)")


def rewrite(app: Any, page: str, source: list[str]) -> None:
    source[0] = LINK.sub(lambda found: f"](site:{found[1]}.html{found[2] or ''})", source[0])


def setup(app: Any) -> dict[str, Any]:
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
