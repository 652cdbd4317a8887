"""Datasets of vectors: every line once and in order, the same bytes however they are made."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import polyseme
from polyseme.api.corpora import filter_corpus
from polyseme.base.errors import InterruptedRun, PolysemeError, UsageError
from polyseme.scale.config import parse_size
from polyseme.scale.embedding import ShardEmbedder
from polyseme.scale.manifest import PartInfo
from polyseme.scale.shards import Shard
from tests.scale.conftest import LINES
from tests.scale.contents import contents, rows


def make(text: object, out: Path, model: object, **options: object) -> polyseme.scale.dataset.EmbeddedDataset:
    return polyseme.embed_dataset(text, out, model=model, **{"workers": 0, "shard_size": 400, **options})  # type: ignore[arg-type]


def test_every_line_once_and_in_order(text: Path, model: str, tmp_path: Path) -> None:
    result = make(text, tmp_path / "out", model)
    encoder = polyseme.load(model)
    found = rows(tmp_path / "out")
    assert result.parts == len(list((tmp_path / "out").glob("*.parquet"))) > 3
    assert result.lines == len(found) == len(LINES) and result.failures == ()
    assert [row["line"] for row in found] == list(range(len(LINES)))
    assert {row["file"] for row in found} == {str(text)}
    assert [row["words"] for row in found] == [encoder.words(line) for line in LINES]
    for row, line, vectors in zip(found, LINES, encoder.embed(LINES), strict=True):
        assert ["".join(line[begin:end].split()) for begin, end in row["offsets"]] == [
            word if word in line else {"'s": "’s", '"': line[begin:end]}[word]
            for word, (begin, end) in zip(row["words"], row["offsets"], strict=True)
        ]
        for number, layer in enumerate(vectors):
            stored = np.array(row[f"layer_{number}"], dtype=np.float32).reshape(layer.shape)
            np.testing.assert_allclose(stored, layer, atol=1e-6)


def test_schema(text: Path, model: str, tmp_path: Path) -> None:
    make(text, tmp_path / "one", model, layers="top")
    make(text, tmp_path / "half", model, layers="mean", fp16=True)
    make(text, tmp_path / "pooled", model, pooling="mean")
    dim = polyseme.load(model).dim
    kinds = {name: pq.read_schema(tmp_path / name / "part-000000.parquet") for name in ("one", "half", "pooled")}
    assert kinds["one"].field("vectors").type == pa.list_(pa.list_(pa.float32(), dim))
    assert kinds["half"].field("vectors").type == pa.list_(pa.list_(pa.float16(), dim))
    assert kinds["pooled"].field("vector").type == pa.list_(pa.float32(), dim)
    encoder = polyseme.load(model)
    expected = encoder.encode(LINES, pooling="mean")
    np.testing.assert_allclose([row["vector"] for row in rows(tmp_path / "pooled")], expected, atol=1e-6)
    assert not any(rows(tmp_path / "pooled")[1]["vector"])  # a blank line


def test_a_mix_is_the_weighted_sum(text: Path, model: str, tmp_path: Path) -> None:
    make(text, tmp_path / "out", model, mix=(0.2, 0.3, 0.5))
    expected = np.tensordot([0.2, 0.3, 0.5], polyseme.load(model).embed(LINES[:1])[0], 1)
    np.testing.assert_allclose(rows(tmp_path / "out")[0]["vectors"], expected, atol=1e-6)
    with pytest.raises(UsageError, match="3, one for each layer"):
        make(text, tmp_path / "other", model, mix=(0.2, 0.3))
    for combined in ({"mix": (0.2, 0.3, 0.5)}, {"pooling": "mean"}):
        with pytest.raises(UsageError, match=f"layers='top' and {next(iter(combined))} both choose layers"):
            make(text, tmp_path / "other", model, layers="top", **combined)


@pytest.mark.slow
def test_the_same_bytes_by_any_number_of_workers(text: Path, model: str, tmp_path: Path) -> None:
    make(text, tmp_path / "alone", model)
    result = make(text, tmp_path / "two", model, workers=2)
    assert contents(tmp_path / "alone") == contents(tmp_path / "two")
    assert result.words == sum(len(row["words"]) for row in rows(tmp_path / "two"))


def test_resumes_with_the_same_bytes(text: Path, model: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    whole = make(text, out, model)
    before = contents(out)
    (out / "part-000001.parquet").unlink()
    (out / "part-000002.parquet").write_bytes(before["part-000002.parquet"][:-9])  # damaged
    (out / "part-000003.parquet").write_bytes(before["part-000004.parquet"])  # another part's
    (out / ".part-000001.parquet.host.1.abc.part").write_bytes(b"half")
    result = make(text, out, model)
    assert contents(out) == before
    assert result.resumed == whole.parts - 3


def test_changes_are_refused(text: Path, model: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(text, out, model)
    before = contents(out)
    with pytest.raises(PolysemeError, match=r"other settings \(layers\): give those"):
        make(text, out, model, layers="top")
    with pytest.raises(PolysemeError, match=r"other settings \(text, shard_size\)"):
        make(text, out, model, shard_size=900)
    with pytest.raises(PolysemeError, match="shard_size is '64 apples'; allowed: a number of bytes, or such as 500KB"):
        make(text, out, model, shard_size="64 apples")
    assert make(text, out, model, shard_size="0.4KB").resumed > 0  # 400 bytes, as before
    other = polyseme.load(model)
    other.refresh()
    with pytest.raises(PolysemeError, match=r"other settings \(model\)"):
        next(other.parameters()).data += 1
        make(text, out, other)
    text.write_text(text.read_text(encoding="utf-8").replace("river", "rover", 1), encoding="utf-8")
    with pytest.raises(PolysemeError, match=r"other settings \(text\)"):
        make(text, out, model)
    assert contents(out) == before


def test_an_interrupted_run_says_what_it_kept(
    text: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    embed, left = ShardEmbedder.__call__, 0

    def stop(self: ShardEmbedder, shard: Shard) -> PartInfo:
        nonlocal left
        left -= 1
        if left < 0:
            raise KeyboardInterrupt
        return embed(self, shard)

    with monkeypatch.context() as patch:
        patch.setattr(ShardEmbedder, "__call__", stop)
        nothing = r"^interrupted: no part was finished, so nothing was kept; smaller .* \(shard_size is 5,000 bytes"
        with pytest.raises(InterruptedRun, match=nothing):
            make(text, tmp_path / "out", model, shard_size=5000)
        left = 2  # smaller parts, as the message says, in the same folder
        with pytest.raises(InterruptedRun, match=r"^interrupted: 2 of \d+ parts finished; run the same command to resume$"):
            make(text, tmp_path / "out", model)
    with pytest.raises(PolysemeError, match="other settings"):
        make(text, tmp_path / "out", model, shard_size=5000)
    caplog.clear()
    result = make(text, tmp_path / "out", model)
    assert result.resumed == 2 and caplog.messages == [f"resuming: 2 of {result.parts} parts are there"]
    make(text, tmp_path / "whole", model)
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_folders_of_others_are_refused(text: Path, model: str, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs.parquet").write_bytes(b"PAR1")
    with pytest.raises(PolysemeError, match="choose an empty folder"):
        make(text, tmp_path / "out", model)
    filter_corpus([text], out=tmp_path / "clean", workers=0)
    with pytest.raises(PolysemeError, match="other settings"):
        make(text, tmp_path / "clean", model)


@pytest.mark.slow
def test_all_kinds_of_files_give_the_same_rows(model: str, tmp_path: Path) -> None:
    texts = ["The bank, of", "", 'the "river"', "two\nlines"]
    plain = "".join(f"{text}\n" for text in texts[:3]).encode()
    objects = "".join(json.dumps({"text": text, "n": 1}) + "\n" for text in texts).encode()
    quoted = [text.replace('"', '""') for text in texts]
    table = "id,text\n" + "".join(f'{number},"{text}"\n' for number, text in enumerate(quoted))
    files = {
        "a.txt": plain,
        "a.txt.gz": gzip.compress(plain),
        "a.txt.xz": lzma.compress(plain),
        "wide.txt": plain.decode().encode("utf-16"),
        "a.jsonl": objects,
        "a.jsonl.gz": gzip.compress(objects),
        "a.csv": table.encode(),
        "a.tsv": table.replace(",", "\t", 1).replace(',"', '\t"').encode(),
        "bars.csv": table.replace(",", "|", 1).replace(',"', '|"').encode(),
        "semicolons.tsv": table.replace(",", ";", 1).replace(',"', ';"').encode(),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    pq.write_table(pa.table({"text": texts, "id": [1, 2, 3, 4]}), tmp_path / "a.parquet", row_group_size=2)
    for name in [*files, "a.parquet"]:
        for size in (10, 10_000):
            out = tmp_path / f"out-{name}-{size}"
            make(tmp_path / name, out, model, shard_size=size, layers="top")
            expected = texts[:3] if ".txt" in name else texts
            found = rows(out)
            assert [row["words"] for row in found] == [polyseme.load(model).words(text) for text in expected], name
            assert [row["line"] for row in found] == list(range(len(expected))), name


def test_small_files_share_parts_and_large_ones_are_cut(model: str, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for number in range(40):
        (folder / f"{number:02}.txt").write_text(f"The bank {number}\n\nof\n" * (30 if number == 7 else 1), encoding="utf-8")
    result = make(folder, tmp_path / "out", model, shard_size=100, layers="top")
    found = rows(tmp_path / "out")
    assert 10 < result.parts < 20
    assert [(Path(row["file"]).name, row["line"]) for row in found] == [
        (f"{number:02}.txt", line) for number in range(40) for line in range(90 if number == 7 else 3)
    ]
    shards = [json.loads(line) for line in (tmp_path / "out" / "_shards.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sum(piece["lines"] for shard in shards for piece in shard["pieces"]) == len(found)


@pytest.mark.parametrize("ending", ["", "\n", "\n\n"])
@pytest.mark.parametrize("size", [3, *(pytest.param(each, marks=pytest.mark.slow) for each in (1, 7, 1000))])
def test_lines_at_every_edge_of_a_window(model: str, tmp_path: Path, size: int, ending: str) -> None:
    lines = ["a", "", "of the", "", "", "a long line of the river", "the"]
    (tmp_path / "a.txt").write_text("\n".join(lines) + ending, encoding="utf-8")
    make(tmp_path / "a.txt", tmp_path / "out", model, shard_size=size, layers="top")
    expected = [*lines, *[""] * (ending.count("\n") - 1)]
    assert [" ".join(row["words"]) for row in rows(tmp_path / "out")] == expected


def test_a_failed_shard_does_not_stop_the_others(model: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    good = [json.dumps({"text": f"the bank {number}"}) for number in range(50)]
    path.write_text("\n".join([*good[:20], '{"other": 1}', *good[20:]]), encoding="utf-8")
    result = make(path, tmp_path / "out", model, shard_size=200)
    assert len(result.failures) == 1 and f"{path}:21" in result.failures[0]
    assert result.problem is not None and "1 part" in result.problem
    assert json.loads((tmp_path / "out" / "_manifest.json").read_text())["complete"] is False
    assert 30 < len(rows(tmp_path / "out")) < 51
    with pytest.raises(PolysemeError, match="more than max_failures=0"):
        make(path, tmp_path / "none", model, shard_size=200, max_failures=0)


def test_misuse(text: Path, model: str, tmp_path: Path) -> None:
    for given, said in {
        "s3::zip://a.zip": "chains of addresses",
        "simplecache::s3://bucket/a": "chains of addresses",
        "ftp://ann:secret@host/a": "unknown protocol 'ftp'",
        "-": "cannot be cut into shards",
    }.items():
        with pytest.raises(UsageError, match=said) as caught:
            make(given, tmp_path / "out", model)
        assert "secret" not in str(caught.value)
    with pytest.raises(UsageError, match="carry"):
        make(text, tmp_path / "out", model, start="carry")
    with pytest.raises(UsageError, match="500KB"):
        parse_size("many")
    with pytest.raises(UsageError, match="add engine='ray'"):
        make(text, tmp_path / "out", model, address="auto")
