"""`polyseme encode`: one vector per line, shown, as JSON, or in a file."""

import json

import numpy as np
import pytest

from polyseme.encoders.base import Encoder

LINES = ["The bank of the river.", "", "Money in the bank, isn't it?"]


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def test_a_file_holds_what_the_library_gives(run, model, text, tmp_path):
    loaded = Encoder.from_pretrained(model)
    out = tmp_path / "vectors.npy"
    assert run("encode", "--input", text, "--model", model, "--out", out, "--pooling", "max").code == 0
    np.testing.assert_allclose(np.load(out), loaded.encode(LINES, pooling="max"), atol=1e-6)
    fitted = loaded.fit_pooling(LINES).save_pretrained(tmp_path / "fitted")
    result = run("encode", "--input", text, "--model", fitted, "--out", out, "--normalize")
    assert result.code == 0 and f"3 lines, vectors of {np.load(out).shape[1]} numbers" in result.out
    assert "1 text without a word (line 2), whose vectors are zeros" in result.err
    np.testing.assert_allclose(np.load(out), loaded.encode(LINES, normalize_embeddings=True), atol=1e-6)


def test_shown_and_as_json(run, model):
    shown = run("encode", "A bank", "", "--model", model)
    assert shown.code == 0 and "line 1: the first of 16 numbers" in shown.out
    rows = [json.loads(line) for line in run("encode", "A bank", "--model", model, "--json").out.splitlines()]
    np.testing.assert_allclose(rows[0]["vector"], Encoder.from_pretrained(model).encode("A bank"), atol=1e-5)


def test_mistakes(run, model, tmp_path):
    for options, told in (
        (["--out", tmp_path / "v.txt"], "a name that ends in .npy"),
        (["--pooling", "sif"], "needs statistics of text, which this model lacks"),
    ):
        result = run("encode", "A bank", "--model", model, *options)
        assert result.code == 2 and told in result.err.replace("\n", " ")
