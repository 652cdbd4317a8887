"""What is imported when: help must be quick, and a single sentence nearly as quick as importing torch."""

import subprocess
import sys

import pytest

from tests.cli.running import environment, process

VERBS = ["embed", "score", "substitutes", "fill", "neighbours", "similar", "analogy", "convert", "info", "verify", "corpus"]
VERBS += ["pretrain", "probe", "adapt", "train", "predict", "evaluate", "compare"]

_LOADED = """
import sys
from polyseme.__main__ import main
code = main({arguments!r})
heavy = [name for name in ("torch", "numpy", "h5py", "pyarrow", "torch._dynamo") if name in sys.modules]
sys.stderr.write(str(code) + " " + ",".join(heavy))
"""


def loaded(*arguments: str) -> str:
    code = _LOADED.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    return done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], [], *([verb, "--help"] for verb in VERBS)])
def test_help_imports_nothing_heavy(run, arguments):
    result = run(*arguments)
    assert result.code == 0 and result.err == "" and result.out
    if arguments in (["--help"], ["--version"]):
        assert loaded(*arguments) == "0 "


def test_help_of_all_verbs_imports_nothing_heavy():
    """One process for all of them: importing the table of verbs is what could import torch."""
    code = "import sys, polyseme.cli.app; sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=environment(), check=False).returncode == 0


def test_a_sentence_imports_no_more_than_it_needs(model):
    assert loaded("embed", "one sentence", "--model", model) == "0 torch,numpy,h5py"


def test_version_in_a_process():
    assert process("--version").out.startswith("polyseme 0.")
