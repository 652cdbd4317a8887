"""An ELMo that was written as ONNX graphs (`onnx_files`), run by ONNX Runtime: the same vectors as the model's.

The folder needs no polyseme to run: `onnx_graph` says what the graphs read and give, and `examples/onnx_web` embeds a sentence
in a browser.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import FormatError, MissingExtraError, UsageError, arg
from polyseme.base.files import read_json
from polyseme.encoders import elmo_files
from polyseme.encoders.batch import Sentence
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.encoders.elmo_words import character_encoder
from polyseme.encoders.folder import WORDS, read_splitter
from polyseme.formats.onnx_files import FORMAT, HEAD
from polyseme.text.words import normalise_quotes, plain_word

try:
    import onnxruntime
except ImportError as error:
    raise MissingExtraError("ONNX graphs are run by onnxruntime", "onnx") from error

Arrays = NDArray[np.float32]
BATCH_WORDS = 2048


class OnnxElmo:
    """An ELMo in ONNX Runtime: sentences in, arrays out, as `embed` of the model.

    `threads`: by default one for each core. Half of them read from the left while the others read from the right: within a
    direction words wait for each other, and threads that wait cost processor time (1.6 s instead of 2.5 s on two busy cores).
    """

    def __init__(self, folder: str | Path, *, threads: int | None = None) -> None:
        folder = Path(folder)
        if not (folder / HEAD).is_file():
            raise FormatError(folder, f"has no {HEAD}: write it with polyseme convert MODEL {folder} --to onnx")
        head = read_json(folder / HEAD)
        if head.get("polyseme_onnx") != FORMAT:
            found = f"has polyseme_onnx {head.get('polyseme_onnx')!r}; this version reads {FORMAT}"
            raise FormatError(folder / HEAD, f"{found}: write it again with polyseme convert")
        self.config = ElmoConfig.from_dict(head["config"], where=f"{folder / HEAD}: config")
        self.splitter = read_splitter(head["splitter"], folder / WORDS)
        self._spelling = character_encoder(self.config, elmo_files.read_alphabet(folder, self.config))
        self._vocabulary = elmo_files.read_vocabulary(folder, self.config)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.add_session_config_entry("session.disable_quant_qdq", "1")  # int8 weights become fp32 once, not in every call
        threads = threads or os.cpu_count() or 1
        options.intra_op_num_threads = max(threads // 2, 1)
        self._pool = ThreadPoolExecutor(min(threads, 2), thread_name_prefix="polyseme-onnx")
        run = {"sess_options": options, "providers": ["CPUExecutionProvider"]}
        self._sessions = [onnxruntime.InferenceSession(folder / f"{name}.onnx", **run) for name in ("forward", "backward")]

    @property
    def layers(self) -> int:
        return self.config.num_layers + 1

    @property
    def dim(self) -> int:
        return 2 * self.config.half

    def embed(self, sentences: Sequence[Sentence], *, layers: Literal["all", "top"] | int = "all") -> list[Arrays]:
        """Return (layers, words, numbers) for each sentence, or (words, numbers) of one layer: "top", or its number."""
        if isinstance(sentences, str):
            raise UsageError(f"{arg('sentences')} is a string; give a list of sentences")
        numbers = self._layer_numbers(layers)
        texts = [self._words(each) for each in sentences]
        found: list[Arrays] = [np.empty(0, dtype=np.float32)] * len(texts)
        for rows in _batches([len(text) for text in texts]):
            states = self._run([texts[row] for row in rows], numbers)  # (layers, batch, words, dim)
            for at, row in enumerate(rows):
                own = states[:, at, : len(texts[row])]
                found[row] = own.copy() if layers == "all" else own[0].copy()
        return found

    def _layer_numbers(self, layers: str | int) -> list[int]:
        if layers == "all":
            return list(range(self.layers))
        number = self.layers - 1 if layers == "top" else layers
        if not isinstance(number, int) or not 0 <= number < self.layers:
            raise UsageError(f"{arg('layers')} is {layers!r}; allowed: 'all', 'top', or 0 to {self.layers - 1}")
        return [number]

    def _words(self, sentence: Sentence) -> list[str]:
        plain = self.config.normalize_quotes
        if isinstance(sentence, str):
            return self.splitter(normalise_quotes(sentence) if plain else sentence)
        return [plain_word(word) for word in sentence] if plain else list(sentence)

    def _run(self, texts: list[list[str]], layers: list[int]) -> Arrays:
        numbers: dict[str, int] = {self.config.begin: 0}  # at padding
        index = np.zeros((len(texts), max(1, *map(len, texts))), dtype=np.int64)
        for row, text in enumerate(texts):
            index[row, : len(text)] = [numbers.setdefault(word, len(numbers)) for word in text]
        given: dict[str, Any] = {"index": index, "lengths": np.array([max(1, len(text)) for text in texts], dtype=np.int64)}
        if self._spelling is not None:
            assert self.config.characters is not None
            characters, lengths = self._spelling.encode(list(numbers))
            longest = int(lengths.max()) + self.config.characters.widest  # a window of padding stays
            given["characters"] = characters[:, :longest]
        if self.config.words is not None:
            assert self._vocabulary is not None
            first = self.config.words.max_characters
            given["words"] = self._vocabulary.ids([word[:first] for word in numbers])
        names = [f"layer{number}" for number in layers]
        halves = self._pool.map(lambda session: np.stack(session.run(names, given)), self._sessions)
        return np.concatenate(list(halves), axis=-1)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows of similar length, at most `BATCH_WORDS` words with padding, unless one sentence is longer."""
    rows: list[int] = []
    for row in sorted(range(len(lengths)), key=lengths.__getitem__):
        if rows and (len(rows) + 1) * lengths[row] > BATCH_WORDS:
            yield rows
            rows = []
        rows.append(row)
    if rows:
        yield rows
