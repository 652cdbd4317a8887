"""BERT (Devlin et al. 2019) and its like: every piece sees all others, and was taught to tell the ones that were hidden.

RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT and ELECTRA are read by the same file. The vector of the mark that begins a text
([CLS]) is the text's summary; of a text that needs several windows, the mean of theirs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.encoders.base import Batch, Sentence
from polyseme.encoders.sequence import SequenceOutput, truncate
from polyseme.encoders.subword_library import part_of
from polyseme.encoders.subword_model import SubwordModel, typed
from polyseme.text.subwords import PairTemplate

MASK = "[MASK]"
"""The hidden word, whatever the tokenizer calls it."""
FIRST_TEXT = 64  # pieces of a question that are read beside a paragraph


@dataclass(frozen=True)
class BertSequenceInputs:
    """Whole examples as pieces, (examples, length) each."""

    ids: Tensor
    attention: Tensor
    types: Tensor | None


@dataclass(frozen=True)
class Filling:
    """A piece that could stand in the place of a hidden one."""

    piece: str
    """A word, or with `##` before it the end of one."""
    log_prob: float


class Bert(SubwordModel):
    """A bidirectional Transformer over pieces; see `polyseme.load` for how to get one."""

    kind = "bert"
    causal = False

    def _marks(self) -> tuple[list[int], list[int]]:
        return [self.subwords.special_token_id("cls", "bos")], [self.subwords.special_token_id("sep", "eos")]

    # ---- two texts at once

    @functools.cached_property
    def pair_template(self) -> PairTemplate:
        """The marks around two texts: as the tokenizer has them, else one mark between."""
        return self.subwords.pair_template() or PairTemplate(self.before, self.after, self.after)

    @property
    def _types(self) -> tuple[int, int] | None:
        """The types of the first and the second text, where the network has them."""
        return self.pair_template.types if getattr(self.network.config, "type_vocab_size", 1) > 1 else None

    def prepare_pair(self, firsts: Sequence[Sentence], seconds: Sequence[Sentence]) -> Batch:
        """Pairs of texts read together, for `forward`, which then gives the words of the second ones.

        A long second text goes through in windows, each with the whole first text before it, of which 64 pieces are read at
        most, as Devlin et al. have it for questions, and less than half of what the network reads.
        """
        texts, marks = self._texts(seconds), self.pair_template
        room = max(0, min(FIRST_TEXT, self.window // 2 - len(marks.before) - len(marks.between)))
        cut = [[piece for word in words for piece in word][:room] for words in self._cut(self._texts(firsts))]
        return self._prepare(texts, [[*marks.before, *pieces, *marks.between] for pieces in cut], marks.after, self._types)

    # ---- whole examples

    def pooler(self) -> nn.Linear | None:
        """The layer that next sentences were told by, above the first mark, where the network has it."""
        found = part_of(self.body, "pooler.dense")
        return found if isinstance(found, nn.Linear) else None

    def prepare_sequence(self, examples: Sequence[Sequence[Sentence]], *, keep_end: bool = False) -> BertSequenceInputs:
        """[CLS] a [SEP], or [CLS] a [SEP] b [SEP], with marks and types as the model's own tokenizer has them."""
        rows, firsts, marks = [], [], self.pair_template
        for texts in self._flat(examples):
            if len(texts) == 1:
                room = self.window - len(self.before) - len(self.after)
                rows.append([*self.before, *truncate(texts, room, keep_end=keep_end)[0], *self.after])
                firsts.append(self.window)
                continue
            room = self.window - len(marks.before) - len(marks.between) - len(marks.after)
            a, b = truncate(texts, room, keep_end=keep_end)
            rows.append([*marks.before, *a, *marks.between, *b, *marks.after])
            firsts.append(len(rows[-1]) - len(b) - len(marks.after))
        ids, attention = self.padded(rows)
        types = None
        if self._types is not None:
            types = typed(torch.tensor(firsts), ids.shape[1], self._types).to(self.device) * attention
        return BertSequenceInputs(ids, attention, types)

    def encode_sequence(
        self, inputs: BertSequenceInputs, marks: Tensor | None = None, *, predict: bool = False
    ) -> SequenceOutput:
        """The top layer's vector of the mark that begins the example."""
        if predict:
            raise UsageError("a bert sees all of a text at once, so it predicts no next word; leave `predict` out")
        types = {} if inputs.types is None else {"token_type_ids": inputs.types}
        found = self.body(input_ids=inputs.ids, attention_mask=inputs.attention, **types)
        return SequenceOutput(found.last_hidden_state[:, 0])

    # ---- what it can be asked

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
        mask = self.subwords.special_token_id("mask")
        parts = re.split(f"{re.escape(MASK)}|{re.escape(str(self.subwords.tokenizer.mask_token))}", text)
        if len(parts) < 2:
            raise UsageError(f"the text has no {MASK}, the place to fill: write it where a word is hidden")
        ids, places = list(self.before), []
        for number, part in enumerate(parts):
            ids += [piece for word in self.subwords.encode_words(self.words(part)) for piece in word]
            if number < len(parts) - 1:
                places.append(len(ids))
                ids.append(mask)
        ids += self.after
        if len(ids) > self.window:
            raise UsageError(f"the text has {len(ids)} pieces, this model reads {self.window}: give less text around {MASK}")
        with torch.inference_mode():
            found = self.network(**dict(zip(("input_ids", "attention_mask"), self.padded([ids]), strict=True)))
            logits = found.logits if hasattr(found, "logits") else found.prediction_logits
            size = len(self.subwords)  # a published table may have more rows, which are no pieces
            best = torch.log_softmax(logits[0, places, :size].float(), dim=-1).topk(min(count, size))
        rows = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        return [[Filling(self.subwords.token_text(piece), value) for piece, value in zip(*row, strict=True)] for row in rows]
