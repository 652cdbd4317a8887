"""Files of vectors: whole or absent, whatever happens to the process that writes them."""

import os
import resource
import shutil
import signal
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from polyseme import embed_file
from polyseme.base.errors import InterruptedRun, PolysemeError, UsageError
from polyseme.base.signals import GracefulStop
from polyseme.encoders import embedding_stream
from polyseme.encoders.embed_config import BATCH_CUDA, EmbedConfig
from polyseme.encoders.embedding_stream import EmbeddedLine, chunked
from polyseme.encoders.fingerprint import model_fingerprint as fingerprint
from polyseme.formats.embed_file import write_lines as store
from polyseme.formats.vectors import hdf5 as vectors_hdf5
from polyseme.formats.vectors.npz import NpzWriter
from polyseme.formats.vectors.part_folder import PartFolder
from polyseme.formats.vectors.writer import FileInfo, suffix_of, writer_for
from polyseme.nn.output.full import FullSoftmax
from tests.cli.running import tiny
from tests.cli.vector_files import KINDS, read_vectors

LINES = [" ".join(["the", "bank", f"w{line}", "河岸", "river"] * (line % 4)) for line in range(26)]
ONCE = [kind if kind in (".hdf5", ".jsonl") else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS]
"""Two types for every run of the tests; the others, and .h5, which has the writer of .hdf5, only among the slow tests."""
SAFE = EmbedConfig(save_every=0.0)


@pytest.fixture(scope="module")
def model():
    return tiny(output=False)


@pytest.fixture(autouse=True)
def _small_chunked(request, monkeypatch):
    monkeypatch.setattr(embedding_stream, "CHUNK_LINES", 4)
    if ".parquet" in getattr(getattr(request.node, "callspec", None), "params", {}).values():
        pytest.importorskip("pyarrow")


def assert_right(path: Path, expected: list[np.ndarray]) -> None:
    found = read_vectors(path)
    assert sorted(found) == list(range(len(expected)))
    for line, array in enumerate(expected):
        np.testing.assert_allclose(found[line], array, atol=1e-6)


class Snapshots:
    """Copies of a folder as a kill would leave it, before each call that changes the disk and in the middle of writes."""

    def __init__(self, folder: Path, into: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.into, self.count = folder, into, 0
        for name in ("fsync", "ftruncate", "replace", "unlink"):
            monkeypatch.setattr(os, name, self._before(getattr(os, name)))
        write = os.pwrite
        monkeypatch.setattr(
            os, "pwrite", self._before(lambda file, data, place: write(file, data[: -(-len(data) // 2)], place))
        )

    def _before(self, call):
        def snapshot(*arguments, **keywords):
            if self.folder.exists() and (self.folder / "journal.json").exists():
                shutil.copytree(self.folder, self.into / str(self.count))
                self.count += 1
            return call(*arguments, **keywords)

        return snapshot


# .h5 has the writer of .hdf5, and of the other types every few states suffice to resume after each commit
@pytest.mark.parametrize("states_tried", [12, pytest.param(60, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ONCE)
def test_a_kill_at_any_moment_is_made_good(model, tmp_path, kind, states_tried):
    """Every state of the disk that a kill can leave leads to the same file."""
    out, states = tmp_path / f"v{kind}", tmp_path / "states"
    states.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        snapshots = Snapshots(tmp_path / f"v{kind}.part", states, patch)
        store(model, LINES, out, SAFE)
    expected = model.embed(LINES)
    assert_right(out, expected)
    assert snapshots.count > 20
    step = -(-snapshots.count // states_tried)
    resumed = set()
    for number in range(0, snapshots.count, step):
        folder = tmp_path / f"again{number}"
        folder.mkdir()
        (states / str(number)).rename(folder / f"v{kind}.part")
        done = store(model, LINES, folder / f"v{kind}", SAFE)
        assert done.lines == len(LINES)
        resumed.add(done.resumed)
        assert_right(folder / f"v{kind}", expected)
    assert resumed >= {4, 8, 12, 16, 20, 24}


@pytest.mark.parametrize("kind", ONCE)
def test_a_full_disk_is_told_and_made_good(model, tmp_path, kind, caplog):
    """By a limit on the size of files, which fails as a full disk does."""
    out = tmp_path / f"v{kind}"
    lines = [*LINES[:9], "the bank " * 250, *LINES[10:]]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    try:
        with pytest.raises(PolysemeError, match=r"cannot write .*: .*File too large"):
            store(model, lines, out, SAFE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not out.exists()
    done = store(model, lines, out, SAFE)
    assert done.resumed >= 8 and caplog.messages == [f"resuming after line {done.resumed} of an interrupted run"]
    assert_right(out, model.embed(lines))


def stop_after(lines: int):
    def count(done: int) -> None:
        nonlocal lines
        lines -= done
        if lines < 0:
            raise KeyboardInterrupt

    return count


def test_nothing_to_resume(model, tmp_path):
    with pytest.raises(InterruptedRun, match=r"^interrupted: nothing was saved$"):
        store(model, LINES, tmp_path / "v.npz", SAFE, progress=stop_after(0))
    assert not list(tmp_path.iterdir())


def stopped(model, out, settings=SAFE, lines=LINES):
    with pytest.raises(InterruptedRun, match="the same command"):
        store(model, lines, out, settings, progress=stop_after(14))
    assert out.with_name(f"{out.name}.part").is_dir() and not out.exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"layers": "top"}, "other settings (layers)"),
        ({"fp16": True}, "other settings (fp16)"),
        ({"start": "warm"}, "other settings (start)"),
        ({"split_on_spaces": True}, "other settings (splitter)"),
    ],
)
def test_other_settings_start_anew_and_say_so(model, tmp_path, change, why, caplog):
    out = tmp_path / "v.npz"
    stopped(model, out)
    other = EmbedConfig(save_every=0.0, **change)
    done = store(model, LINES, out, other)
    assert done.resumed == 0 and len(caplog.messages) == 1 and why in caplog.messages[0]


def test_another_model_or_text_starts_anew(model, tmp_path, caplog):
    out = tmp_path / "v.jsonl"
    stopped(model, out)
    assert store(tiny(output=False, start="warm"), LINES, out, SAFE).resumed == 0
    stopped_lines = ["other", *LINES[1:]]
    out.unlink()
    stopped(model, out)
    assert store(model, stopped_lines, out, SAFE).resumed == 0
    assert "other settings (model, start)" in caplog.messages[0] and "the text has changed" in caplog.messages[1]
    assert_right(out, model.embed(stopped_lines))


def test_more_text_at_the_end_is_no_other_text(model, tmp_path):
    out = tmp_path / "v.hdf5"
    stopped(model, out)
    assert store(model, [*LINES, "more"], out, SAFE).resumed == 12
    assert_right(out, model.embed([*LINES, "more"]))


def test_a_stop_between_commits_loses_nothing(model, tmp_path):
    out, seldom = tmp_path / "v.hdf5", EmbedConfig(save_every=1000.0)
    stopped(model, out, seldom)
    assert store(model, LINES, out, seldom).resumed == 12
    assert_right(out, model.embed(LINES))


def test_a_bad_line_loses_nothing(model, tmp_path):
    def lines():
        yield from LINES[:10]
        raise PolysemeError("text.txt:11: is not UTF-8")

    out = tmp_path / "v.jsonl"
    with pytest.raises(PolysemeError, match="UTF-8"):
        store(model, lines(), out, EmbedConfig(save_every=1000.0))
    assert store(model, LINES, out, SAFE).resumed == 8


def test_carried_states_start_anew(model, tmp_path, caplog):
    out = tmp_path / "v.npz"
    carry = EmbedConfig(start="carry", batch_size=3, save_every=0.0)
    stopped(model, out, carry)
    assert store(model, LINES, out, carry).resumed == 0
    assert "start is carry" in caplog.messages[0]
    model.reset_state()
    assert_right(out, model.embed(LINES, start="carry", batch_size=3))


@pytest.mark.parametrize("kind", KINDS)
def test_lost_data_starts_anew(model, tmp_path, kind, caplog):
    out = tmp_path / f"v{kind}"
    stopped(model, out)
    for path in (tmp_path / f"v{kind}.part").iterdir():
        if path.name not in ("journal.json", "lock"):
            path.write_bytes(b"") if "parquet" not in kind else path.unlink()
    assert store(model, LINES, out, SAFE).resumed == 0
    assert "damaged" in caplog.messages[0]
    assert_right(out, model.embed(LINES))


def test_a_damaged_journal_starts_anew(model, tmp_path):
    out = tmp_path / "v.npz"
    stopped(model, out)
    (tmp_path / "v.npz.part" / "journal.json").write_text("{")
    assert store(model, LINES, out, SAFE).resumed == 0


def test_two_processes_do_not_write_one_file(model, tmp_path):
    with PartFolder(tmp_path / "v.npz"), pytest.raises(PolysemeError, match="another process is writing"):
        store(model, LINES, tmp_path / "v.npz", SAFE)


def test_a_folder_in_the_way_is_told(model, tmp_path):
    (tmp_path / "v.npz").mkdir()
    with pytest.raises(PolysemeError, match="it is a folder"):
        store(model, LINES, tmp_path / "v.npz", SAFE)


def test_fingerprints_tell_models_apart(model):
    other = tiny(output=False)
    other.output = FullSoftmax(12, 8)  # which changes no vector
    assert fingerprint(other) == fingerprint(model)
    other.tokens.projection.bias.data[0] += 1e-3
    assert fingerprint(other) != fingerprint(model)


def test_endings():
    assert suffix_of("a/B.JSONL.GZ") == ".jsonl.gz"
    for name in ("v.txt", "hdf5", ".npz", "v.gz"):
        with pytest.raises(UsageError, match=r"allowed: \.hdf5"):
            writer_for(name)


def test_chunks_of_carried_batches_are_whole():
    texts = [["w"] * 10] * 50
    sizes = [len(chunk) for chunk in chunked(texts, EmbedConfig(start="carry", batch_size=3, batch_words=10))]
    assert sum(sizes) == 50 and all(size % 3 == 0 for size in sizes[:-1])
    assert [len(chunk) for chunk in chunked(texts, EmbedConfig(batch_words=5))][:2] == [2, 2]


def test_chunks_for_a_gpu_fill_its_batches():
    texts = [["w"] * 10] * 20_000
    sizes = [len(chunk) for chunk in chunked(texts, EmbedConfig(), cuda=True)]
    assert sum(sizes) == 20_000 and all(10 * size >= BATCH_CUDA[0] for size in sizes[:-1])


@pytest.mark.slow  # 66,000 entries
def test_npz_with_more_entries_than_old_zip_files_count(tmp_path):
    writer = NpzWriter(tmp_path, FileInfo(), None)
    empty = np.zeros((1, 0, 2), np.float32)
    writer.write([EmbeddedLine(line, [], empty) for line in range(66_000)])
    writer.commit()
    path = writer.finish()
    writer.close()
    with zipfile.ZipFile(path) as file:
        assert len(file.namelist()) == 66_000 and file.namelist()[65_999] == "65999.npy"
        assert file.getinfo("65999.npy").CRC
    with np.load(path) as arrays:
        assert arrays["65999"].shape == (1, 0, 2)


def test_npz_is_a_sound_zip_file(tmp_path):
    writer = NpzWriter(tmp_path, FileInfo(), None)
    writer.write([EmbeddedLine(line, [], np.random.rand(2, line, 3).astype(np.float16)) for line in range(5)])
    writer.commit()
    path = writer.finish()
    writer.close()
    with zipfile.ZipFile(path) as file:
        assert file.testzip() is None


def test_a_full_part_in_memory_is_written(model, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_hdf5, "SHARD_BYTES", 5_000)
    parts, finish, seldom = [], PartFolder.finish, EmbedConfig(save_every=1000.0)
    monkeypatch.setattr(
        PartFolder, "finish", lambda self, whole: parts.extend(self.folder.glob("part-*")) or finish(self, whole)
    )
    out = tmp_path / "v.hdf5"
    store(model, LINES, out, seldom)
    assert len(parts) > 2
    assert_right(out, model.embed(LINES))


def test_a_file_without_room_is_not_begun(model, tmp_path, monkeypatch):
    monkeypatch.setattr(vectors_hdf5, "SHARD_BYTES", 5_000)
    monkeypatch.setattr(vectors_hdf5.shutil, "disk_usage", lambda path: SimpleNamespace(free=10_000))
    with pytest.raises(PolysemeError, match=r"cannot write .*v.hdf5: No space left on device"):
        store(model, LINES, tmp_path / "v.hdf5", SAFE)
    assert not (tmp_path / "v.hdf5.part" / "data.hdf5").exists()


def test_a_second_interrupt_stops_at_once_and_the_old_handler_comes_back():
    before = signal.getsignal(signal.SIGINT)
    with GracefulStop() as stop:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            stop.check()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before
    with GracefulStop() as stop, pytest.raises(KeyboardInterrupt), stop.interruptible():
        signal.raise_signal(signal.SIGINT)


def test_nothing_is_left_where_nothing_was_done(model, tmp_path):
    with pytest.raises(PolysemeError):
        store(model, LINES, tmp_path / "v.hdf5", EmbedConfig(start="learned"))
    with pytest.raises(PolysemeError):
        store(model, iter(_bad()), tmp_path / "v.jsonl", SAFE)
    assert list(tmp_path.iterdir()) == []


def _bad():
    raise PolysemeError("text.txt:1: is not UTF-8")
    yield ""


@pytest.mark.parametrize("lines", [[["the", "bank"]], [3], ["the bank", None], [["the", 3]]])
def test_lines_that_are_no_strings(model, tmp_path, lines):
    with pytest.raises(UsageError, match="is a string"):
        embed_file(lines, tmp_path / "out.npz", model=model)
    assert not (tmp_path / "out.npz").exists()
