"""What is imported when: help must be quick, and a single sentence nearly as quick as importing torch.

`test_generate.py` has the help of every verb.
"""

import subprocess
import sys

import pytest

from tests.cli.running import environment

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


def test_help_imports_nothing_heavy(run):
    assert loaded() == loaded("--version") == "0 "
    assert run("--version").out.startswith("polyseme 0.")


def test_a_sentence_imports_no_more_than_it_needs(model):
    assert loaded("embed", "one sentence", "--model", model) == "0 torch,numpy,h5py"


@pytest.mark.parametrize("arguments", [[], ["pretrain"], ["train"], ["probe"], ["corpus"]])
def test_a_group_alone_shows_its_verbs(run, arguments):
    result = run(*arguments)
    assert result.code == 0 and result.err == "" and ("Commands" in result.out or "Tools" in result.out)
