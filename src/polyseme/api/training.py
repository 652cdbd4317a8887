"""Train language models: pre-train one on text, or adapt one to the text of a domain."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from polyseme.api.arguments import AnyCorpus, CorpusOption, CurvePlot, FilePath, ModelArgument, OutModel
from polyseme.api.corpora import text_engine
from polyseme.api.models import load, loaded
from polyseme.api.texts import check_splitter, open_text
from polyseme.base.config import Config, Setting
from polyseme.base.errors import UsageError, arg
from polyseme.base.options import Option, build, options_of
from polyseme.base.out_paths import check_out_folder
from polyseme.base.run_config import RunConfig
from polyseme.scale.config import TextEngineConfig
from polyseme.text.config import TextConfig

if TYPE_CHECKING:
    from polyseme.api.arguments import AnyModel
    from polyseme.base.run import Run
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
    method: MethodName,
    corpus: CorpusOption,
    *,
    out: OutModel,
    vectors: InitialVectors = None,
    plot: CurvePlot = None,
    **settings: Any,
) -> Encoder:
    """Pre-train a model on text, and return it.

    `settings`: those of the method (`polyseme pretrain METHOD --help` lists them), of reading text and of the run. `out` has
    the best model so far at any time; after a stop or a crash the same call resumes the run.

    >>> import polyseme                                                                         # doctest: +SKIP
    >>> model = polyseme.pretrain("elmo", "texts/", out="my-elmo", size="small", minutes=3)     # doctest: +SKIP
    """
    result, _ = _pretrain(method, corpus, out, vectors, settings, plot)
    return _finished(result)


def run_pretraining(
    method: MethodName,
    *,
    corpus: CorpusOption,
    out: OutModel,
    vectors: InitialVectors = None,
    plot: CurvePlot = None,
    **settings: Any,
) -> PretrainingResult | None:
    """Pre-train a model on text, and return how the training went; under torchrun only in the first process."""
    result, run = _pretrain(method, corpus, out, vectors, settings, plot)
    return result if run.is_main_process else None


def _pretrain(
    method: MethodName,
    corpus: AnyCorpus,
    out: str | Path,
    vectors: str | Path | None,
    settings: Mapping[str, Any],
    plot: FilePath | None,
) -> tuple[PretrainingResult, Run]:
    _large_pages()
    from polyseme.analysis.plots import check_plot
    from polyseme.analysis.training_curve import plot_run
    from polyseme.pretraining.methods import configure_method, get_method

    check_out_folder(out)
    if plot is not None:
        check_plot(plot)
    text, run_config, given = _split_settings(settings)
    applicable = get_method(method).call_options
    for name in ("seed", "device", "precision", "accept_changes"):
        if name in settings and name not in applicable:
            raise UsageError(f"{arg(name)} does not apply to {method}: leave it out")
    config = configure_method(method, given)
    run = run_config.run()
    lookup = None if vectors is None else _vector_lookup(Path(vectors), run)
    opened = _open(corpus, text, settings, is_main_process=run.is_main_process)
    result = config.fit(opened, run, out, vectors=lookup, accept_changes=run_config.accept_changes)
    if plot is not None and run.is_main_process and plot_run(result.out, plot) is None:
        _log.warning("%s logs no steps, so there is nothing to draw in %s", method, plot)
    return result, run


def adapt(model: ModelArgument, corpus: CorpusOption, *, out: OutModel, **settings: Any) -> Encoder:
    """Continue the training of a model on the text of a domain, and return the adapted model.

    `settings`: `polyseme adapt --help` lists them. The frequent words that the vocabulary lacks are added.

    >>> import polyseme                                                                   # doctest: +SKIP
    >>> model = polyseme.adapt("en", "reports/", out="my-domain", epochs=3)               # doctest: +SKIP
    """
    result, _ = _adapt(model, corpus, out, settings)
    return _finished(result)


def run_adaptation(model: ModelArgument, *, corpus: CorpusOption, out: OutModel, **settings: Any) -> AdaptationResult | None:
    """Continue the training of a model on the text of a domain.

    Takes any ELMo that polyseme loads, or the language model of ULMFiT. An ELMo without an output layer gets a new one. The
    layers of ULMFiT have different learning rates under a slanted triangular schedule, as published. The folder has the best
    model so far at any time, and the same command resumes after a stop. Perplexities before and after are over the full
    vocabulary, the added words included, on the last hundredth of the text; a second pair compares the adapted model with the
    untouched one, over the old vocabulary. `polyseme convert` turns an ELMo back into
    bilm-tf's files.
    """
    result, run = _adapt(model, corpus, out, settings)
    return result if run.is_main_process else None  # under torchrun one process reports


def _adapt(model: AnyModel, corpus: AnyCorpus, out: str | Path, settings: Mapping[str, Any]) -> tuple[AdaptationResult, Run]:
    _large_pages()
    from polyseme.encoders.script_check import adaptation_warning
    from polyseme.pretraining.adapt import adapt as continue_training
    from polyseme.pretraining.methods import configure_adaptation
    from polyseme.text.script import ScriptProfile, sample_of

    check_out_folder(out)
    encoder = loaded(model)
    text, run_config, given = _split_settings(settings)
    config: Any = configure_adaptation(encoder.kind, given)  # of the kind of the encoder
    run = run_config.run()
    if encoder.splitter.name == "whitespace" and "splitter" not in settings and run.is_main_process:
        hint = arg("splitter", "english")
        _log.warning("%s takes text split at spaces, one sentence per line: for raw text add %s", encoder.source, hint)
    own = None if "splitter" in settings else encoder.splitter
    opened = _open(corpus, text, settings, own, is_main_process=run.is_main_process)
    changes = run_config.accept_changes
    sample = sample_of(opened.source)
    if run.is_main_process and (warning := adaptation_warning(encoder, ScriptProfile.of(sample), sample)):
        _log.warning("%s", warning)
    return continue_training(encoder, opened, out, config, run, accept_changes=changes), run  # type: ignore[arg-type]


def pretraining_configs(method: str) -> dict[str, Config]:
    """The configs whose settings `pretrain` takes for a method."""
    from polyseme.pretraining.methods import get_method

    return {"method": get_method(method)(), "text": TextConfig(), "engine": TextEngineConfig(), "run": RunConfig()}


def pretraining_options(method: str) -> dict[str, Option]:
    """The options of `pretrain` that apply to a method."""
    from polyseme.pretraining.methods import get_method

    idle = set(options_of({"run": RunConfig()})) - set(get_method(method).call_options)
    return {name: option for name, option in options_of(pretraining_configs(method)).items() if name not in idle}


def adaptation_options() -> dict[str, Option]:
    """The options of `adapt`: those of all models that can be adapted, of reading text and of the run."""
    from polyseme.pretraining.methods import adaptation_options as own

    options = {**own(), **options_of({"text": TextConfig(), "engine": TextEngineConfig(), "run": RunConfig()})}
    declared = dataclasses.replace(options["splitter"].declared, default_text="the model's own")
    return {**options, "splitter": dataclasses.replace(options["splitter"], default=None, declared=declared)}


_Reading = tuple[TextConfig, TextEngineConfig]


def _split_settings(settings: Mapping[str, Any]) -> tuple[_Reading, RunConfig, dict[str, Any]]:
    """The settings of reading text and of the run as configs, and the others."""
    shared: dict[str, Config] = {"text": TextConfig(), "engine": TextEngineConfig(), "run": RunConfig()}
    names = options_of(shared)
    configs = build(shared, {name: value for name, value in settings.items() if name in names}, "training")
    others = {name: value for name, value in settings.items() if name not in names}
    return (configs["text"], configs["engine"]), configs["run"], others  # type: ignore[return-value]


def _open(
    source: AnyCorpus,
    reading: _Reading,
    given: Mapping[str, Any],
    splitter: Splitter | None = None,
    *,
    is_main_process: bool,
) -> Corpus:
    """The text to train on: a `Corpus`, which says itself how it is read, or files and how to read them."""
    from polyseme.text.corpus import Corpus

    text, engine = reading
    if isinstance(source, Corpus):
        if idle := [name for name in options_of({"text": text, "engine": engine}) if name in given]:
            raise UsageError(f"{', '.join(map(arg, idle))}: a Corpus says itself how its text is read; set it there")
        return check_splitter(source)
    return open_text(source, text, splitter, _log.warning if is_main_process else _log.debug, text_engine(engine))


def _vector_lookup(path: Path, run: Run) -> VectorLookup:
    from polyseme.formats.word_vectors import read_vectors

    def find(words: list[str]) -> WordVectors:
        vectors = read_vectors(path, words)
        if run.is_main_process:
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
