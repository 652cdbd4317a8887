"""Frozen layers on the disk: the same vectors as the encoder gives, built once, never mixed up."""

from __future__ import annotations

import copy
import errno
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.encoders import layer_cache
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.encoders.layer_cache import PROGRESS, STATES, LayerCache

SENTENCES = [["The", "bank"], [], ["A", "river", "bank", "."], ["Money"]]
TEXTS = [[sentence] for sentence in SENTENCES]


@pytest.fixture
def encoder() -> Elmo:
    torch.manual_seed(0)
    return Elmo(SIZES["tiny"]).eval()


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 0.0), ("fp16", 1e-3)])
def test_batches_are_what_embed_gives(encoder: Elmo, tmp_path: Path, precision: str, tolerance: float) -> None:
    cache = LayerCache.build(encoder, TEXTS, tmp_path, precision=precision)
    found = cache.batch([2, 1, 0])
    assert found.shape == (encoder.layers, 3, 4, encoder.dim)
    arrays = encoder.embed(SENTENCES)
    for place, row in enumerate([2, 1, 0]):
        length = len(SENTENCES[row])
        np.testing.assert_allclose(found[:, place, :length].float().numpy(), arrays[row], atol=tolerance, rtol=0)
        assert not found[:, place, length:].any()


def test_long_texts_are_read_together() -> None:
    def blocks(lengths: list[int]) -> list[int]:
        offsets, done, ends = np.cumsum([0, *lengths]), 0, []
        while done < len(lengths):
            done = layer_cache._end_of_block(offsets, done, 1000)
            ends.append(done)
        return ends

    assert blocks([10] * 250) == [100, 200, 250]  # a thousand words
    assert blocks([30] * 250) == [96, 192, 250]  # 96 texts
    assert blocks([100] * 100) == [40, 80, 100]  # four thousand words
    assert blocks([9000, 10, 9000]) == [1, 2, 3]


def test_parts_of_sentences(encoder: Elmo, tmp_path: Path) -> None:
    cache = LayerCache.build(encoder, TEXTS, tmp_path, precision="fp32")
    found = cache.batch([2, 0, 2], [(1, 3), (1, 1), (2, 0)])
    assert found.shape == (encoder.layers, 3, 3, encoder.dim)
    arrays = encoder.embed(SENTENCES)
    np.testing.assert_array_equal(found[:, 0].numpy(), arrays[2][:, 1:4])
    np.testing.assert_array_equal(found[:, 1, :1].numpy(), arrays[0][:, 1:2])
    assert not found[:, 1, 1:].any() and not found[:, 2].any()


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="reads the memory map of Linux")
def test_files_are_not_mapped(encoder: Elmo, tmp_path: Path) -> None:
    """Mapped pages count as memory of the process, and the system maps many more than are read."""
    cache = LayerCache.build(encoder, TEXTS, tmp_path, precision="fp32")
    assert cache.batch([2, 0]).any()
    assert mapped_kilobytes(tmp_path) == 0


def mapped_kilobytes(folder: Path) -> int:
    """Memory of this process that maps files of a folder."""
    found, inside = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0]:
            inside = str(folder) in line
        elif inside and line.startswith("Rss:"):
            found += int(line.split()[1])
    return found


def test_it_is_computed_once(encoder: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = LayerCache.build(encoder, TEXTS, tmp_path)
    monkeypatch.setattr(Elmo, "embed", lambda *_, **__: pytest.fail("computed again"))
    again = LayerCache.build(encoder, TEXTS, tmp_path)
    assert torch.equal(first.batch([0, 2]), again.batch([0, 2])) and len(again) == len(SENTENCES)


def test_without_a_terminal_the_time_that_is_left_is_reported(
    encoder: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(layer_cache, "_AT_A_TIME", 1)
    monkeypatch.setattr(layer_cache, "_TEXTS", 1)
    monkeypatch.setattr(layer_cache, "_REPORT", 0)
    monkeypatch.setattr(layer_cache, "visible", lambda: False)
    with caplog.at_level("INFO"):
        LayerCache.build(encoder, TEXTS, tmp_path)
    assert "layers of 3 of 4 texts, about" in caplog.text and "of 4 of 4" not in caplog.text


def test_other_weights_or_text_have_another_cache(encoder: Elmo, tmp_path: Path) -> None:
    LayerCache.build(encoder, TEXTS, tmp_path)
    LayerCache.build(encoder, [*TEXTS, [["more"]]], tmp_path)
    with torch.no_grad():
        encoder.lstm.forward_layers[0].bias.add_(0.1)
    changed = LayerCache.build(encoder, TEXTS, tmp_path, precision="fp32")
    assert len(list(tmp_path.iterdir())) == 3
    np.testing.assert_allclose(changed.batch([3])[:, 0].numpy(), encoder.embed([["Money"]])[0], atol=1e-6)


@pytest.mark.parametrize("is_damaged", [False, True])
def test_a_stopped_build_goes_on(
    encoder: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_damaged: bool
) -> None:
    monkeypatch.setattr("polyseme.encoders.layer_cache._AT_A_TIME", 1)
    monkeypatch.setattr("polyseme.encoders.layer_cache._TEXTS", 1)
    embed, asked = Elmo.embed, []

    def stop(self: Elmo, sentences: list[list[str]], **options: object) -> list[np.ndarray]:
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(sentences)
        return embed(self, sentences, **options)

    monkeypatch.setattr(Elmo, "embed", stop)
    with pytest.raises(KeyboardInterrupt):
        LayerCache.build(encoder, TEXTS, tmp_path, precision="fp32")
    (folder,) = tmp_path.iterdir()
    assert json.loads((folder / PROGRESS).read_text()) == {"sentences": 2}
    if is_damaged:
        (folder / STATES).write_bytes((folder / STATES).read_bytes()[:150])
    monkeypatch.setattr(
        Elmo, "embed", lambda self, sentences, **options: asked.append(sentences) or embed(self, sentences, **options)
    )
    cache = LayerCache.build(encoder, TEXTS, tmp_path, precision="fp32")
    assert asked[2:] == [[each] for each in SENTENCES[0 if is_damaged else 2 : 4]]
    assert ("its layers are computed again" in caplog.text) == is_damaged
    np.testing.assert_allclose(cache.batch([2])[:, 0].numpy(), embed(encoder, [SENTENCES[2]])[0], atol=1e-6)


def test_a_damaged_one_is_told_with_what_to_do(encoder: Elmo, tmp_path: Path) -> None:
    LayerCache.build(encoder, TEXTS, tmp_path)
    (states,) = tmp_path.glob("*/states.npy")
    whole = states.read_bytes()
    np.save(states, np.zeros((1, 2, 3)))
    with pytest.raises(FormatError, match=r"is damaged \(of shape .*: remove it"):
        LayerCache.build(encoder, TEXTS, tmp_path)
    states.write_bytes(whole[:50])
    with pytest.raises(FormatError, match=r"is damaged .*: remove it to compute it again"):
        LayerCache.build(encoder, TEXTS, tmp_path)


def test_texts_without_words(encoder: Elmo, tmp_path: Path) -> None:
    assert LayerCache.build(encoder, [[[]], [[]]], tmp_path).batch([0, 1]).shape == (encoder.layers, 2, 0, encoder.dim)
    assert len(LayerCache.build(encoder, [], tmp_path)) == 0


_TOGETHER = """
import sys, time
from pathlib import Path
import torch
from polyseme.encoders import layer_cache as cache
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.base import lock

folder = Path(sys.argv[2])
torch.manual_seed(0)
encoder = Elmo(SIZES["tiny"]).eval()
embed = encoder.embed

def slow(sentences, **options):
    print("computed", flush=True)
    time.sleep(0.02)
    return embed(sentences, **options)

encoder.embed = slow
cache._AT_A_TIME = 30  # words of ten sentences
cache._TEXTS = 1
if sys.argv[1] == "no locks":
    lock._acquire = lambda *_: False
sentences = [["word"] * (1 + number % 5) for number in range(200)]
print("here", flush=True)
sys.stdin.read()
found = cache.LayerCache.build(encoder, [[text] for text in sentences], folder, precision="fp32").batch(range(200))
expected = embed(sentences)
assert all(abs(found[:, row, : len(text)].numpy() - expected[row]).max() < 1e-6 for row, text in enumerate(sentences))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
def test_of_threads_that_come_together_one_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """File locks hold between threads, too, if each opens the file for itself."""
    monkeypatch.setattr(layer_cache, "_AT_A_TIME", 5)
    monkeypatch.setattr(layer_cache, "_TEXTS", 1)
    documents = [[["word"] * (1 + number % 5)] for number in range(20)]
    computed: list[int] = []
    together = threading.Barrier(3)

    def build(number: int) -> torch.Tensor:
        mine = encoders[number]
        embed = mine.embed_documents

        def slow(*arguments: object, **options: object) -> object:
            computed.append(number)
            time.sleep(0.005)
            return embed(*arguments, **options)  # type: ignore[arg-type]

        mine.embed_documents = slow  # type: ignore[method-assign, assignment]
        together.wait()
        return LayerCache.build(mine, documents, tmp_path, precision="fp32").batch(range(20))

    torch.manual_seed(0)
    encoders = [Elmo(SIZES["tiny"]).eval()]
    encoders += [copy.deepcopy(encoders[0]) for _ in range(2)]
    expected = LayerCache.in_memory(encoders[0], documents).batch(range(20))
    with ThreadPoolExecutor(3) as threads:
        for found in threads.map(build, range(3)):
            torch.testing.assert_close(found, expected)
    assert len(computed) > 5 and len(set(computed)) == 1
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir()] == ["layers"]


@pytest.mark.slow  # three processes that import torch take nine seconds; threads, above, contend for the same lock
@pytest.mark.skipif(os.name != "posix", reason="needs locks")
@pytest.mark.parametrize(("locks", "builds"), [("locks", 1), ("no locks", 3)])
def test_of_processes_that_come_together_one_builds(tmp_path: Path, locks: str, builds: int) -> None:
    """Where there are no locks all do, each for itself, and none reads what is half there."""
    call = [sys.executable, "-c", _TOGETHER, locks, str(tmp_path)]
    started = [subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    assert [process.stdout.readline() for process in started if process.stdout] == ["here\n"] * 3
    for process in started:
        process.stdin.close()  # type: ignore[union-attr]
    said = [process.stdout.read() for process in started if process.stdout]
    assert [process.wait(timeout=100) for process in started] == [0, 0, 0]
    assert "".join(said).count("computed") == 20 * builds
    assert [path.name.partition("-")[0] for path in tmp_path.iterdir()] == ["layers"]


def test_half_a_cache_of_its_name_is_not_taken_for_a_whole_one(encoder: Elmo, tmp_path: Path) -> None:
    expected = LayerCache.build(encoder, TEXTS, tmp_path).batch([0, 2])
    (folder,) = tmp_path.iterdir()
    np.load(folder / "states.npy", mmap_mode="r+")[:] = 0
    (folder / PROGRESS).write_text(json.dumps({"sentences": 1}))
    assert torch.equal(LayerCache.build(encoder, TEXTS, tmp_path).batch([0, 2]), expected)
    assert list(tmp_path.iterdir()) == [folder]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="the system cannot set room aside")
def test_a_full_disk_is_told_before_anything_is_computed(
    encoder: Elmo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(PolysemeError, match=r"layers of 7 words.*No space left on device"):
        LayerCache.build(encoder, TEXTS, tmp_path)
    monkeypatch.undo()
    assert len(LayerCache.build(encoder, TEXTS, tmp_path)) == len(SENTENCES)
