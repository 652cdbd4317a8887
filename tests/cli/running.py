"""A tiny model, and the command line as a process of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import torch

from polyseme.encoders.elmo import Elmo, ElmoConfig
from polyseme.nn.config import CharactersConfig, LstmConfig
from polyseme.nn.output.full import FullSoftmax
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import get_splitter

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def json(self) -> list:
        return [json.loads(line) for line in self.out.splitlines()]


def tiny(output: bool = True, **changes: object) -> Elmo:
    torch.manual_seed(0)
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", "the", "bank", "of", "river", ".", "money", "a", "The", "to"])
    config = ElmoConfig(
        characters=CharactersConfig(dim=4, filters=((1, 4), (2, 4), (3, 8))),
        dim=8,
        lstm=LstmConfig(cell_size=16, projection_size=8),
    )
    parts = {"vocabulary": vocabulary, "output": FullSoftmax(len(vocabulary), 8)} if output else {}
    return Elmo(config.replace(**changes), splitter=get_splitter("english"), **parts).eval()


def environment() -> dict[str, str]:
    paths = [str(SOURCE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUTF8": "1"}


def process(*arguments: object, text: bytes | None = None) -> Result:
    """The command line as a user starts it."""
    call = [sys.executable, "-m", "polyseme", *map(os.fsencode, map(str, arguments))]
    done = subprocess.run(call, input=text, capture_output=True, env=environment(), check=False)
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def one_sentence(result: Result, code: int = 1) -> str:
    """A failure is one line on stderr, and nothing else."""
    assert result.code == code, result
    assert result.out == ""
    assert result.err.startswith("polyseme: ") and result.err.count("\n") == 1, result.err
    assert "Traceback" not in result.err and "internal error" not in result.err
    return result.err
