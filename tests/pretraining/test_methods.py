"""The registry: every method is found by its name, configured from options, and known by its old names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from polyseme.base.errors import UsageError
from polyseme.pretraining.methods import (
    ADAPTATIONS,
    METHODS,
    adaptation_options,
    configure_adaptation,
    configure_method,
    get_method,
    method_options,
)
from polyseme.pretraining.subword_config import BertPretraining, GptPretraining, MaskingConfig
from polyseme.pretraining.ulmfit_config import UlmfitAdaptation
from polyseme.training.resume import ConfigValues, differences, translate_settings


@pytest.mark.parametrize("name", METHODS)
def test_every_method(name: str) -> None:
    assert get_method(name).name == name
    method = configure_method(name, {})
    assert method == get_method(name)() == type(method).from_dict(method.to_dict())
    options = method_options(name)
    assert all(option.declared.help and option.declared.group for option in options.values())


def test_help_needs_no_torch() -> None:
    code = (
        "import sys; from polyseme.pretraining.methods import *\n"
        "for name in METHODS: method_options(name)\n"
        "adaptation_options(); print([name for name in ('torch', 'numpy', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_options_that_depend_on_others() -> None:
    elmo = configure_method("elmo", {"optimizer": "adagrad", "minutes": 3, "filters": "1:32,2:64", "negatives": 7})
    assert elmo.train.optim.learning_rate == 0.2 and elmo.train.optim.decay == "constant"  # type: ignore[attr-defined]
    assert elmo.train.minutes == 3.0 and elmo.train.epochs is None  # type: ignore[attr-defined]
    assert elmo.overrides.filters == ((1, 32), (2, 64)) and elmo.samples == 7  # type: ignore[attr-defined]
    given = configure_method("elmo", {"optimizer": "adagrad", "learning_rate": 0.1})
    assert given.train.optim.learning_rate == 0.1  # type: ignore[attr-defined]
    assert configure_method("ngram", {"cutoffs": "0,0,1"}).cutoffs == (0, 0, 1)  # type: ignore[attr-defined]
    budgets = {name: configure_method(name, {}).train.epochs for name in ("elmo", "bert", "ulmfit")}  # type: ignore[attr-defined]
    assert budgets == {"elmo": 10.0, "bert": 10.0, "ulmfit": 50.0}
    with pytest.raises(UsageError, match=r"unknown method 'elmoo' \(did you mean 'elmo'\?\)"):
        get_method("elmoo")
    with pytest.raises(UsageError, match=r"glove has no option dropout"):
        configure_method("glove", {"dropout": 0.1})


def test_adaptations() -> None:
    options = adaptation_options()
    assert options["learning_rate"].declared.default_text == "0.0003 for ELMo; 0.001 for ULMFiT"
    assert options["layer_decay"].declared.help.endswith("Only for ULMFiT.")
    assert options["epochs"].default == 3.0
    for kind in ADAPTATIONS:
        assert configure_adaptation(kind, {"learning_rate": 0.5}).train.optim.learning_rate == 0.5
    ulmfit = configure_adaptation("ulmfit", {"layer_decay": 2.0, "freeze": "table,layer1"})
    assert isinstance(ulmfit, UlmfitAdaptation) and ulmfit.layer_decay == 2.0 and ulmfit.freeze == ("table", "layer1")
    assert ulmfit.train.optim.decay == "slanted" and ulmfit.train.optim.clip_norm == 0.25
    with pytest.raises(UsageError, match="batching and dropout apply only to ELMo models, and this one is ulmfit"):
        configure_adaptation("ulmfit", {"dropout": 0.1, "batching": "packed"})
    with pytest.raises(UsageError, match="models of kind glove cannot be adapted; allowed: elmo, taglm, ulmfit"):
        configure_adaptation("glove", {})


def test_settings_of_old_runs() -> None:
    """Those of the runs in tests/old_folders are tested there; these need the transformers library."""
    masking = {"share": 0.2, "masked": 0.7, "random": 0.2, "whole_words": True, "kind": "static"}
    shared = {"size": "tiny", "pieces": 100, "length": 32, "dropout": 0.1, "batch_pieces": 256}
    subwords = {"vocabulary_size": 100, "max_length": 32, "batch_subwords": 256}
    old = {"pretraining": {**shared, "lowercase": False, "masking": masking}, "rows": "abc"}
    changes = {"mlm_probability": 0.2, "mask_replace_prob": 0.7, "random_replace_prob": 0.2, "whole_word_mask": True}
    new = BertPretraining(**subwords, cased=True, masking=MaskingConfig(**changes, static_masking=True))  # type: ignore[arg-type]
    for config, before in ((new, old), (GptPretraining(**{**subwords, "vocabulary_size": 300}), None)):  # type: ignore[arg-type]
        before = before or {"pretraining": {**shared, "pieces": 300}, "rows": "abc"}
        now = {"pretraining": ConfigValues(type(config), config.resume_settings()), "vocabulary": "abc"}
        assert not differences(translate_settings(before, now), now)
