"""A full disk is one sentence and no result, in a real process: by a limit on the size of files, which fails alike."""

import subprocess
import sys

import pytest

from polyseme.formats.vectors import hdf5
from tests.cli.running import Result, environment, one_sentence
from tests.oracle.make import VOCABULARY, write_bilm


@pytest.fixture(scope="module")
def bilm(tmp_path_factory):
    return write_bilm(tmp_path_factory.mktemp("models") / "my-elmo", vocabulary=list(VOCABULARY), softmax=True)


def limited(blocks: int, *arguments: object, held: int = hdf5.SHARD_BYTES) -> Result:
    """The command line where no file may be larger than some KiB; `held`: bytes that HDF5 keeps in memory."""
    code = "import sys; from polyseme.formats.vectors import hdf5; from polyseme.__main__ import main; "
    code += f"hdf5.SHARD_BYTES = {held}; sys.exit(main())"
    call = ["bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash", sys.executable, "-c", code, *map(str, arguments)]
    done = subprocess.run(call, capture_output=True, env=environment(), check=False)
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("held", [pytest.param(hdf5.SHARD_BYTES, marks=pytest.mark.slow), 100_000])
@pytest.mark.parametrize("kind", [".hdf5", ".npz"])
def test_embed(bilm, tmp_path, kind, held):
    """Both ways to fail: a part that is too large, and parts that are too large together."""
    text, out = tmp_path / "big.txt", tmp_path / f"uf{kind}"
    text.write_text("the bank of\n" * 5_000)
    result = limited(300, "embed", "--input", text, "--model", bilm, "--out", out, "--batch-words", 256, held=held)
    assert f"cannot write {out}: File too large" in one_sentence(result)
    assert not out.exists()


def test_convert_to_bilm(bilm, tmp_path):
    out = tmp_path / "out"
    result = limited(20, "convert", bilm, out, "--to", "bilm")
    assert f"cannot write {out}/weights.hdf5: File too large" in one_sentence(result)
    assert list(tmp_path.iterdir()) == []


def test_reference_vectors(model, tmp_path):
    """safetensors has an error of its own for a full disk."""
    out = tmp_path / "out"
    result = limited(20, "convert", model, out)
    assert f"cannot write {out}/model.safetensors: " in one_sentence(result)
    assert list(tmp_path.iterdir()) == []
