"""The registry of pre-training methods and adaptations. Imports no torch, so that `--help` is quick."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from polyseme.base.errors import UsageError, arg, nearest
from polyseme.base.imports import import_object
from polyseme.base.options import Option, build, options_of
from polyseme.pretraining.method import Method, NeuralMethod

METHODS = {
    "elmo": "polyseme.pretraining.elmo_config:ElmoPretraining",
    "taglm": "polyseme.pretraining.elmo_config:TagLmPretraining",
    "ngram": "polyseme.pretraining.ngram_config:NgramPretraining",
    "nnlm": "polyseme.pretraining.nnlm_config:NnlmPretraining",
    "word2vec": "polyseme.pretraining.word2vec_config:Word2VecPretraining",
    "fasttext": "polyseme.pretraining.word2vec_config:FastTextPretraining",
    "glove": "polyseme.pretraining.glove_config:GlovePretraining",
    "ulmfit": "polyseme.pretraining.ulmfit_config:UlmfitPretraining",
    "gpt": "polyseme.pretraining.subword_config:GptPretraining",
    "bert": "polyseme.pretraining.subword_config:BertPretraining",
}
"""By name: the config class of the method, as `module:name`."""

GROUPS = ("Model", "Architecture", "Subwords", "Masking", "Budget", "Training", "Computing")
"""The order of options."""

ADAPTATIONS = {
    "elmo": "polyseme.pretraining.elmo_config:ElmoAdaptation",
    "taglm": "polyseme.pretraining.elmo_config:ElmoAdaptation",
    "ulmfit": "polyseme.pretraining.ulmfit_config:UlmfitAdaptation",
}
"""By kind of encoder: the config class with which `polyseme adapt` continues its training."""


def get_method(name: str) -> type[Method]:
    """Return the config class of a method.

    >>> get_method("glove").name
    'glove'
    """
    if name not in METHODS:
        raise UsageError(f"unknown method {name!r}{nearest(name, METHODS)}")
    method: type[Method] = import_object(METHODS[name])
    return method


def method_options(name: str) -> dict[str, Option]:
    """Return all options of a method, by name."""
    return _by_group(options_of({"method": get_method(name)()}))


def configure_method(name: str, given: Mapping[str, Any]) -> Method:
    """Build the config of a method from options.

    >>> configure_method("elmo", {"optimizer": "adagrad"}).train.optim.learning_rate
    0.2
    """
    return _configured(get_method(name), given, name)


def adaptation_options() -> dict[str, Option]:
    """Return the options of all adaptations, by name; the help says which models an option is for, and its defaults."""
    classes = {import_object(name).model_name: import_object(name) for name in ADAPTATIONS.values()}
    by_model = {model: options_of({"adaptation": config()}) for model, config in classes.items()}
    names = dict.fromkeys(name for options in by_model.values() for name in options)
    return _by_group(
        {
            name: _merged({model: options[name] for model, options in by_model.items() if name in options}, len(by_model))
            for name in names
        }
    )


def configure_adaptation(kind: str, given: Mapping[str, Any]) -> NeuralMethod:
    """Build the config with which a kind of encoder is adapted, from options."""
    if kind not in ADAPTATIONS:
        raise UsageError(f"models of kind {kind} cannot be adapted; allowed: {', '.join(ADAPTATIONS)}")
    config = import_object(ADAPTATIONS[kind])
    known = options_of({"adaptation": config()})
    other = sorted(name for name in given if name not in known and name in adaptation_options())
    if other:
        models = next(each.model_name for each in map(import_object, ADAPTATIONS.values()) if each is not config)
        verb = "applies" if len(other) == 1 else "apply"
        raise UsageError(f"{' and '.join(map(arg, other))} {verb} only to {models} models, and this one is {kind}")
    return _configured(config, given, "adapt")


def _by_group(options: Mapping[str, Option]) -> dict[str, Option]:
    """Sort options by the panels of a help page, the model's own first."""
    return dict(sorted(options.items(), key=lambda item: GROUPS.index(item[1].declared.group or "Model")))


def _configured(config: type[Any], given: Mapping[str, Any], what: str) -> Any:
    return build({"method": config()}, {**config.implied_options(given), **given}, what)["method"]


def _merged(options: Mapping[str, Option], of: int) -> Option:
    """One option of several kinds of models."""
    first = next(iter(options.values()))
    declared = first.declared
    if len(options) < of:
        declared = dataclasses.replace(declared, help=f"{declared.help} Only for {', '.join(options)}.")
    if len(_texts(options.values())) > 1:
        texts = [f"{_text(option)} for {model}" for model, option in options.items()]
        declared = dataclasses.replace(declared, default_text="; ".join(texts))
        return dataclasses.replace(first, default=None, declared=declared)
    return dataclasses.replace(first, declared=declared)


def _texts(options: Iterable[Option]) -> set[str]:
    return {_text(option) for option in options}


def _text(option: Option) -> str:
    """The default of an option in words."""
    if option.default is None:
        return option.declared.default_text or "none"
    if isinstance(option.default, tuple):
        return ",".join(map(str, option.default)) or "none"
    return f"{option.default:,g}" if isinstance(option.default, float) else str(option.default)
