"""Report the Chinese pages that are missing or whose English page has changed: `make docs` does.

A Chinese page ends with a comment that has the hash of the English page it was translated from. After a page has been
brought up to date, `python -m scripts.translations --stamp docs/zh/PAGE.md` writes the new hash. The course has no stamps:
a test compares the code of its two languages. Some pages of the reference and the appendix of the
results are read in English.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAMP = re.compile(r"\n*<!-- translated from (\w+) -->\n*\Z")
_REFERENCE = {f"reference/{page}.md" for page in ("settings", "release-notes")}
ENGLISH_ONLY = {"course", "results/trials.md", *_REFERENCE}
"""Folders, of which only `index.md` is translated, and pages."""


def pairs() -> list[tuple[Path, Path]]:
    """Each English page and its Chinese one, which may be missing."""
    pages = sorted((ROOT / "docs" / "en").rglob("*.md"))
    inside = [(page, page.relative_to(ROOT / "docs" / "en")) for page in pages]
    wanted = [
        (page, path) for page, path in inside if path.name == "index.md" or not {path.parts[0], str(path)} & {*ENGLISH_ONLY}
    ]
    found = [(page, ROOT / "docs" / "zh" / path) for page, path in wanted if "generated" not in path.parts]
    return [(ROOT / "README.md", ROOT / "README.zh.md"), *found]


def hash_of(page: Path) -> str:
    return hashlib.sha256(page.read_bytes()).hexdigest()[:12]


def problems() -> list[str]:
    """A line for each Chinese page that is missing, unstamped or older than its English page."""
    found = []
    for english, chinese in pairs():
        name, source = chinese.relative_to(ROOT), english.relative_to(ROOT)
        if not chinese.exists():
            found.append(f"{name} is missing: translate {source}")
        elif (stamp := STAMP.search(chinese.read_text(encoding="utf-8"))) is None:
            found.append(f"{name} has no hash of its English page: python -m scripts.translations --stamp {name}")
        elif stamp[1] != hash_of(english):
            found.append(f"{name} is stale: {source} has changed since")
    return found


def stamp(chinese: Path) -> None:
    """Write the hash of the English page at the end of a Chinese page."""
    english = {there.resolve(): here for here, there in pairs()}[chinese.resolve()]
    text = STAMP.sub("", chinese.read_text(encoding="utf-8")).rstrip("\n")
    chinese.write_text(f"{text}\n\n<!-- translated from {hash_of(english)} -->\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stamp", nargs="+", type=Path, default=[], help="Chinese pages that are up to date now")
    pages = parser.parse_args().stamp
    for page in pages:
        stamp(page)
    found = problems()
    sys.stdout.write("".join(f"translations: {line}\n" for line in found) or "translations: all pages are up to date\n")


if __name__ == "__main__":
    main()
