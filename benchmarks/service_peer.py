"""The peer of `benchmarks.service`: a model behind FastAPI as people write it, one request, one `encode`.

`python -m benchmarks.service_peer en` serves a model of polyseme. `python -m benchmarks.service_peer sentence-transformers:en`
serves a BERT with as many weights as that model has, by the library of that name; its weights are random, since only speed is
measured.
"""

from __future__ import annotations

import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

import polyseme

OTHER = "sentence-transformers:"
DIM, WORDS = 256, 8000


class Texts(BaseModel):
    input: list[str]


def as_large(model: Any) -> Any:
    """A BERT of sentence-transformers with the vocabulary of a model, and with as many layers as make it about as large."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizerFast

    weights = {name: each.numel() for name, each in model.named_parameters() if not name.startswith("output")}
    wanted = sum(weights.values()) - WORDS * DIM
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = list(dict.fromkeys([*special, *(word.lower() for word in model.vocabulary)]))[:WORDS]
    layers = max(round(wanted / (12 * DIM * DIM)), 1)
    sizes = {"hidden_size": DIM, "num_hidden_layers": layers, "num_attention_heads": 4, "intermediate_size": 4 * DIM}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
        BertTokenizerFast(vocab=str(Path(folder) / "vocab.txt")).save_pretrained(folder)
        BertModel(BertConfig(vocab_size=len(words), **sizes)).save_pretrained(folder)
        transformer = Transformer(folder)
        made = SentenceTransformer(modules=[transformer, Pooling(DIM)], device="cpu")
    print(f"{layers} layers, {sum(weight.numel() for weight in made.parameters()):,} weights", flush=True)
    return made


def main() -> None:
    name = sys.argv[1]
    model = as_large(polyseme.load(name.removeprefix(OTHER))) if name.startswith(OTHER) else polyseme.load(name)
    app = FastAPI()

    @app.get("/readyz")
    def ready() -> str:
        return "ready"

    @app.post("/embed")
    def embed(texts: Texts) -> list[list[float]]:
        found: list[list[float]] = model.encode(texts.input, show_progress_bar=False).tolist()
        return found

    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
