"""Score texts one by one, and a corpus as a whole: what `polyseme score` and `polyseme perplexity` print."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from polyseme.base.display import columns, count, html_table, short
from polyseme.base.errors import UsageError, arg
from polyseme.base.progress import progress
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Sentence
from polyseme.encoders.chain_rule import ChainRule
from polyseme.encoders.embed_config import EmbedConfig
from polyseme.encoders.embedding_stream import chunked
from polyseme.encoders.results import WordLogProbs
from polyseme.metrics.perplexity import Perplexity, PerplexityMeter, format_perplexity
from polyseme.text.empty_texts import about_empty

EMPTY = "whose score is that of the sentence boundary alone"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class ScoredText:
    """The score of one text."""

    line: int
    """Its number, from 0."""
    log_probs: WordLogProbs
    words: bool = False
    """Whether each word is shown."""
    steps: ChainRule | None = None
    """The chain rule step by step, where it was asked for."""

    def to_json(self) -> dict[str, Any]:
        steps = {} if self.steps is None else {"steps": self.steps.to_json()}
        return {"line": self.line, **self.log_probs.to_json(words=self.words), "unknown": self.unknown, **steps}

    @property
    def unknown(self) -> int:
        """Words outside the vocabulary."""
        return int((~self.log_probs.known).sum())

    def __str__(self) -> str:
        found = self.log_probs
        sides = [] if found.backward is None else [f"{found.backward.sum():.3f}", f"{found.score:.3f}"]
        names = [] if found.backward is None else ["backward", "mean"]
        cells = _cells(f"{found.forward.sum():.3f}", *sides, format_perplexity(found.perplexity))
        unknown = f"  ({count(self.unknown, 'unknown word')})" if self.unknown else ""
        texts = [f"{cells}  {short(' '.join(found.words), 60)}{unknown}"]
        if self.line == 0:
            texts.insert(0, f"{_cells('forward', *names, 'perplexity')}  sentence")
        if self.steps is not None:
            texts.append(str(self.steps))
        elif self.words:
            rows = [tuple(short(cell, 40) for cell in row) for row in found.rows()]
            texts.append(columns(rows, indent=4, right=range(1, len(rows[0]) - 1)))
        return "\n".join(texts)

    def _repr_html_(self) -> str:
        return self.log_probs._repr_html_()


@dataclass(frozen=True)
class TotalScore:
    """The perplexity of all texts together."""

    lines: int
    perplexity: Perplexity | None
    """None: there was no text."""

    def to_json(self) -> dict[str, Any]:
        total = self.perplexity
        values = dict.fromkeys(("forward", "backward", "mean")) if total is None else total.to_json()["perplexity"]
        return {"lines": self.lines, "predictions": 0 if total is None else total.predictions, "perplexity": values}

    def __str__(self) -> str:
        if self.perplexity is None:
            return ""
        values = self.perplexity.directions()
        named = ((f"{name} " if len(values) > 1 else "", format_perplexity(value)) for name, value in values.items())
        total = f"\nperplexity of {count(self.lines, 'line')}: {', '.join(name + value for name, value in named)}"
        caution, unknown = self.perplexity.caution, f"{self.perplexity.unknown:.0%} of the words are outside the vocabulary"
        return f"{total}\n{unknown}: {caution}" if caution else total

    def _repr_html_(self) -> str:
        values = {} if self.perplexity is None else self.perplexity.directions()
        return html_table(["direction", "perplexity"], [(name, format_perplexity(value)) for name, value in values.items()])


def score_texts(
    model: Encoder,
    texts: Iterable[Sentence],
    *,
    words: bool = False,
    explain: bool = False,
    split_on_spaces: bool = False,
    start: str | None = None,
) -> Iterator[ScoredText | TotalScore]:
    """Score texts a chunk at a time: one result for each, then the total.

    `words`: the results show each word; `explain`: they have the chain rule step by step.
    """
    if isinstance(texts, str):
        raise UsageError("expected a list of texts, got one string: put it into a list")
    model.log_probs([], start=start)  # what the model lacks is reported before any text is read
    model.reset_state()
    return _scores(model, texts, EmbedConfig(start=start, split_on_spaces=split_on_spaces), words, explain)  # type: ignore[arg-type]


def _scores(
    model: Encoder, texts: Iterable[Sentence], config: EmbedConfig, words: bool, explain: bool
) -> Iterator[ScoredText | TotalScore]:
    meter, empty = PerplexityMeter(), list[int]()
    split = (text.split() if config.split_on_spaces and isinstance(text, str) else model.words(text) for text in texts)
    for chunk in chunked(split, config):
        for found in model.log_probs(chunk, start=config.start):
            steps = model.chain_rule(found) if explain else None
            yield ScoredText(meter.sentences, found, words, steps)
            if not found.words:
                empty.append(meter.sentences + 1)
            meter.add(found.forward, found.backward, unknown=int((~found.known).sum()))
    yield TotalScore(meter.sentences, meter.result())
    if empty:
        _log.warning("%s: leave such texts out", about_empty(empty, EMPTY))


def corpus_perplexity(model: Encoder, sentences: Iterable[Sentence], *, carry: bool = False) -> Perplexity:
    """Return the perplexity of a corpus, with a progress bar; `carry`: each sentence is read after the one before."""
    if carry and (model.bidirectional or "carry" not in model.start_states):
        raise UsageError(f"{arg('carry', True)} applies only to ULMFiT models; {model.source} is of kind {model.kind}")
    model.reset_state()
    with progress("reading", unit="sentences") as advance:
        return model.perplexity(sentences, start="carry" if carry else None, progress=advance)


def _cells(first: str, *others: str) -> str:
    """Numbers aligned over lines that are printed one by one."""
    *middle, last = others
    return "  ".join([f"{first:>12}", *(f"{cell:>10}" for cell in middle), f"{last:>12}"])
