"""`polyseme convert`: any readable model into our folder, or into bilm-tf's files; n-grams into an ARPA file."""

from __future__ import annotations

import math
import shutil
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.cli import show
from polyseme.cli.options import Json, Options, SplitterOption, VocabularyFile, need_elmo, open_model

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder


class Kind(StrEnum):
    """What to write."""

    polyseme = "polyseme"
    bilm = "bilm"
    arpa = "arpa"
    vectors = "vectors"


class Stored(StrEnum):
    """Numbers in the files."""

    fp32 = "fp32"
    fp16 = "fp16"


Source = Annotated[str, typer.Argument(metavar="SOURCE", help="Folder, file or hub id of a model in any known format.")]
Folder = Annotated[
    Path,
    typer.Argument(
        metavar="OUT", help="Folder to write; for arpa a file, packed where it ends in .gz or .xz; or vectors.txt, vectors.bin."
    ),
]
To = Annotated[
    Kind,
    typer.Option(
        "--to",
        help="polyseme: our folder; bilm: options.json and weights.hdf5 (bilm-tf); arpa: n-grams; vectors: a file of word "
        "vectors, as word2vec writes them.",
    ),
]
StoredOption = Annotated[Stored, typer.Option("--precision", help="Numbers in the files; fp16 halves them.")]
_NAMES = {Kind.bilm: "bilm-tf", Kind.arpa: "ARPA", Kind.vectors: "word2vec"}
_VECTORS = {".txt": False, ".vec": False, ".bin": True}  # whether word2vec's binary form
Force = Annotated[bool, typer.Option("--force", help="Write into a folder that holds something already.")]


def convert(
    source: Source,
    out: Folder,
    to: To = Kind.polyseme,
    precision: StoredOption = Stored.fp32,
    force: Force = False,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    json: Json = False,
) -> None:
    """Convert a model into our folder, or into the files that bilm-tf and AllenNLP read.

    Our folder holds no code and no pickle: config.json, safetensors, plain text, a model card, and a few reference
    vectors for `polyseme verify`. The result is read back and compared with the source.

    Published models do not say how raw text is split into words: they take it to be split at white space. --splitter
    says otherwise, and our folder keeps it, as does an ARPA file; a file of word vectors cannot.

    OUT that ends in .txt, .vec or .bin is a file of word vectors in word2vec's text or binary form: the model's table, or
    layer 0 of the words of its vocabulary.

    Example:

        polyseme convert elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5 my-model --precision fp16
    """
    if to is Kind.polyseme and out.suffix in _VECTORS and not out.is_dir():
        to = Kind.vectors
    if to is not Kind.polyseme and precision is Stored.fp16:
        raise UsageError(f"{_NAMES[to]} files hold fp32 only: leave --precision out, or use --to polyseme")
    if to in (Kind.arpa, Kind.vectors):
        if out.exists() and not force:
            raise PolysemeError(f"{out} is there already: choose another name, or add --force to write over it")
        loaded = open_model(source, options=options, vocabulary=vocabulary, splitter=splitter)
        written = _to_arpa(loaded, out) if to is Kind.arpa else _to_vectors(loaded, out)
        _note_splitting(loaded, out, to)
        _report(written, source, json)
        return
    if out.exists() and not out.is_dir():
        raise PolysemeError(f"cannot write {out}: it is a file, and the result is a folder")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise PolysemeError(f"{out} is not empty: choose another folder, or add --force to write into it")
    forced = out.is_dir() and any(out.iterdir())
    model = open_model(source, options=options, vocabulary=vocabulary, splitter=splitter)
    try:
        result = _write(model, out, to, precision.value)
    except BaseException:
        if not forced:  # all of it is ours
            shutil.rmtree(out, ignore_errors=True)
        raise
    _report(result, source, json)


def _note_splitting(model: Encoder, out: Path, to: Kind) -> None:
    """What a file does not say of how text is split."""
    from polyseme.text.splitting.unigram import UNIGRAM

    name = model.splitter.name
    if name == UNIGRAM:
        show.note(f"{out} cannot hold the words into which text is split ({name}): give it text that is split already")
    elif name != "whitespace" and to is Kind.vectors:
        show.note(f"{out} does not hold how text is split: use it with --splitter {name}")


def _report(result: dict[str, Any], source: str, json: bool) -> None:
    if json:
        show.as_json(result)
    else:
        size = f"{result['bytes'] / 1e6:,.1f} MB"
        show.line(f"{result['out']}: {size}; largest difference from {source}: {result['largest_difference']:.2g}")


def _to_arpa(model: Encoder, out: Path) -> dict[str, Any]:
    from polyseme.encoders.ngram import NgramModel
    from polyseme.formats import arpa

    if not isinstance(model, NgramModel):
        raise PolysemeError(f"{model.source} is of kind {model.kind}, and an ARPA file holds n-grams: leave --to out")
    arpa.write(model, out)
    largest = model.table.difference(arpa.read(out).table)
    return {"out": str(out), "to": "arpa", "bytes": out.stat().st_size, "files": [out.name], "largest_difference": largest}


def _to_vectors(model: Encoder, out: Path) -> dict[str, Any]:
    import numpy as np

    from polyseme.analysis.words import static_vectors
    from polyseme.formats.word_vectors import read_vectors, write_vectors

    if out.suffix not in _VECTORS:
        raise UsageError(f"{out} does not say in which form: let it end in .txt or .vec (text) or .bin (binary)")
    if model.kind == "fasttext":
        show.note(f"{out} holds the words only: what polyseme makes of subwords, no other program will know")
    vectors = static_vectors(model)
    write_vectors(vectors, out, binary=_VECTORS[out.suffix])
    largest = float(np.abs(read_vectors(out).vectors - vectors.vectors).max())
    return {"out": str(out), "to": "vectors", "bytes": out.stat().st_size, "files": [out.name], "largest_difference": largest}


def _write(model: Encoder, out: Path, to: Kind, precision: str) -> dict[str, Any]:
    from polyseme.formats import bilm
    from polyseme.formats.vectors.check import REFERENCE, write_reference

    elmo = need_elmo(model, "bilm-tf's files cannot hold: leave --to out") if to is Kind.bilm else None
    (out / REFERENCE).unlink(missing_ok=True)  # it would speak of another model
    if elmo is not None:
        bilm.write(elmo, out)
    else:
        model.save_pretrained(out, precision=precision)
    written = open_model(str(out))
    largest = _difference(model, written)
    if not math.isfinite(largest):
        cause = "; its numbers may be too large for fp16: try --precision fp32" if precision == "fp16" else ""
        raise PolysemeError(f"{out} is unusable: its vectors, or those of the source, are not finite numbers{cause}")
    if to is Kind.polyseme:
        write_reference(written, out)
    files = {path.name: path.stat().st_size for path in sorted(out.iterdir()) if path.is_file()}
    return {
        "out": str(out),
        "to": to.value,
        "precision": precision,
        "bytes": sum(files.values()),
        "files": list(files),
        "largest_difference": largest,
    }


def _difference(model: Encoder, written: Encoder) -> float:
    """The largest difference of their vectors on a few sentences; of n-gram models, of all their numbers."""
    from polyseme.encoders.ngram import NgramModel
    from polyseme.formats.vectors.check import difference

    if isinstance(model, NgramModel) and isinstance(written, NgramModel):
        return model.table.difference(written.table)
    return difference(model, written)
