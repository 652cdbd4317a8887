"""Model cards: a README.md with the front matter of the Hugging Face Hub and a table of facts about the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def write_card(title: str, facts: Mapping[str, Any], *, licence: str | None = None, text: str = "") -> str:
    """Return the text of a card; facts that are None are left out."""
    front = ["---", "library_name: polyseme", "tags:", "- polyseme", "- word-embeddings"]
    front += [f"license: {licence}"] if licence else []
    rows = [f"| {name.replace('_', ' ')} | {value} |" for name, value in facts.items() if value is not None]
    table = ["| | |", "|---|---|", *rows]
    use = ["```python", "import polyseme", "", 'model = polyseme.load("path/to/this/folder")', "```"]
    blocks = ["\n".join([*front, "---"]), f"# {title}", text, "\n".join(table), "\n".join(use)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def licence_of(card: str | None) -> str | None:
    """Return the licence in a card's front matter.

    >>> licence_of(write_card("a model", {}, licence="apache-2.0"))
    'apache-2.0'
    """
    if not card or not card.startswith("---\n"):
        return None
    for line in card.split("\n---", 1)[0].splitlines():
        if line.startswith("license:"):
            return line.removeprefix("license:").strip() or None
    return None
