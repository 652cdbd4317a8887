"""GPT (Radford et al. 2018, 2019) and its like: every piece sees only what stands before it, and was taught to tell the next.

GPT-2, GPT-Neo and GPT-NeoX are read by the same file. Texts begin with the mark that stood between the texts of their training
(`<|endoftext|>`), so that the first word too is predicted from something. Of a word's pieces only the last has seen the whole
word, so its vectors are the usual ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.base.errors import PolysemeError
from polyseme.encoders.batch import Sentence
from polyseme.encoders.config import SubwordConfig
from polyseme.encoders.language_model import check_start
from polyseme.encoders.results import LogProbs, WordLogProbs
from polyseme.encoders.sequence import SequenceOutput, truncate
from polyseme.encoders.subword_model import SubwordModel
from polyseme.encoders.subword_windows import Window, windows
from polyseme.text.batching.batches import batch_by_words

_AT_A_TIME = 1024  # pieces whose scores, one for each piece of the vocabulary, stand in memory


DELIMITER, EXTRACT = 1, 2


@dataclass(frozen=True)
class GptSequenceInputs:
    """Whole examples as pieces and marks."""

    ids: Tensor
    """(examples, length): pieces; anything where a mark is."""
    attention: Tensor
    """(examples, length): 1 where a piece or mark is."""
    kinds: Tensor
    """(examples, length): 0, DELIMITER or EXTRACT."""
    last: Tensor
    """(examples,): the place of each last mark, among all places."""
    places: Tensor
    """(predictions,): the places, among all, from which a piece is predicted."""
    targets: Tensor
    """(predictions,): these pieces."""


class Gpt(SubwordModel):
    """A causal Transformer over pieces, which is a language model from left to right; `polyseme.load` gives one."""

    kind = "gpt"
    causal = True
    default_head = "linear"

    @classmethod
    def default_config(cls) -> SubwordConfig:
        return SubwordConfig(subword_pooling="last")

    def _marks(self) -> tuple[list[int], list[int]]:
        return [self.subwords.special_token_id("bos", "eos")], []

    # ---- whole examples

    @property
    def predicts_words(self) -> bool:  # type: ignore[override]
        return self.network.get_output_embeddings() is not None

    @property
    def predicts_next_word(self) -> bool:  # type: ignore[override]
        return self.predicts_words

    def sequence_tokens(self) -> Tensor:
        """The delimiter and the mark at the end, (2, dim). Both begin as the mark that stood between texts in training.

        They are no pieces: a published tokenizer has no such two, and a row added to it and to the network's table would
        make another model of both. As vectors they belong to whoever trains them, and the model's folder stays as it is.
        """
        row: Tensor = self.network.get_input_embeddings().weight[self.before[0]].detach()
        return row.repeat(2, 1)

    def prepare_sequence(self, examples: Sequence[Sequence[Sentence]], *, keep_end: bool = False) -> GptSequenceInputs:
        """begin a EXTRACT, or begin a DELIMITER b EXTRACT, as Radford et al. 2018 transform inputs."""
        rows, kinds = [], []
        for texts in self._flat(examples):
            rows.append(list(self.before))
            kinds.append([0] * len(self.before))
            room = self.window - len(self.before) - len(texts)
            for number, pieces in enumerate(truncate(texts, room, keep_end=keep_end), start=1):
                rows[-1] += [*pieces, self.before[0]]  # a place for the mark, whose vector is laid over it
                kinds[-1] += [0] * len(pieces) + [EXTRACT if number == len(texts) else DELIMITER]
        ids, attention = self.padded(rows)
        length = ids.shape[1]
        next_ = [(row, place) for row, some in enumerate(kinds) for place, kind in enumerate(some) if place and not kind]
        tensors = (
            torch.tensor([[*some, *[0] * (length - len(some))] for some in kinds]),
            torch.tensor([row * length + len(some) - 1 for row, some in enumerate(kinds)]),
            torch.tensor([row * length + place - 1 for row, place in next_], dtype=torch.long),
            torch.tensor([rows[row][place] for row, place in next_], dtype=torch.long),
        )
        return GptSequenceInputs(ids, attention, *(each.to(self.device) for each in tensors))

    def encode_sequence(
        self, inputs: GptSequenceInputs, tokens: Tensor | None = None, *, predict: bool = False
    ) -> SequenceOutput:
        """The top layer's vector at the last mark; `tokens` as `sequence_tokens` returns them.

        The loss of `predict` is the mean over all pieces of the texts; the marks are read, and not predicted.
        """
        tokens = self.sequence_tokens() if tokens is None else tokens
        own: Tensor = self.network.get_input_embeddings()(inputs.ids)
        laid = F.embedding(inputs.kinds, F.pad(tokens, (0, 0, 1, 0)))  # zeros where there is no mark
        vectors = torch.where((inputs.kinds > 0).unsqueeze(-1), laid.to(own.dtype), own)
        found = self.body(inputs_embeds=vectors, attention_mask=inputs.attention, use_cache=False)
        states = found.last_hidden_state.flatten(0, 1)
        last = states.index_select(0, inputs.last)
        if not predict:
            return SequenceOutput(last)
        output = self.network.get_output_embeddings()
        if output is None:
            raise PolysemeError(f"{self.source} has no head for the next word, so it cannot predict: take a model that has")
        scores = output(states.index_select(0, inputs.places)).float()
        total = F.cross_entropy(scores, inputs.targets, reduction="sum")
        return SequenceOutput(last, total / max(len(inputs.targets), 1))

    # ---- as a language model

    @property
    def boundary_tokens(self) -> tuple[str, str]:  # type: ignore[override]
        token = self.subwords.token_text(self.subwords.special_token_id("eos", "bos"))
        return token, token

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        """Return the log-probability of each word given all to its left (the sum over its subwords), then of the end."""
        check_start(self.kind, start)
        if not self.predicts_words:
            raise PolysemeError(f"{self.source} has no head for the next word, so it cannot score words: take a model that has")
        texts = self._texts(sentences)
        marked = [[*pieces, [self.subwords.special_token_id("eos", "bos")]] for pieces in self._cut(texts)]
        found = [np.zeros(len(pieces)) for pieces in marked]
        spans = [_Span(row, *window) for row, pieces in enumerate(marked) for window in self._windows(pieces)]
        flat = [[piece for word in pieces for piece in word] for pieces in marked]
        owners = [np.repeat(np.arange(len(pieces)), [len(word) for word in pieces]) for pieces in marked]
        with torch.inference_mode():
            for places in batch_by_words([span.end - span.begin + 1 for span in spans], words=_AT_A_TIME):
                some = [spans[place] for place in places]
                for span, logs in zip(some, self._logs(some, flat), strict=True):
                    np.add.at(found[span.row], owners[span.row][span.first : span.last], logs)
        pairs = zip(texts, found, strict=True)
        return LogProbs(WordLogProbs(text, each, None, np.ones(len(text), dtype=bool)) for text, each in pairs)

    def _windows(self, pieces: list[list[int]]) -> list[Window]:
        return windows(sum(map(len, pieces)), self.window - len(self.before), self.config.overlap, causal=True)

    def _logs(self, spans: list[_Span], flat: list[list[int]]) -> list[np.ndarray]:
        """Log-probabilities of the pieces that some windows take."""
        ids, attention = self.padded([[*self.before, *flat[span.row][span.begin : span.end]] for span in spans])
        scores = torch.log_softmax(
            self.network(input_ids=ids, attention_mask=attention, use_cache=False).logits.float(), dim=-1
        )
        # piece p stands at place p - begin + 1, and the place before predicts it
        logs = scores[:, :-1].gather(2, ids[:, 1:, None])[:, :, 0].double().cpu().numpy()
        return [row[span.first - span.begin : span.last - span.begin] for row, span in zip(logs, spans, strict=True)]


class _Span(NamedTuple):
    """A window of one of several texts."""

    row: int
    begin: int
    end: int
    first: int
    last: int
