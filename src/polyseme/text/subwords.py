"""Words into the subwords that a Transformer reads, by a tokenizer of the `tokenizers` library (extra `transformers`).

Each word is tokenized alone, so its subwords never depend on its neighbours, and a word has at least one subword. Byte-level
tokenizers (GPT-2, RoBERTa) write the space before a word into its first subword; every word is tokenized as if it had one, the
first of a sentence too. New tokenizers are trained here: WordPiece as for BERT, byte-level BPE as for GPT-2.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from polyseme.base.errors import MissingExtraError, PolysemeError

BERT_SPECIAL_TOKENS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
GPT_SPECIAL_TOKEN = "<|endoftext|>"
MIN_BPE_SIZE = 257
"""The size of a byte-level BPE vocabulary before any merge: 256 bytes and a special token."""


@dataclass(frozen=True)
class PairTemplate:
    """The special tokens that a tokenizer puts before, between and after two texts."""

    before: list[int]
    between: list[int]
    after: list[int]
    types: tuple[int, int] = (0, 0)
    """The token types of the first and of the second text, special tokens included."""


class SubwordTokenizer:
    """A tokenizer of the transformers library that returns the subwords of words."""

    def __init__(self, tokenizer: Any) -> None:
        if getattr(tokenizer, "backend_tokenizer", None) is None:
            raise PolysemeError(
                f"the tokenizer {type(tokenizer).__name__} has no tokenizer.json: convert it to a fast tokenizer first"
            )
        self.tokenizer = tokenizer
        self._backend = copy.deepcopy(tokenizer.backend_tokenizer)
        self._backend.no_truncation()  # published files may ask for both
        self._backend.no_padding()
        self.byte_level = '"type":"ByteLevel"' in json.dumps(
            json.loads(self._backend.to_str())["pre_tokenizer"], separators=(",", ":")
        )
        """Whether spaces are part of the subwords."""

    def __len__(self) -> int:
        return len(self.tokenizer)

    def special_token_id(self, *names: str) -> int:
        """Return the id of the first special token of these (`cls`, `sep`, `mask`, `pad`, `bos`, `eos`, `unk`) that exists."""
        found = (getattr(self.tokenizer, f"{name}_token_id") for name in names)
        number = next((each for each in found if each is not None), None)
        if number is None:
            raise PolysemeError(f"the tokenizer has no {' or '.join(names)} token, which this model needs")
        return int(number)

    def pair_template(self) -> PairTemplate | None:
        """Return the special tokens around two texts, as the tokenizer puts them; None: it puts none."""
        encoding = self._backend.encode("a", "a")
        texts, ids, types = encoding.sequence_ids, encoding.ids, encoding.type_ids
        if 0 not in texts or 1 not in texts or None not in texts:
            return None
        first, second = ([i for i, text in enumerate(texts) if text == number] for number in (0, 1))
        return PairTemplate(
            before=ids[: first[0]],
            between=ids[first[-1] + 1 : second[0]],
            after=ids[second[-1] + 1 :],
            types=(types[first[0]], types[second[0]]),
        )

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """Return the subword ids of each word, at least one for each."""
        distinct = {word: i for i, word in enumerate(dict.fromkeys(words))}
        before = " " if self.byte_level else ""
        texts = [before + word.encode("utf-8", "ignore").decode("utf-8") for word in distinct]  # no lone surrogates
        found = [each.ids for each in self._backend.encode_batch_fast(texts, add_special_tokens=False)]
        if not all(found):
            unknown = [self.special_token_id("unk", "eos", "bos")]
            found = [ids or unknown for ids in found]
        return [found[distinct[word]] for word in words]

    @functools.cached_property
    def word_starts(self) -> NDArray[np.bool_]:
        """Which subwords begin a word, (subwords,); special tokens do not."""
        special = set(self.tokenizer.all_special_ids)
        names = [self._backend.id_to_token(token) or "" for token in range(len(self))]
        starts = [name.startswith("\u0120") if self.byte_level else not name.startswith("##") for name in names]
        return np.array([start and token not in special for token, start in enumerate(starts)], dtype=bool)

    def token_text(self, token: int) -> str:
        """Return a subword as readable text; a leading `##` stays."""
        name: str = self._backend.id_to_token(token) or ""
        return self._backend.decode([token], skip_special_tokens=False).strip() or name if self.byte_level else name

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides the subwords."""
        return hashlib.sha256(self._backend.to_str().encode()).hexdigest()


def train_wordpiece(words: Iterable[Sequence[str]], size: int, *, lowercase: bool = True) -> Any:
    """Train a WordPiece tokenizer of `size` subwords on sentences of words; return it as a `transformers` tokenizer.

    Special tokens and all characters of the text are always included, so there may be more; there are fewer if the text
    gives no more.
    """
    tokenizers = _tokenizers()
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    special = list(BERT_SPECIAL_TOKENS.values())
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    made.train_from_iterator((" ".join(sentence) for sentence in words), trainer)
    cls, sep = ((token, made.token_to_id(token)) for token in ("[CLS]", "[SEP]"))
    made.post_processor = tokenizers.processors.BertProcessing(sep, cls)
    return _wrapped(made, **BERT_SPECIAL_TOKENS)


def train_bpe(words: Iterable[Sequence[str]], size: int) -> Any:
    """Train a byte-level BPE tokenizer of `size` subwords; return it as a `transformers` tokenizer.

    There are fewer if the text gives no more, but never fewer than the 256 bytes and the special token.
    """
    tokenizers = _tokenizers()
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=True)
    made.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=[GPT_SPECIAL_TOKEN],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator((" ".join(sentence) for sentence in words), trainer)
    return _wrapped(made, bos_token=GPT_SPECIAL_TOKEN, eos_token=GPT_SPECIAL_TOKEN, unk_token=GPT_SPECIAL_TOKEN)


def _tokenizers() -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise MissingExtraError("training a subword tokenizer needs tokenizers", "transformers") from error
    return tokenizers


def _wrapped(made: Any, **special_tokens: str) -> Any:
    try:
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise MissingExtraError("training a subword tokenizer needs transformers", "transformers") from error
    return PreTrainedTokenizerFast(tokenizer_object=made, **special_tokens)
