"""`polyseme convert`: any readable model into our folder, or into bilm-tf's files."""

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


class Stored(StrEnum):
    """Numbers in the files."""

    fp32 = "fp32"
    fp16 = "fp16"


Source = Annotated[str, typer.Argument(metavar="SOURCE", help="Folder, file or hub id of a model in any known format.")]
Folder = Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write.")]
To = Annotated[Kind, typer.Option("--to", help="polyseme: our folder; bilm: options.json and weights.hdf5 (bilm-tf).")]
StoredOption = Annotated[Stored, typer.Option("--precision", help="Numbers in the files; fp16 halves them.")]
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
    says otherwise, and our folder keeps it.

    Example:

        polyseme convert elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5 my-model --precision fp16
    """
    if to is Kind.bilm and precision is Stored.fp16:
        raise UsageError("bilm-tf files hold fp32 only: leave --precision out, or use --to polyseme")
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
    if json:
        show.as_json(result)
    else:
        size = f"{result['bytes'] / 1e6:,.1f} MB"
        show.line(f"{out}: {size}; largest difference from {source}: {result['largest_difference']:.2g}")


def _write(model: Encoder, out: Path, to: Kind, precision: str) -> dict[str, Any]:
    from polyseme.formats import bilm
    from polyseme.formats.vectors.check import REFERENCE, difference, write_reference

    elmo = need_elmo(model, "bilm-tf's files cannot hold: leave --to out") if to is Kind.bilm else None
    (out / REFERENCE).unlink(missing_ok=True)  # it would speak of another model
    if elmo is not None:
        bilm.write(elmo, out)
    else:
        model.save_pretrained(out, precision=precision)
    written = open_model(str(out))
    largest = difference(model, written)
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
