"""Write `docs/en/reference/openapi.json`, the description of the HTTP service; run it after an endpoint or schema changes."""

from __future__ import annotations

import json
from pathlib import Path

from polyseme.serve.app import create_app
from polyseme.serve.config import ServeConfig
from polyseme.serve.models import ServedModels

OUT = Path(__file__).parents[1] / "docs" / "en" / "reference" / "openapi.json"


def main() -> None:
    document = create_app(ServeConfig(), lambda: ServedModels({})).openapi()
    OUT.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
