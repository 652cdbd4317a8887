"""Small random models of the transformers library for tests, which are skipped where it is missing."""

from __future__ import annotations

import functools
from typing import Any

import pytest
import torch

from polyseme.encoders.bert import Bert
from polyseme.encoders.config import SubwordConfig
from polyseme.encoders.gpt import Gpt
from polyseme.text.subwords import train_bpe, train_wordpiece

TEXT = ["the bank of the river", "money in the bank", "a zebra sat on the mat , naïve", "漢 字 of river rivers banks"]
SIZES: dict[str, int] = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}


def library() -> Any:
    return pytest.importorskip("transformers", reason="needs the extra `transformers`")


@functools.cache
def wordpieces() -> Any:
    library()
    return train_wordpiece([line.split() for line in TEXT], 90)


@functools.cache
def byte_pairs() -> Any:
    library()
    return train_bpe([line.split() for line in TEXT], 300)


def bert(*, positions: int = 24, head: str = "BertForPreTraining", seed: int = 0, **settings: Any) -> Bert:
    """A BERT with random weights, large enough that context shows."""
    torch.manual_seed(seed)
    sizes = {**SIZES, "vocab_size": len(wordpieces()), "max_position_embeddings": positions, "initializer_range": 0.5}
    network = getattr(library(), head)(library().BertConfig(**sizes))
    return Bert(SubwordConfig(**settings), network=network, tokenizer=wordpieces()).eval()


def gpt(*, positions: int = 24, head: str = "GPT2LMHeadModel", seed: int = 0, **settings: Any) -> Gpt:
    """A GPT-2 with random weights."""
    torch.manual_seed(seed)
    sizes = {"n_embd": 8, "n_layer": 2, "n_head": 2, "n_positions": positions, "vocab_size": len(byte_pairs())}
    mark = byte_pairs().eos_token_id
    config = library().GPT2Config(**sizes, initializer_range=0.5, bos_token_id=mark, eos_token_id=mark)
    network = getattr(library(), head)(config)
    return Gpt(SubwordConfig(**{"subword_pooling": "last", **settings}), network=network, tokenizer=byte_pairs()).eval()
