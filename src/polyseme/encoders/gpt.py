"""GPT (Radford et al. 2018, 2019) and the like: each subword sees only those before it, pre-trained to predict the next.

Also reads GPT-Neo and GPT-NeoX. Texts begin with the token that separated texts in pre-training (`<|endoftext|>`), so that the
first word is predicted from something, too. Only the last subword of a word has seen the whole word, so its vectors are the
default.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
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

_AT_A_TIME = 1024  # subwords whose scores over the vocabulary are in memory
_LONGEST = 6  # subwords of a next word
DELIMITER, EXTRACT = 1, 2


@dataclass(frozen=True)
class GptSequenceInputs:
    """Examples as subwords and special tokens."""

    ids: Tensor
    """(examples, length): subwords; anything where a special token is."""
    attention: Tensor
    """(examples, length): 1 where a subword or special token is."""
    kinds: Tensor
    """(examples, length): 0, DELIMITER or EXTRACT."""
    last: Tensor
    """(examples,): where the last token is, as a position in the flattened batch."""
    positions: Tensor
    """(predictions,): positions in the flattened batch from which a subword is predicted."""
    targets: Tensor
    """(predictions,): these subwords."""


class Gpt(SubwordModel):
    """A causal Transformer over subwords, a left-to-right language model; `polyseme.load` reads one."""

    kind = "gpt"
    causal = True
    default_head = "linear"

    @classmethod
    def default_config(cls) -> SubwordConfig:
        return SubwordConfig(subword_pooling="last")

    def _special_tokens(self) -> tuple[list[int], list[int]]:
        return [self.subwords.special_token_id("bos", "eos")], []

    # ---- sequences

    @property
    def predicts_words(self) -> bool:  # type: ignore[override]
        return self.network.get_output_embeddings() is not None

    @property
    def predicts_next_word(self) -> bool:  # type: ignore[override]
        return self.predicts_words

    def sequence_tokens(self) -> Tensor:
        """The delimiter and the token at the end, (2, dim), both initialised as the token between texts.

        They are not in the tokenizer: a row added to it and to the network's table would make a different model. As vectors
        they belong to the task that trains them, and the model's folder stays as it is.
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
            for number, subwords in enumerate(truncate(texts, room, keep_end=keep_end), start=1):
                rows[-1] += [*subwords, self.before[0]]  # its vector is replaced by that of the special token
                kinds[-1] += [0] * len(subwords) + [EXTRACT if number == len(texts) else DELIMITER]
        ids, attention = self.padded(rows)
        length = ids.shape[1]
        next_ = [(row, position) for row, some in enumerate(kinds) for position in range(1, len(some)) if not some[position]]
        tensors = (
            torch.tensor([[*some, *[0] * (length - len(some))] for some in kinds]),
            torch.tensor([row * length + len(some) - 1 for row, some in enumerate(kinds)]),
            torch.tensor([row * length + position - 1 for row, position in next_], dtype=torch.long),
            torch.tensor([rows[row][position] for row, position in next_], dtype=torch.long),
        )
        return GptSequenceInputs(ids, attention, *(each.to(self.device) for each in tensors))

    def encode_sequence(
        self, inputs: GptSequenceInputs, tokens: Tensor | None = None, *, predict: bool = False
    ) -> SequenceOutput:
        """The top layer's vector at the last token; `tokens` as `sequence_tokens` returns them.

        The loss of `predict` is the mean over all subwords of the texts; special tokens are not predicted.
        """
        tokens = self.sequence_tokens() if tokens is None else tokens
        own: Tensor = self.network.get_input_embeddings()(inputs.ids)
        laid = F.embedding(inputs.kinds, F.pad(tokens, (0, 0, 1, 0)))  # zeros where there is no special token
        vectors = torch.where((inputs.kinds > 0).unsqueeze(-1), laid.to(own.dtype), own)
        found = self.body(inputs_embeds=vectors, attention_mask=inputs.attention, use_cache=False)
        states = found.last_hidden_state.flatten(0, 1)
        last = states.index_select(0, inputs.last)
        if not predict:
            return SequenceOutput(last)
        output = self.network.get_output_embeddings()
        if output is None:
            raise PolysemeError(f"{self.source} has no next-word head, so it cannot predict: give a model that has one")
        scores = output(states.index_select(0, inputs.positions)).float()
        total = F.cross_entropy(scores, inputs.targets, reduction="sum")
        return SequenceOutput(last, total / max(len(inputs.targets), 1))

    # ---- as a language model

    @property
    def boundary_tokens(self) -> tuple[str, str]:
        token = self.subwords.token_text(self.subwords.special_token_id("eos", "bos"))
        return token, token

    def log_probs(self, sentences: Sequence[Sentence], *, start: str | None = None) -> LogProbs:
        """Return the log-probability of each word given all to its left (the sum over its subwords), then of the end."""
        check_start(self.kind, start)
        if not self.predicts_words:
            raise PolysemeError(f"{self.source} has no next-word head, so it cannot score words: give a model that has one")
        texts = self._texts(sentences)
        ended = [[*subwords, [self.subwords.special_token_id("eos", "bos")]] for subwords in self._encode(texts)]
        found = [np.zeros(len(subwords)) for subwords in ended]
        spans = [_Span(row, *window) for row, subwords in enumerate(ended) for window in self._windows(subwords)]
        flat = [[subword for word in subwords for subword in word] for subwords in ended]
        owners = [np.repeat(np.arange(len(subwords)), [len(word) for word in subwords]) for subwords in ended]
        with torch.inference_mode():
            for numbers in batch_by_words([span.end - span.begin + 1 for span in spans], words=_AT_A_TIME):
                some = [spans[number] for number in numbers]
                for span, logs in zip(some, self._logs(some, flat), strict=True):
                    np.add.at(found[span.row], owners[span.row][span.first : span.last], logs)
        pairs = zip(texts, found, strict=True)
        return LogProbs(WordLogProbs(text, each, None, np.ones(len(text), dtype=bool)) for text, each in pairs)

    def next_words(self, words: Sequence[str], count: int = 10) -> list[tuple[str, float]]:
        """Return words that are probable after others, most probable first, with the probabilities that `log_probs` gives.

        A subword that begins a word is continued as long as the most probable next one continues it. The end of the text
        is among the words.
        """
        end = self.subwords.special_token_id("eos", "bos")
        room = max(1, self.window - len(self.before) - _LONGEST)
        before = [*self.before, *[subword for word in self._encode([list(words)])[0] for subword in word][-room:]]
        logs = self._next([before])[0]
        begins = np.where(self.subwords.word_starts | (np.arange(len(logs)) == end), logs, -np.inf)
        open_: list[tuple[list[int], float]] = [
            ([int(token)], float(logs[token])) for token in np.argsort(-begins)[: 2 * count]
        ]
        found: dict[str, float] = {}
        for _ in range(_LONGEST):
            continued = []
            for (ids, log), after in zip(open_, self._next([[*before, *ids] for ids, _ in open_]), strict=True):
                best = int(after.argmax())
                if ids[0] != end and best != end and not self.subwords.word_starts[best]:
                    continued.append(([*ids, best], log + float(after[best])))
                    continue
                text = self.subwords.tokenizer.decode(ids).strip()
                if ids[0] == end or (text and self.subwords.encode_words([text])[0] == ids):  # else it is scored otherwise
                    found[text] = log
            if not (open_ := continued):
                break
        return [(word, float(np.exp(found[word]))) for word in sorted(found, key=lambda word: -found[word])[:count]]

    def _next(self, rows: list[list[int]]) -> NDArray[np.float64]:
        """The log-probability of each subword after some rows of them, (rows, subwords)."""
        ids, attention = self.padded(rows)
        with torch.inference_mode():
            states = self.body(input_ids=ids, attention_mask=attention, use_cache=False).last_hidden_state
            last = states[torch.arange(len(rows)), attention.sum(1) - 1]  # scores of all positions would fill the memory
            scores = self.network.get_output_embeddings()(last)[:, : len(self.subwords)]
            return torch.log_softmax(scores.float(), dim=-1).double().cpu().numpy()

    def _windows(self, subwords: list[list[int]]) -> list[Window]:
        return windows(sum(map(len, subwords)), self.window - len(self.before), self.config.overlap, causal=True)

    def _logs(self, spans: list[_Span], flat: list[list[int]]) -> list[np.ndarray]:
        """Return the log-probabilities of the subwords that some windows keep."""
        ids, attention = self.padded([[*self.before, *flat[span.row][span.begin : span.end]] for span in spans])
        scores = torch.log_softmax(
            self.network(input_ids=ids, attention_mask=attention, use_cache=False).logits.float(), dim=-1
        )
        # subword p is at position p - begin + 1, and the position before predicts it
        logs = scores[:, :-1].gather(2, ids[:, 1:, None])[:, :, 0].double().cpu().numpy()
        return [row[span.first - span.begin : span.last - span.begin] for row, span in zip(logs, spans, strict=True)]


class _Span(NamedTuple):
    """A window of one of several texts."""

    row: int
    begin: int
    end: int
    first: int
    last: int
