"""What search results show of a page: its text, in a script, since browsers do not let pages of files fetch others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from docutils import nodes

FILE = "search_texts.js"
BLOCKS = (nodes.paragraph, nodes.term, nodes.literal_block)


def sections(page: nodes.document) -> list[tuple[str, str, str]]:
    """The anchor, title and own text of each section; a line break, which is HTML and LaTeX here, becomes a space."""
    for raw in list(page.findall(nodes.raw)):
        raw.replace_self(nodes.Text(" "))
    return [(each["ids"][0], each[0].astext(), own_text(each)) for each in page.findall(nodes.section)]


def own_text(section: nodes.section) -> str:
    """The prose of a section without that of the sections in it; code where there is no prose."""
    own = [each for each in section.findall(lambda node: isinstance(node, BLOCKS)) if _section_of(each) is section]
    prose = [each for each in own if not isinstance(each, nodes.literal_block)]
    return " ".join(" ".join(each.astext().split()) for each in prose or own)


def _section_of(node: Any) -> Any:
    while not isinstance(node, nodes.section | nodes.document):
        node = node.parent
    return node


def add_script(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if page == "search":
        app.add_js_file(FILE)


def write(app: Any, exception: Exception | None) -> None:
    if exception is None and app.builder.format == "html":
        texts = {page: sections(app.env.get_doctree(page)) for page in sorted(app.env.found_docs)}
        script = f"var searchTexts = {json.dumps(texts, ensure_ascii=False, separators=(',', ':'))};\n"
        (Path(app.outdir) / "_static" / FILE).write_text(script, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    app.connect("html-page-context", add_script)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
