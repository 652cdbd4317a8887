"""A small random model in each published form, with the oracle that reads the same files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.formats.compare import bilm_oracle
from tests.oracle.elmo import OracleElmo
from tests.oracle.make import write_bilm, write_manylangs

SENTENCES = [
    ["The", "first", "sentence", "."],
    ["Second", "."],
    ["naïve", "今天", "x" * 70, "a", "bank"],
]
MORE = [["Another", "one"], ["the", "bank", "of", "the", "river", "."], ["."]]
CARRIED = 3e-5  # see `same_vectors` in tests/formats/compare.py


@dataclass(frozen=True)
class SmallModel:
    folder: Path
    oracle: OracleElmo

    @property
    def options(self) -> str:
        return str(self.folder / "options.json")

    @property
    def weights(self) -> str:
        return str(self.folder / "weights.hdf5")

    @property
    def vocabulary(self) -> str:
        return str(self.folder / "vocab.txt")


def bilm_model(folder: Path, **settings: Any) -> SmallModel:
    write_bilm(folder, **settings)
    return SmallModel(folder, bilm_oracle(folder))


def manylangs_model(folder: Path, **settings: Any) -> SmallModel:
    write_manylangs(folder, **{"word_dim": 6, "char_dim": 5, **settings})
    return SmallModel(folder, OracleElmo.from_manylangs(folder))


def padded(arrays: list[np.ndarray]) -> np.ndarray:
    """(layers, words, dim) each -> (sentences, layers, longest, dim), zero on padding."""
    longest = max(array.shape[1] for array in arrays)
    return np.stack([np.pad(array, ((0, 0), (0, longest - array.shape[1]), (0, 0))) for array in arrays])


def close(got: Any, expected: np.ndarray, atol: float = CARRIED) -> None:
    """The same numbers, of the same shape."""
    got = got.detach().cpu().numpy() if hasattr(got, "detach") else np.asarray(got)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, atol=atol)
