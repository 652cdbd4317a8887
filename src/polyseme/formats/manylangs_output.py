"""The output layer of an ELMoForManyLangs model: `classifier.pkl`, which its trainer writes if asked (`--save_classify_layer`).

`sampled_softmax` has a row per word of `word.dic` and was trained against a few thousand words at a time, without a
correction for how they were drawn: all words share one scale, but their probabilities are rough. `softmax` is exact.
`cnn_softmax`, whose rows come from the characters, is not supported.
"""

from __future__ import annotations

import logging
from pathlib import Path

from polyseme.base.errors import FormatError
from polyseme.base.tensor_files import load_weights
from polyseme.formats import weight_names
from polyseme.formats.pickles import read_tensors
from polyseme.formats.weight_layout import Shape, check_shapes, to_polyseme
from polyseme.nn.meta_init import meta_init
from polyseme.nn.output.full import FullSoftmax

log = logging.getLogger(__name__)
CLASSIFIER = "classifier.pkl"


def read_output(folder: Path, dim: int) -> FullSoftmax | None:
    """Read the output layer for states of size `dim`; None: there is none that can be used."""
    path = folder / CLASSIFIER
    if not path.exists():
        return None
    state = read_tensors(path)
    shapes: dict[str, Shape] = {name: tuple(value.shape) for name, value in state.items()}
    kind = next((names for names in weight_names.MANYLANGS_OUTPUTS if names.weight in shapes), None)
    if kind is None:
        if "corr.weight" in shapes:
            log.warning("%s: ignored an output layer of the kind cnn_softmax, which is not supported", path.name)
            return None
        expected = " or ".join(names.weight for names in weight_names.MANYLANGS_OUTPUTS)
        raise FormatError(path, f"has no output layer: it lacks the tensor {expected}")
    mappings = weight_names.manylangs_output(kind, shapes[kind.weight][0], dim)
    check_shapes(mappings, shapes, path, thing="tensor")
    with meta_init():
        output = FullSoftmax(shapes[kind.weight][0], dim)
    load_weights(output, to_polyseme(mappings, state.__getitem__), path)
    return output
