"""Changed settings have the names of options, whatever configs they are in."""

import dataclasses

from polyseme.base.config import Config, setting
from polyseme.base.errors import flags_in_messages
from polyseme.training.config import TrainConfig
from polyseme.training.resume import differences, plain_settings
from polyseme.training.setting_names import listed_changes, option_names


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Parts(Config):
    layers: int = setting(1, "Layers of the network.", option="network_layers")
    dropout: float = setting(0.1, "Dropout.")


def _changes(steps: int, rate: float, layers: int, data: str) -> str:
    train = TrainConfig(steps=steps)
    train = train.replace(optim=train.optim.replace(learning_rate=rate))
    now = {"config": train, "settings": {"task": _Parts(layers=layers), "data": data}}
    before = plain_settings({"config": TrainConfig(steps=1), "settings": {"task": _Parts(), "data": "abc"}})
    before["config"]["optim"]["learning_rate"] = 0.01
    return listed_changes(differences(before, plain_settings(now)), option_names(now))


def test_options_have_their_own_names() -> None:
    with flags_in_messages():
        found = _changes(2, 0.02, 3, "abd")
    assert (
        found == "--learning-rate: 0.01 in the run, 0.02 now; --network-layers: 1 in the run, 3 now; the training data changed"
    )
    assert _changes(1, 0.02, 1, "abc") == "learning_rate: 0.01 in the run, 0.02 now"


def test_what_follows_from_other_settings_is_named_only_alone() -> None:
    assert _changes(2, 0.01, 1, "abc") == "steps: 1 in the run, 2 now"
