"""bilm-tf's files in every variant, against the oracle: read, written back, and read again."""

import json
import logging
import math

import h5py
import numpy as np
import pytest
import torch

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.encoders.taglm import TagLm
from polyseme.formats import bilm
from polyseme.formats.load import load
from polyseme.formats.verify import difference
from polyseme.nn.config import CharactersConfig, LstmConfig
from polyseme.text.vocabulary import Vocabulary
from tests.formats.compare import SENTENCES, bilm_oracle, lines, same_log_probs, same_vectors
from tests.oracle.make import VOCABULARY, write_bilm, write_hdf5, write_token_embeddings

# where the scale is 1, the larger one makes a model that blows float32 noise up beyond 1e-5 in five sentences
VARIANTS = {
    "default": {},
    "no-residual": {"residual": False},
    "residual-absent": {"residual": None},
    "clips-absent": {"cell_clip": None, "projection_clip": None, "scale": 1.0},
    "clips-zero": {"cell_clip": 0, "projection_clip": 0, "scale": 1.0},
    "small-clips": {"cell_clip": 0.5, "projection_clip": 0.4},
    "261-characters": {"characters": 261},
    "tanh": {"activation": "tanh"},
    "no-highway": {"highways": None},
    "zero-highway": {"highways": 0},
    "filters-equal-projection": {"projection": 18, "scale": 1.0},
    "projection-equals-cell": {"dim": 8, "projection": 8},
    "projection-beyond-cell": {"dim": 6, "projection": 8},
    "one-layer": {"layers": 1},
    "flat-layer": {"layers": 1, "flat_single_layer": True},
    "flat-layer-unprojected": {"layers": 1, "flat_single_layer": True, "dim": 8, "projection": 8},
    "three-layers": {"layers": 3, "scale": 1.0},
    "10-characters": {"max_characters": 10},
    "20-characters": {"max_characters": 20},
    "words": {"words_only": True},
    "words-unprojected": {"words_only": True, "dim": 6, "projection": 8},
    "softmax": {"softmax": True},
    "words-softmax": {"softmax": True, "words_only": True},
}


@pytest.mark.parametrize("name", VARIANTS)
def test_variant_equals_the_oracle(name, tmp_path):
    folder = write_bilm(tmp_path, **VARIANTS[name])
    model, oracle = load(folder), bilm_oracle(folder)
    assert not model.training
    assert model.config.start == "zero"
    same_vectors(model, oracle)
    assert (model.output is not None) == ("softmax" in VARIANTS[name])
    if model.output is not None:
        same_log_probs(model, oracle)


# most differ from others only in numbers of the options, so that the same weights are written; all are read in the test above
ALIKE = {"residual-absent", "clips-absent", "clips-zero", "small-clips", "261-characters", "tanh", "zero-highway"}
ALIKE |= {"projection-equals-cell", "flat-layer-unprojected", "10-characters", "20-characters", "words-unprojected"}
ALIKE |= {"projection-beyond-cell", "filters-equal-projection", "one-layer", "words-softmax"}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALIKE)) for name in VARIANTS])
def test_a_model_goes_home(name, tmp_path):
    """Read, saved as ours, read, written as bilm-tf's, read: the same numbers; the oracle reads what was written."""
    first = load(write_bilm(tmp_path / "given", **VARIANTS[name]))
    first.save_pretrained(tmp_path / "ours")
    second = load(tmp_path / "ours")
    last = load(bilm.write(second, tmp_path / "home"))
    for name_, value in first.state_dict().items():
        assert torch.equal(value, last.state_dict()[name_]), name_
    assert last.config == first.config
    for a, b in zip(first.embed(SENTENCES), last.embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(a, b)
    settings = {"softmax_path": tmp_path / "home" / "softmax_weights.hdf5"} if last.output is not None else {}
    oracle = bilm_oracle(tmp_path / "home", **settings)
    same_vectors(last, oracle)
    if last.output is not None:
        assert lines(tmp_path / "home" / "vocab.txt") == VOCABULARY
        same_log_probs(last, oracle)


def test_what_is_written_is_what_was_read(tmp_path):
    """Dataset by dataset: every change of layout is undone (the forget gate's 1 costs a rounding)."""
    bilm.write(load(write_bilm(tmp_path / "given")), tmp_path / "home")
    with h5py.File(tmp_path / "given" / "weights.hdf5") as given, h5py.File(tmp_path / "home" / "weights.hdf5") as home:
        names = []
        given.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        assert len(names) > 20
        for name in names:
            assert home[name].dtype == np.float32
            np.testing.assert_allclose(home[name][...], given[name][...], rtol=0, atol=2e-7 if name.endswith("/B") else 0)


def test_softmax_in_a_file_of_its_own(tmp_path):
    folder = write_bilm(tmp_path, softmax=True)
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        arrays = {name: file[name][...] for name in ("softmax/W", "softmax/b")}
        del file["softmax"]
    path = write_hdf5(folder / "any name at all", arrays)
    model = load(folder)
    same_log_probs(model, bilm_oracle(folder, softmax_path=path))


def test_softmax_without_a_vocabulary_is_left_out_and_said(tmp_path, caplog):
    folder = write_bilm(tmp_path, softmax=True)
    (folder / "vocab.txt").unlink()
    assert load(folder).output is None
    assert "there is no vocabulary" in caplog.text


def test_cached_word_vectors(tmp_path):
    folder = write_bilm(tmp_path / "model", vocabulary=VOCABULARY)
    oracle = bilm_oracle(folder)
    cached = write_token_embeddings(tmp_path / "cache", oracle, VOCABULARY)
    model = load(folder, token_embeddings=cached, vocabulary=tmp_path / "cache" / "vocab.txt")
    assert model.config.characters is None
    assert model.config.words == WordTableConfig(size=len(VOCABULARY), dim=8)
    same_vectors(model, bilm_oracle(folder, embedding_path=cached))
    known = [["the", "<S>", "bank", "今天", "<UNK>"]]
    np.testing.assert_allclose(model.embed(known)[0], load(folder).embed(known)[0], atol=1e-5)


def test_cached_word_vectors_beside_weights_are_used_only_where_asked_or_needed(tmp_path):
    folder = write_bilm(tmp_path, vocabulary=VOCABULARY)
    oracle = bilm_oracle(folder)
    cached = write_token_embeddings(folder, oracle, VOCABULARY)
    assert load(folder).config.characters is not None
    assert load(folder, token_embeddings=cached).config.characters is None
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        for name in [name for name in file if name.startswith("CNN") or name == "char_embed"]:
            del file[name]
    model = load(folder)
    assert model.config.characters is None
    same_vectors(model, bilm_oracle(folder, embedding_path=cached))


def test_cached_word_vectors_with_an_output_layer(tmp_path, caplog):
    folder = write_bilm(tmp_path / "model", softmax=True)
    oracle = bilm_oracle(folder)
    cached = write_token_embeddings(tmp_path / "cache", oracle, VOCABULARY)
    model = load(folder, token_embeddings=cached)
    same_log_probs(model, bilm_oracle(folder, embedding_path=cached))
    short = write_token_embeddings(tmp_path / "short", oracle, VOCABULARY[:5])
    model = load(folder, token_embeddings=short, vocabulary=tmp_path / "short" / "vocab.txt")
    assert model.output is None
    assert "its 12 rows are not the 5 words of the vocabulary" in caplog.text


def test_other_precisions_are_read(tmp_path):
    folder = write_bilm(tmp_path)
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        for name, kind in (("char_embed", "f8"), ("CNN_proj/b_proj", "f2")):
            values = file[name][...].astype(kind)
            del file[name]
            file[name] = values
    model = load(folder)
    assert {value.dtype for value in model.state_dict().values()} == {torch.float32}
    same_vectors(model, bilm_oracle(folder))


def test_extra_keys_and_datasets_are_named_and_ignored(tmp_path, caplog):
    folder = write_bilm(tmp_path)
    options = json.loads((folder / "options.json").read_text())
    options |= {"dropout": 0.1, "n_epochs": 10, "author": "someone"}
    options["lstm"]["colour"] = "red"
    (folder / "options.json").write_text(json.dumps(options))
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        file["notes/seed"] = np.zeros(3)
    same_vectors(load(folder), bilm_oracle(folder))
    assert "options.json: ignored unknown keys: lstm.colour, author" in caplog.text
    assert "weights.hdf5: ignored unknown datasets: notes/seed" in caplog.text


def elmo(characters=None, words=None, vocabulary=None, alphabet=None, **settings):
    config = ElmoConfig(characters=characters, words=words, **settings)
    return Elmo(config, vocabulary=vocabulary, alphabet=alphabet)


SMALL = CharactersConfig(dim=4, filters=((1, 4), (2, 6)), highway_layers=1)
LSTM = LstmConfig(cell_size=12, projection_size=6)


def test_models_that_the_format_cannot_hold_are_refused(tmp_path):
    marks = ["<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>"]
    points = CharactersConfig(alphabet="code_points", symbols=6, dim=4, filters=((1, 4),))
    refused = {
        "code points": elmo(points, alphabet=marks, dim=6, lstm=LSTM),
        "both characters and word": elmo(SMALL, WordTableConfig(size=12, dim=4), Vocabulary(VOCABULARY), dim=6, lstm=LSTM),
        "followed by a projection": elmo(None, WordTableConfig(size=12, dim=4), Vocabulary(VOCABULARY), dim=6, lstm=LSTM),
        "special tokens are <bos>": elmo(SMALL, dim=6, lstm=LSTM, begin="<bos>"),
        "words have size 6, its LSTM outputs 5": elmo(SMALL, dim=6, lstm=LSTM.replace(projection_size=5)),
        "are not projected": elmo(SMALL, dim=6, lstm=LSTM.replace(projection_size=None)),
    }
    for reason, model in refused.items():
        with pytest.raises(PolysemeError, match=f"bilm-tf's format cannot express this model.*{reason}"):
            bilm.write(model, tmp_path / "home")
    assert not (tmp_path / "home").exists()


def test_what_is_lost_on_the_way_is_said(tmp_path, caplog):
    model = elmo(SMALL, dim=6, lstm=LSTM, start="learned").eval()
    bilm.write(model, tmp_path)
    assert "has no learned start state" in caplog.text and "curly quotes" not in caplog.text
    again = load(tmp_path)
    for a, b in zip(model.embed(SENTENCES, start="zero"), again.embed(SENTENCES), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize(("dim", "cell"), [(10, 12), (6, 4)])
def test_projections_that_bilm_tf_would_not_have_are_kept(dim, cell, tmp_path, caplog):
    model = elmo(SMALL, dim=dim, lstm=LstmConfig(cell_size=cell, projection_size=dim)).eval()
    again = load(bilm.write(model, tmp_path))
    assert "bilm-tf itself does not use" in caplog.text
    assert again.config == model.config
    for a, b in zip(model.embed(SENTENCES), again.embed(SENTENCES), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_a_folder_with_parts_of_another_model_is_not_written_to(tmp_path):
    (tmp_path / "softmax_weights.hdf5").write_bytes(b"")
    with pytest.raises(PolysemeError, match=r"has softmax_weights.hdf5 of another model"):
        bilm.write(elmo(SMALL, dim=6, lstm=LSTM), tmp_path)
    ours = elmo(SMALL, dim=6, lstm=LSTM).save_pretrained(tmp_path / "ours")
    with pytest.raises(PolysemeError, match=r"has config.json of another model"):
        bilm.write(elmo(SMALL, dim=6, lstm=LSTM), ours)


def test_plain_words_are_lost_and_only_elmos_are_held(tmp_path, caplog):
    bilm.write(elmo(SMALL, dim=6, lstm=LSTM, normalize_quotes=True), tmp_path / "plain")
    assert "curly quotes and -LRB- no longer count as plain signs" in caplog.text
    config = elmo(SMALL, dim=6, lstm=LSTM).config
    with pytest.raises(PolysemeError, match="is for ELMo models with all layers; this is a taglm"):
        bilm.write(TagLm(config), tmp_path / "tag")
    assert difference(TagLm(config), elmo(SMALL, dim=6, lstm=LSTM)) == math.inf


def test_written_files_carry_no_half_states(tmp_path, monkeypatch, caplog):
    caplog.set_level(logging.ERROR)
    model = load(write_bilm(tmp_path / "given"))
    monkeypatch.setattr(h5py.File, "create_dataset", lambda *args, **kwargs: (_ for _ in ()).throw(OSError(28, "disk")))
    with pytest.raises(PolysemeError, match=r"cannot write .*weights.hdf5"):
        bilm.write(model, tmp_path / "home")
    assert [path.name for path in tmp_path.iterdir()] == ["given"]


def test_word_models_need_the_marks_of_a_sentence(tmp_path):
    folder = write_bilm(tmp_path, words_only=True)
    (folder / "vocab.txt").write_text("\n".join(["s", "t", *VOCABULARY[2:]]), encoding="utf-8")
    with pytest.raises(FormatError, match=r"vocab.txt: lacks <S> and </S>"):
        load(folder)


def test_a_folder_is_written_whole_or_not_at_all(tmp_path):
    model = load(write_bilm(tmp_path / "given", softmax=True))
    other = bilm.write(model, tmp_path / "other")
    before = {path.name: path.read_bytes() for path in other.iterdir()}
    model.vocabulary = Vocabulary([*VOCABULARY[:-1], "two\nlines"])
    with torch.no_grad():
        model.tokens.projection.bias += 1
    for folder in (other, tmp_path / "new"):
        with pytest.raises(PolysemeError, match="cannot be written as a line"):
            bilm.write(model, folder)
    assert {path.name: path.read_bytes() for path in other.iterdir()} == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given", "other"]
