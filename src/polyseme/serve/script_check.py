"""What a client is told about texts that a model cannot read well: as the command line says it, in the field `warning`.

A service that refused such texts would stop programs that send a few of them among others.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.encoders.script_check import refusal, sample, warnings
from polyseme.serve.models import ServedModel
from polyseme.text.script import ScriptProfile


def warned(model: ServedModel, texts: Sequence[str | list[str]]) -> dict[str, str]:
    """Return `{"warning": ...}` for an answer; nothing if the model reads the script of the texts."""
    seen = sample(texts)
    if seen.isascii() and model.encoder.source != "zh":
        return {}
    profile = ScriptProfile.of(seen)
    why = refusal(model.encoder, profile)
    found = [why] if why else warnings(model.encoder, profile, seen)
    return {"warning": "; ".join(found)} if found else {}
