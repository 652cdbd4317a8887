"""The notebooks and exercises of the course as an archive to download, for readers without the repository."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def write(app: Any) -> None:
    """Write `course/generated/polyseme-course.zip` of a language, with the folders of the repository, so that commands work."""
    course = Path(app.srcdir) / "course"
    files = [*sorted((ROOT / "course" / "exercises").glob("*.py")), *sorted(course.glob("*.ipynb"))]
    archive = course / "generated" / "polyseme-course.zip"
    archive.parent.mkdir(exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
        for file in files:
            entry = zipfile.ZipInfo(file.relative_to(ROOT).as_posix())  # of 1980: the same files give the same archive
            out.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
