"""ELMoForManyLangs folders, against the oracle."""

import json
import pickle
import zipfile

import numpy as np
import pytest
import torch

from polyseme.base.errors import FormatError, UsageError
from polyseme.formats.load import load
from polyseme.formats.manylangs import BUILT_IN, read_dictionary
from tests.formats.compare import SENTENCES, same_log_probs, same_vectors
from tests.oracle.elmo import OracleElmo
from tests.oracle.make import WORDS, draw, write_manylangs

INPUTS = {"both": (6, 5), "characters": (0, 5), "words": (6, 0)}
AUTHOR = "/users/author/configs/cnn_small.json"
CALM = 1.0  # the writers' own scale makes models that blow float32 noise up beyond 1e-5 in a few sentences


@pytest.mark.parametrize(
    ("inputs", "legacy", "config_path"), [*((inputs, False, "cnn.json") for inputs in INPUTS), ("both", True, AUTHOR)]
)
def test_every_input(inputs, legacy, config_path, tmp_path):
    word_dim, char_dim = INPUTS[inputs]
    sizes = {"word_dim": word_dim, "char_dim": char_dim, "scale": CALM}
    write_manylangs(tmp_path, legacy=legacy, config_path=config_path, **sizes)
    model = load(tmp_path)
    assert (model.config.begin, model.config.end, model.config.unknown) == ("<bos>", "<eos>", "<oov>")
    assert model.config.lstm.residual
    same_vectors(model, OracleElmo.from_manylangs(tmp_path), [*SENTENCES, ["<bos>", "<oov>", "\u3000", "\u2028", "<pad>"]])


@pytest.mark.parametrize("settings", [{"max_characters": 10}, {"activation": "tanh", "highways": 0}, {"layers": 1}])
@pytest.mark.parametrize("inputs", INPUTS)
def test_variants(inputs, settings, tmp_path):
    word_dim, char_dim = INPUTS[inputs]
    words = ("the", "of", "Bank", "bank", "x" * 8)  # the last is what a long word is cut to
    write_manylangs(tmp_path, word_dim=word_dim, char_dim=char_dim, words=words, scale=CALM, **settings)
    same_vectors(load(tmp_path), OracleElmo.from_manylangs(tmp_path))


@pytest.mark.parametrize("inputs", INPUTS)
def test_saved_as_ours(inputs, tmp_path):
    word_dim, char_dim = INPUTS[inputs]
    model = load(write_manylangs(tmp_path / "given", word_dim=word_dim, char_dim=char_dim))
    again = load(model.save_pretrained(tmp_path / "ours"))
    for a, b in zip(model.embed(SENTENCES), again.embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("top", ["", "179/"])
def test_in_a_zip(top, tmp_path):
    folder = write_manylangs(tmp_path / "model", word_dim=6, char_dim=5)
    with zipfile.ZipFile(tmp_path / "179.zip", "w") as archive:
        for file in folder.iterdir():
            archive.write(file, f"{top}{file.name}")
    same_vectors(load(tmp_path / "179.zip"), OracleElmo.from_manylangs(folder))


def test_the_published_architecture_is_built_in(tmp_path):
    """Its sizes are real ones, so the small tensors do not fit, and the message shows what was expected."""
    folder = write_manylangs(tmp_path, word_dim=6, char_dim=5, config_path=AUTHOR)
    (folder / "cnn_small.json").unlink()
    with pytest.raises(FormatError, match=r"which is not built in: copy cnn_small.json into the folder"):
        load(folder)
    name = next(iter(BUILT_IN))
    (folder / "config.json").write_text(json.dumps({"config_path": f"/users/author/{name}"}))
    with pytest.raises(FormatError, match=r"lacks the tensor convolutions.3.weight \[128, 50, 4\]"):
        load(folder)


def test_an_architecture_outside_the_folder_is_not_read(tmp_path):
    folder = write_manylangs(tmp_path / "model", word_dim=6, char_dim=5)
    (folder / "cnn.json").rename(tmp_path / "cnn.json")
    (folder / "config.json").write_text(json.dumps({"config_path": "../cnn.json"}))
    with pytest.raises(FormatError, match=r"copy cnn.json into the folder"):
        load(folder)


@pytest.mark.parametrize(("part", "kind"), [("token_embedder", "lstm"), ("encoder", "lstm")])
def test_other_kinds_are_refused(part, kind, tmp_path):
    folder = write_manylangs(tmp_path, word_dim=6, char_dim=5)
    architecture = json.loads((folder / "cnn.json").read_text())
    architecture[part] = {"name": kind}
    (folder / "cnn.json").write_text(json.dumps(architecture))
    with pytest.raises(FormatError, match=f"has a {part} of the kind 'lstm', which is not supported"):
        load(folder)


def test_dictionaries(tmp_path):
    path = tmp_path / "char.dic"
    path.write_bytes("<oov>\t0\na\tb\t2\n\t3\n\u2028\t4\r\n\n".encode())
    assert read_dictionary(path, 6, ["<oov>"]) == ["<oov>", "<unused 1>", "a\tb", "\u3000", "\u2028", "<unused 5>"]


@pytest.mark.parametrize("name", ["word.dic", "char.dic"])
def test_a_cut_dictionary_is_refused(name, tmp_path):
    folder = write_manylangs(tmp_path, word_dim=6, char_dim=5)
    lines = (folder / name).read_bytes().split(b"\n")[:-1]
    (folder / name).write_bytes(b"\n".join(lines[:-4]) + b"\n")
    rows = len(lines)
    what = f"names {rows - 4} of the {rows} rows of its table in token_embedder.pkl, and none after row {rows - 5}"
    with pytest.raises(FormatError, match=f"{name}: {what}"):
        load(folder)


def test_a_dictionary_without_its_last_row_is_told(tmp_path, caplog):
    path = tmp_path / "word.dic"
    path.write_text("<oov>\t0\na\t1\n")
    assert read_dictionary(path, 3, ["<oov>"]) == ["<oov>", "a", "<unused 2>"]
    assert caplog.messages == [f"{path}: names 2 of the 3 rows of its table in token_embedder.pkl: is it complete?"]


@pytest.mark.parametrize(("gaps", "warned"), [(3, False), (4, True)])
def test_many_gaps_in_a_dictionary_are_told(gaps, warned, tmp_path, caplog):
    path = tmp_path / "word.dic"
    path.write_text(f"<oov>\t0\nlast\t{gaps + 1}\n")
    assert read_dictionary(path, gaps + 2, ["<oov>"])[-2:] == [f"<unused {gaps}>", "last"]
    said = f"{path}: names 2 of the {gaps + 2} rows of its table in token_embedder.pkl: is it complete?"
    assert caplog.messages == ([said] if warned else [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<oov>\t0\na\n", "char.dic:2: is 'a'; expected a symbol, a tab and an id"),
        ("a\t0\n", "char.dic: lacks <oov>"),
        ("<oov>\t7\n", "char.dic: has ids up to 7, but its table in token_embedder.pkl has 3 rows"),
        ("<oov>\t0\na\t0\n", "char.dic: gives one id to several symbols"),
        ("<oov>\t0\n\udcff\t1\n", "char.dic: is not UTF-8"),
    ],
)
def test_bad_dictionaries(content, message, tmp_path):
    path = tmp_path / "char.dic"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(FormatError, match=message):
        read_dictionary(path, 3, ["<oov>"])


def test_missing_files(tmp_path):
    folder = write_manylangs(tmp_path, word_dim=6, char_dim=5)
    (folder / "word.dic").unlink()
    with pytest.raises(FormatError, match=r"word.dic: is missing; its table in token_embedder.pkl has 17 rows"):
        load(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FormatError, match=r"but lacks config.json"):
        load(folder)


def test_a_missing_tensor_is_named(tmp_path):
    folder = write_manylangs(tmp_path, word_dim=6, char_dim=5)
    state = torch.load(folder / "encoder.pkl", weights_only=True)
    del state["forward_layer_0.state_projection.weight"]
    torch.save(state, folder / "encoder.pkl")
    with pytest.raises(FormatError, match=r"encoder.pkl: lacks the tensor forward_layer_0.state_projection.weight"):
        load(folder)


def test_arguments_without_a_use_are_refused(tmp_path):
    folder = write_manylangs(tmp_path, word_dim=6, char_dim=5)
    with pytest.raises(UsageError, match="options does not apply to an ELMoForManyLangs model"):
        load(folder, options=folder / "cnn.json")


def write_classifier(folder, rows: int, kind: str = "sampled") -> tuple[np.ndarray, np.ndarray]:
    """`classifier.pkl` as the trainer writes it; weight and bias."""
    weight, bias = draw(0, "column_emb", (rows, 8), 0.7), draw(0, "column_bias", (rows,), 0.5)
    tensors = {"column_emb.weight": weight, "column_bias.weight": bias[:, None], "oov_column": np.ones((8, 1))}
    if kind == "full":
        tensors = {"hidden2tag.weight": weight, "hidden2tag.bias": bias}
    if kind == "cnn":
        tensors = {"M": np.ones((8, 4)), "corr.weight": np.ones((rows, 4)), "oov_column": np.ones((8, 1))}
    torch.save({name: torch.from_numpy(array) for name, array in tensors.items()}, folder / "classifier.pkl")
    return weight, bias


@pytest.mark.parametrize("kind", ["sampled", "full"])
@pytest.mark.parametrize("inputs", ["both", "characters"])
def test_the_output_layer(inputs, kind, tmp_path):
    """Log-probabilities of the oracle, whose names of the special words are bilm-tf's."""
    word_dim, char_dim = INPUTS[inputs]
    write_manylangs(tmp_path, word_dim=word_dim, char_dim=char_dim, scale=CALM)
    special = ["<oov>", "<bos>", "<eos>", "<pad>"]
    words = [*special, *WORDS]
    (tmp_path / "word.dic").write_text("".join(f"{word}\t{row}\n" for row, word in enumerate(words)), encoding="utf-8")
    oracle = OracleElmo.from_manylangs(tmp_path)
    weight, bias = write_classifier(tmp_path, len(words), kind)
    oracle.softmax = weight.astype(np.float64), bias.astype(np.float64)
    oracle.ids = {word: row for row, word in enumerate(words)} | {"<UNK>": 0, "<S>": 1, "</S>": 2}
    same_log_probs(load(tmp_path), oracle, [["the", "bank", "nowhere"], ["今天", "."]])


def test_output_layers_that_are_of_no_use(tmp_path, caplog):
    write_manylangs(tmp_path, word_dim=0, char_dim=5)
    write_classifier(tmp_path, 9)
    assert not load(tmp_path).predicts_words
    assert "ignored its output layer of 9 words, because there is no word.dic" in caplog.text
    write_classifier(tmp_path, 9, "cnn")
    assert not load(tmp_path).predicts_words
    assert "cnn_softmax, which is not supported" in caplog.text
    torch.save({"other": torch.ones(2)}, tmp_path / "classifier.pkl")
    with pytest.raises(FormatError, match=r"classifier.pkl: has no output layer: it lacks the tensor column_emb.weight or"):
        load(tmp_path)
    torch.save({"column_emb.weight": torch.ones(9, 7), "column_bias.weight": torch.ones(9, 1)}, tmp_path / "classifier.pkl")
    with pytest.raises(FormatError, match=r"column_emb.weight has shape \[9, 7\], expected \[9, 8\]"):
        load(tmp_path)
    (tmp_path / "classifier.pkl").write_bytes(pickle.dumps({"x": print}))
    with pytest.raises(FormatError, match=r"classifier.pkl: .*"):
        load(tmp_path)
