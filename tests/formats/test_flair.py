"""Flair's character language models: the oracle's vectors, both directions, old and new files, and nothing executed."""

from __future__ import annotations

import os
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.errors import FormatError
from polyseme.encoders.flair import Flair
from polyseme.formats import flair, restricted_pickle
from tests.formats.flair_files import HIDDEN, Dictionary, state, vectors, write

SENTENCES = [["The", "bank", "of", "Zürich"], ["a"], [], ["银行", "x" * 700, "b", "end"], ["", "of", " "]]


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("forward", [True, False])
def test_one_direction(tmp_path: Path, forward: bool, old: bool, protocol: int) -> None:
    content = state(forward=forward)
    model = polyseme.load(write(tmp_path / "news.pt", content, old=old, protocol=protocol))
    assert isinstance(model, Flair) and model.config.directions == (("forward",) if forward else ("backward",))
    assert (model.layers, model.dim, model.splitter.name, model.training) == (1, HIDDEN, "whitespace", False)
    for words, found in zip(SENTENCES, model.embed(SENTENCES), strict=True):
        assert found.shape == (1, len(words), HIDDEN)
        if words:
            np.testing.assert_allclose(found[0], vectors(content, words), atol=1e-6)


@pytest.mark.parametrize("shape", [{}, {"layers": 2, "nout": 3}, {"document_delimiter": "\n\n"}], ids=str)
def test_both_directions(tmp_path: Path, shape: dict[str, Any]) -> None:
    contents = [state(forward=True, **shape), state(forward=False, seed=1, **shape)]
    for name, content in zip(("z-forward.pt", "a-backward.pt"), contents, strict=True):
        write(tmp_path / name, content)
    model = polyseme.load(tmp_path)
    assert model.config.directions == ("forward", "backward") and sorted(model.layer_groups()) == ["backward", "forward"]
    for words, found in zip(SENTENCES, model.embed(SENTENCES), strict=True):
        if words:
            expected = np.concatenate([vectors(content, words) for content in contents], axis=1)
            np.testing.assert_allclose(found[0], expected, atol=1e-6)
    polyseme.convert(tmp_path, tmp_path / "ours")
    for one, other in zip(polyseme.load(tmp_path / "ours").embed(SENTENCES), model.embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(one, other)
    facts = polyseme.info(tmp_path).facts
    assert (facts["format"], facts["directions"]) == ("Flair", "forward backward")


def test_files_that_do_not_fit_together(tmp_path: Path) -> None:
    write(tmp_path / "a.pt", state())
    write(tmp_path / "b.pt", state(seed=1))
    with pytest.raises(FormatError, match=r"b\.pt: reads forward, as another file does"):
        polyseme.load(tmp_path)
    write(tmp_path / "b.pt", state(forward=False, layers=2))
    with pytest.raises(FormatError, match=r"b\.pt: has other sizes or characters than a\.pt: load them apart"):
        polyseme.load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"recurrent_type": "GRU"}, "of GRUs"),
        ({"nlayers": 3}, "lacks models.forward_lm.lstm.weight_ih_l1"),
        ({"hidden_size": "large"}, "hidden_size"),
        ({"hidden_size": 10**12}, "hidden_size is 1000000000000"),
        ({"state_dict": {"encoder.weight": 3}}, "no dictionary of tensors"),
        ({"dictionary": Dictionary([])}, "no list of characters"),
        ({"dictionary": Dictionary(["a"])}, "has shape"),
    ],
    ids=lambda given: given if isinstance(given, str) else next(iter(given)),
)
def test_other_contents(tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    with pytest.raises(FormatError, match=told):
        polyseme.load(write(tmp_path / "m.pt", {**state(), **changes}))
    content = state()
    del content["nout"]
    with pytest.raises(FormatError, match="lacks nout"):
        polyseme.load(write(tmp_path / "m.pt", content))


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, ("pwned",)


@pytest.mark.parametrize("old", [False, True])
def test_nothing_is_executed(tmp_path: Path, old: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path / "m.pt", {**state(), "dropout": Evil()}, old=old)
    with pytest.raises(FormatError, match=r"m\.pt: .*posix\.mkdir, which was rejected; nothing was executed"):
        polyseme.load(path)
    assert not (tmp_path / "pwned").exists()


def rewritten(path: Path, change: Any) -> Path:
    """The file with another pickle."""
    with zipfile.ZipFile(path) as file:
        parts = {name: file.read(name) for name in file.namelist()}
    with zipfile.ZipFile(path, "w") as file:
        for name, content in parts.items():
            file.writestr(name, change(content) if name.endswith("data.pkl") else content)
    return path


def test_memory_is_not_promised_away(tmp_path: Path) -> None:
    """Declared sizes are compared with the file, and a pickle's own tricks are refused, before anything is allocated."""
    huge = struct.pack("<I", 0xFFFFFFF0)
    for trick, told in [
        (b"\x80\x02N" + b"r" + huge + b"}q\x01.", "more memory"),  # a place in the memo
        (b"\x80\x02\x82\x01.", "EXT1"),
    ]:
        path = rewritten(write(tmp_path / "m.pt", state()), lambda _, trick=trick: trick + b"flair.data Dictionary")
        with pytest.raises(FormatError, match=told):
            polyseme.load(path)
    many = torch.zeros(10).as_strided((10, 1000), (1, 0))
    content = {**state(), "state_dict": {"encoder.weight": many}}
    with pytest.raises(FormatError, match=r"a tensor of shape \(10, 1000\) has a storage of 10 numbers"):
        polyseme.load(write(tmp_path / "m.pt", content))


@pytest.mark.parametrize("old", [False, True])
def test_damage(tmp_path: Path, old: bool) -> None:
    whole = write(tmp_path / "m.pt", state(), old=old).read_bytes()
    path = tmp_path / "cut.pt"
    for size in (len(whole) - 1, len(whole) // 2, 3000):
        path.write_bytes(whole[:size])
        if flair.is_model(path):  # a zip file that is cut off is none
            with pytest.raises(FormatError, match=r"cut\.pt"):
                polyseme.load(path)
    if old:
        assert flair.is_model(path)


def test_only_what_is_listed_is_built(tmp_path: Path) -> None:
    path = write(tmp_path / "m.pt", {"of": Dictionary(["a"])})
    found = restricted_pickle.read_objects(path, [("flair.data", "Dictionary")])["of"]
    assert isinstance(found, restricted_pickle.Record) and found.idx2item == [b"a"]
    with pytest.raises(FormatError, match=r"flair\.data\.Dictionary, which was rejected"):
        restricted_pickle.read_objects(path, [])
    assert pickle.loads(pickle.dumps(found.idx2item)) == [b"a"]
