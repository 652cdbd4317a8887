"""Formulas as MathML, made when the site is built: browsers show them without JavaScript, fonts or a network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

WORDS = re.compile(r"\\text(?:tt|bf|it)?\{[^}]*\}")


def mathml(formula: str, display: str) -> str:
    """A formula as MathML. The converter escapes signs, but not the `<s>` of a word."""
    escaped = WORDS.sub(lambda found: found[0].replace("<", "&lt;").replace(">", "&gt;"), formula)
    return convert(escaped, display=display)


def visit_inline(writer: Any, node: Any) -> None:
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(writer: Any, node: Any) -> None:
    writer.body.append(mathml(node.astext(), "block"))
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
