"""What `--warmup` and `--clip-norm` make of a verb's optimizer."""

import pytest

from polyseme.base.errors import UsageError
from polyseme.cli.training_options import TrainingOptions
from polyseme.pretraining import subword_config, ulmfit_config
from polyseme.training.optim_config import OptimConfig


@pytest.mark.parametrize("usual", [OptimConfig(), subword_config.default_optim(), ulmfit_config.default_optim()])
def test_only_what_is_given_is_changed(usual: OptimConfig) -> None:
    assert TrainingOptions().loop(usual).optim == usual
    assert TrainingOptions(warmup=0.0, clip_norm=0.5).loop(usual).optim == usual.replace(warmup=0.0, clip_norm=0.5)


def test_one_budget() -> None:
    assert TrainingOptions().loop(OptimConfig(), usual=3.0).epochs == 3.0
    with pytest.raises(UsageError, match="give one budget"):
        TrainingOptions(epochs=1, words=5).loop(OptimConfig())


@pytest.mark.parametrize("verb", [["pretrain", "gpt"], ["pretrain", "bert"], ["pretrain", "ulmfit"], ["adapt", "en"]])
def test_every_verb_that_trains_a_network_has_it(run, tmp_path, verb: list[str]) -> None:
    (tmp_path / "t.txt").write_text("a b c\n" * 20)
    refused = run(*verb, "--corpus", tmp_path / "t.txt", "--out", tmp_path / "m", "--clip-norm", "-1")
    assert refused.code == 1 and "clip_norm is -1.0; it must be above 0" in refused.err
