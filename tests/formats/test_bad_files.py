"""Files that are cut, damaged, wrong or hostile: one clear sentence each, and never a run of what is in them."""

import gzip
import io
import json
import os
import pickle
import random
import tarfile
import tracemalloc
import warnings
import zipfile

import h5py
import numpy as np
import pytest
import torch

from polyseme.base.errors import FormatError, PolysemeError
from polyseme.formats.load import load
from tests.oracle.make import write_allennlp_archive, write_bilm, write_manylangs

CELL = "RNN_1/RNN/MultiRNNCell/Cell1/LSTMCell"


class Trap:
    """A pickle that makes a file when it is run."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def refused(path, message: str, **settings) -> None:
    with pytest.raises(FormatError, match=message) as caught:
        load(path, **settings)
    assert "\n" not in str(caught.value)


def change(folder, name, values=None) -> None:
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        del file[name]
        if values is not None:
            file[name] = values


def options(folder, edit) -> None:
    values = json.loads((folder / "options.json").read_text())
    edit(values)
    (folder / "options.json").write_text(json.dumps(values))


# ---- HDF5


@pytest.mark.parametrize("share", [0.01, 0.3, 0.9, 0.999])
def test_cut_weights(share, tmp_path):
    path = write_bilm(tmp_path) / "weights.hdf5"
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])
    refused(tmp_path, r"weights.hdf5: is a truncated or damaged HDF5 file \(.+\)")


@pytest.mark.parametrize("places", [30, pytest.param(60, marks=pytest.mark.slow)])  # more of the same
def test_damaged_weights(tmp_path, places):
    """Wherever the bytes are hit, loading works or says so in a sentence that names the file."""
    path = write_bilm(tmp_path) / "weights.hdf5"
    content = path.read_bytes()
    generator, told = random.Random(5), 0
    for _ in range(places):
        damaged = bytearray(content)
        start = generator.randrange(8, 6000)
        damaged[start : start + 40] = generator.randbytes(40)
        path.write_bytes(bytes(damaged))
        try:
            load(path, options=tmp_path / "options.json")
        except FormatError as error:
            told += 1
            assert str(error).startswith(str(path))
    assert told > 5


def test_a_file_that_only_begins_like_hdf5(tmp_path):
    write_bilm(tmp_path)
    (tmp_path / "weights.hdf5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(2000))
    refused(tmp_path, r"weights.hdf5: is a truncated or damaged HDF5 file")


def test_wrong_shape(tmp_path):
    folder = write_bilm(tmp_path)
    change(folder, f"{CELL}/W_0", np.zeros((16, 95), dtype=np.float32))
    refused(folder, rf"weights.hdf5: dataset {CELL}/W_0 has shape \[16, 95\], expected \[16, 96\]")


def test_wrong_numbers(tmp_path):
    folder = write_bilm(tmp_path)
    change(folder, f"{CELL}/B", np.zeros(96, dtype=np.int32))
    refused(folder, rf"weights.hdf5: dataset {CELL}/B holds int32; expected floating-point numbers")


def test_missing_dataset(tmp_path):
    folder = write_bilm(tmp_path)
    change(folder, f"{CELL}/W_P_0")
    change(folder, "CNN_high_0/b_carry")
    refused(folder, rf"weights.hdf5: lacks the dataset CNN_high_0/b_carry \[18\]; lacks the dataset {CELL}/W_P_0 \[24, 8\]")


def test_many_problems_are_counted(tmp_path):
    folder = write_bilm(tmp_path)
    change(folder, "RNN_0")
    refused(folder, r"lacks the dataset RNN_0/.*\(and 3 more problems\)")


def test_weights_of_another_model(tmp_path):
    folder = write_bilm(tmp_path)
    options(folder, lambda values: values["lstm"].update(n_layers=1))
    refused(folder, "has RNN_0/RNN/MultiRNNCell/Cell1/.*, which the options do not mention")


def test_a_model_of_one_direction(tmp_path):
    folder = write_bilm(tmp_path)
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        file.move("RNN_0", "RNN")
        del file["RNN_1"]
    refused(folder, "weights.hdf5: has a unidirectional language model")
    options(folder, lambda values: values.update(bidirectional=False))
    refused(folder, r"options.json: describes a unidirectional model")


def test_numbers_kept_in_another_file_are_not_read(tmp_path):
    folder = write_bilm(tmp_path / "model")
    secret = tmp_path / "secret"
    secret.write_bytes(bytes(8 * 4))
    change(folder, "CNN_proj/b_proj")
    with h5py.File(folder / "weights.hdf5", "r+") as file:
        file.create_dataset("CNN_proj/b_proj", (8,), "f4", external=[(str(secret), 0, 32)])
    refused(folder, "dataset CNN_proj/b_proj refers to another file")
    change(folder, "CNN_proj/b_proj", h5py.ExternalLink(str(secret), "/x"))
    refused(folder, "lacks the dataset CNN_proj/b_proj")


def test_an_hdf5_file_of_something_else(tmp_path):
    with h5py.File(tmp_path / "vectors.hdf5", "w") as file:
        file["0"] = np.zeros((3, 2, 16))
    refused(tmp_path / "vectors.hdf5", r"vectors.hdf5: has no LSTM weights \(found: 0\)")
    refused(tmp_path, r"has no known model \(found: vectors.hdf5\); expected a polyseme folder")


# ---- options and vocabularies


def test_options_that_are_not_json(tmp_path):
    folder = write_bilm(tmp_path)
    (folder / "options.json").write_text("{'lstm': 3}")
    refused(folder, r"options.json: is not valid JSON")
    (folder / "options.json").write_text("[" * 100_000)
    refused(folder, r"options.json: is not valid JSON")
    (folder / "options.json").write_text("[]")
    refused(folder, r"options.json: has a JSON list; expected an object")


def test_missing_keys_and_wrong_types_are_told_at_once(tmp_path):
    folder = write_bilm(tmp_path)

    def edit(values):
        del values["lstm"]["dim"]
        del values["char_cnn"]["filters"]
        values["lstm"]["cell_clip"] = "three"
        values["char_cnn"]["embedding"] = 5
        values["char_cnn"]["activation"] = "gelu"

    options(folder, edit)
    with pytest.raises(FormatError) as caught:
        load(folder)
    text = str(caught.value)
    assert text.startswith(f"{folder / 'options.json'}: ")
    for part in (
        "lstm lacks the field 'dim'",
        "char_cnn lacks the field 'filters'",
        "'three'",
        "embedding is 5",
        "'gelu'",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("group", "name", "value", "message"),
    [
        ("char_cnn", "n_characters", 300, "n_characters is 300; allowed: 261 or 262"),
        ("char_cnn", "max_characters_per_token", 2, "max_characters is 2"),
        ("lstm", "cell_clip", -1, "cell_clip is -1.0; allowed: above 0"),
        ("lstm", "n_layers", 0, "layers is 0; allowed: 1 or more"),
    ],
)
def test_impossible_options(group, name, value, message, tmp_path):
    folder = write_bilm(tmp_path)
    options(folder, lambda values: values[group].update({name: value}))
    refused(folder, f"options.json: .*{message}")


@pytest.mark.parametrize(("settings", "table"), [({"words_only": True}, "embedding"), ({"softmax": True}, "softmax/W")])
def test_vocabulary_of_another_length(settings, table, tmp_path):
    folder = write_bilm(tmp_path, **settings)
    (folder / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    refused(folder, rf"vocab.txt: has 3 words, but {table} of weights.hdf5 has 12 rows")


def test_word_models_need_a_vocabulary_and_a_table(tmp_path):
    folder = write_bilm(tmp_path, words_only=True)
    (folder / "vocab.txt").unlink()
    refused(folder, r"weights.hdf5: has word embeddings, but there is no vocabulary")
    change(folder, "embedding")
    refused(folder, r"weights.hdf5: lacks the dataset embedding")


# ---- pickles


def test_pickles_with_code_are_refused_and_not_run(tmp_path):
    trap = tmp_path / "trap"
    for legacy in (False, True):
        folder = write_manylangs(tmp_path / "model", word_dim=6, char_dim=5)
        torch.save({"a": Trap(trap)}, folder / "encoder.pkl", _use_new_zipfile_serialization=not legacy)
        refused(folder, "encoder.pkl: has code or objects besides tensors: it was rejected, and nothing in it was executed")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        (folder / "encoder.pkl").write_bytes(pickle.dumps(Trap(trap), protocol=protocol))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            refused(folder, "encoder.pkl: has code or objects besides tensors: it was rejected, and nothing in it was executed")
    assert not trap.exists()


def test_archives_with_code_are_refused_and_not_run(tmp_path):
    trap, buffer = tmp_path / "trap", io.BytesIO()
    torch.save({"a": Trap(trap)}, buffer)
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("weights.th")
        entry.size = buffer.tell()
        archive.addfile(entry, io.BytesIO(buffer.getvalue()))
    refused(tmp_path / "model.tar.gz", r"model.tar.gz: weights.th: has code .* nothing in it was executed")
    assert not trap.exists()


@pytest.mark.parametrize("legacy", [False, True])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_cut_pickles(share, legacy, tmp_path):
    folder = write_manylangs(tmp_path, word_dim=6, char_dim=5, legacy=legacy)
    content = (folder / "encoder.pkl").read_bytes()
    (folder / "encoder.pkl").write_bytes(content[: int(len(content) * share)])
    refused(folder, "encoder.pkl: is a truncated or damaged PyTorch file")


def test_flipped_bits_are_found_by_checksums(tmp_path):
    folder = write_manylangs(tmp_path / "model", word_dim=6, char_dim=5)
    content = bytearray((folder / "encoder.pkl").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "encoder.pkl").write_bytes(bytes(content))
    refused(folder, r"encoder.pkl: is a truncated or damaged PyTorch file \(wrong checksum of .+\)")
    path = write_allennlp_archive(tmp_path / "model.tar.gz", options_inside=False)
    content = bytearray(path.read_bytes())
    content[-8] ^= 1  # in the checksum itself: the end of a stream must be read too
    path.write_bytes(bytes(content))
    refused(path, r"model.tar.gz: is a damaged archive \(CRC check failed")


def test_pickles_of_something_else(tmp_path):
    folder = write_manylangs(tmp_path, word_dim=6, char_dim=5)
    torch.save([torch.zeros(3)], folder / "encoder.pkl")
    refused(folder, "encoder.pkl: has a list; expected a dictionary of tensors")


# ---- archives and paths


def test_options_that_unpack_to_very_much(tmp_path):
    folder = write_bilm(tmp_path)
    (folder / "options.json").write_bytes(gzip.compress(b'{"lstm": ' + b" " * 30_000_000 + b"{}}"))
    tracemalloc.start()
    refused(folder, "options.json: expands to more than 17 MB, the limit for such a file")
    assert tracemalloc.get_traced_memory()[1] < 40_000_000
    tracemalloc.stop()


def test_archives_that_leave_their_folder(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        archive.writestr("../escaped", "x")
    refused(tmp_path / "bad.zip", r"bad.zip: has the entry '\.\./escaped', which would leave the folder; refused")
    with tarfile.open(tmp_path / "bad.tar.gz", "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("/tmp/../escaped"))
    refused(tmp_path / "bad.tar.gz", "which would leave the folder; refused")
    with tarfile.open(tmp_path / "link.tar", "w") as archive:
        entry = tarfile.TarInfo("weights.th")
        entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(entry)
    refused(tmp_path / "link.tar", "which is not a regular file; refused")


@pytest.mark.parametrize("kind", ["zip", "tar.gz"])
def test_cut_archives(kind, tmp_path):
    path = tmp_path / f"model.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(write_bilm(tmp_path / "model") / "weights.hdf5", "weights.hdf5")
    else:
        write_allennlp_archive(path, options_inside=False)
    path.write_bytes(path.read_bytes()[:2000])
    refused(path, rf"model.{kind}: is ")


def test_empty_things(tmp_path):
    refused(tmp_path, "is an empty folder; expected a polyseme folder, HDF5 weights with options.json")
    (tmp_path / "nothing").write_bytes(b"")
    refused(tmp_path / "nothing", "nothing: is an empty file; expected")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    refused(tmp_path / "empty.zip", "empty.zip: is an empty archive; expected")


def test_unknown_things(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    refused(tmp_path / "notes.txt", "notes.txt: has no known format; expected")
    refused(tmp_path, r"has no known model \(found: notes.txt\)")
    (tmp_path / "elmo_options.json").write_text("{}")
    refused(tmp_path / "elmo_options.json", "has the options of a model, not its weights: give the weights file, or its folder")
    with pytest.raises(PolysemeError, match="no such file or folder"):
        load(tmp_path / "nowhere")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is unreadable for root")
def test_unreadable_paths(tmp_path):
    folder = write_bilm(tmp_path / "model")
    (folder / "weights.hdf5").chmod(0)
    with pytest.raises(PolysemeError, match=r"cannot read .*weights.hdf5: Permission denied"):
        load(folder)
    folder.chmod(0)
    try:
        with pytest.raises(PolysemeError, match=r"cannot read .*model: Permission denied"):
            load(folder)
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("kind", ["gz", "bz2", "xz"])
@pytest.mark.parametrize("place", [12, 0.5, -30])
def test_damaged_packed_archives(kind, place, tmp_path):
    path = tmp_path / "model.packed"
    with tarfile.open(path, f"w:{kind}") as archive:
        entry = tarfile.TarInfo("a")
        entry.size = 200_000
        archive.addfile(entry, io.BytesIO(random.Random(1).randbytes(200_000)))
    content = bytearray(path.read_bytes())
    start = int(len(content) * place) if isinstance(place, float) else place % len(content)
    content[start : start + 20] = bytes(20)
    path.write_bytes(bytes(content))
    refused(path, "model.packed: is a damaged archive")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_damaged_zips(method, tmp_path):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("weights.hdf5", random.Random(1).randbytes(200_000))
    content = bytearray(path.read_bytes())
    content[60:200] = b"\xff" * 140
    path.write_bytes(bytes(content))
    refused(path, r"model.zip: is a damaged archive \(.+\)")


@pytest.mark.parametrize("names", [("a", "a/b"), ("a/b", "a"), ("x" * 300,), ("x/" * 3000 + "x",)])
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_archives_with_impossible_names(kind, names, tmp_path):
    path = tmp_path / f"model.{kind}"
    if kind == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "x")
    else:
        with tarfile.open(path, "w") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name))
    refused(path, rf"model.{kind}: has the entry '.+', which cannot be unpacked \(.+\)")
