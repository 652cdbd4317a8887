"""The peer of `benchmarks.service`: a model behind FastAPI as people write it, one request, one `encode`.

`python -m benchmarks.service_peer MODEL` serves a polyseme model, or, where sentence-transformers is installed, one of its
models: `sentence-transformers/NAME`.
"""

from __future__ import annotations

import socket
import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Texts(BaseModel):
    input: list[str]


def main() -> None:
    name = sys.argv[1]
    if "/" in name and name.startswith("sentence-transformers"):
        from sentence_transformers import SentenceTransformer

        model = SentenceTransformer(name)
    else:
        import polyseme

        model = polyseme.load(name)
    app = FastAPI()

    @app.get("/readyz")
    def ready() -> str:
        return "ready"

    @app.post("/embed")
    def embed(texts: Texts) -> list[list[float]]:
        return model.encode(texts.input, show_progress_bar=False).tolist()

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
