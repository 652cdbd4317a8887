"""What a client is told about texts that a model cannot read well: as the command line says it, in the field `warning`.

A service that refused such texts would stop programs that send a few of them among others.
"""

from __future__ import annotations

from collections.abc import Sequence

from polyseme.api.script_check import refusal, warnings
from polyseme.serve.models import ServedModel
from polyseme.text.script import ScriptProfile

_LOOKED_AT = 2000  # characters of a request; 0.1 ms


def warned(model: ServedModel, texts: Sequence[str | list[str]]) -> dict[str, str]:
    """Return `{"warning": ...}` for an answer; nothing if the model reads the script of the texts."""
    sample, room = list[str](), _LOOKED_AT
    for text in texts:
        sample.append(text[:room] if isinstance(text, str) else " ".join(text[:room])[:room])
        room -= len(sample[-1])
        if room <= 0:
            break
    seen = "\n".join(sample)
    if seen.isascii() and model.encoder.source != "zh":
        return {}
    profile = ScriptProfile.of(seen)
    why = refusal(model.encoder, profile)
    found = [why] if why else warnings(model.encoder, profile, seen)
    return {"warning": "; ".join(found)} if found else {}
