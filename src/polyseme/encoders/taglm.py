"""TagLM (Peters et al. 2017): the top layers of a forward and a backward language model, concatenated.

The step before ELMo: a tagger takes that one vector per word between its two layers, where ELMo later mixed all layers. The
models are those of `Elmo`, trained in the same way: they share the character network and the output layer, which in the paper
were separate.
"""

from __future__ import annotations

from polyseme.encoders.elmo import Elmo


class TagLm(Elmo):
    """Two language models whose top layers are a word's one vector; `polyseme.load` reads one."""

    kind = "taglm"
    default_position = "between"
    has_static_vectors = False
    shown = slice(-1, None)
