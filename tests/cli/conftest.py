"""A tiny model on disk, and the command line run inside this process."""

from collections.abc import Callable

import pytest

from polyseme.__main__ import main
from tests.cli.running import Result, tiny


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny().save_pretrained(tmp_path_factory.mktemp("models") / "tiny"))


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        seen = capsys.readouterr()
        return Result(code, seen.out, seen.err)

    return call
