"""Ask a language model: how likely is a text, and which words fit into it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from polyseme.api.arguments import (
    AnyCorpus,
    AnyModel,
    Count,
    Field,
    ModelForText,
    Position,
    SentenceArgument,
    SentencesOption,
    SplitOnSpaces,
    Start,
    Texts,
    Word,
    Workers,
)
from polyseme.api.models import ModelRequest, loaded
from polyseme.api.texts import model_for, model_for_text
from polyseme.base.config import Setting
from polyseme.base.errors import PolysemeError, arg

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder
    from polyseme.encoders.results import MaskFillings, Substitutes
    from polyseme.encoders.scoring import ScoredText, TotalScore
    from polyseme.metrics.perplexity import Perplexity

Sources = Annotated[
    AnyCorpus,
    Setting(help="Files, folders or quoted globs of text, plain or compressed; - is standard input.", metavar="SOURCE"),
]
MaskedModel = Annotated[
    AnyModel | None,
    Setting(
        help="A BERT or similar: a folder or a Hugging Face Hub id.",
        default_text="en-bert, or zh-bert for Chinese, of the distribution polyseme-models",
        metavar="MODEL",
        flags=("-m",),
    ),
]
MaskedText = Annotated[str, Setting(help="A text in quotes, with [MASK] where a word is hidden.", metavar="TEXT")]
_log = logging.getLogger(__name__)
EachWord = Annotated[bool, Setting(help="Show every word, not only the sentence.")]
Explain = Annotated[bool, Setting(help="Show the chain rule step by step: each word's probability, and the product so far.")]
Carry = Annotated[bool, Setting(help="Carry the state over from the sentence before, as ULMFiT's perplexities are published.")]


def score(
    texts: Texts,
    *,
    model: ModelForText = None,
    words: EachWord = False,
    explain: Explain = False,
    split_on_spaces: SplitOnSpaces = False,
    start: Start = None,
) -> Iterator[ScoredText | TotalScore]:
    """Score sentences by a language model: one result per sentence, and the total at the end.

    Each result has the natural-log probability of the words read from left to right (forward) and from right to left
    (backward), their mean, and the perplexity: roughly, among how many words the model hesitates at each position; lower is
    likelier. ELMo needs its output layer and vocabulary; n-gram models and other ancestors read from left to right only.

    >>> import polyseme                                                          # doctest: +SKIP
    >>> list(polyseme.score(["We sat on the bank .", "Bank the on sat we ."]))   # doctest: +SKIP
    """
    from polyseme.encoders.scoring import score_texts

    encoder, lines = model_for(texts, model, split_on_spaces=split_on_spaces)
    return score_texts(encoder, lines, words=words, explain=explain, split_on_spaces=split_on_spaces, start=start)


def perplexity(
    source: Sources,
    *,
    model: ModelForText = None,
    carry: Carry = False,
    sentences: SentencesOption = None,
    field: Field = None,
    workers: Workers = None,
) -> Perplexity:
    """Measure how well a language model predicts a text that it was not trained on.

    Words are split as in the model's training. Each sentence is read alone from the model's initial state, unless you give
    `--carry` (in Python `carry=True`). Ends of sentences are predicted too, and words outside the vocabulary as the unknown
    word; their share is reported, since a smaller vocabulary makes prediction easier. The perplexity is exp of the mean loss
    of each direction, and of both.

    >>> import polyseme                           # doctest: +SKIP
    >>> polyseme.perplexity("held-out.txt").mean  # doctest: +SKIP
    """
    from polyseme.encoders.scoring import corpus_perplexity
    from polyseme.text.corpus import Corpus
    from polyseme.text.files.sources import Source

    if isinstance(source, Corpus):
        language_model, _ = model_for_text(source, model)
        return corpus_perplexity(language_model, source, carry=carry)
    files = Source([source] if isinstance(source, str | Path) else list(source), field=field)
    files.warn_of_tables()
    language_model, _ = model_for_text(files, model)
    corpus = Corpus(files, splitter=language_model.splitter, sentences=sentences, workers=workers)
    return corpus_perplexity(language_model, corpus, carry=carry)


def substitutes(
    text: SentenceArgument,
    *,
    word: Word = None,
    position: Position = None,
    count: Count = 10,
    model: ModelForText = None,
    split_on_spaces: SplitOnSpaces = False,
    start: Start = None,
) -> Substitutes:
    """List the words that fit best at a position of a sentence.

    The model sees what stands before and after the position, not the word itself. It needs its output layer and vocabulary. The
    probabilities of all words of the vocabulary sum to 1.

    >>> import polyseme                                                                 # doctest: +SKIP
    >>> polyseme.substitutes("We sat on the bank of the river.", word="bank", count=5)  # doctest: +SKIP
    """
    words: Any = text.split() if split_on_spaces and isinstance(text, str) else text
    encoder, _ = model_for([words], model, split_on_spaces=split_on_spaces)
    return encoder.substitutes(words, position=position, word=word, count=count, start=start)


def fill(
    text: MaskedText,
    *,
    model: MaskedModel = None,
    count: Count = 10,
) -> MaskFillings:
    """Fill in the hidden words of a text with a BERT or similar model.

    Each [MASK] stands for one subword of the model's vocabulary: a word, or with ## before it the end of one. Several are
    filled independently. For ELMo, use `substitutes`.
    """
    return _masked_model(text, model).fill(text, count=count)


def _masked_model(text: str, model: AnyModel | ModelRequest | None) -> Encoder:
    """The model that the user named, or the BERT of polyseme-models for the language of the text."""
    from polyseme.text.script import ScriptProfile

    if model is not None and not (isinstance(model, ModelRequest) and not model.given):
        return loaded(model)
    name = "zh-bert" if ScriptProfile.of(text.replace("[MASK]", "")).is_chinese else "en-bert"
    try:
        encoder = loaded(ModelRequest(name, model.options if isinstance(model, ModelRequest) else {}))
    except PolysemeError as error:
        raise PolysemeError(f"{error}; or name a BERT of your own: {arg('model', 'my-bert')}") from error
    _log.warning("this uses %s", arg("model", name))
    return encoder
