"""A full disk is one sentence and no result: by a limit on the size of files, which fails alike.

All commands run in one process of their own: the limit is of the process, and starting one takes seconds.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from polyseme.formats.vectors import hdf5
from tests.cli.running import Result, environment, one_sentence, tiny
from tests.oracle.make import VOCABULARY, write_bilm

_LIMITED = """
import contextlib, io, json, resource, sys
from polyseme.__main__ import main
from polyseme.formats.vectors import hdf5

results = {}
for name, (kilobytes, held, arguments) in json.loads(sys.argv[1]).items():
    hdf5.SHARD_BYTES = held
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes, resource.RLIM_INFINITY))
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(arguments)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    results[name] = (code, out.getvalue(), err.getvalue())
print(json.dumps(results))
"""


def run_limited(calls: dict[str, tuple[int, int, list[object]]]) -> dict[str, Result]:
    """By name: KiB that no file may exceed, bytes that HDF5 keeps in memory, and the arguments of a command."""
    given = {name: (limit, held, list(map(str, arguments))) for name, (limit, held, arguments) in calls.items()}
    call = [sys.executable, "-c", _LIMITED, json.dumps(given)]
    done = subprocess.run(call, capture_output=True, text=True, env=environment(), check=True)
    return {name: Result(*result) for name, result in json.loads(done.stdout).items()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("disk")
    write_bilm(folder / "elmo", vocabulary=list(VOCABULARY), softmax=True)
    tiny().save_pretrained(folder / "tiny")
    (folder / "text.txt").write_text("the bank of\n" * 1_500)
    (folder / "out").mkdir()
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Result]:
    embed = ["embed", "--input", folder / "text.txt", "--model", folder / "elmo", "--batch-words", 256]
    held = hdf5.SHARD_BYTES
    return run_limited(
        {
            "v.npz": (90, held, [*embed, "--out", folder / "out" / "v.npz"]),
            "shards.hdf5": (90, 30_000, [*embed, "--out", folder / "out" / "shards.hdf5"]),
            "whole.hdf5": (90, held, [*embed, "--out", folder / "out" / "whole.hdf5"]),
            "bilm": (20, held, ["convert", folder / "elmo", folder / "out" / "bilm", "--to", "bilm"]),
            "ours": (20, held, ["convert", folder / "tiny", folder / "out" / "ours"]),
        }
    )


@pytest.mark.parametrize("name", ["v.npz", "shards.hdf5", "whole.hdf5"])
def test_embed(results: dict[str, Result], folder: Path, name: str) -> None:
    """HDF5 fails in two ways: a shard that is too large, and shards that are too large together."""
    assert f"cannot write {folder / 'out' / name}: File too large" in one_sentence(results[name])
    assert not (folder / "out" / name).exists()


def test_convert(results: dict[str, Result], folder: Path) -> None:
    """safetensors has an error of its own for a full disk."""
    assert f"cannot write {folder / 'out' / 'bilm'}/weights.hdf5: File too large" in one_sentence(results["bilm"])
    assert f"cannot write {folder / 'out' / 'ours'}/model.safetensors: " in one_sentence(results["ours"])
    assert not (folder / "out" / "bilm").exists() and not (folder / "out" / "ours").exists()
