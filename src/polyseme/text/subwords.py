"""Words into the pieces that a Transformer reads, by a tokenizer of the `tokenizers` library (extra `transformers`).

Each word is cut alone, so that its pieces never depend on its neighbours, and a word is always at least one piece. Byte-level
tokenizers (GPT-2, RoBERTa) write the blank before a word into its first piece; every word is cut as if it had one, the first
of a sentence too. New tokenizers are trained here: WordPiece as BERT has it, byte-pair pieces as GPT-2 has them.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

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
"""Byte-pair pieces that there are before any pair is learned."""


@dataclass(frozen=True)
class PairTemplate:
    """How a tokenizer puts marks around two texts: before the first, between them, behind the second."""

    before: list[int]
    between: list[int]
    after: list[int]
    types: tuple[int, int] = (0, 0)
    """The type of what belongs to the first text, its marks counted, and of what belongs to the second."""


class SubwordTokenizer:
    """A tokenizer of the transformers library, asked for the pieces of words."""

    def __init__(self, tokenizer: Any) -> None:
        if getattr(tokenizer, "backend_tokenizer", None) is None:
            raise PolysemeError(
                f"its tokenizer ({type(tokenizer).__name__}) is written in Python and has no tokenizer.json: convert it first"
            )
        self.tokenizer = tokenizer
        self._backend = copy.deepcopy(tokenizer.backend_tokenizer)
        self._backend.no_truncation()  # a published file may ask for both
        self._backend.no_padding()
        self.byte_level = '"type":"ByteLevel"' in json.dumps(
            json.loads(self._backend.to_str())["pre_tokenizer"], separators=(",", ":")
        )
        """Whether blanks are part of the pieces."""

    def __len__(self) -> int:
        return len(self.tokenizer)

    def special_token_id(self, *names: str) -> int:
        """The id of the first of some marks (`cls`, `sep`, `mask`, `pad`, `bos`, `eos`, `unk`) that there is."""
        found = (getattr(self.tokenizer, f"{name}_token_id") for name in names)
        number = next((each for each in found if each is not None), None)
        if number is None:
            raise PolysemeError(f"its tokenizer has no mark for {' or '.join(names)}, which this model needs")
        return int(number)

    def pair_template(self) -> PairTemplate | None:
        """The marks around two texts, as the tokenizer itself puts them; None: it puts none."""
        tried = self._backend.encode("a", "a")
        whose, ids, types = tried.sequence_ids, tried.ids, tried.type_ids
        if 0 not in whose or 1 not in whose or None not in whose:
            return None
        first, second = ([place for place, text in enumerate(whose) if text == number] for number in (0, 1))
        return PairTemplate(
            before=ids[: first[0]],
            between=ids[first[-1] + 1 : second[0]],
            after=ids[second[-1] + 1 :],
            types=(types[first[0]], types[second[0]]),
        )

    def encode_words(self, words: Sequence[str]) -> list[list[int]]:
        """The ids of each word's pieces, at least one for each."""
        distinct = {word: place for place, word in enumerate(dict.fromkeys(words))}
        before = " " if self.byte_level else ""
        texts = [before + word.encode("utf-8", "ignore").decode("utf-8") for word in distinct]  # no lone surrogates
        found = [each.ids for each in self._backend.encode_batch_fast(texts, add_special_tokens=False)]
        if not all(found):
            unknown = [self.special_token_id("unk", "eos", "bos")]
            found = [ids or unknown for ids in found]
        return [found[distinct[word]] for word in words]

    def token_text(self, piece: int) -> str:
        """A piece as people read it; `##` before one that does not begin a word stays."""
        name: str = self._backend.id_to_token(piece) or ""
        return self._backend.decode([piece], skip_special_tokens=False).strip() or name if self.byte_level else name

    @property
    def fingerprint(self) -> str:
        """A hash of all that decides the pieces."""
        return hashlib.sha256(self._backend.to_str().encode()).hexdigest()


def train_wordpiece(words: Iterable[Sequence[str]], size: int, *, lowercase: bool = True) -> Any:
    """A WordPiece tokenizer of `size` pieces from sentences of words, for `transformers` to use and to save.

    The marks and all characters of the text are always among them, so there are more where these are more than `size`, and
    fewer where the text gives no more.
    """
    tokenizers = _tokenizers()
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=lowercase)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    marks = list(BERT_SPECIAL_TOKENS.values())
    trainer = tokenizers.trainers.WordPieceTrainer(vocab_size=size, special_tokens=marks, show_progress=False)
    made.train_from_iterator((" ".join(sentence) for sentence in words), trainer)
    cls, sep = ((mark, made.token_to_id(mark)) for mark in ("[CLS]", "[SEP]"))
    made.post_processor = tokenizers.processors.BertProcessing(sep, cls)
    return _wrapped(made, **BERT_SPECIAL_TOKENS)


def train_bpe(words: Iterable[Sequence[str]], size: int) -> Any:
    """A byte-level tokenizer of `size` byte-pair pieces, for `transformers` to use and to save.

    There are fewer where the text gives no more, but never fewer than the 256 bytes and the mark.
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
        raise MissingExtraError("pieces of words are learned by tokenizers", "transformers") from error
    return tokenizers


def _wrapped(made: Any, **marks: str) -> Any:
    try:
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise MissingExtraError("tokenizers are kept by transformers", "transformers") from error
    return PreTrainedTokenizerFast(tokenizer_object=made, **marks)
