"""Our own model folder: out and in again, whole or absent, and strict."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.encoders.elmo import Elmo
from polyseme.text.words import get_splitter
from tests.encoders.small import elmo

TEXTS = [["the", "bank", "zebra"], ["river"]]


def change(path: Path, **values: object) -> None:
    head = json.loads(path.read_text())
    path.write_text(json.dumps({**head, **values}))


@pytest.mark.parametrize("form", ["characters", "words", "both"])
@pytest.mark.parametrize("start", ["zero", "learned"])
def test_round_trip(tmp_path: Path, form: str, start: str) -> None:
    model = elmo(form=form, start=start, output=True)
    model.splitter = get_splitter("english")
    model.save_pretrained(tmp_path / "m")
    again = Elmo.from_pretrained(tmp_path / "m")
    assert isinstance(again, Elmo) and again.config == model.config and again.splitter.name == "english"
    for way in (None, "warm"):
        for a, b in zip(model.embed(TEXTS, start=way), again.embed(TEXTS, start=way), strict=True):
            np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(model.score(TEXTS), again.score(TEXTS))
    assert not again.training and all(p.requires_grad for p in again.parameters())


def test_word_lists_are_read_once_and_known_by_their_content(tmp_path: Path) -> None:
    model = elmo()
    for place, words in {"a": ["的", "包袱"], "b": ["的", "包", "袱"]}.items():
        model.splitter = get_splitter("unigram", words)
        model.save_pretrained(tmp_path / place)
    first, again = (Elmo.from_pretrained(tmp_path / "a").splitter for _ in range(2))
    assert first is again and first("的包袱") == ["的", "包袱"]
    (tmp_path / "a" / "words.txt").write_bytes((tmp_path / "b" / "words.txt").read_bytes())
    assert Elmo.from_pretrained(tmp_path / "a").splitter("的包袱") == ["的", "包", "袱"]


def test_the_warm_state_is_kept_in_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elmo().save_pretrained(tmp_path / "m")
    again = Elmo.from_pretrained(tmp_path / "m")
    expected = elmo().embed(TEXTS, start="warm")
    monkeypatch.setattr(again, "_run", None)  # computing it anew would need this
    state = again.warm_state()
    np.testing.assert_array_equal(state.cell.numpy(), elmo().warm_state().cell.numpy())
    monkeypatch.undo()
    np.testing.assert_array_equal(again.embed(TEXTS, start="warm")[0], expected[0])


def test_fp16_halves_the_file(tmp_path: Path) -> None:
    model = elmo()
    model.save_pretrained(tmp_path / "full")
    model.save_pretrained(tmp_path / "half", precision="fp16")
    sizes = [(tmp_path / name / "model.safetensors").stat().st_size for name in ("full", "half")]
    assert sizes[1] < 0.7 * sizes[0]
    again = Elmo.from_pretrained(tmp_path / "half")
    assert next(again.parameters()).dtype == torch.float32
    np.testing.assert_allclose(again.embed(TEXTS)[0], model.embed(TEXTS)[0], atol=5e-3)


def test_card_and_description(tmp_path: Path) -> None:
    elmo(output=True).save_pretrained(tmp_path / "m", card="# Mine\n")
    assert Elmo.from_pretrained(tmp_path / "m").card == "# Mine\n"
    facts = elmo(output=True).info()
    assert facts["layers"] == 3 and facts["dim"] == 16 and facts["language_model"] is True
    assert facts["parameters"] == sum(p.numel() for p in elmo().parameters())


def test_a_folder_at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert elmo().save_pretrained("~/m") == tmp_path / "m"
    assert Elmo.from_pretrained("~/m").config == elmo().config


def test_saving_over_a_folder_and_failing_to_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elmo(seed=1).save_pretrained(tmp_path / "m")
    elmo(seed=2).save_pretrained(tmp_path / "m")
    np.testing.assert_array_equal(Elmo.from_pretrained(tmp_path / "m").embed(TEXTS)[0], elmo(seed=2).embed(TEXTS)[0])

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("polyseme.base.tensor_files.save_file", full)
    with pytest.raises(PolysemeError, match=r"cannot write .*other: No space left on device"):
        elmo().save_pretrained(tmp_path / "other")

    def full_in_its_own_voice(*_: object) -> None:
        raise SafetensorError("no space")

    monkeypatch.setattr("polyseme.base.tensor_files.save_file", full_in_its_own_voice)
    with pytest.raises(PolysemeError) as caught:
        elmo().save_pretrained(tmp_path / "other")
    assert str(caught.value) == f"cannot write {tmp_path}/other/model.safetensors: no space"
    assert [file.name for file in tmp_path.iterdir()] == ["m"]


def test_a_later_format_is_told(tmp_path: Path) -> None:
    elmo().save_pretrained(tmp_path)
    change(tmp_path / "config.json", polyseme_format=3)
    with pytest.raises(FormatError, match="has polyseme_format 3; this version reads 1 and 2: update polyseme"):
        Elmo.from_pretrained(tmp_path)


def test_bad_folders(tmp_path: Path) -> None:
    folder = elmo(output=True).save_pretrained(tmp_path / "m")
    good = (folder / "config.json").read_text()

    def said(kind: type[Exception], text: str) -> None:
        with pytest.raises(kind, match=text):
            Elmo.from_pretrained(folder)

    change(folder / "config.json", spliter="x")
    said(FormatError, r"unknown key 'spliter' \(did you mean 'splitter'\?\)")
    (folder / "config.json").write_text(good)
    config = json.loads(good)["config"]
    change(folder / "config.json", config={**config, "dim": "wide", "strat": "zero"})
    said(ConfigError, r"unknown field 'strat' \(did you mean 'start'\?\).*dim is 'wide'; expected a whole number")
    (folder / "config.json").write_text(good)

    weights = load_file(folder / "model.safetensors")
    name = "lstm.forward_layers.0.bias"
    save_file({**weights, name: torch.zeros(3)}, folder / "model.safetensors")
    said(FormatError, rf"model\.safetensors: {name} has shape \(3,\), expected \(48,\)")
    save_file({key: value for key, value in weights.items() if key != name}, folder / "model.safetensors")
    said(FormatError, rf"model\.safetensors: lacks {name}")
    save_file({**weights, "extra": torch.zeros(1)}, folder / "model.safetensors")
    said(FormatError, "has an unknown tensor extra")
    save_file(weights, folder / "model.safetensors")

    (folder / "vocabulary.txt").write_text("<S>\n</S>\n<UNK>\n")
    said(FormatError, r"output layer of 21 rows, but its vocabulary has 3 words")
    (folder / "model.safetensors").write_bytes(b"broken")
    said(FormatError, r"model\.safetensors: is a damaged safetensors file")
    (folder / "model.safetensors").unlink()
    said(PolysemeError, r"cannot read .*model\.safetensors")


def test_not_our_folder(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(FormatError, match="is no polyseme model folder"):
        Elmo.from_pretrained(tmp_path)


def test_push_to_hub_sends_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import huggingface_hub

    sent: dict[str, object] = {}

    class Api:
        def __init__(self, token: str | None) -> None:
            sent["token"] = token

        def create_repo(self, repo_id: str, *, private: bool, exist_ok: bool) -> None:
            sent["private"] = private

        def upload_folder(self, *, repo_id: str, folder_path: str) -> str:
            sent["files"] = sorted(file.name for file in Path(folder_path).iterdir())
            return f"hub:{repo_id}"

    monkeypatch.setattr(huggingface_hub, "HfApi", Api)
    assert elmo().push_to_hub("me/model", private=True, token="t") == "hub:me/model"
    assert sent == {"token": "t", "private": True, "files": ["README.md", "config.json", "model.safetensors"]}


def test_another_model_in_the_same_folder_leaves_nothing_of_the_first(tmp_path: Path) -> None:
    elmo(output=True).save_pretrained(tmp_path / "m")
    (tmp_path / "m" / "verify.safetensors").write_bytes(b"of the first")
    elmo(seed=1).save_pretrained(tmp_path / "m")
    again = Elmo.from_pretrained(tmp_path / "m")
    assert isinstance(again, Elmo) and again.output is None and again.vocabulary is None
    assert not (tmp_path / "m" / "verify.safetensors").exists()


def test_fp16_has_its_own_warm_state_and_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    model = elmo()
    model.save_pretrained(tmp_path / "half", precision="fp16")
    again = Elmo.from_pretrained(tmp_path / "half")
    kept = load_file(tmp_path / "half" / "model.safetensors")["warm.cell"]
    assert kept.dtype == torch.float32
    np.testing.assert_array_equal(again.warm_state().cell.numpy(), kept.numpy())
    again.refresh()
    np.testing.assert_allclose(again.warm_state().cell.detach().numpy(), kept.numpy(), atol=1e-6)
    with torch.no_grad():
        model.tokens.projection.bias[0] = 1e6
    with pytest.raises(PolysemeError, match=r"projection\.bias has numbers too large for fp16: save it in fp32"):
        model.save_pretrained(tmp_path / "other", precision="fp16")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("config.json", {"splitter": "foo"}, r"names the splitter 'foo'; known: characters"),
        ("config.json", {"splitter": ["a"]}, "names the splitter"),
        ("config.json", {"polyseme_format": True}, "has polyseme_format True"),
        ("vocabulary.txt", None, "lacks vocabulary.txt"),
        ("vocabulary.txt", "a\nb\n", r"vocabulary\.txt: lacks <S> and </S>"),
    ],
)
def test_damaged_word_models(tmp_path: Path, file: str, content: object, said: str) -> None:
    folder = elmo(form="words").save_pretrained(tmp_path / "m")
    if isinstance(content, dict):
        change(folder / file, **content)
    elif content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_text(str(content))
    with pytest.raises(FormatError, match=said):
        Elmo.from_pretrained(folder)
