"""`polyseme embed` with a folder as output."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from polyseme.__main__ import main
from tests.cli.running import Result, one_sentence
from tests.scale.conftest import LINES
from tests.scale.contents import rows


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call(*arguments: object) -> Result:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        seen = capsys.readouterr()
        return Result(code, seen.out, seen.err)

    return call


def test_a_folder_becomes_a_dataset(run: Callable[..., Result], text: Path, model: str, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("the end\n", encoding="utf-8")
    call = ["embed", "-i", text, "-i", other, "-m", model, "-o", tmp_path / "out", "--workers", 0, "--shard-size", "1KB"]
    result = run(*call, "--layers", "top", "--fp16", "--json")
    assert result.code == 0, result.err
    assert result.json[0]["lines"] == len(LINES) + 1 == len(rows(tmp_path / "out"))
    again = run(*call, "--layers", "top", "--fp16")
    assert again.code == 0 and f"{result.json[0]['parts']} of them by an earlier run" in again.out
    assert "other settings (--layers)" in one_sentence(run(*call, "--fp16"))
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert manifest["complete"] and manifest["options"]["layers"] == "top" and len(manifest["parts"]) == result.json[0]["parts"]


def test_what_only_a_dataset_can(run: Callable[..., Result], text: Path, model: str, tmp_path: Path) -> None:
    reported = one_sentence(run("embed", "-i", text, "-m", model, "-o", tmp_path / "v.npz", "--shard-size", "1KB"), 2)
    assert "--shard-size: only for a dataset; give a folder as --out" in reported
    assert "several --input" in one_sentence(run("embed", "-i", text, "-i", text, "-m", model), 2)
    assert "give --input, and no TEXT" in one_sentence(run("embed", "the bank", "-m", model, "-o", tmp_path / "out"), 2)
    assert "add --engine ray" in one_sentence(run("embed", "-i", text, "-o", tmp_path / "out", "--address", "auto"), 2)
    one = run("embed", "-i", text, "-m", model, "-o", tmp_path / "v.npz")
    assert one.code == 0 and (tmp_path / "v.npz").is_file()


def test_a_failure_exits_with_1(run: Callable[..., Result], model: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "the"}\n{"body": "bank"}\n', encoding="utf-8")
    result = run("embed", "-i", path, "-m", model, "-o", tmp_path / "out", "--workers", 0)
    assert result.code == 1 and f"{path}:2: has no text in the field 'text'" in result.err


def test_a_wrong_field_leaves_no_folder(run: Callable[..., Result], model: str, tmp_path: Path) -> None:
    path = tmp_path / "texts.csv"
    path.write_text("text,number\nhello there,1\n", encoding="utf-8")
    call = ["embed", "-i", path, "-m", model, "-o", tmp_path / "out", "--workers", 0]
    assert "has no column 'body'" in run(*call, "--field", "body").err and not (tmp_path / "out").exists()
    (tmp_path / "out").mkdir()  # the user's own stays
    assert run(*call, "--field", "body").code != 0 and (tmp_path / "out").is_dir()
