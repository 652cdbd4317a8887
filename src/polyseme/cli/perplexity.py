"""`polyseme perplexity`: how well a model predicts a text, by the full distribution over its vocabulary."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.base.errors import PolysemeError
from polyseme.base.progress import progress
from polyseme.cli import show
from polyseme.cli.options import Device, Json, Model, Options, SplitterOption, VocabularyFile, open_language_model
from polyseme.cli.score import Totals
from polyseme.cli.text_options import Field, OwnSentences, Workers, open_corpus

if TYPE_CHECKING:
    from collections.abc import Callable

    from polyseme.cli.options import AnyLanguageModel
    from polyseme.encoders.language_model import WordLogProbs

Sources = Annotated[
    list[str],
    typer.Argument(metavar="SOURCE", help="Files, folders or quoted globs of text, plain or packed; - is standard input."),
]
Carry = Annotated[
    bool,
    typer.Option("--carry", help="Read each sentence after the one before, as ULMFiT's perplexities are published."),
]
_AT_A_TIME = 1024  # sentences whose words' probabilities stand in memory


def perplexity(
    source: Sources,
    model: Model = None,
    carry: Carry = False,
    json: Json = False,
    sentences: OwnSentences = None,
    field: Field = None,
    workers: Workers = None,
    options: Options = None,
    vocabulary: VocabularyFile = None,
    splitter: SplitterOption = None,
    device: Device = None,
) -> None:
    """Measure how well a model predicts a text that it has not seen.

    Words are split as in the model's training, sentences as is usual for that (give --sentences where they were split
    otherwise), and every sentence is read alone, from the model's start state; with --carry an AWD-LSTM (ULMFiT) reads on from
    sentence to sentence. Ends of sentences are predicted too, and words outside the vocabulary as the unknown word: their share
    is told, since a smaller vocabulary makes prediction easier. The perplexity is exp of the mean loss of each direction, and
    of both; n-gram models and their like have one direction.

    Example:

        polyseme perplexity held-out.txt --model my-model
    """
    loaded = open_language_model(model, options=options, vocabulary=vocabulary, splitter=splitter, device=device)
    log_probs = _carrying(loaded) if carry else loaded.log_probs
    log_probs([])  # what it lacks is told before the text is read
    text = open_corpus(source, loaded.splitter, sentences, field, workers)
    totals, unknown = Totals(), 0
    with progress("reading", unit="sentences") as advance:
        waiting = iter(text)
        while some := list(islice(waiting, _AT_A_TIME)):
            for found in log_probs(some):
                totals.add(found)
                unknown += len(found.known) - int(found.known.sum())
            advance(len(some))
    if not totals.lines:
        raise PolysemeError(f"{' '.join(source)}: there are no words to predict")
    words = totals.predictions - totals.lines
    values = totals.perplexity()
    if json:
        show.as_json({"sentences": totals.lines, "words": words, "unknown": unknown / max(words, 1), "perplexity": values})
        return
    show.line(f"{show.count(totals.lines, 'sentence')}, {words:,} words, {unknown / max(words, 1):.2%} outside the vocabulary")
    show.columns([(f"perplexity {name}".rstrip(), value) for name, value in totals.shown()])


def _carrying(model: AnyLanguageModel) -> Callable[[list[list[str]]], list[WordLogProbs]]:
    """How a model reads on from sentence to sentence."""
    from polyseme.encoders.ulmfit import Ulmfit

    if not isinstance(model, Ulmfit):
        raise PolysemeError(f"{model.source} is of kind {model.kind}, which reads every sentence alone here: leave --carry out")
    model.reset_state()
    return partial(model.log_probs, start="carry")
