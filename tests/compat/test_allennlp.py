"""AllenNLP's calls against the oracle: shapes, dtypes, masks, empty sentences, states, layer norms and gradients."""

from __future__ import annotations

import json

import h5py
import numpy as np
import pytest
import torch

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.compat.allennlp import (
    Elmo,
    ELMoCharacterMapper,
    ElmoEmbedder,
    ScalarMix,
    _ElmoBiLm,
    batch_to_ids,
    remove_sentence_boundaries,
)
from tests.compat.small_models import MORE, SENTENCES, SmallModel, bilm_model, close, padded
from tests.golden_path import golden
from tests.oracle.make import BilmSettings, allennlp_state
from tests.oracle.mix import layer_norm_mix, pad_batch
from tests.oracle.parts import byte_ids


def test_character_ids() -> None:
    ids = batch_to_ids([["é", "<S>", "y" * 60], []])
    assert ids.shape == (2, 3, 50)
    assert ids.dtype == torch.int64
    expected = [byte_ids(list(body), 50) for body in ("é".encode(), [256], b"y" * 60)]
    assert ids[0].tolist() == (np.array(expected) + 1).tolist()
    assert int(ids[1].sum()) == 0
    for word, row in zip(["é", "<S>", "y" * 60], ids[0].tolist(), strict=True):
        assert ELMoCharacterMapper.convert_word_to_char_ids(word) == ELMoCharacterMapper().convert_word_to_char_ids(word) == row


def test_layers_of_the_network_inside(small: SmallModel) -> None:
    """`_ElmoBiLm`, which programs for AllenNLP 2 used in place of `ElmoEmbedder`: with sentence ends, and without."""
    bilm = _ElmoBiLm(small.options, small.weights)
    sentences = [*SENTENCES, []]
    assert bilm.get_output_dim() == 16 and bilm.num_layers == 3
    found = bilm(batch_to_ids(sentences))
    whole = [small.oracle.embed_with_ends(words)[0] for words in sentences]
    close(torch.stack(found["activations"], 1), padded(whole))
    assert found["mask"].sum(1).tolist() == [len(words) + 2 for words in sentences]
    inside = [remove_sentence_boundaries(layer, found["mask"])[0] for layer in found["activations"]]
    close(torch.stack(inside, 1), padded([layers[:, 1:-1] for layers in whole]))
    _, mask = remove_sentence_boundaries(found["activations"][0], found["mask"].long())
    assert mask.sum(1).tolist() == [len(words) for words in sentences]


def test_state_goes_on_from_batch_to_batch(small: SmallModel) -> None:
    elmo = Elmo(small.options, small.weights, 2, dropout=0.0)
    batches = [SENTENCES, [["One", "row"]], [[], *MORE]]
    for batch, layers in zip(batches, small.oracle.embed_carry(batches), strict=True):
        found = elmo(batch_to_ids(batch))
        assert found["mask"].dtype == torch.bool
        assert found["mask"].sum(1).tolist() == [len(words) for words in batch]
        assert len(found["elmo_representations"]) == 2
        for mixed in found["elmo_representations"]:
            assert mixed.dtype == torch.float32
            close(mixed, padded(layers).mean(1))
    assert elmo.get_output_dim() == 16


def test_without_state_a_batch_is_the_same_again(small: SmallModel) -> None:
    elmo = Elmo(small.options, small.weights, 1, dropout=0.0, stateful=False)
    alone = padded([small.oracle.embed(words)[0] for words in SENTENCES]).mean(1)
    for _ in range(2):
        close(elmo(batch_to_ids(SENTENCES))["elmo_representations"][0], alone, atol=1e-5)


@pytest.mark.parametrize("sentences", [[[]], [[], []]])
def test_nothing_but_empty_sentences(small: SmallModel, sentences: list[list[str]]) -> None:
    elmo = Elmo(small.options, small.weights, 1, dropout=0.0)
    found = elmo(batch_to_ids(sentences))
    assert found["elmo_representations"][0].shape == (len(sentences), 0, 16) and found["mask"].shape == (len(sentences), 0)
    both = small.oracle.embed_carry([sentences, SENTENCES])[1]  # their ends were read
    close(elmo(batch_to_ids(SENTENCES))["elmo_representations"][0], padded(both).mean(1))


def test_more_leading_dimensions(small: SmallModel) -> None:
    elmo = Elmo(small.options, small.weights, 1, dropout=0.0)
    ids = batch_to_ids([*SENTENCES, *MORE])
    flat = Elmo(small.options, small.weights, 1, dropout=0.0)(ids)
    found = elmo(ids.view(2, 3, *ids.shape[1:]))
    assert found["mask"].shape == (2, 3, 6)
    assert torch.equal(found["elmo_representations"][0].flatten(0, 1), flat["elmo_representations"][0])


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("ends", [False, True])
def test_given_weights_boundaries_and_layer_norm(small: SmallModel, norm: bool, ends: bool) -> None:
    weights = [0.1, -0.4, 0.5]
    settings = {"do_layer_norm": norm, "keep_sentence_boundaries": ends, "scalar_mix_parameters": weights}
    elmo = Elmo(small.options, small.weights, 1, dropout=0.0, **settings)  # type: ignore[arg-type]
    assert not any(parameter.requires_grad for parameter in elmo.parameters())
    layers, mask = pad_batch([small.oracle.embed_with_ends(words)[0] for words in SENTENCES])
    found = elmo(batch_to_ids(SENTENCES))
    mixed = found["elmo_representations"][0].detach().numpy()
    if ends:
        assert found["mask"].numpy().tolist() == mask.tolist()
        mixed = mixed[:, 1:-1]
    expected = layer_norm_mix(layers, np.array(weights), 1.0, "allennlp" if norm else None, mask=mask)
    for row, vectors in zip(mixed, expected, strict=True):
        close(row[: len(vectors)], vectors)
        if not ends:
            assert not row[len(vectors) :].any()


def test_cached_words_give_the_same_vectors(small: SmallModel) -> None:
    words = ["<pad>", "the", "bank", "of", "river", "."]
    sentences = [["the", "river", "."], ["bank"], ["the", "bank", "of", "river"]]
    ids = torch.tensor([[words.index(word) for word in text] + [0] * (4 - len(text)) for text in sentences])
    cached = Elmo(small.options, small.weights, 1, dropout=0.0, vocab_to_cache=words)
    first, second = padded(small.oracle.embed_carry([sentences])[0]).mean(1), small.oracle.embed_carry([sentences] * 2)[1]
    found = cached(torch.zeros(3, 4, 50, dtype=torch.int64), ids)
    close(found["elmo_representations"][0], first)
    assert found["mask"].tolist() == (ids > 0).tolist()
    outside = ids.clone()
    outside[1, 0] = 99  # not in the cache: read the characters instead
    close(cached(batch_to_ids(sentences), outside)["elmo_representations"][0], padded(second).mean(1))


def test_gradients_reach_the_mix_and_the_model_if_asked(small: SmallModel) -> None:
    frozen = Elmo(small.options, small.weights, 1)
    frozen(batch_to_ids(SENTENCES))["elmo_representations"][0].sum().backward()
    assert {name for name, p in frozen.named_parameters() if p.grad is not None} == {
        "scalar_mix_0.gamma",
        *(f"scalar_mix_0.scalar_parameters.{layer}" for layer in range(3)),
    }
    tuned = Elmo(small.options, small.weights, 1, requires_grad=True)
    for _ in range(2):  # the state of the first batch has no gradients
        tuned(batch_to_ids(SENTENCES))["elmo_representations"][0].sum().backward()
    assert all(p.grad is not None and bool(p.grad.isfinite().all()) for p in tuned.parameters())


def test_dropout_is_behind_the_mix_and_only_in_training(small: SmallModel) -> None:
    elmo = Elmo(small.options, small.weights, 1, stateful=False)
    ids = batch_to_ids(SENTENCES)
    plain = elmo.eval()(ids)["elmo_representations"][0]
    dropped = elmo.train()(ids)["elmo_representations"][0]
    kept = dropped != 0
    assert 0.3 < float(kept[plain != 0].float().mean()) < 0.7
    assert torch.allclose(dropped[kept], 2 * plain[kept])


def test_a_module_of_ones_own() -> None:
    class Own(torch.nn.Module):
        num_layers = 2

        def get_output_dim(self) -> int:
            return 4

        def forward(self, inputs: torch.Tensor, word_inputs: object = None) -> dict[str, object]:
            steps = inputs.shape[1] + 2
            ones = torch.ones(len(inputs), steps, 4)
            return {"activations": [ones, 3 * ones], "mask": torch.ones(len(inputs), steps, dtype=torch.bool)}

    elmo = Elmo(None, None, 1, dropout=0.0, module=Own())
    close(elmo(batch_to_ids([["a", "b"]]))["elmo_representations"][0], np.full((1, 2, 4), 2.0))


def test_scalar_mix_of_any_shape() -> None:
    mix = ScalarMix(3, initial_scalar_parameters=[0.0, 1.0, 2.0])
    tensors = [torch.randn(2, 5, 7) for _ in range(3)]
    shares = np.exp([0, 1, 2]) / np.exp([0, 1, 2]).sum()
    close(mix(tensors), sum(share * each.numpy() for share, each in zip(shares, tensors, strict=True)), atol=1e-6)
    assert {name: tuple(p.shape) for name, p in mix.named_parameters()} == {
        "gamma": (1,),
        **{f"scalar_parameters.{layer}": (1,) for layer in range(3)},
    }


def test_embedder_carries_on_and_skips_an_empty_sentence(small: SmallModel) -> None:
    embedder = ElmoEmbedder(small.options, small.weights)
    sentence, other = SENTENCES[0], SENTENCES[1]
    expected = small.oracle.embed_carry([[sentence], [sentence], [other, []], [sentence, other]])
    close(embedder.embed_sentence(sentence), expected[0][0])
    empty = embedder.embed_sentence([])
    assert empty.shape == (3, 0, 16)
    assert empty.dtype == np.float32
    close(embedder.embed_sentence(sentence), expected[1][0])
    for got, layers in zip(embedder.embed_batch([other, []]), expected[2], strict=True):
        close(got, layers)
    vectors, mask = embedder.batch_to_embeddings([sentence, other])
    close(vectors, padded(expected[3]))
    assert mask.tolist() == [[1, 1, 1, 1], [1, 1, 0, 0]]


def test_embedder_reads_any_number_of_sentences_in_batches(small: SmallModel) -> None:
    sentences = [*SENTENCES, *MORE]
    expected = [layers for batch in small.oracle.embed_carry([sentences[:4], sentences[4:]]) for layers in batch]
    found = ElmoEmbedder(small.options, small.weights).embed_sentences(iter(sentences), batch_size=4)
    assert iter(found) is found
    for got, layers in zip(found, expected, strict=True):
        close(got, layers)


def test_embedder_writes_files(small: SmallModel, tmp_path) -> None:
    lines = [" ".join(words) for words in SENTENCES[:2]]
    expected = small.oracle.embed_carry([[line.split() for line in lines]])[0]
    for form, reduce in {"all": lambda x: x, "top": lambda x: x[-1], "average": lambda x: x.mean(0)}.items():
        out = tmp_path / f"{form}.hdf5"
        ElmoEmbedder(small.options, small.weights).embed_file(iter(line + "\n" for line in lines), out, form)
        with h5py.File(out) as file:
            assert set(file) == {"0", "1", "sentence_to_index"}
            assert json.loads(file["sentence_to_index"][0]) == {lines[0]: "0", lines[1]: "1"}
            for number, layers in enumerate(expected):
                close(file[str(number)][...], reduce(layers))
    embedder = ElmoEmbedder(small.options, small.weights)
    embedder.embed_file(lines, tmp_path / "keys.hdf5", use_sentence_keys=True)
    with h5py.File(tmp_path / "keys.hdf5") as file:
        assert set(file) == set(lines)
    with pytest.raises(PolysemeError, match="line 2 of the input is empty"):
        embedder.embed_file(["a", " "], tmp_path / "none.hdf5")
    assert not (tmp_path / "none.hdf5").exists()


def test_weights_that_allennlp_saved(small: SmallModel, tmp_path) -> None:
    """A network with an `Elmo` inside: its old file loads, with the fine-tuned weights, and so does its new one."""
    tuned = bilm_model(tmp_path, seed=7)
    state = {f"elmo.{name}": torch.from_numpy(array.copy()) for name, array in allennlp_state(BilmSettings(seed=7), 1).items()}
    network = torch.nn.ModuleDict({"elmo": Elmo(small.options, small.weights, 1, dropout=0.0)})
    assert str(network.load_state_dict(state)) == "<All keys matched successfully>"
    layers = padded(tuned.oracle.embed_carry([SENTENCES])[0])
    weights = np.array([float(state[f"elmo.scalar_mix_0.scalar_parameters.{layer}"]) for layer in range(3)])
    expected = float(state["elmo.scalar_mix_0.gamma"]) * np.einsum(
        "l,blwd->bwd", np.exp(weights) / np.exp(weights).sum(), layers
    )
    close(network["elmo"](batch_to_ids(SENTENCES))["elmo_representations"][0], expected)
    again = torch.nn.ModuleDict({"elmo": Elmo(small.options, small.weights, 1, dropout=0.0)})
    again.load_state_dict(network.state_dict())
    close(again["elmo"](batch_to_ids(SENTENCES))["elmo_representations"][0], expected)
    del state["elmo._elmo_lstm._token_embedder._projection.bias"]
    with pytest.raises(PolysemeError, match=r"the state dict: lacks the tensor _token_embedder\._projection\.bias"):
        network.load_state_dict(state)


def test_mistakes(small: SmallModel) -> None:
    elmo = Elmo(small.options, small.weights, 1)
    with pytest.raises(UsageError, match=r"12 characters per word; .* reads 50"):
        elmo(torch.ones(1, 2, 12, dtype=torch.int64))
    with pytest.raises(UsageError, match=r"padding .* between words"):
        elmo(torch.cat([batch_to_ids([["a"]]), torch.zeros(1, 1, 50, dtype=torch.int64), batch_to_ids([["b"]])], 1))
    with pytest.raises(UsageError, match="ids run from 300 to 300; allowed: 0 to 261"):
        elmo(torch.full((1, 2, 50), 300))
    with pytest.raises(UsageError, match="either options_file and weight_file, or module"):
        Elmo(small.options, small.weights, 1, module=torch.nn.Identity())


def test_published_vectors_of_allennlp() -> None:
    """Three lists of ten sentences, as ten batches of three, through `Elmo` and through `ElmoEmbedder`."""
    folder = golden("allennlp")
    lists = json.loads((folder / "sentences.json").read_text(encoding="utf-8"))
    batches = [[line.split() for line in batch] for batch in zip(*lists, strict=True)]
    files = (folder / "options.json", folder / "lm_weights.hdf5")
    embedder, elmo = ElmoEmbedder(*files), Elmo(*files, 1, dropout=0.0, scalar_mix_parameters=[-9e10, -9e10, 1.0])
    for number, batch in enumerate(batches):
        mixed = elmo(batch_to_ids(batch))["elmo_representations"][0].detach().numpy()
        for row, (layers, top) in enumerate(zip(embedder.embed_batch(batch), mixed, strict=True)):
            with h5py.File(folder / f"lm_embeddings_{row}.hdf5", "r") as file:
                expected = np.hstack(list(file[str(number)][...]))
            np.testing.assert_allclose(layers[-1], expected, atol=1e-6, rtol=1e-5)
            np.testing.assert_allclose(top[: len(expected)], expected, atol=1e-6, rtol=1e-5)
