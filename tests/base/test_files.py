from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.base.files import atomic, read_bytes, read_json, unpack, write_text


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
    with pytest.raises(FormatError, match="holds a JSON list; expected an object"):
        read_json(tmp_path / "list.json")


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    packed = gzip.compress(b"text" * 1000)
    (tmp_path / "plain-name").write_bytes(packed)
    assert read_bytes(tmp_path / "plain-name") == b"text" * 1000
    for bad in (packed[:20], packed[:12] + b"\xff" * 12 + packed[24:]):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(FormatError, match="damaged gzip"):
            read_bytes(tmp_path / "bad")


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
        with pytest.raises(FormatError, match="leaves the folder; refused"):
            unpack(tmp_path / file, tmp_path / "in")
    assert list((tmp_path / "in").iterdir()) == []
    assert not (tmp_path / "out.txt").exists()


def test_links_are_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        entry = tarfile.TarInfo("link")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    with pytest.raises(FormatError, match="no plain file; refused"):
        unpack(tmp_path / "a.tar", tmp_path / "in")


def test_damaged_archives(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", os.urandom(5000))
    data = bytearray((tmp_path / "a.zip").read_bytes())
    data[200:400] = bytes(200)
    (tmp_path / "a.zip").write_bytes(data)
    (tmp_path / "b.zip").write_bytes(b"nothing")
    with pytest.raises(FormatError, match=r"a\.zip: is a damaged archive"):
        unpack(tmp_path / "a.zip", tmp_path / "in")
    with pytest.raises(FormatError, match="neither a zip nor a tar"):
        unpack(tmp_path / "b.zip", tmp_path / "in")
