"""Cosine between lower precisions and fp32 for the shipped models: `python -m benchmarks.precisions en TEXT`.

TEXT is a file of raw text, one sentence or paragraph per line. Compares the vectors of every word in every layer. With
`--stored`, compares a copy of the model that is stored in int8 with the model itself, layer by layer, and their perplexities.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from pathlib import Path

import numpy as np

import polyseme
from polyseme.text.labelled.numbered_lines import numbered_lines

PRECISIONS = ("fp16", "bf16", "int8")


def cosines(exact: list[np.ndarray], other: list[np.ndarray]) -> np.ndarray:
    """Return the cosine of every word in every layer."""
    pairs = [(a.reshape(-1, a.shape[-1]), b.reshape(-1, b.shape[-1])) for a, b in zip(exact, other, strict=True)]
    return np.concatenate([(a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1) for a, b in pairs])


def compare_stored(model: polyseme.Elmo, texts: list[str]) -> None:
    """Print what storing the weights in int8 changes."""
    exact = model.embed(texts)
    with tempfile.TemporaryDirectory() as name:
        folder = model.save_pretrained(Path(name) / "int8", precision="int8")
        sizes = [f"{path.name} {path.stat().st_size / 1e6:.2f} MB" for path in sorted(folder.glob("*.safetensors"))]
        stored = polyseme.load(folder)
    print(", ".join(sizes))
    found = stored.embed(texts)
    for layer in range(model.layers):
        values = cosines([each[layer] for each in exact], [each[layer] for each in found])
        print(f"layer {layer}  smallest {values.min():.5f}  mean {values.mean():.6f}")
    for label, each in (("as shipped", model), ("int8", stored)):
        print(f"perplexity {label} {each.perplexity(texts).to_json()['perplexity']['mean']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=["en", "zh"])
    parser.add_argument("text", type=Path)
    parser.add_argument("--lines", type=int, default=120)
    parser.add_argument("--stored", action="store_true", help="compare a copy whose weights are stored in int8")
    given = parser.parse_args()
    lines = (line.strip() for _, line in numbered_lines(given.text))
    texts = list(itertools.islice(filter(None, lines), given.lines))
    model = polyseme.load(given.model)
    if given.stored:
        compare_stored(model, texts)
        return
    exact = model.embed(texts)
    print(f"{given.model}, {len(texts)} lines, {sum(len(each[0]) for each in exact):,} words: cosine to fp32")
    for precision in PRECISIONS:
        model.precision = precision
        found = cosines(exact, model.embed(texts))
        print(
            f"{precision}  smallest {found.min():.5f}  1 in 100 below {np.quantile(found, 0.01):.5f}  mean {found.mean():.6f}"
        )


if __name__ == "__main__":
    main()
