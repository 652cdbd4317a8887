"""BERT (Devlin et al. 2019) and the like: each subword sees all others, pre-trained to predict masked ones.

Also reads RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT and ELECTRA. The vector of the token that begins a text ([CLS]) is the
text's summary; for a text of several windows, the mean of theirs.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from polyseme.base.errors import PolysemeError, UsageError, arg
from polyseme.encoders.batch import Batch, Sentence
from polyseme.encoders.language_model import check_count, find_position
from polyseme.encoders.results import Filling, Fillings, MaskFillings
from polyseme.encoders.sequence import SequenceOutput, truncate
from polyseme.encoders.subword_library import submodule
from polyseme.encoders.subword_model import SubwordModel, typed
from polyseme.text.subwords import PairTemplate

MASK = "[MASK]"
"""The mask, whatever the tokenizer calls it."""
FIRST_TEXT = 64  # subwords of a question that are read with a paragraph


@dataclass(frozen=True)
class BertSequenceInputs:
    """Examples as subwords, (examples, length) each."""

    ids: Tensor
    attention: Tensor
    types: Tensor | None


class Bert(SubwordModel):
    """A bidirectional Transformer over subwords; `polyseme.load` reads one."""

    kind = "bert"
    causal = False
    default_head = "tanh"
    reads_pairs = True

    def _special_tokens(self) -> tuple[list[int], list[int]]:
        return [self.subwords.special_token_id("cls", "bos")], [self.subwords.special_token_id("sep", "eos")]

    # ---- sentence pairs

    @functools.cached_property
    def pair_template(self) -> PairTemplate:
        """The special tokens around two texts: those of the tokenizer, else one between them."""
        return self.subwords.pair_template() or PairTemplate(self.before, self.after, self.after)

    @property
    def _types(self) -> tuple[int, int] | None:
        """The types of the first and the second text, where the network has them."""
        return self.pair_template.types if getattr(self.network.config, "type_vocab_size", 1) > 1 else None

    def prepare_pair(self, firsts: Sequence[Sentence], seconds: Sequence[Sentence]) -> Batch:
        """Prepare pairs of texts that are read together; `forward` then gives the words of the second ones.

        A long second text is read in windows, each with the first text before it, of which at most 64 subwords are read, as
        Devlin et al. do for questions, and less than half of a window.
        """
        texts, template = self._texts(seconds), self.pair_template
        room = max(0, min(FIRST_TEXT, self.window // 2 - len(template.before) - len(template.between)))
        shortened = [[subword for word in words for subword in word][:room] for words in self._encode(self._texts(firsts))]
        before = [[*template.before, *subwords, *template.between] for subwords in shortened]
        return self._prepare(texts, before, template.after, self._types)

    # ---- sequences

    def pooler(self) -> nn.Linear | None:
        """The layer above the first token that predicted next sentences, where the network has it."""
        found = submodule(self.body, "pooler.dense")
        return found if isinstance(found, nn.Linear) else None

    def prepare_sequence(self, examples: Sequence[Sequence[Sentence]], *, keep_end: bool = False) -> BertSequenceInputs:
        """[CLS] a [SEP], or [CLS] a [SEP] b [SEP], with special tokens and types as the tokenizer has them."""
        rows, firsts, template = [], [], self.pair_template
        for texts in self._flat(examples):
            if len(texts) == 1:
                room = self.window - len(self.before) - len(self.after)
                rows.append([*self.before, *truncate(texts, room, keep_end=keep_end)[0], *self.after])
                firsts.append(self.window)
                continue
            room = self.window - len(template.before) - len(template.between) - len(template.after)
            a, b = truncate(texts, room, keep_end=keep_end)
            rows.append([*template.before, *a, *template.between, *b, *template.after])
            firsts.append(len(rows[-1]) - len(b) - len(template.after))
        ids, attention = self.padded(rows)
        types = None
        if self._types is not None:
            types = typed(torch.tensor(firsts), ids.shape[1], self._types).to(self.device) * attention
        return BertSequenceInputs(ids, attention, types)

    def encode_sequence(
        self, inputs: BertSequenceInputs, tokens: Tensor | None = None, *, predict: bool = False
    ) -> SequenceOutput:
        """The top layer's vector of the token that begins the example."""
        if predict:
            raise UsageError(f"{arg('predict', True)} needs a left-to-right language model; {self.kind} is none")
        types = {} if inputs.types is None else {"token_type_ids": inputs.types}
        found = self.body(input_ids=inputs.ids, attention_mask=inputs.attention, **types)
        return SequenceOutput(found.last_hidden_state[:, 0])

    # ---- masked words

    @property
    def can_fill(self) -> bool:  # type: ignore[override]
        return self.network.get_output_embeddings() is not None

    def fill(self, text: Sentence, position: int | None = None, *, word: str | None = None, count: int = 10) -> MaskFillings:
        """Return the most probable subwords for each [MASK] of a text, all masked at once, or for a word that is masked.

        >>> import polyseme                                                         # doctest: +SKIP
        >>> model = polyseme.load("my-bert")                                        # doctest: +SKIP
        >>> model.fill("The [MASK] of the river.")[0][0].subword                    # doctest: +SKIP
        'bank'
        >>> model.fill("The shore of the river.", word="shore")[0][0].subword       # doctest: +SKIP
        'bank'
        """
        if not self.can_fill:
            raise PolysemeError(f"{self.source} has no masked-word head, so it cannot fill: give a model that has one")
        check_count(count)
        ids, masked = self._masked(text, word, position)
        if len(ids) > self.window:
            raise UsageError(f"the text has {len(ids)} subwords, but this model reads {self.window}: shorten it")
        with torch.inference_mode():
            output = self.network(**dict(zip(("input_ids", "attention_mask"), self.padded([ids]), strict=True)))
            logits = output.logits if hasattr(output, "logits") else output.prediction_logits
            size = len(self.subwords)  # a published table may have more rows, which are no subwords
            best = torch.log_softmax(logits[0, masked, :size].float(), dim=-1).topk(min(count, size))
        fillings = [
            Fillings(Filling(self.subwords.token_text(subword), value) for subword, value in zip(*row, strict=True))
            for row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        return MaskFillings(fillings, text=text if isinstance(text, str) else " ".join(text))

    def _masked(self, text: Sentence, word: str | None, position: int | None) -> tuple[list[int], list[int]]:
        """The subwords of a text with its masks, and where these are."""
        if word is not None or position is not None:
            words = self.words(text)
            place = find_position(text, words, word, position)
            parts: list[Sentence] = [words[:place], words[place + 1 :]]
        else:
            joined = text if isinstance(text, str) else " ".join(text)
            tokens = (MASK, str(self.subwords.tokenizer.mask_token))
            parts = list(re.split("|".join(map(re.escape, tokens)), joined))
            if len(parts) < 2:
                raise UsageError(f"the text has no {MASK}: write it where a word is missing, or give {arg('word')}")
        ids, masked = list(self.before), []
        for number, part in enumerate(parts):
            if number:
                masked.append(len(ids))
                ids.append(self.subwords.special_token_id("mask"))
            ids += [subword for word in self.subwords.encode_words(self.words(part)) for subword in word]
        return [*ids, *self.after], masked
