"""What can go wrong with a pre-training is told in one sentence, and loses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from polyseme.__main__ import main
from polyseme.base.errors import PolysemeError
from polyseme.pretraining.job import split
from polyseme.text.characters import CodePointCharacters, Utf8Characters
from polyseme.text.corpus import Corpus
from polyseme.text.shards.character_ids import CharacterIds
from polyseme.text.shards.shards import Shards
from tests.pretraining import program
from tests.training.compare import assert_same_run
from tests.training.test_full_disk import room_for

LOOP = {"steps": 8, "checkpoint_every": 2, "log_every": 2, "eval_every": 4}


def call(text: Path, out: Path, *more: str) -> int:
    start = [
        "pretrain",
        "elmo",
        "-c",
        str(text),
        "-o",
        str(out),
        "--size",
        "tiny",
        "--vocabulary-size",
        "300",
        "--device",
        "cpu",
    ]
    return main([*start, "--splitter", "whitespace", "--sentences", "lines", "--batch-words", "200", "--bptt", "5", *more])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    told = capsys.readouterr()
    assert told.err.count("\n") == 1 and not told.out
    return told.err


def files(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_text_that_vanished_or_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Told before anything is touched; with the old text back, the run goes on."""
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        program.write_text(folder / name, lines=100)
    (folder / "b.txt").write_text((folder / "b.txt").read_text()[::-1])
    out, options = tmp_path / "m", ["--words", "1000"]
    assert call(folder, out, *options) == 0
    before, kept = files(out), (folder / "b.txt").read_bytes()
    capsys.readouterr()
    (folder / "b.txt").unlink()
    assert call(folder, out, *options) == 1
    assert "the text, or how it is split, differs from that of the run in" in (told := said(capsys)) and "to resume it" in told
    (folder / "b.txt").write_bytes(kept + b"one more\n")
    assert call(folder, out, *options) == 1
    assert "use the same text and options to resume it, or choose another folder" in said(capsys)
    assert call(folder / "none.txt", out, *options) == 1
    assert f"{folder / 'none.txt'}: no such file or folder" in said(capsys)
    assert files(out) == before
    (folder / "b.txt").write_bytes(kept)
    assert call(folder, out, *options) == 0


def test_a_changed_text_is_never_accepted_also_where_runs_share_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its words have other numbers: weights would belong to other words."""
    text, out = tmp_path / "a.txt", tmp_path / "m"
    program.write_text(text, lines=100)
    options = ["--words", "1000", "--shards", str(tmp_path / "kept")]
    assert call(text, out, *options) == 0
    assert not list(out.rglob("shards-*"))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    capsys.readouterr()
    text.write_text(text.read_text()[::-1])
    assert call(text, out, *options, "--accept-changes") == 1
    assert "the text of this run, or how it is split, changed since it began" in said(capsys)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_a_bad_line_is_reported_before_the_first_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = program.write_text(tmp_path / "t.txt", lines=50)
    text.write_bytes(text.read_bytes() + b"na\xefve\n")
    assert call(text, tmp_path / "m", "--words", "1000") == 1
    assert f"{text}:51: is not UTF-8 (byte 0xef); fix the line, or give --skip-bad-lines" in said(capsys)
    assert not files(tmp_path / "m")


def test_a_loss_that_is_no_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = program.write_text(tmp_path / "t.txt", lines=200)
    assert call(text, tmp_path / "m", "--epochs", "20", "--learning-rate", "1e30") == 1
    told = said(capsys)
    assert "not finite at step" in told and "the last good checkpoint, of step" in told
    assert "give a --learning-rate below 1e+30" in told
    assert (tmp_path / "m" / "run" / "checkpoint-00000000.json").exists()


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing interrupted, beside its text."""
    folder = tmp_path_factory.mktemp("whole")
    assert program.train(program.write_text(folder / "t.txt", lines=100, types=500), folder / "out", LOOP) == 0
    return folder / "out"


@pytest.mark.parametrize(
    ("room", "full"),
    [
        pytest.param(4_000, "shards", marks=pytest.mark.slow),
        pytest.param(30_000, "spelling-utf8-50.bin", marks=pytest.mark.slow),
        (150_000, "checkpoint-00000002.safetensors"),
    ],
)
def test_a_full_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str], whole_run: Path, room: int, full: str) -> None:
    """1,500 words, 500 types (51 kB when spelled), and weights of 110 kB, with the optimizer's memory three times that."""
    text = whole_run.with_name("t.txt")
    with room_for(room):
        assert program.train(text, tmp_path / "cut", LOOP) == 1
    told = capsys.readouterr().err
    assert told.startswith(f"cannot write {tmp_path / 'cut' / 'run'}") and full in told and "File too large" in told
    assert not [path for path in (tmp_path / "cut").rglob("*") if path.suffix in (".part", ".lock")]
    assert program.train(text, tmp_path / "cut", LOOP) == 0
    assert_same_run(whole_run, tmp_path / "cut")


def test_spelling_is_written_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = program.write_text(tmp_path / "t.txt", lines=200, types=500)
    shards = Shards.build(Corpus(text, splitter="whitespace", sentences="lines", workers=0), tmp_path)
    assert shards.folder is not None
    marks = ["<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>"]
    schemes = [Utf8Characters(12), Utf8Characters(7), CodePointCharacters([*marks, *"aeio"]), CodePointCharacters(marks)]
    schemes.append(CodePointCharacters([*marks, *(chr(0x4E00 + place) for place in range(40_000)), "e"]))  # beyond 16 bits
    for scheme in schemes:
        found, (ids, lengths) = CharacterIds.of(shards, scheme), scheme.encode(shards.types)
        assert found.ids.tolist() == ids.tolist() and found.lengths.tolist() == lengths.tolist()
        assert not found.ids.flags.writeable
    assert len(list(shards.folder.glob("spelling-*.bin"))) == len({scheme.name for scheme in schemes}) == 5
    path = shards.folder / "spelling-utf8-12.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[:-2])  # cut: not trusted
    CharacterIds.of(shards, schemes[0])
    assert path.read_bytes() == whole
    (shards.folder / ".spelling-utf8-12.bin.here.1.part").touch()  # another machine's: left alone
    monkeypatch.setattr(Shards, "type_blocks", None)  # to spell again would fail
    CharacterIds.of(shards, schemes[0])


def test_damaged_types_are_reported(tmp_path: Path) -> None:
    text = program.write_text(tmp_path / "t.txt", lines=20)
    shards = Shards.build(Corpus(text, splitter="whitespace", sentences="lines", workers=0), tmp_path)
    assert shards.folder is not None
    assert shards.most_frequent(10) == shards.types[:10] == [word for block in shards.type_blocks(3) for word in block][:10]
    (shards.folder / "types.txt").write_text("a\n")
    with pytest.raises(PolysemeError, match=r"types\.txt: has 1 words; expected"):
        list(shards.type_blocks())


def test_one_long_line_is_one_sentence():
    with pytest.raises(PolysemeError, match=r"has 1 sentence: training needs at least 2; check the splitting \(sentences\)"):
        split(1, at_most=2000)
