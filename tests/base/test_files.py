from __future__ import annotations

import gzip
import io
import os
import shutil
import stat
import subprocess
import sys
import tarfile
import threading
import tracemalloc
import zipfile
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path

import pytest

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import _copy, atomic, read_bytes, read_json, unpack_archive, write_text


def test_written_whole(tmp_path: Path) -> None:
    write_text(tmp_path / "deep" / "a.txt", "whole\n")
    assert (tmp_path / "deep" / "a.txt").read_bytes() == b"whole\n"
    assert [file.name for file in (tmp_path / "deep").iterdir()] == ["a.txt"]


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(ValueError), atomic(path) as part:
        part.write_text("half")
        raise ValueError
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_threads_that_write_the_same_file(tmp_path: Path) -> None:
    path, texts = tmp_path / "a.txt", ["one" * 1000, "two" * 1000]
    parts, together = set(), threading.Barrier(2, timeout=30)

    def write(text: str) -> None:
        with atomic(path) as part:
            together.wait()
            part.write_text(text)
            parts.add(part.name)
            together.wait()

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, texts))
    assert path.read_text() in texts and list(tmp_path.iterdir()) == [path]
    assert len(parts) == 2 and all(fnmatch(name, ".a.txt.*.part") for name in parts)  # as what a kill leaves is recognised


@pytest.mark.skipif(os.name == "nt", reason="folders cannot be opened")
def test_a_name_is_durable_before_the_next_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bool]] = []

    def fsync(handle: int) -> None:
        folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        synced.append(("folder" if folder else "file", (tmp_path / "a.txt").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_text(tmp_path / "a.txt", "text")
    assert synced == [("file", False), ("folder", True)]


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    code = (
        "import resource, signal, sys\n"
        "from polyseme.base.files import write_text\n"
        "from polyseme.base.errors import PolysemeError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try: write_text(sys.argv[1], 'x' * 5000)\n"
        "except PolysemeError as error: print(error)\n"
    )
    path = tmp_path / "a.txt"
    said = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True).stdout
    assert said == f"cannot write {path}: File too large\n"
    assert list(tmp_path.iterdir()) == []


def test_reading_tells_the_file(tmp_path: Path) -> None:
    with pytest.raises(PolysemeError, match=r"cannot read .*none\.json: No such file"):
        read_json(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(FormatError, match=r"bad\.json: is not valid JSON"):
        read_json(tmp_path / "bad.json")
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(FormatError, match="has a JSON list; expected an object"):
        read_json(tmp_path / "list.json")


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    packed = gzip.compress(b"text" * 1000)
    (tmp_path / "plain-name").write_bytes(packed)
    assert read_bytes(tmp_path / "plain-name") == b"text" * 1000
    for bad in (packed[:20], packed[:12] + b"\xff" * 12 + packed[24:]):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(FormatError, match="damaged gzip"):
            read_bytes(tmp_path / "bad")


def test_no_more_is_unpacked_than_asked_for(tmp_path: Path) -> None:
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(bytes(1000))
    packed.write_bytes(gzip.compress(bytes(1000)))
    for path, what in ((plain, "has"), (packed, "expands to")):
        assert read_bytes(path, limit=1000) == bytes(1000)
        with pytest.raises(FormatError, match=rf"{path.name}: {what} more than 999 bytes, the limit for such"):
            read_bytes(path, limit=999)


def test_where_nobody_says_only_packed_files_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.base.files._DECOMPRESSED", 999)
    plain, packed = tmp_path / "plain", tmp_path / "vocabulary.gz"
    plain.write_bytes(bytes(1000))
    packed.write_bytes(gzip.compress(bytes(1000)))
    assert read_bytes(plain) == bytes(1000)
    with pytest.raises(FormatError, match=r"vocabulary\.gz: expands to more than 999 bytes"):
        read_bytes(packed)


def test_json_that_unpacks_to_very_much_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "options.json"
    path.write_bytes(gzip.compress(b"{" + b" " * 20_000_000 + b"}"))
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"options\.json: expands to more than 17 MB"):
        read_json(path)
    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()
    path.write_bytes(b"{" + b" " * 20_000_000 + b"}")  # nothing of it is hidden
    assert read_json(path) == {}


def _archives(folder: Path, size: int) -> list[Path]:
    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("one", bytes(size))
        archive.writestr("two", bytes(size))
    with tarfile.open(folder / "a.tar.gz", "w:gz") as archive:
        for name in ("one", "two"):
            entry = tarfile.TarInfo(name)
            entry.size = size
            archive.addfile(entry, io.BytesIO(bytes(size)))
    return [folder / "a.zip", folder / "a.tar.gz"]


def test_archives_larger_than_the_room_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for archive in _archives(tmp_path, 600_000):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9_000_000, 8_000_000, 1_000_000))
        with pytest.raises(PolysemeError) as caught:
            unpack_archive(archive, tmp_path / "in")
        room = f"its files need 1.2 MB, and the disk of {tmp_path} has 1.0 MB free"
        rest = "free some space, or unpack it elsewhere and give the folder"
        assert str(caught.value) == f"cannot unpack {archive}: {room}: {rest}"
        assert not (tmp_path / "in").exists()
        monkeypatch.undo()
        unpack_archive(archive, tmp_path / archive.suffix)
        assert (tmp_path / archive.suffix / "two").read_bytes() == bytes(600_000)


def test_an_entry_gives_no_more_than_it_declares(tmp_path: Path) -> None:
    _copy(io.BytesIO(b"whole"), tmp_path / "a", 5)
    assert (tmp_path / "a").read_bytes() == b"whole"
    with pytest.raises(ValueError, match="b is larger than the 4 bytes that it declares"):
        _copy(io.BytesIO(b"whole"), tmp_path / "b", 4)
    assert (tmp_path / "b").read_bytes() == b""


@pytest.mark.parametrize("name", ["../out.txt", "/tmp/polyseme-out.txt", "a/../../out.txt"])
def test_entries_that_leave_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "in").mkdir()
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, "evil")
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = 4
        archive.addfile(entry, io.BytesIO(b"evil"))
    for file in ("a.zip", "a.tar.gz"):
        with pytest.raises(FormatError, match="would leave the folder; refused"):
            unpack_archive(tmp_path / file, tmp_path / "in")
    assert list((tmp_path / "in").iterdir()) == []
    assert not (tmp_path / "out.txt").exists()


def test_links_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(FormatError, match="not a regular file; refused"):
        unpack_archive(tmp_path / "a.tar", tmp_path / "in")


def test_damaged_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", os.urandom(5000))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[200:400] = bytes(200)
    (tmp_path / "a.zip").write_bytes(data)
    (tmp_path / "b.zip").write_bytes(b"nothing")
    with pytest.raises(FormatError, match=r"a\.zip: is a damaged archive"):
        unpack_archive(tmp_path / "a.zip", tmp_path / "in")
    with pytest.raises(FormatError, match="neither a zip nor a tar"):
        unpack_archive(tmp_path / "b.zip", tmp_path / "in")
