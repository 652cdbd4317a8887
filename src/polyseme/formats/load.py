"""Load any model: our own folders and every published format, detected by content and never by name.

    our folder                config.json with polyseme_format
    ELMoForManyLangs          encoder.pkl and token_embedder.pkl
    bilm-tf, AllenNLP, NLPL   HDF5 weights with options.json; a folder, or the weights file itself
    bilm-tf's training        a TensorFlow checkpoint with options.json: the folder, model.ckpt-1000.index, or model.ckpt-1000
    TensorFlow Hub            the folder of google/elmo (saved_model.pb and variables)
    AllenNLP model archive    a tar file or folder with weights.th
    Flair                     a character language model (news-forward-0.4.1.pt), or a folder with one of each direction
    word vectors              word2vec text and binary, GloVe: the file, or a folder with one such file
    n-gram model              an ARPA file, or a folder with one
    BERT, GPT and similar     a folder of the transformers library: config.json with model_type, safetensors, a tokenizer

A zip or tar file of any of these is unpacked to a temporary folder first. `en` and `zh` are the shipped models, and
the distribution polyseme-models has more (`polyseme.encoders.shipped`); any other name that is not a path is looked up on the
Hugging Face Hub.
"""

from __future__ import annotations

import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from polyseme.base.errors import FormatError, PolysemeError, UsageError, arg
from polyseme.base.files import COMPRESSED, read_bytes, read_json, starts_with, unpack_archive, wrap_os_errors
from polyseme.encoders import folder as ours
from polyseme.encoders import shipped
from polyseme.encoders.base import Encoder
from polyseme.encoders.bert import Bert
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.gpt import Gpt
from polyseme.encoders.subword_library import family_of
from polyseme.encoders.subword_model import SubwordModel
from polyseme.formats import allennlp, arpa, bilm, flair, hdf5, manylangs, model_files, tf_checkpoint, tf_hub, weight_files
from polyseme.formats.pickles import is_torch_file
from polyseme.formats.word_vectors import is_vectors, read_vectors
from polyseme.text.splitting.unigram import UNIGRAM
from polyseme.text.words import get_splitter

EXPECTED = (
    "a polyseme folder, HDF5 weights with options.json (bilm-tf, AllenNLP, NLPL), encoder.pkl with token_embedder.pkl "
    "(ELMoForManyLangs), a TensorFlow checkpoint with options.json (bilm-tf's training), the folder of TensorFlow Hub's "
    "google/elmo, an AllenNLP model.tar.gz, Flair's character language models (.pt), a transformers folder (BERT, GPT), a zip "
    "of one of these, an ARPA file (n-grams), or word vectors (word2vec, GloVe: a word and its numbers on each line, or "
    "word2vec's binary form)"
)
_ALL_FILES = ("options", "vocabulary", "token_embeddings")
_DEVICES = ("cpu", "cuda", "mps")
Precision = Literal["fp32", "fp16", "bf16", "int8"]


@dataclass(frozen=True)
class GivenFiles:
    """Files that the user named; they take precedence over files that are found."""

    options: Path | None = None
    vocabulary: Path | None = None
    token_embeddings: Path | None = None

    @classmethod
    def of(cls, **names: str | Path | None) -> GivenFiles:
        """Check that the named files exist."""
        paths = {name: None if path is None else Path(path).expanduser() for name, path in names.items()}
        for path in paths.values():
            if path is not None and not path.is_file():
                raise PolysemeError(f"{path}: no such file")
        return cls(**paths)

    def refuse(self, *names: str, kind: str) -> None:
        """Raise if a file was given that this kind of model does not use."""
        for name in names:
            if getattr(self, name) is not None:
                raise UsageError(f"{arg(name)} does not apply to {kind}: leave it out")


def load(
    model: str | Path = "en",
    *,
    options: str | Path | None = None,
    vocabulary: str | Path | None = None,
    token_embeddings: str | Path | None = None,
    splitter: str | None = None,
    subword_pooling: str | None = None,
    device: str | None = None,
    precision: Precision = "fp32",
) -> Encoder:
    """Load a model in evaluation mode: a shipped one (`en`, `zh`, `en-ngram`), or from a folder, a file or a hub id.

    `options`, `vocabulary`: files to use if they are not beside the weights. `token_embeddings`: cached vectors of the
    vocabulary's words (HDF5), used instead of the characters. `splitter`: how raw text is split into words (see
    `polyseme.text.words`), if the model does not say it or says it wrongly. `subword_pooling`: for BERT, GPT and the like,
    how the vector of a word is made from its subwords (first, last or mean). `precision`: number format to compute with.

    >>> import polyseme
    >>> model = polyseme.load()
    >>> model.embed(["The bank of the river."])[0].shape == (model.layers, 6, model.dim)
    True
    >>> published = polyseme.load("elmo_2x4096_512/")       # doctest: +SKIP
    >>> static = polyseme.load("glove.6B.300d.txt")         # doctest: +SKIP
    """
    target = _device(device)
    chosen = None if splitter in (None, UNIGRAM) else get_splitter(str(splitter))
    given = GivenFiles.of(options=options, vocabulary=vocabulary, token_embeddings=token_embeddings)
    with wrap_os_errors(model, "read"):
        path = model_files.checkpoint_of(model) or shipped.resolve_path(model)
    with torch.inference_mode(False):  # weights made in inference mode could never be trained
        encoder = (_read_folder(path, given) if path.is_dir() else _read_file(path, given)).to(target).eval()
    encoder.source = str(model)
    if chosen is not None:
        encoder.splitter = chosen
    elif splitter == UNIGRAM and encoder.splitter.name != UNIGRAM:
        raise UsageError(f"{model} has no word list, which {arg('splitter', UNIGRAM)} needs: choose another splitter")
    if subword_pooling is not None:
        _set_subword_pooling(encoder, subword_pooling)
    if precision != "fp32":
        _choose_precision(encoder, precision)
    return encoder


def as_encoder(model: str | Path | Encoder) -> Encoder:
    """Return a loaded model as it is; load a name or path."""
    return load(model) if isinstance(model, str | Path) else model


def model_path(model: Encoder) -> Path:
    """Return the folder or file that a model was loaded from."""
    if model.source is None:
        raise UsageError("this model was not loaded from a folder: save it with save_pretrained and load that folder")
    return shipped.resolve_path(model.source)


def _set_subword_pooling(model: Encoder, pooling: str) -> None:
    if not model.reads_subwords:
        raise UsageError(f"{arg('subword_pooling')} applies only to BERT, GPT and the like; {model.source} is a {model.kind}")
    model.config = model.config.replace(subword_pooling=pooling)


def _choose_precision(model: Encoder, precision: Precision) -> None:
    if not model.supports_precision:
        raise PolysemeError(
            f"{arg('precision', precision)} applies only to ELMo models; {model.source} is of kind {model.kind}: leave it out"
        )
    model.precision = precision


def _read_folder(folder: Path, given: GivenFiles) -> Encoder:
    with wrap_os_errors(folder, "read"):
        inside = sorted(path.name for path in folder.iterdir())
    if not inside:
        raise FormatError(folder, f"is an empty folder; expected {EXPECTED}")
    if ours.is_folder(folder):
        given.refuse(*_ALL_FILES, kind="a polyseme folder")
        return ours.load(folder)
    if manylangs.ENCODER in inside and manylangs.TOKENS in inside:
        given.refuse(*_ALL_FILES, kind="an ELMoForManyLangs model")
        return manylangs.read(folder)
    found = model_files.hdf5_files(folder)
    if found.weights:
        return _read_bilm(model_files.single(found.weights, "weights"), folder, given, found)
    if (variables := tf_hub.variables_of(folder)) is not None:
        given.refuse(*_ALL_FILES, kind="a module of TensorFlow Hub")
        return tf_hub.read(variables)
    if (checkpoint := model_files.latest_checkpoint(folder)) is not None:
        return _read_bilm(checkpoint, folder, given, model_files.Hdf5Files())
    for name in allennlp.WEIGHTS:
        if name in inside:
            given.refuse("vocabulary", "token_embeddings", kind="an AllenNLP archive")
            return allennlp.read(folder / name, options=given.options, folder=folder)
    if model_files.is_transformers(folder):
        given.refuse(*_ALL_FILES, kind="a model of the transformers library")
        return _read_transformers(folder)
    if found_flair := [path for path in model_files.files(folder) if flair.is_model(path)]:
        given.refuse(*_ALL_FILES, kind="a language model of Flair")
        return flair.read(found_flair)
    if found_ngrams := [path for path in model_files.files(folder) if arpa.is_arpa(path)]:
        given.refuse(*_ALL_FILES, kind="an ARPA file")
        return arpa.read(model_files.single(found_ngrams, "n-grams"))
    if found_vectors := [path for path in model_files.files(folder) if is_vectors(path)]:
        return _read_vectors(model_files.single(found_vectors, "word vectors"), given)
    if "task.json" in inside:
        uses = "`polyseme predict`, `polyseme evaluate`, `polyseme serve --task` and `polyseme.load_task` use it"
        raise FormatError(folder, f"is a trained task, not a model: {uses}")
    if archives := [path.name for path in model_files.files(folder) if zipfile.is_zipfile(path) or tarfile.is_tarfile(path)]:
        raise FormatError(folder, f"holds {model_files.join_names(archives)}, which may be a model: give the file itself")
    if "run" in inside:
        what = "has no model yet: its training is running or was interrupted (run/)"
        raise FormatError(folder, f"{what}; the command that started it resumes it")
    raise FormatError(folder, f"has no known model (found: {model_files.join_names(inside)}); expected {EXPECTED}")


def _read_file(path: Path, given: GivenFiles) -> Encoder:
    with wrap_os_errors(path, "read"):
        empty = path.stat().st_size == 0
    if empty:
        raise FormatError(path, f"is an empty file; expected {EXPECTED}")
    if hdf5.is_hdf5(path):
        if model_files.hdf5_content(path) != "weights":
            raise FormatError(path, f"has no LSTM weights (found: {model_files.join_names(sorted(hdf5.shapes(path)))})")
        return _read_bilm(path, path.parent, given, model_files.softmax_beside(path))
    if tf_checkpoint.is_checkpoint(path):
        return _read_bilm(path, path.parent, given, model_files.Hdf5Files())
    if flair.is_model(path):
        given.refuse(*_ALL_FILES, kind="a language model of Flair")
        return flair.read([path])
    if is_torch_file(path):
        given.refuse("vocabulary", "token_embeddings", kind="an AllenNLP state dict")
        return allennlp.read(path, options=given.options)
    if arpa.is_arpa(path):
        given.refuse(*_ALL_FILES, kind="an ARPA file")
        return arpa.read(path)
    if is_vectors(path):  # before archives: compressed vectors begin like a compressed archive
        return _read_vectors(path, given)
    if _is_archive(path):
        return _read_archive(path, given)
    if path.name.endswith("options.json"):
        raise FormatError(
            path, f"has the options of a model, not its weights: give the weights file, or its folder, {path.parent}"
        )
    raise FormatError(path, f"has no known format; expected {EXPECTED}")


def _read_bilm(weights: Path, folder: Path, given: GivenFiles, beside: model_files.Hdf5Files) -> Elmo:
    """Read weights with the other files of their folder; `beside`: the HDF5 files that belong to them."""
    options = given.options or model_files.options_file(folder)
    values = read_json(options)
    names = weight_files.shapes(weights)
    cached = given.token_embeddings
    if cached is None and "char_embed" not in names and "embedding" not in names and beside.token_embeddings:
        cached = model_files.single(beside.token_embeddings, "token embeddings")
    softmax = model_files.single(beside.softmax, "softmax weights") if beside.softmax and "softmax/W" not in names else None
    vocabulary = given.vocabulary
    by_words = cached is not None or not values.get("char_cnn")
    if vocabulary is None and (by_words or softmax is not None or "softmax/W" in names):
        vocabulary = model_files.vocabulary_file(folder)
    return bilm.read(values, weights, where=options, vocabulary=vocabulary, softmax=softmax, token_embeddings=cached)


def _read_transformers(folder: Path) -> SubwordModel:
    """Read a folder of the transformers library; no code in it is executed."""
    kind: type[SubwordModel] = Gpt if family_of(folder).causal else Bert
    model = kind.from_library(folder)
    if (folder / "README.md").is_file():
        model.card = read_bytes(folder / "README.md").decode("utf-8", "replace")
    return model


def _read_vectors(path: Path, given: GivenFiles) -> Encoder:
    from polyseme.encoders.word2vec import WordVectorTable

    given.refuse(*_ALL_FILES, kind="a file of word vectors")
    return WordVectorTable.from_vectors(read_vectors(path))


def _read_archive(archive: Path, given: GivenFiles) -> Encoder:
    with tempfile.TemporaryDirectory(prefix="polyseme-", ignore_cleanup_errors=True) as name:
        root = Path(name).resolve()
        unpack_archive(archive, root)
        if not any(root.iterdir()):
            raise FormatError(archive, f"is an empty archive; expected {EXPECTED}")
        inside = [path for path in root.iterdir() if not path.name.startswith((".", "__MACOSX"))]
        folder = inside[0] if len(inside) == 1 and inside[0].is_dir() else root
        try:
            return _read_folder(folder, given)
        except PolysemeError as error:  # name the archive instead of the temporary folder
            if str(root) not in str(error):
                raise
            what = str(error).removeprefix(f"{root}: ").replace(f"{root}/", "")
            raise FormatError(archive, what) from error


def _is_archive(path: Path) -> bool:
    if any(starts_with(path, magic) for magic in COMPRESSED) or zipfile.is_zipfile(path):
        return True
    try:
        return tarfile.is_tarfile(path)
    except (EOFError, OSError):
        return True  # a truncated bz2 or xz file: unpacking it reports that


def _device(name: str | None) -> torch.device:
    """Return the device; raise if it cannot be used, before time is spent on reading."""
    if name is not None and name.partition(":")[0] not in _DEVICES:
        raise UsageError(f"{arg('device')} is {name!r}; allowed: {', '.join(_DEVICES)}, or cuda:1 for the second GPU")
    try:
        return torch.empty(0, device=name or "cpu").device
    except (RuntimeError, AssertionError) as error:
        reason = str(error).strip().splitlines()[0].partition(". ")[0]
        usable = [each for each in _DEVICES if _is_usable(each)]
        raise UsageError(f"{arg('device', name)} cannot be used ({reason}); usable here: {', '.join(usable)}") from error


def _is_usable(device: str) -> bool:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        return False
    return True
