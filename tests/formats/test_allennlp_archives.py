"""AllenNLP's model archives and state dicts, against the oracle."""

import io
import json
import tarfile

import pytest
import torch

from polyseme.base.errors import FormatError, UsageError
from polyseme.formats import allennlp
from polyseme.formats.info import info
from polyseme.formats.load import load
from tests.formats.compare import bilm_oracle, same_vectors
from tests.oracle.elmo import OracleElmo
from tests.oracle.make import ARCHIVE_PREFIX, write_allennlp_archive, write_bilm

VARIANTS = {
    "default": {},
    "no-residual": {"residual": False, "cell_clip": None, "projection_clip": 0, "scale": 1.0},
    "small-clips": {"cell_clip": 0.5, "projection_clip": 0.4},
    "tanh-no-highway": {"activation": "tanh", "highways": None},
    "one-layer": {"layers": 1},
    "three-layers": {"layers": 3, "scale": 1.0},
}


def members(path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {entry.name: archive.extractfile(entry).read() for entry in archive if entry.isfile()}


def pack(path, files: dict[str, bytes]):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def state_of(path) -> dict[str, torch.Tensor]:
    return torch.load(io.BytesIO(members(path)["weights.th"]), weights_only=True)


def saved(state) -> bytes:
    buffer = io.BytesIO()
    torch.save(state, buffer)
    return buffer.getvalue()


def oracle_of(path, **settings) -> OracleElmo:
    options = json.loads((write_bilm(path.parent / "options-of-it", **settings) / "options.json").read_text())
    return OracleElmo.from_allennlp(options, state_of(path), ARCHIVE_PREFIX)


@pytest.mark.parametrize(("name", "legacy"), [*((name, False) for name in VARIANTS), (next(iter(VARIANTS)), True)])
def test_archive_with_its_options(name, legacy, tmp_path, caplog):
    settings = VARIANTS[name]
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=True, legacy=legacy, **settings)
    model = load(path)
    same_vectors(model, oracle_of(path, **settings))
    assert model.source == str(path)
    assert "assumed" not in caplog.text


def test_archive_without_options_takes_the_published_ones_and_says_so(tmp_path, caplog):
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False)
    model = load(path)
    same_vectors(model, oracle_of(path))
    assert "assumed clips of 3, residual connections and relu" in caplog.text
    assert model.source == str(path)
    assert info(model).facts["assumed"] == allennlp.ASSUMED
    row = next(line for line in str(info(model)).splitlines() if line.startswith("assumed"))
    assert row.split(maxsplit=1)[1] == "clips of 3, residual connections and relu"
    assert "there is no options file: give one with" in caplog.text


@pytest.mark.parametrize("inside", [False, True])
def test_options_of_the_user_go_first(inside, tmp_path, caplog):
    settings = VARIANTS["small-clips"]
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=inside)
    options = write_bilm(tmp_path / "other", **settings) / "options.json"
    same_vectors(load(path, options=options), oracle_of(path, **settings))
    assert "assumed" not in caplog.text


def test_options_of_another_model_are_refused(tmp_path):
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False)
    options = write_bilm(tmp_path / "other", dim=30, layers=1) / "options.json"
    with pytest.raises(FormatError, match=r"belongs to another model: lstm.dim is 30, the weights have 24; lstm.n_layers"):
        load(path, options=options)


def test_archive_equals_the_weights_it_was_made_from(tmp_path):
    # weights of ordinary size: larger ones carry the rounding of the stored +1 from sentence to sentence and make it grow
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=True, seed=3, scale=1.0)
    same_vectors(load(path), bilm_oracle(write_bilm(tmp_path / "bilm", seed=3, scale=1.0)))


@pytest.mark.parametrize("prefix", ["", "_elmo.", "a.very.deep.place._elmo."])
def test_any_prefix(prefix, tmp_path):
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=True, prefix=prefix, mixes=2)
    same_vectors(load(path), bilm_oracle(write_bilm(tmp_path / "bilm")))


def test_unpacked_archives_and_bare_state_dicts(tmp_path):
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=True)
    (tmp_path / "unpacked" / "fta").mkdir(parents=True)
    for name, content in members(path).items():
        (tmp_path / "unpacked" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "unpacked" / name).write_bytes(content)
    oracle = oracle_of(path)
    same_vectors(load(tmp_path / "unpacked"), oracle)
    same_vectors(load(tmp_path / "unpacked" / "weights.th"), oracle)


def test_the_same_elmo_twice_is_one(tmp_path):
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False)
    state = state_of(path)
    twice = state | {f"other.{name}": value for name, value in state.items()}
    same_vectors(load(pack(tmp_path / "twice.tar.gz", {"weights.th": saved(twice)})), oracle_of(path))


def test_two_different_elmos_are_an_error(tmp_path):
    state = state_of(write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False))
    twice = state | {f"other.{name}": value + 1 for name, value in state.items()}
    with pytest.raises(FormatError, match=r"has 2 different ELMos, under other\.text_field_embedder.*, text_field"):
        load(pack(tmp_path / "twice.tar.gz", {"weights.th": saved(twice)}))


def test_an_archive_without_an_elmo(tmp_path):
    path = pack(tmp_path / "model.tar.gz", {"weights.th": saved({"encoder.weight": torch.zeros(3)})})
    with pytest.raises(FormatError, match=r"model.tar.gz: weights.th: has no ELMo"):
        load(path)


def test_a_missing_tensor_is_named(tmp_path):
    state = state_of(write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False))
    del state[ARCHIVE_PREFIX + "_elmo_lstm._elmo_lstm.backward_layer_1.state_linearity.bias"]
    with pytest.raises(FormatError, match=r"lacks the tensor _elmo_lstm\.backward_layer_1\.state_linearity\.bias \[96\]"):
        load(pack(tmp_path / "cut.tar.gz", {"weights.th": saved(state)}))


def test_arguments_without_a_use_are_refused(tmp_path):
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False)
    with pytest.raises(UsageError, match="vocabulary does not apply to an AllenNLP archive"):
        load(path, vocabulary=path)
