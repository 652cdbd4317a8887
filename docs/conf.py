"""Sphinx settings of both sites, English and Chinese: `make docs`; the tag `zh` chooses the Chinese one.

Nothing is loaded from a network: formulas become MathML when the site is built, and the notebooks of the course show the
output that is stored in them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path[:0] = [str(DOCS / "extensions"), str(DOCS.parent / "src"), str(DOCS.parent)]

import polyseme  # noqa: E402

chinese = tags.has("zh")  # type: ignore[name-defined] # noqa: F821
project = "polyseme"
author = "the polyseme authors"
copyright = "2026 polyseme 的作者们" if chinese else "2026, the polyseme authors"
version = release = polyseme.__version__
language = "zh_CN" if chinese else "en"
locale_dirs = ["../locale"]  # Chinese words of the theme

extensions = [
    *("myst_nb", "chinese_search", "code_lines", "course_files", "english_pages", "mathml", "reference", "search_texts"),
]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
exclude_patterns = ["**/.ipynb_checkpoints"]
suppress_warnings = ["toc.empty_glob"]  # a course without chapters yet

myst_enable_extensions = ["deflist", "dollarmath", "amsmath", "attrs_inline", "attrs_block", "colon_fence"]
myst_heading_anchors = 4
myst_url_schemes = {"http": None, "https": None, "mailto": None, "site": {"url": "{{path}}#{{fragment}}"}}
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, Any] = {}
nb_merge_streams = True

smartquotes_action = "qe"  # quotes and ellipses, no dashes: `--json` in running text is an option

html_theme = "furo"
html_title = "polyseme"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
templates_path = ["templates"]
html_copy_source = False
html_show_search_summary = False  # it would be fetched, which browsers forbid pages of the file system: see search_texts
html_show_sphinx = False
html_search_language = "zh" if chinese else "en"
html_search_scorer = str(DOCS / "extensions" / "search.js")
html_math_renderer = "mathml"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
html_theme_options = {
    "light_css_variables": {f"color-brand-{name}": "#0b5cad" for name in ("primary", "content", "visited")},
    "dark_css_variables": {f"color-brand-{name}": "#7cb7f5" for name in ("primary", "content", "visited")},
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/language.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}

OTHER = DOCS / ("en" if chinese else "zh")


def other_page(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Where the language switch leads: the same page, or the front page where there is no such page."""
    there = any((OTHER / f"{page}{suffix}").exists() for suffix in (".md", ".ipynb")) or page.startswith("reference/generated/")
    up = "../" * (page.count("/") + 1)
    context["other_page"] = f"{up}{OTHER.name}/{page if there or page in ('search', 'genindex') else 'index'}.html"


def setup(app: Any) -> None:
    app.connect("html-page-context", other_page)
