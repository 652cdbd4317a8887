"""Every change of layout is undone by its other half, whatever the numbers."""

import pytest
import torch

from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.formats import names
from polyseme.formats.layout import to_ours, to_theirs
from polyseme.nn.config import CharactersConfig, LstmConfig
from polyseme.text.vocabulary import Vocabulary

CHARACTERS = CharactersConfig(dim=4, filters=((1, 3), (2, 5)), highways=2)
CONFIG = ElmoConfig(characters=CHARACTERS, dim=6, lstm=LstmConfig(dim=10, projection=6))
BOTH = CONFIG.replace(words=WordTableConfig(size=3, dim=4))
RULES = {
    "bilm": (CONFIG, names.bilm_characters(CONFIG) + names.bilm_lstm(CONFIG)),
    "allennlp": (CONFIG, names.torch_words(names.ALLENNLP, CONFIG, "a.") + names.torch_lstm(CONFIG, "b.")),
    "manylangs": (BOTH, names.torch_words(names.MANYLANGS, BOTH) + names.torch_lstm(BOTH)),
}


@pytest.mark.parametrize("name", RULES)
def test_there_and_back(name):
    _, rules = RULES[name]
    generator = torch.Generator().manual_seed(3)
    theirs = {key: torch.randn(shape, generator=generator) for rule in rules for key, shape in rule.theirs.items()}
    ours = to_ours(rules, theirs.__getitem__)
    back = to_theirs(rules, ours)
    assert back.keys() == theirs.keys()
    for key, value in theirs.items():
        torch.testing.assert_close(back[key], value, rtol=0, atol=1e-6)
        assert back[key].shape == value.shape


@pytest.mark.parametrize("name", RULES)
def test_the_rules_fill_a_model_exactly(name):
    config, rules = RULES[name]
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>"]) if config.words else None
    state = Elmo(config, vocabulary=vocabulary).state_dict()
    assert sorted(state) == sorted(ours for rule in rules for ours in rule.ours)
    for key, value in to_theirs(rules, state).items():
        assert value.shape == next(rule.theirs[key] for rule in rules if key in rule.theirs)
