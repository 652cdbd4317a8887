"""Public scripts (`public_scripts.py`): `polyseme migrate` changes their imports, they run, and the oracle agrees."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from tests.compat.public_scripts import SCRIPTS, TEXT, WITH_EMPTY
from tests.compat.small_models import SmallModel, close, padded
from tests.oracle.elmo import OracleElmo
from tests.oracle.make import VOCABULARY

Arrays = list[np.ndarray]


def carried(oracle: OracleElmo, *batches: list[list[str]]) -> list[Arrays]:
    return oracle.embed_carry(list(batches))


def alone(oracle: OracleElmo, texts: list[list[str]]) -> Arrays:
    return [oracle.embed(words)[0] for words in texts]


def one_by_one(oracle: OracleElmo) -> Arrays:
    return [layers for (layers,) in carried(oracle, *([words] for words in TEXT))]


def warm(oracle: OracleElmo, texts: list[list[str]], size: int = 32) -> Arrays:
    """simple_elmo: from zeros, with the first batch twice."""
    batches = [texts[begin : begin + size] for begin in range(0, len(texts), size)]
    return [each for batch in carried(oracle, batches[0], *batches)[1:] for each in batch]


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors)


def mixed_and_mask(oracle: OracleElmo) -> Arrays:
    """Two mixes of a batch with an empty sentence, and its mask."""
    mask = np.arange(6) < np.array([[len(words)] for words in WITH_EMPTY])
    return [*[padded(carried(oracle, WITH_EMPTY)[0]).mean(1).astype(np.float32)] * 2, mask]


def crf_features(oracle: OracleElmo) -> Arrays:
    """Three sentences alone, each in one mode, then all in two batches: the state goes on."""
    singles = [[words] for words in TEXT]
    first, second, third, *batches = carried(oracle, *singles, TEXT[:2], TEXT[2:])
    modes = [first[0].mean(0), second[0].swapaxes(0, 1), third[0][-1]]
    return modes + [each.mean(0) for batch in batches for each in batch]


def batches(oracle: OracleElmo) -> Arrays:
    """A batch of one empty sentence leaves the state as it is."""
    first, second = carried(oracle, TEXT, WITH_EMPTY)
    return [*first, np.zeros((3, 0, 16)), *second]


def sorted_by_length(oracle: OracleElmo) -> Arrays:
    return [padded(carried(oracle, sorted(TEXT, key=len, reverse=True))[0]).mean(1)]


def many_layers(oracle: OracleElmo) -> Arrays:
    found = alone(oracle, WITH_EMPTY)
    return [each for layer in (0, 1, 2) for each in (x[layer] for x in found)] + [x.mean(0) for x in found]


def simple_vectors(oracle: OracleElmo) -> Arrays:
    vectors = [each.mean(0) for each in warm(oracle, WITH_EMPTY)]
    return [padded(warm(oracle, WITH_EMPTY)).mean(1), *(each @ vectors[-2][1] for each in vectors)]


def simple_pairs(oracle: OracleElmo) -> Arrays:
    first, second = ([unit(each.mean((0, 1))) for each in warm(oracle, text)] for text in (TEXT, TEXT[::-1]))
    return [np.array([[a @ b] for a, b in zip(first, second, strict=True)])]


def bilm_mixes(oracle: OracleElmo) -> Arrays:
    context, question = (padded(batch).mean(1) for batch in carried(oracle, WITH_EMPTY[:3], WITH_EMPTY[3:]))
    return [context, question, context]


def protein(oracle: OracleElmo) -> Arrays:
    layers = oracle.embed(list("MVTYDFGSDEMHD"))[0].sum(0)
    return [layers, layers.mean(0)]


def flair_vectors(oracle: OracleElmo) -> Arrays:
    """After one sentence, "hello", all layers of a word side by side."""
    _, (layers,) = carried(oracle, [["hello"]], TEXT[:1])
    return [layers[:, place].ravel() for place in range(6)]


EXPECTED: dict[str, Callable[[OracleElmo], Arrays]] = {
    "allennlp-embedder": lambda oracle: [layers for (layers,) in carried(oracle, [list("bank .")], TEXT[:1])],
    "allennlp-elmo": mixed_and_mask,
    "allennlp-crf-features": crf_features,
    "allennlp-cache": lambda oracle: [each.mean(0) for each in carried(oracle, TEXT)[0]],
    "allennlp-batches": batches,
    "allennlp-characters": lambda oracle: [alone(oracle, [["naïve"]])[0].mean(0)[None], np.array([[True]])],
    "allennlp-subclass": mixed_and_mask,
    "allennlp-tagger": sorted_by_length,
    "manylangs-features": lambda oracle: [np.stack([each.mean(0)[0] for each in alone(oracle, [[word] for word in TEXT[0]])])],
    "manylangs-means": lambda oracle: [each.mean((0, 1)) for each in alone(oracle, TEXT)],
    "manylangs-layers": many_layers,
    "simple_elmo-vectors": simple_vectors,
    "simple_elmo-senses": lambda oracle: [
        np.stack([unit(each[-1, place]) for each, place in zip(warm(oracle, TEXT), (1, 0, 3), strict=True)])
    ],
    "simple_elmo-pairs": simple_pairs,
    "simple_elmo-subclass": lambda oracle: [padded(warm(oracle, TEXT, 2))],
    "bilm-characters": bilm_mixes,
    "bilm-tokens": lambda oracle: [padded(carried(oracle, TEXT)[0]).mean(1)],
    "bilm-cached": lambda oracle: one_by_one(oracle)[1:2],
    "tfhub-mean": lambda oracle: [
        np.stack([each.mean((0, 1)) for each in alone(oracle, [TEXT[0], ["the", "bank", "of", "the", "moon", "."]])])
    ],
    "tfhub-tokens": lambda oracle: [padded(alone(oracle, TEXT[:2])).mean(1)],
    "tfhub-layers": lambda oracle: [np.moveaxis(each, 0, 2) for each in alone(oracle, WITH_EMPTY)],
    "seqvec": protein,
    "seqvec-embedder": protein,
    "flair": flair_vectors,
}
NOTEBOOKS = ("allennlp-elmo", "manylangs-layers")


def test_every_script_names_its_source() -> None:
    assert set(SCRIPTS) == set(EXPECTED)
    for source, _ in SCRIPTS.values():
        repository, path = source.split(": ")
        assert repository.count("/") == 1 and "." in path


@pytest.mark.parametrize(("name", "notebook"), [*((name, False) for name in SCRIPTS), *((name, True) for name in NOTEBOOKS)])
def test_a_script_runs_after_its_imports_are_changed(
    name: str, notebook: bool, small: SmallModel, many: SmallModel, tmp_path: Path
) -> None:
    if name == "flair":
        pytest.importorskip("flair", reason="needs Flair: make test-integrations")
    _, code = SCRIPTS[name]
    path = tmp_path / ("old.ipynb" if notebook else "old.py")
    path.write_text(as_notebook(code) if notebook else code, encoding="utf-8")
    migration = polyseme.migrate(path, write=True)
    assert migration.written and not migration.notes
    removed = [line for line in migration.diff.splitlines()[2:] if line.startswith("-")]
    assert removed and all("import" in line or "dump_token" in line for line in removed)
    new = path.read_text(encoding="utf-8")
    if notebook:
        cells = json.loads(new)["cells"]
        assert cells[0]["cell_type"] == "markdown"
        new = "\n".join("".join(cell["source"]) for cell in cells[1:]).replace("%matplotlib inline", "")
    model = many if name.startswith("manylangs") else small
    (tmp_path / "vocab.txt").write_text("\n".join(VOCABULARY), encoding="utf-8")
    names: dict[str, Any] = {"OPTIONS": small.options, "WEIGHTS": small.weights, "MODEL": str(model.folder)}
    names |= {"VOCAB": str(tmp_path / "vocab.txt"), "OUT": str(tmp_path), "TEXT": TEXT, "WITH_EMPTY": WITH_EMPTY}
    exec(compile(new, str(path), "exec"), names)
    numbers = np.float64 if name.startswith("simple_elmo") else np.float32
    result, expected = names["result"], EXPECTED[name](model.oracle)
    assert len(result) == len(expected)
    for got, want in zip(result, expected, strict=True):
        assert got.dtype == (bool if want.dtype == bool else numbers)
        close(got, want, atol=1e-4 if "seqvec" in name or name == "simple_elmo-vectors" else 3e-5)  # these are sums


def as_notebook(code: str) -> str:
    """A note, a line for IPython, and the code in two cells."""
    head, _, rest = code.partition("\n\n")
    cells: list[dict[str, Any]] = [{"cell_type": "markdown", "source": ["from allennlp.modules.elmo import Elmo"]}]
    cells += [{"cell_type": "code", "source": text.splitlines(keepends=True)} for text in (f"%matplotlib inline\n{head}", rest)]
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
