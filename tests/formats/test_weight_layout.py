"""Every change of layout is undone by its other half, whatever the numbers."""

import pytest
import torch

from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig, WordTableConfig
from polyseme.formats import weight_names
from polyseme.formats.weight_layout import to_foreign, to_polyseme
from polyseme.nn.config import CharactersConfig, LstmConfig
from polyseme.text.vocabulary import Vocabulary

CHARACTERS = CharactersConfig(dim=4, filters=((1, 3), (2, 5)), highway_layers=2)
CONFIG = ElmoConfig(characters=CHARACTERS, dim=6, lstm=LstmConfig(cell_size=10, projection_size=6))
BOTH = CONFIG.replace(words=WordTableConfig(size=3, dim=4))
RULES = {
    "bilm": (CONFIG, weight_names.bilm_characters(CONFIG) + weight_names.bilm_lstm(CONFIG)),
    "allennlp": (CONFIG, weight_names.torch_words(weight_names.ALLENNLP, CONFIG, "a.") + weight_names.torch_lstm(CONFIG, "b.")),
    "manylangs": (BOTH, weight_names.torch_words(weight_names.MANYLANGS, BOTH) + weight_names.torch_lstm(BOTH)),
}


@pytest.mark.parametrize("name", RULES)
def test_there_and_back(name):
    _, mappings = RULES[name]
    generator = torch.Generator().manual_seed(3)
    foreign = {key: torch.randn(shape, generator=generator) for mapping in mappings for key, shape in mapping.foreign.items()}
    ours = to_polyseme(mappings, foreign.__getitem__)
    back = to_foreign(mappings, ours)
    assert back.keys() == foreign.keys()
    for key, value in foreign.items():
        torch.testing.assert_close(back[key], value, rtol=0, atol=1e-6)
        assert back[key].shape == value.shape


@pytest.mark.parametrize("name", RULES)
def test_the_rules_fill_a_model_exactly(name):
    config, mappings = RULES[name]
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>"]) if config.words else None
    state = Elmo(config, vocabulary=vocabulary).state_dict()
    assert sorted(state) == sorted(ours for mapping in mappings for ours in mapping.ours)
    for key, value in to_foreign(mappings, state).items():
        assert value.shape == next(mapping.foreign[key] for mapping in mappings if key in mapping.foreign)
