"""Telling formats apart by content: names, places and packings that published models come in."""

import gzip
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

import polyseme
from polyseme.analysis.words import WordSpace
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.formats import bilm
from polyseme.formats.load import load
from tests.formats.compare import bilm_oracle, same_log_probs, same_vectors
from tests.oracle.make import VOCABULARY, write_allennlp_archive, write_bilm, write_hdf5, write_manylangs


def test_names_do_not_matter(tmp_path):
    folder = write_bilm(tmp_path)
    oracle = bilm_oracle(folder)
    (folder / "weights.hdf5").rename(folder / "elmo")
    (folder / "options.json").rename(folder / "settings of it.json")
    (folder / "meta.json").write_text('{"author": "someone"}')
    (folder / "sentences.json").write_text('["a"]')
    (folder / "broken.json").write_text("{")
    (folder / ".hidden.json").write_text('{"lstm": {}}')
    write_hdf5(folder / "weights.hdf5", {"0": np.zeros((3, 2, 16)), "1": np.zeros((3, 4, 16))})  # outputs of a model
    model = load(folder)
    same_vectors(model, oracle)
    assert model.source == str(folder)


def test_a_weights_file_itself(tmp_path):
    folder = write_bilm(tmp_path / "model")
    same_vectors(load(folder / "weights.hdf5"), bilm_oracle(folder))
    apart = (folder / "weights.hdf5").rename(tmp_path / "lonely.hdf5")
    with pytest.raises(FormatError, match=r"has no options, .*lstm \(found: lonely.hdf5\): give it with options"):
        load(apart)
    assert load(apart, options=folder / "options.json").layers == 3


def zipped(folder, name: str):
    path = folder.parent / name
    with zipfile.ZipFile(path, "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"model/{file.name}")
    return path


def test_info_names_the_format_of_an_archive(tmp_path):
    many = write_manylangs(tmp_path / "many", word_dim=6, char_dim=5)
    folder = write_bilm(tmp_path / "bilm")
    polyseme.load(folder).save_pretrained(tmp_path / "ours")
    packed = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=True)
    shutil.unpack_archive(packed, tmp_path / "unpacked")
    for model, expected in (
        (many, "ELMoForManyLangs"),
        (zipped(many, "179.zip"), "ELMoForManyLangs"),
        (packed, "AllenNLP"),
        (tmp_path / "unpacked" / "weights.th", "AllenNLP"),
        (zipped(folder, "bilm.zip"), "bilm-tf (HDF5)"),
        (folder / "weights.hdf5", "bilm-tf (HDF5)"),
        (zipped(tmp_path / "ours", "ours.zip"), "polyseme"),
        (Path(__file__).parent / "tf_checkpoint", "bilm-tf (TensorFlow checkpoint)"),
    ):
        assert polyseme.info(model).facts["format"] == expected


def test_given_files_go_before_those_found(tmp_path):
    folder = write_bilm(tmp_path / "model", softmax=True)
    oracle = bilm_oracle(folder)
    vocabulary = (folder / "vocab.txt").rename(tmp_path / "words")
    (folder / "vocab.txt").write_text("wrong\n")
    (folder / "options.json").rename(tmp_path / "options")
    (folder / "options.json").write_text('{"lstm": {}}')
    model = load(folder, options=tmp_path / "options", vocabulary=vocabulary)
    same_log_probs(model, oracle)


def test_a_packed_vocabulary(tmp_path):
    folder = write_bilm(tmp_path, words_only=True)
    oracle = bilm_oracle(folder)
    (folder / "vocab.txt.gz").write_bytes(gzip.compress((folder / "vocab.txt").read_bytes()))
    (folder / "vocab.txt").unlink()
    same_vectors(load(folder), oracle)


def test_a_vocabulary_beside_a_character_model_is_not_read(tmp_path):
    folder = write_bilm(tmp_path)
    (folder / "vocab.txt").write_bytes(b"\xff\xfe")
    assert load(folder).vocabulary is None
    (tmp_path / "words.txt").write_text("<S>\n</S>\n<UNK>\nbank\nriver\n")
    assert WordSpace(load(folder, vocabulary=tmp_path / "words.txt")).similar("bank", 1)[0].word == "river"


@pytest.mark.parametrize("top", ["", "12/", "a/b/"])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_archives_of_the_nlpl_kind(kind, top, tmp_path):
    folder = write_bilm(tmp_path / "model", vocabulary=VOCABULARY)
    (folder / "weights.hdf5").rename(folder / "model.hdf5")
    (folder / "meta.json").write_text("{}")
    path = tmp_path / "12.whatever"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("__MACOSX/._x", b"")
            for file in folder.iterdir():
                archive.write(file, f"{top}{file.name}")
    else:
        with tarfile.open(path, "w") as archive:
            for file in folder.iterdir():
                archive.add(file, f"{top}{file.name}")
    if top == "a/b/":
        with pytest.raises(FormatError, match=r"12.whatever: a: has no known model \(found: b\)"):
            load(path)
        return
    (folder / "model.hdf5").rename(folder / "weights.hdf5")
    model = load(str(path))
    same_vectors(model, bilm_oracle(folder))
    assert model.source == str(path)


def test_our_folder_and_our_folder_in_a_zip(tmp_path):
    model = load(write_bilm(tmp_path / "given", softmax=True))
    folder = model.save_pretrained(tmp_path / "ours")
    with zipfile.ZipFile(tmp_path / "ours.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    for path in (folder, tmp_path / "ours.zip"):
        again = load(path)
        assert again.source == str(path)
        for name, value in model.state_dict().items():
            assert torch.equal(value, again.state_dict()[name])
    with pytest.raises(UsageError, match="options does not apply to a polyseme folder"):
        load(folder, options=folder / "config.json")


def test_several_candidates_are_listed(tmp_path):
    folder = write_bilm(tmp_path)
    (folder / "more.json").write_text((folder / "options.json").read_text())
    with pytest.raises(FormatError, match=r"has 2 files of options \(more.json, options.json\): give one"):
        load(folder)
    assert load(folder, options=folder / "more.json").layers == 3
    (folder / "copy.hdf5").write_bytes((folder / "weights.hdf5").read_bytes())
    with pytest.raises(FormatError, match=r"has 2 files of weights \(copy.hdf5, weights.hdf5\): give one"):
        load(folder)


def test_transformers_folders_are_told(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert", "architectures": ["BertModel"]}))
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file["bert/embeddings"] = np.zeros(3)
    with pytest.raises(FormatError, match=r"has a config.json but no weights: model.safetensors is missing"):
        load(tmp_path)


def test_device(tmp_path):
    folder = write_bilm(tmp_path)
    assert load(folder, device="cpu").device == torch.device("cpu")
    with pytest.raises(UsageError, match="device is 'toaster'; allowed: cpu, cuda, mps"):
        load(folder, device="toaster")
    if not torch.backends.mps.is_available():
        with pytest.raises(UsageError, match=r"device='mps' cannot be used \(.*\); usable here: cpu"):
            load(folder, device="mps")


def test_given_files_that_are_not_there(tmp_path):
    folder = write_bilm(tmp_path)
    with pytest.raises(PolysemeError, match=r"nowhere.json: no such file"):
        load(folder, options=folder / "nowhere.json")


def test_the_output_layer_beside_a_weights_file(tmp_path, caplog):
    folder = bilm.write(load(write_bilm(tmp_path / "given", softmax=True)), tmp_path / "model")
    (folder / "broken.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    model = load(folder / "weights.hdf5")
    assert model.output is not None and list(model.vocabulary) == VOCABULARY
    write_bilm(tmp_path / "another")
    (tmp_path / "another" / "weights.hdf5").rename(folder / "other.hdf5")
    assert load(folder / "weights.hdf5").output is None  # whose is it?
    assert "ignored softmax_weights.hdf5" in caplog.text


def test_a_splitter_for_a_model_that_names_none(tmp_path):
    folder = write_bilm(tmp_path)
    assert load(folder).words("isn't it?") == ["isn't", "it?"]
    assert load(folder, splitter="english").words("isn't it?") == ["is", "n't", "it", "?"]
    with pytest.raises(UsageError, match="unknown splitter 'englsh'"):
        load(folder, splitter="englsh")


def test_devices_that_hold_no_numbers(tmp_path):
    with pytest.raises(UsageError, match="device is 'meta'; allowed: cpu, cuda, mps"):
        load(write_bilm(tmp_path), device="meta")


def test_what_is_no_model_is_told_for_what_it_is(tmp_path):
    with pytest.raises(
        PolysemeError, match=r"elmo: no such file or folder, and not a hub id .* \(known: en, en-bert, en-fasttext"
    ):
        load("elmo")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "task.json").write_text("{}")
    with pytest.raises(FormatError, match="is a trained task, not a model"):
        load(tmp_path / "run")
    folder = write_bilm(tmp_path / "model")
    (tmp_path / "packed").mkdir()
    shutil.make_archive(str(tmp_path / "packed" / "model"), "gztar", folder)
    with pytest.raises(FormatError, match=r"holds model.tar.gz, which may be a model: give the file itself"):
        load(tmp_path / "packed")
    same_vectors(load(tmp_path / "packed" / "model.tar.gz"), bilm_oracle(folder))


def test_a_training_under_way_is_told(tmp_path):
    (tmp_path / "run").mkdir()
    with pytest.raises(FormatError, match=r"has no model yet: its training is running or was interrupted \(run/\)"):
        load(tmp_path)


def test_a_model_that_is_read_in_inference_mode_can_be_trained(tmp_path):
    folder = write_bilm(tmp_path)
    with torch.inference_mode():
        model = load(folder)
    assert not any(tensor.is_inference() for tensor in (*model.parameters(), *model.buffers()))


def test_what_is_no_name_and_no_path_is_refused() -> None:
    for given in (3, None, ["en"]):
        with pytest.raises(UsageError, match="expected the name of a model, or the path of its folder or file"):
            polyseme.load(given)


def test_functions_that_are_no_methods_are_named() -> None:
    model = polyseme.load("en")
    with pytest.raises(AttributeError, match=r"a model has no method neighbours: call polyseme.neighbours\(..., model=model\)"):
        _ = model.neighbours
    with pytest.raises(AttributeError, match="'Elmo' object has no attribute 'nothing'"):
        _ = model.nothing
