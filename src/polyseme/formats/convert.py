"""Convert any model to our folder, ELMos to bilm-tf's files or ONNX, n-grams to ARPA, word vectors to word2vec's or GloVe's.

The result is read back and compared with the source.
"""

from __future__ import annotations

import logging
import math
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from polyseme.base.display import count, format_size, html_table
from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.base.out_paths import check_out_file, check_out_folder
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.folder import REFERENCE
from polyseme.encoders.static_vectors import static_vectors
from polyseme.formats import arpa, bilm, onnx_files
from polyseme.formats.load import as_encoder, load
from polyseme.formats.verify import SENTENCES, difference, write_reference
from polyseme.formats.word_vectors import SUFFIXES, form_of, read_vectors, write_vectors
from polyseme.text.splitting.unigram import UNIGRAM

log = logging.getLogger(__name__)
Target = Literal["polyseme", "bilm", "onnx", "arpa", "vectors"]
_NAMES: dict[Target, str] = {"bilm": "bilm-tf", "onnx": "ONNX", "arpa": "ARPA", "vectors": "word2vec"}
_PRECISIONS: dict[Target, tuple[str, ...]] = {"polyseme": ("fp32", "fp16", "int8"), "onnx": ("fp32", "int8")}
_SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]*")
"""Of a file's name; the end of my-model-v1.2 is none."""
_WRITE, _COMPARE = "writing", "reading it back and comparing"
"""Titles of progress bars: a model with 93 million parameters takes 20 s or more on two busy cores."""


@dataclass(frozen=True)
class Conversion:
    """A model that was written."""

    out: Path
    to: Target
    bytes: int
    files: list[str]
    largest_difference: float
    """Largest absolute difference between the vectors of the source and those of the result."""
    source: str
    precision: str | None = None
    """Number format of the weights; None for files that have only one."""
    note: str = ""
    """What is kept of the source, or why the vectors differ, if the difference alone would mislead."""

    def to_json(self) -> dict[str, Any]:
        precision = {} if self.precision is None else {"precision": self.precision}
        sizes = {"bytes": self.bytes, "files": self.files, "largest_difference": self.largest_difference}
        return {"out": str(self.out), "to": self.to, **precision, **sizes}

    def __str__(self) -> str:
        note = f" ({self.note})" if self.note else ""
        size = format_size(self.bytes)
        return f"{self.out}: {size}; largest difference from {self.source}: {self.largest_difference:.2g}{note}"

    def _repr_html_(self) -> str:
        row = [self.out, self.to, format_size(self.bytes), f"{self.largest_difference:.2g}"]
        return html_table(["out", "to", "size", "largest difference"], [row])


def convert(
    model: str | Path | Encoder,
    out: str | Path,
    *,
    to: Target | None = None,
    precision: Literal["fp32", "fp16", "int8"] = "fp32",
    force: bool = False,
) -> Conversion:
    """Write a model as our folder ("polyseme"), for bilm-tf and AllenNLP ("bilm"), as ONNX, as ARPA or as word vectors.

    Without `to`, the result is our folder, or word vectors where `out` ends in .txt, .vec (word2vec text), .bin (binary) or
    .glove (GloVe text).

    >>> polyseme.convert("weights.hdf5", "my-model", precision="fp16")   # doctest: +SKIP
    """
    out = Path(out)
    target, not_empty = check_conversion(out, to=to, precision=precision, force=force)
    encoder = as_encoder(model)
    if target == "arpa":
        return _to_arpa(encoder, out)
    if target == "vectors":
        return _to_vectors(encoder, out)
    try:
        return _to_onnx(encoder, out, precision) if target == "onnx" else _to_folder(encoder, out, target, precision)
    except BaseException:
        if not not_empty:  # everything in it is ours
            shutil.rmtree(out, ignore_errors=True)
        raise


def check_conversion(out: Path, *, to: Target | None, precision: str, force: bool) -> tuple[Target, bool]:
    """Return what is written, and whether its folder is not empty; raise if it cannot be. Needs no model."""
    target: Target = to or ("vectors" if out.suffix in SUFFIXES and not out.is_dir() else "polyseme")
    if to is None and target == "polyseme" and _SUFFIX.fullmatch(out.suffix) and not out.is_dir():
        arpa_file, folder = (arg("to", each) for each in ("arpa", "polyseme"))
        known = f"allowed: {', '.join(SUFFIXES)} (word vectors), or any with {arpa_file} (n-grams)"
        raise UsageError(f"{out}: {out.suffix} is the suffix of no format; {known}; for a folder of this name give {folder}")
    allowed = _PRECISIONS.get(target, ("fp32",))
    if precision not in allowed:
        other = arg("to", "polyseme")
        have = f"{_NAMES[target]} files have {' or '.join(allowed)} only"
        raise UsageError(f"{have}: leave {arg('precision')} out, or use {other}")
    return target, _check_out(out, target, force)


def _check_out(out: Path, target: Target, force: bool) -> bool:
    """Raise if the result would overwrite something; return whether a folder is not empty."""
    if target in ("arpa", "vectors"):
        check_out_file(out, positional=True)
        if out.exists() and not force:
            raise PolysemeError(f"{out} exists: choose another name, or overwrite it with {arg('force', True)}")
        return False
    check_out_folder(out, positional=True)
    not_empty = out.is_dir() and any(out.iterdir())
    if not_empty and not force:
        raise PolysemeError(f"{out} is not empty: choose another folder, or write into it with {arg('force', True)}")
    return not_empty


def _to_arpa(model: Any, out: Path) -> Conversion:
    if "arpa" not in model.export_formats:
        raise PolysemeError(f"{arg('to', 'arpa')} applies only to n-gram models; {model.source} is of kind {model.kind}")
    with progress(_WRITE, unit=None):
        arpa.write(model, out)
    with progress(_COMPARE, unit=None):
        largest = model.table.difference(arpa.read(out).table)
    _warn_of_splitter(model, out, "arpa")
    return Conversion(out, "arpa", out.stat().st_size, [out.name], largest, str(model.source))


def _to_vectors(model: Encoder, out: Path) -> Conversion:
    form = form_of(out)
    if model.kind == "fasttext":
        log.warning("%s has the words only: other programs cannot compute vectors from our subwords", out)
    vectors = static_vectors(model)
    with progress(_WRITE, unit=None):
        write_vectors(vectors, out, **form)
    with progress(_COMPARE, unit=None):
        largest = float(np.abs(read_vectors(out).vectors - vectors.vectors).max())
    _warn_of_splitter(model, out, "vectors")
    kept = f"kept: layer 0 of {model.layers}, the vectors of {count(len(vectors.words), 'word')} without their context"
    note = "" if model.static else kept
    return Conversion(out, "vectors", out.stat().st_size, [out.name], largest, str(model.source), note=note)


def _to_onnx(model: Encoder, out: Path, precision: str) -> Conversion:
    with progress(_WRITE, unit=None):
        onnx_files.write(model, out, int8=precision == "int8")
    from polyseme.formats.onnx_runtime import OnnxElmo

    with progress(_COMPARE, unit=None):
        pairs = zip(model.embed(SENTENCES), OnnxElmo(out).embed(SENTENCES), strict=True)
        largest = max(float(np.abs(one - other).max(initial=0.0)) for one, other in pairs)
    return _of_folder(model, out, "onnx", precision, largest)


def _warn_of_splitter(model: Encoder, out: Path, target: Target) -> None:
    name = model.splitter.name
    if name == UNIGRAM:
        what = "how text is split, because that needs a list of words: used as a model, it takes words separated by spaces"
        log.warning("%s does not store %s", out, what)
    elif name != "whitespace" and target == "vectors":
        log.warning("%s does not store how text is split: use it with %s", out, arg("splitter", name))


def _to_folder(model: Any, out: Path, target: Target, precision: str) -> Conversion:
    if target == "bilm" and "bilm" not in model.export_formats:
        raise PolysemeError(f"{arg('to', 'bilm')} applies only to ELMo models; {model.source} is of kind {model.kind}")
    (out / REFERENCE).unlink(missing_ok=True)  # it would be of another model
    with progress(_WRITE, unit=None):
        if target == "bilm":
            bilm.write(model, out)
        else:
            model.save_pretrained(out, precision=precision)
    with progress(_COMPARE, unit=None):
        written: Any = load(out)
        ngrams = "arpa" in model.export_formats  # whose tables are compared instead of vectors
        largest = model.table.difference(written.table) if ngrams else difference(model, written)
    if not math.isfinite(largest):
        fp32 = arg("precision", "fp32")
        cause = f"; its numbers may be too large for fp16: try {fp32}" if precision == "fp16" else ""
        raise PolysemeError(f"{out} is unusable: its vectors, or those of the source, are not finite{cause}")
    if target == "polyseme":
        write_reference(written, out)
    return _of_folder(model, out, target, precision, largest)


def _of_folder(model: Encoder, out: Path, target: Target, precision: str, largest: float) -> Conversion:
    files = {path.name: path.stat().st_size for path in sorted(out.iterdir()) if path.is_file()}
    without_start = target == "bilm" and getattr(model.config, "start", "zero") != "zero"
    note = "mostly at the beginnings and ends of sentences, as bilm-tf's format has no start state" if without_start else ""
    return Conversion(out, target, sum(files.values()), list(files), largest, str(model.source), precision, note)
