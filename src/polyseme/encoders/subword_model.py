"""What BERT, GPT and the like share: words are split into subwords, a network reads them, and vectors of words are made again.

The networks and the folders are those of the `transformers` library: what is saved here opens there, and the other way round.
Layer 0 is the input of the network (subwords and positions), layer l the output of its block l. A word of several subwords has
the vectors of one of them, or their mean. Texts longer than the network's maximum length are read in overlapping windows
(`polyseme.encoders.subword_windows`), so no word is lost. Padding is masked, so a vector does not depend on its batch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from polyseme.base.config import Config, ConfigError
from polyseme.base.errors import FormatError, PolysemeError
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch, Layers, Sentence
from polyseme.encoders.config import SubwordConfig
from polyseme.encoders.sequence import split_texts
from polyseme.encoders.subword_library import FAMILIES, family_of, read_network, read_tokenizer, submodule, write_network
from polyseme.encoders.subword_windows import windows
from polyseme.nn.pauses import pause, piece
from polyseme.text.subwords import SubwordTokenizer
from polyseme.text.words import WHITESPACE, Splitter, get_splitter

_AT_A_TIME, _WITH_PAUSES = 1 << 14, 1 << 11  # subwords that are read together without gradients, and between two pauses
_NO_VECTOR_NEEDS = ("architectures", "dtype", "transformers_version", "_name_or_path")


@dataclass(frozen=True)
class SubwordInputs:
    """Texts as windows of subwords, and the words that these make."""

    ids: Tensor
    """(windows, length): subwords with special tokens, padded."""
    attention: Tensor
    """(windows, length): 1 where a subword or special token is."""
    rows: Tensor
    """(taken,): the windows of the subwords that make words, ascending."""
    columns: Tensor
    """(taken,): their positions there."""
    words: Tensor
    """(taken,): the position of their word in the batch, text * words + word."""
    bounds: list[int]
    """For each window where its subwords begin in `rows`, and the end: on the CPU."""
    texts: Tensor
    """(windows,): the text of each window."""
    types: Tensor | None = None
    """(windows, length): which of two texts a subword belongs to, where the network has types."""


class SubwordModel(Encoder):
    """A network of the transformers library over words; `Bert` and `Gpt` are the two kinds."""

    config_type: ClassVar[type[Config]] = SubwordConfig
    config: SubwordConfig
    causal: ClassVar[bool]
    reads_subwords = True

    def __init__(self, config: SubwordConfig, *, network: Any, tokenizer: Any, splitter: Splitter = WHITESPACE) -> None:
        super().__init__(config, splitter)
        self.family = FAMILIES[network.config.model_type]
        if self.family.causal != self.causal:
            raise ConfigError(f"a {network.config.model_type} is no {self.kind}: polyseme.load detects the kind")
        self.network = network
        self.subwords = SubwordTokenizer(tokenizer)
        self.before, self.after = self._special_tokens()
        rows, size = network.get_input_embeddings().weight.shape[0], len(self.subwords)
        if size > rows:
            raise ConfigError(f"the tokenizer has {size} subwords, the network's table {rows} rows: are both of one model?")

    def _special_tokens(self) -> tuple[list[int], list[int]]:
        """The special tokens before a text and after it."""
        raise NotImplementedError

    @property
    def body(self) -> Any:
        """The network without its heads."""
        return self.network.base_model

    @property
    def layers(self) -> int:
        return len(self._blocks()) + 1

    @property
    def dim(self) -> int:
        return int(self.network.config.hidden_size)

    @property
    def window(self) -> int:
        """Subwords that are read at once, special tokens included."""
        config = self.network.config
        positions = int(config.max_position_embeddings)
        if self.family.after_padding:
            positions -= int(config.pad_token_id) + 1
        return min(positions, self.config.window or positions)

    @property
    def identity(self) -> str:
        """A hash of what decides the vectors besides the weights: the tokenizer and the network's config."""
        values = json.loads(self.network.config.to_json_string(use_diff=False))
        kept = {name: value for name, value in values.items() if name not in _NO_VECTOR_NEEDS}
        return hashlib.sha256((self.subwords.fingerprint + json.dumps(kept, sort_keys=True)).encode()).hexdigest()

    def _blocks(self) -> nn.ModuleList:
        blocks = submodule(self.body, self.family.blocks)
        assert isinstance(blocks, nn.ModuleList)
        return blocks

    def layer_groups(self) -> dict[str, nn.Module]:
        below, above = (
            [module for path in paths if (module := submodule(self.body, path)) is not None]
            for paths in (self.family.embeddings, self.family.top)
        )
        blocks = list(self._blocks())
        groups: dict[str, nn.Module] = {"embeddings": nn.ModuleList(below)}
        for level, block in enumerate(blocks, start=1):
            groups[f"layer{level}"] = nn.ModuleList([block, *above] if level == len(blocks) else [block])
        inside = {id(weight) for weight in self.body.parameters()}
        heads = [weight for weight in self.network.parameters() if id(weight) not in inside]
        if heads:
            groups["output"] = nn.ParameterList(heads)
        return groups

    # ---- words -> subwords

    def prepare(self, sentences: Sequence[Sentence]) -> Batch:
        texts = self._some_texts(sentences)
        return self._prepare(texts, [self.before] * len(texts), self.after)

    def _prepare(
        self, texts: list[list[str]], before: Sequence[list[int]], after: list[int], types: tuple[int, int] | None = None
    ) -> Batch:
        """Split texts into windows, each with the special tokens `before` and `after` it.

        `types`: the token types of what is before, and of the rest.
        """
        longest = max(map(len, texts))
        ids: list[list[int]] = []
        owners: list[int] = []
        taken: list[tuple[int, int, int]] = []
        bounds = [0]
        for number, subwords in enumerate(self._encode(texts)):
            flat, words = self._taken(subwords)
            head = before[number]
            inside = self.window - len(head) - len(after)
            for begin, end, first, last in windows(len(flat), inside, self.config.overlap, causal=self.causal):
                shift = len(head) - begin
                mine = [(position, word) for position, word in words if first <= position < last]
                taken += [(len(ids), position + shift, number * longest + word) for position, word in mine]
                ids.append([*head, *flat[begin:end], *after])
                owners.append(number)
                bounds.append(len(taken))
        rows, columns, positions = torch.tensor(taken, dtype=torch.long).reshape(-1, 3).T.to(self.device)
        padded, attention = self.padded(ids)
        lengths = torch.tensor([len(text) for text in texts])
        mask = torch.arange(longest) < lengths[:, None]
        whose = torch.tensor(owners)
        token_types = None
        if types is not None:
            heads = torch.tensor([len(before[owner]) for owner in owners])
            token_types = typed(heads, attention.shape[1], types).to(self.device) * attention
        inputs = SubwordInputs(padded, attention, rows, columns, positions, bounds, whose.to(self.device), token_types)
        return Batch(inputs, mask.to(self.device), lengths.to(self.device))

    def _encode(self, texts: list[list[str]]) -> list[list[list[int]]]:
        """Return the subwords of each word of each text."""
        subwords = iter(self.subwords.encode_words([word for text in texts for word in text]))
        return [[next(subwords) for _ in text] for text in texts]

    def _taken(self, subwords: list[list[int]]) -> tuple[list[int], list[tuple[int, int]]]:
        """Return the subwords of a text, and those that make words: (position, word)."""
        flat: list[int] = []
        taken: list[tuple[int, int]] = []
        for word, ids in enumerate(subwords):
            begin, last = len(flat), len(flat) + len(ids) - 1
            flat += ids
            chosen = {"first": [begin], "last": [last], "mean": range(begin, last + 1)}[self.config.subword_pooling]
            taken += [(position, word) for position in chosen]
        return flat, taken

    def padded(self, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
        """Pad rows of ids to a tensor (rows, length) on the device, and return its attention mask."""
        length = max(1, *map(len, rows), 1)
        padding = self.network.config.pad_token_id or 0
        ids = torch.tensor([[*row, *[padding] * (length - len(row))] for row in rows])
        attention = torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows])
        return ids.to(self.device), attention.to(self.device)

    # ---- subwords -> layers

    def forward(self, batch: Batch) -> Layers:
        inputs: SubwordInputs = batch.inputs
        subwords, firsts = self._read(inputs)
        count, words = batch.mask.shape
        states = subwords.new_zeros(self.layers, count * words, self.dim)
        if self.config.subword_pooling == "mean":
            shares = torch.bincount(inputs.words, minlength=count * words).clamp(min=1)
            states = states.index_add(1, inputs.words, subwords) / shares[:, None]
        else:
            states = states.index_copy(1, inputs.words, subwords)
        summary = None if self.causal else _means(firsts, inputs.texts, count)
        return Layers(states.view(self.layers, count, words, self.dim), batch.mask, summary=summary)

    def _read(self, inputs: SubwordInputs) -> tuple[Tensor, Tensor]:
        """Return all layers of the subwords that make words (layers, taken, dim), the top of first tokens (windows, dim)."""
        count, length = inputs.ids.shape
        step = count if torch.is_grad_enabled() else max(1, (piece(_AT_A_TIME, _WITH_PAUSES) or _AT_A_TIME) // length)
        found, firsts = [], []
        for begin in range(0, count, step):
            if begin:
                pause()
            end = min(begin + step, count)
            types = None if inputs.types is None else inputs.types[begin:end]
            hidden = self.hidden(inputs.ids[begin:end], inputs.attention[begin:end], types)
            mine = slice(inputs.bounds[begin], inputs.bounds[end])
            rows, columns = inputs.rows[mine] - begin, inputs.columns[mine]
            found.append(torch.stack([layer[rows, columns] for layer in hidden]))
            firsts.append(hidden[-1][:, 0])
        return torch.cat(found, dim=1), torch.cat(firsts)

    def hidden(self, ids: Tensor, attention: Tensor, types: Tensor | None = None) -> Sequence[Tensor]:
        """Return the vectors of each subword, (rows, length, dim) for each layer from 0 on."""
        more = self._call() if types is None else self._call() | {"token_type_ids": types}
        found = self.body(input_ids=ids, attention_mask=attention, output_hidden_states=True, **more)
        states: Sequence[Tensor] = found.hidden_states
        return states

    def _call(self) -> dict[str, Any]:
        return {"use_cache": False} if self.causal else {}

    # ---- sequences

    def sequence_dim(self, texts: int) -> int:
        return self.dim

    def _flat(self, examples: Sequence[Sequence[Sentence]]) -> list[list[list[int]]]:
        """Return the subwords of each text of each example."""
        slots = [self._encode(self._texts(texts)) for texts in split_texts(examples)]
        return [[[subword for word in text for subword in word] for text in texts] for texts in zip(*slots, strict=True)]

    # ---- model folders

    def write_files(self, folder: Path, dtype: torch.dtype) -> None:
        write_network(self.network, self.subwords.tokenizer, folder, dtype)

    @classmethod
    def read_files(cls, folder: Path, config: SubwordConfig, splitter: Splitter) -> Self:
        return cls.from_library(folder, config, splitter)

    @classmethod
    def from_library(cls, folder: Path, config: SubwordConfig | None = None, splitter: Splitter | None = None) -> Self:
        """Read a folder of the transformers library.

        By default text is split to suit the tokenizer: at spaces where these are part of its subwords, else also at
        punctuation and around each Chinese character, as BERT does.
        """
        family = family_of(folder)
        if family.causal != cls.causal:
            raise FormatError(folder / "config.json", f"is not a {cls.kind}: polyseme.load detects the kind")
        network, tokenizer = read_network(folder, family), read_tokenizer(folder)
        try:
            model = cls(config or cls.default_config(), network=network, tokenizer=tokenizer)
        except PolysemeError as error:
            raise FormatError(folder, str(error)) from error
        model.splitter = splitter or get_splitter("whitespace" if model.subwords.byte_level else "characters")
        return model.eval()

    @classmethod
    def default_config(cls) -> SubwordConfig:
        return SubwordConfig()

    def info(self) -> dict[str, Any]:
        return super().info() | {
            "parameters": sum(weight.numel() for weight in self.body.parameters()),
            "network": self.network.config.model_type,
            "pieces_of_vocabulary": len(self.subwords),
            "pieces_of_a_word": self.config.subword_pooling,
            "window": self.window,
            "language_model": self.causal and self.network.get_output_embeddings() is not None,
        }


def typed(firsts: Tensor, length: int, types: tuple[int, int]) -> Tensor:
    """Return (rows, length) in which the first positions, so many per row, have the first type and all others the second."""
    first = torch.arange(length) < firsts[:, None]
    return torch.where(first, *types)


def _means(firsts: Tensor, texts: Tensor, count: int) -> Tensor:
    """The mean of each text's windows: (windows, dim) -> (texts, dim)."""
    shares = torch.bincount(texts, minlength=count)
    return firsts.new_zeros(count, firsts.shape[1]).index_add(0, texts, firsts) / shares[:, None]
