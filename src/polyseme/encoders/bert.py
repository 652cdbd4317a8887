"""BERT (Devlin et al. 2019) and its like: every piece sees all others, and was taught to tell the ones that were hidden.

RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT and ELECTRA are read by the same file. The vector of the mark that begins a text
([CLS]) is the text's summary; of a text that needs several windows, the mean of theirs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.piece_model import PieceModel

MASK = "[MASK]"
"""The hidden word, whatever the tokenizer calls it."""


@dataclass(frozen=True)
class Filling:
    """A piece that could stand in the place of a hidden one."""

    piece: str
    """A word, or with `##` before it the end of one."""
    log_prob: float


class Bert(PieceModel):
    """A bidirectional Transformer over pieces; see `polyseme.load` for how to get one."""

    kind = "bert"
    causal = False

    def _marks(self) -> tuple[list[int], list[int]]:
        return [self.pieces.mark("cls", "bos")], [self.pieces.mark("sep", "eos")]

    def fill(self, text: str, *, count: int = 10) -> list[list[Filling]]:
        """For each [MASK] of a text the likeliest pieces, all of them hidden at once.

        >>> import polyseme                                                       # doctest: +SKIP
        >>> polyseme.load("my-bert").fill("The [MASK] of the river.")[0][0].piece  # doctest: +SKIP
        'bank'
        """
        if self.network.get_output_embeddings() is None:
            raise PolysemeError(f"{self.source} has no head for masked words, so it cannot fill them in: take a model that has")
        if count < 1:
            raise UsageError(f"count is {count}; it must be at least 1")
        mask = self.pieces.mark("mask")
        parts = re.split(f"{re.escape(MASK)}|{re.escape(str(self.pieces.tokenizer.mask_token))}", text)
        if len(parts) < 2:
            raise UsageError(f"the text has no {MASK}, the place to fill: write it where a word is hidden")
        ids, places = list(self.before), []
        for number, part in enumerate(parts):
            ids += [piece for word in self.pieces.of(self.words(part)) for piece in word]
            if number < len(parts) - 1:
                places.append(len(ids))
                ids.append(mask)
        ids += self.after
        if len(ids) > self.window:
            raise UsageError(f"the text has {len(ids)} pieces, this model reads {self.window}: give less text around {MASK}")
        with torch.inference_mode():
            found = self.network(**dict(zip(("input_ids", "attention_mask"), self.padded([ids]), strict=True)))
            logits = found.logits if hasattr(found, "logits") else found.prediction_logits
            size = len(self.pieces)  # a published table may have more rows, which are no pieces
            best = torch.log_softmax(logits[0, places, :size].float(), dim=-1).topk(min(count, size))
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [[Filling(self.pieces.text(piece), value) for piece, value in zip(*row, strict=True)] for row in rows]
