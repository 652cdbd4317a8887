"""Train language models: pre-train one on text, or adapt one to the text of a domain."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from polyseme.api.arguments import AnyCorpus, CorpusOption, FilePath, ModelArgument, OutModel
from polyseme.api.models import load, loaded
from polyseme.base.config import Config, Setting
from polyseme.base.errors import UsageError, arg
from polyseme.base.options import Option, build, options_of
from polyseme.base.run_config import RunConfig
from polyseme.text.config import TextConfig

if TYPE_CHECKING:
    from polyseme.encoders.base import Encoder
    from polyseme.pretraining.result import AdaptationResult, PretrainingResult
    from polyseme.text.corpus import Corpus
    from polyseme.text.word_vectors import VectorLookup, WordVectors
    from polyseme.text.words import Splitter

MethodName = Literal["ngram", "nnlm", "word2vec", "fasttext", "glove", "taglm", "elmo", "ulmfit", "gpt", "bert"]
InitialVectors = Annotated[
    FilePath | None,
    Setting(
        help="Word vectors to start the word table from: word2vec (text or binary) or GloVe.", metavar="FILE", group="Model"
    ),
]
_log = logging.getLogger(__name__)


def pretrain(
    method: MethodName, corpus: CorpusOption, *, out: OutModel, vectors: InitialVectors = None, **settings: Any
) -> Encoder:
    """Pre-train a model on text, and return it.

    `settings`: those of the method (`polyseme pretrain METHOD --help` lists them), of reading text and of the run. `out` has
    the best model so far at any time; after a stop or a crash the same call resumes the run.

    >>> import polyseme                                                                         # doctest: +SKIP
    >>> model = polyseme.pretrain("elmo", "texts/", out="my-elmo", size="small", minutes=3)     # doctest: +SKIP
    """
    return _finished(run_pretraining(method, corpus=corpus, out=out, vectors=vectors, **settings))


def run_pretraining(
    method: MethodName, *, corpus: CorpusOption, out: OutModel, vectors: InitialVectors = None, **settings: Any
) -> PretrainingResult:
    """Pre-train a model on text, and return how the training went."""
    _large_pages()
    from polyseme.pretraining.methods import configure_method, get_method

    text, run, given = _split_settings(settings)
    applicable = get_method(method).call_options
    for name in ("seed", "device", "precision", "accept_changes"):
        if name in settings and name not in applicable:
            raise UsageError(f"{arg(name)} does not apply to {method}: leave it out")
    config = configure_method(method, given)
    lookup = None if vectors is None else _vector_lookup(Path(vectors))
    return config.fit(_open(corpus, text, settings), run.run(), out, vectors=lookup, accept_changes=run.accept_changes)


def adapt(model: ModelArgument, corpus: CorpusOption, *, out: OutModel, **settings: Any) -> Encoder:
    """Continue the training of a model on the text of a domain, and return the adapted model.

    `settings`: `polyseme adapt --help` lists them. The frequent words that the vocabulary lacks are added.

    >>> import polyseme                                                                   # doctest: +SKIP
    >>> model = polyseme.adapt("en", "reports/", out="my-domain", epochs=3)               # doctest: +SKIP
    """
    return _finished(run_adaptation(model, corpus=corpus, out=out, **settings))


def run_adaptation(model: ModelArgument, *, corpus: CorpusOption, out: OutModel, **settings: Any) -> AdaptationResult:
    """Continue the training of a model on the text of a domain.

    Takes any ELMo that polyseme loads, or the language model of ULMFiT. An ELMo without an output layer gets a new one. The
    layers of ULMFiT have different learning rates under a slanted triangular schedule, as published. The folder has the best
    model so far at any time, and the same command resumes after a stop. Perplexities before and after are over the full
    vocabulary, the added words included, on the last hundredth of the text. `polyseme convert` turns an ELMo back into
    bilm-tf's files.
    """
    _large_pages()
    from polyseme.pretraining.adapt import adapt as continue_training
    from polyseme.pretraining.methods import configure_adaptation

    encoder = loaded(model)
    text, run, given = _split_settings(settings)
    config = configure_adaptation(encoder.kind, given)
    if encoder.splitter.name == "whitespace" and "splitter" not in settings:
        hint = arg("splitter", "english")
        _log.warning("%s takes text split at spaces, one sentence per line: for raw text add %s", encoder.source, hint)
    corpus = _open(corpus, text, settings, None if "splitter" in settings else encoder.splitter)
    chosen: Any = config  # of the kind of the encoder
    return continue_training(encoder, corpus, out, chosen, run.run(), accept_changes=run.accept_changes)  # type: ignore[arg-type]


def pretraining_configs(method: str) -> dict[str, Config]:
    """The configs whose settings `pretrain` takes for a method."""
    from polyseme.pretraining.methods import get_method

    return {"method": get_method(method)(), "text": TextConfig(), "run": RunConfig()}


def adaptation_options() -> dict[str, Option]:
    """The options of `adapt`: those of all models that can be adapted, of reading text and of the run."""
    from polyseme.pretraining.methods import adaptation_options as own

    return {**own(), **options_of({"text": TextConfig(), "run": RunConfig()})}


def _split_settings(settings: Mapping[str, Any]) -> tuple[TextConfig, RunConfig, dict[str, Any]]:
    """The settings of reading text and of the run as configs, and the others."""
    shared: dict[str, Config] = {"text": TextConfig(), "run": RunConfig()}
    names = options_of(shared)
    configs = build(shared, {name: value for name, value in settings.items() if name in names}, "training")
    others = {name: value for name, value in settings.items() if name not in names}
    return configs["text"], configs["run"], others  # type: ignore[return-value]


def _open(source: AnyCorpus, text: TextConfig, given: Mapping[str, Any], splitter: Splitter | None = None) -> Corpus:
    """The text to train on: a `Corpus`, which says itself how it is read, or files and how to read them."""
    from polyseme.text.corpus import Corpus

    if isinstance(source, Corpus):
        if idle := [name for name in options_of({"text": text}) if name in given]:
            raise UsageError(f"{', '.join(map(arg, idle))}: a Corpus says itself how its text is read; set it there")
        return source
    return text.open([source] if isinstance(source, str | Path) else list(source), splitter)


def _vector_lookup(path: Path) -> VectorLookup:
    from polyseme.formats.word_vectors import read_vectors

    def find(words: list[str]) -> WordVectors:
        vectors = read_vectors(path, words)
        _log.warning("%s: %s", path, vectors.summary(len(words)))
        return vectors

    return find


def _finished(result: PretrainingResult) -> Encoder:
    if getattr(result, "stopped_by", None) is not None:
        raise KeyboardInterrupt("the training was stopped; the same call resumes it")
    return load(result.out)


def _large_pages() -> None:
    """Ask the system for memory in large pages, before PyTorch is loaded: on a CPU small ones cost a fifth of a step."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
