"""From a corpus to a TagLM: the two language models of an ELMo, taught in the same way, of which the top layers are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from polyseme.encoders.elmo import Elmo
from polyseme.encoders.taglm import TagLm
from polyseme.pretraining.elmo_fit import ElmoPretraining


@dataclass(frozen=True, kw_only=True)
class TagLmPretraining(ElmoPretraining):
    """What is taught, and how: as for an ELMo (`polyseme.pretraining.elmo_fit.pretrain`)."""

    model_type: ClassVar[type[Elmo]] = TagLm
