"""`ElmoEmbedder` of AllenNLP 0.9: arrays of vectors, without gradients.

Old results that were accidents are gone: an empty sentence is float32 like all others (it was float64), and has the sizes of
the model (it had those of the original one).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import h5py
import numpy as np
import torch
from torch import Tensor

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.files import atomic
from polyseme.compat.old_inputs import word_lists
from polyseme.compat.weights import load_elmo, published

DEFAULT_OPTIONS_FILE, DEFAULT_WEIGHT_FILE = published("original")
DEFAULT_BATCH_SIZE = 64


class ElmoEmbedder:
    """All layers of ELMo, (layers, words, dim) per sentence.

    Stateful, as it was: row k of a batch reads on from row k of the batch before, so that a sentence has other vectors when it
    is embedded again. `stateful=False` starts every sentence from the same state.
    """

    def __init__(
        self,
        options_file: str | Path = DEFAULT_OPTIONS_FILE,
        weight_file: str | Path = DEFAULT_WEIGHT_FILE,
        cuda_device: int = -1,
        *,
        stateful: bool = True,
    ) -> None:
        self.cuda_device = cuda_device
        self.elmo_bilm = load_elmo(weight_file, options_file, device=f"cuda:{cuda_device}" if cuda_device >= 0 else None)
        self._start = "carry" if stateful else None

    def embed_sentence(self, sentence: Sequence[str]) -> np.ndarray:
        """Embed one sentence of words: (layers, words, dim)."""
        return self.embed_batch([sentence])[0]

    def embed_batch(self, batch: Sequence[Sequence[str]]) -> list[np.ndarray]:
        """Embed sentences together; a batch of one empty sentence leaves the state as it is."""
        texts = word_lists(batch)
        if texts == [[]]:
            return [np.zeros((self.elmo_bilm.layers, 0, self.elmo_bilm.dim), np.float32)]
        return self.elmo_bilm.embed(texts, start=self._start, batch_size=max(1, len(texts)))

    def batch_to_embeddings(self, batch: Sequence[Sequence[str]]) -> tuple[Tensor, Tensor]:
        """Embed sentences together: (sentences, layers, longest, dim) and a mask (sentences, longest) of 1 and 0."""
        arrays = [torch.from_numpy(array) for array in self.embed_batch(batch)]
        longest = max((array.shape[1] for array in arrays), default=0)
        vectors = torch.zeros(len(arrays), self.elmo_bilm.layers, longest, self.elmo_bilm.dim)
        mask = torch.zeros(len(arrays), longest, dtype=torch.int64)
        for row, array in enumerate(arrays):
            vectors[row, :, : array.shape[1]], mask[row, : array.shape[1]] = array, 1
        return vectors.to(self.elmo_bilm.device), mask.to(self.elmo_bilm.device)

    def embed_sentences(self, sentences: Iterable[Sequence[str]], batch_size: int = DEFAULT_BATCH_SIZE) -> Iterator[np.ndarray]:
        """Embed any number of sentences, in batches."""
        if batch_size < 1:
            raise UsageError(f"batch_size is {batch_size}; allowed: 1 or more")
        source = iter(sentences)
        while batch := list(islice(source, batch_size)):
            yield from self.embed_batch(batch)

    def embed_file(
        self,
        input_file: Iterable[str],
        output_file_path: str | Path,
        output_format: Literal["all", "top", "average"] = "all",
        batch_size: int = DEFAULT_BATCH_SIZE,
        forget_sentences: bool = False,
        use_sentence_keys: bool = False,
    ) -> None:
        """Embed the lines of an open file, split at white space, and write one HDF5 dataset per line.

        Its key is the number of the line, and `sentence_to_index` has the keys of the sentences as JSON, unless
        `forget_sentences`. With `use_sentence_keys` the key is the sentence.
        """
        layers: dict[str, Any] = {"all": lambda x: x, "top": lambda x: x[-1], "average": lambda x: x.mean(0)}
        if output_format not in layers:
            raise UsageError(f"output_format is {output_format!r}; allowed: {', '.join(layers)}")
        if not isinstance(input_file, Iterable) or isinstance(input_file, str):
            raise UsageError(f"input_file is {input_file!r}; expected an open file, or lines of words: open(path)")
        lines = [line.strip() for line in input_file]
        if "" in lines:
            raise PolysemeError(f"line {lines.index('') + 1} of the input is empty: remove empty lines")
        if use_sentence_keys and len(set(lines)) < len(lines):
            raise PolysemeError("the input has equal lines, which cannot be keys twice: leave use_sentence_keys out")
        with atomic(output_file_path) as part, h5py.File(part, "w") as file:
            for number, array in enumerate(self.embed_sentences((line.split() for line in lines), batch_size)):
                key = lines[number] if use_sentence_keys else str(number)
                file.create_dataset(key, data=layers[output_format](array).astype(np.float32))
            if not (forget_sentences or use_sentence_keys):
                index = file.create_dataset("sentence_to_index", (1,), dtype=h5py.string_dtype())
                index[0] = json.dumps({line: str(number) for number, line in enumerate(lines)})
