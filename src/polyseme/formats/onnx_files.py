"""An ELMo as a folder of ONNX graphs, which runs wherever ONNX Runtime does: without PyTorch, and in a browser.

forward.onnx, backward.onnx   the graphs (`polyseme.formats.onnx_graph`)
onnx.json                     polyseme_onnx, splitter and the encoder's config
words.txt                     the word list of the splitter `unigram`
vocabulary.txt, characters.txt   where the word table or the characters need them
"""

from __future__ import annotations

import json
from pathlib import Path

from polyseme.base.errors import PolysemeError, arg
from polyseme.base.files import atomic_folder, write_text
from polyseme.encoders import elmo_files
from polyseme.encoders.base import Encoder
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.folder import WORDS, write_splitter

HEAD, FORMAT = "onnx.json", 2


def write(model: Encoder, folder: Path, *, int8: bool = False) -> None:
    """Write the graphs of both directions and what turns text into their inputs."""
    if not isinstance(model, Elmo) or model.kind != Elmo.kind or model.config.architecture != "lstm":
        only = f"{arg('to', 'onnx')} applies only to ELMo models with LSTMs"
        raise PolysemeError(f"{only}; {model.source} is of kind {model.kind}")
    from polyseme.formats.onnx_graph import DIRECTIONS, direction_graph

    with atomic_folder(folder, last=HEAD, remove=(WORDS, elmo_files.VOCABULARY, elmo_files.CHARACTERS)) as part:
        for number, name in enumerate(DIRECTIONS):
            (part / f"{name}.onnx").write_bytes(direction_graph(model, number, int8=int8).SerializeToString())
        write_splitter(model.splitter, part / WORDS)
        if model.config.words is not None and model.vocabulary is not None:
            write_text(part / elmo_files.VOCABULARY, model.vocabulary.to_text())
        if model.alphabet is not None:
            write_text(part / elmo_files.CHARACTERS, "".join(f"{symbol}\n" for symbol in model.alphabet))
        head = {"polyseme_onnx": FORMAT, "splitter": model.splitter.name, "config": model.config.to_dict()}
        write_text(part / HEAD, json.dumps(head, indent=2, ensure_ascii=False) + "\n")
