"""What networks read: own words and encoders' layers, frozen or learning, at each position."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES
from polyseme.tasks.config import FeaturesConfig, TaskWordConfig
from polyseme.tasks.data import ExampleBatches, TaskData
from polyseme.tasks.features import BPTT, Features, split_encoders
from polyseme.tasks.word_embeddings import WordEmbeddings
from polyseme.training.optim import build_optimizer, set_learning_rate
from polyseme.training.optim_config import OptimConfig
from tests.encoders.small import LSTM
from tests.encoders.small import elmo as small

TEXTS = [["The", "bank"], ["A", "river", "bank", "."], []]
OWN = TaskWordConfig(dim=5, characters=None, word_dropout=0.0)


def encoder(seed: int = 0) -> Elmo:
    torch.manual_seed(seed)
    return Elmo(SIZES["tiny"].replace(start="learned")).eval()


def features(*encoders: Elmo, **options: object) -> Features:
    torch.manual_seed(1)
    config = FeaturesConfig(**{"words": OWN, "dropout": 0.0, "norm": "none", **options})
    return Features(config, WordEmbeddings.of(OWN, TEXTS), encoders).eval()


def test_own_words_alone() -> None:
    made = features()
    found = made(made.prepare(TEXTS))
    assert found.at_input.shape == (3, 4, 5) == (3, 4, made.width("input"))
    assert not found.at_input[2].any() and not found.at_input[0, 2:].any()
    assert found.between is None and found.at_output is None and made.penalty() == 0


def test_an_even_mix_stands_beside_the_own_words_at_each_position() -> None:
    elmo = encoder()
    made = features(elmo, positions=("input", "between", "output"))
    found = made(made.prepare(TEXTS))
    mean = torch.from_numpy(elmo.embed([TEXTS[1]])[0]).mean(0)
    torch.testing.assert_close(found.at_input[1, :, 5:], mean)
    torch.testing.assert_close(found.between[1], mean)
    torch.testing.assert_close(found.at_output[1], mean)
    assert [made.width(position) for position in ("input", "between", "output")] == [5 + elmo.dim, elmo.dim, elmo.dim]


def test_layers_are_made_alike_in_size_before_they_are_mixed() -> None:
    elmo = encoder()
    layers = torch.from_numpy(elmo.embed([TEXTS[1]])[0])
    even = torch.stack(
        [(layer - layer.mean(1, keepdim=True)) / layer.var(1, keepdim=True, correction=0).add(1e-5).sqrt() for layer in layers]
    )
    made = features(elmo, norm=FeaturesConfig().norm)
    torch.testing.assert_close(made(made.prepare(TEXTS)).at_input[1, :, 5:], even.mean(0))
    assert not torch.allclose(even.mean(0), layers.mean(0), atol=0.1)


def test_all_layers_side_by_side() -> None:
    elmo = encoder()
    made = features(elmo, layers="all", positions=("input", "output"))
    assert made.width("output") == 3 * elmo.dim and made.width("input") == 5 + 3 * elmo.dim
    with torch.no_grad():
        for number, mix in enumerate(made.mixes["output"]):
            mix.gamma.fill_(number + 1.0)
    found = made(made.prepare(TEXTS))
    for number, layer in enumerate(elmo.embed([TEXTS[1]])[0]):
        columns = slice(number * elmo.dim, (number + 1) * elmo.dim)
        torch.testing.assert_close(found.at_output[1, :, columns], (number + 1.0) * torch.from_numpy(layer))
        torch.testing.assert_close(found.at_input[1, :, 5:][:, columns], torch.from_numpy(layer))
    scaled = (
        features(elmo, layers="all", norm="words")(made.prepare(TEXTS)).at_input[1, :, 5:].detach().unflatten(1, (3, elmo.dim))
    )
    torch.testing.assert_close(scaled.std(2, correction=0), torch.ones(len(TEXTS[1]), 3), atol=1e-2, rtol=0)


def test_the_top_layer_alone() -> None:
    elmo = encoder()
    made = features(elmo, layers="top")
    top = torch.from_numpy(elmo.embed([TEXTS[1]], layers="top")[0])
    torch.testing.assert_close(made(made.prepare(TEXTS)).at_input[1, :, 5:], top)


def test_two_encoders_stand_side_by_side() -> None:
    first, second = encoder(0), encoder(5)
    made = features(first, second)
    found = made(made.prepare(TEXTS)).at_input[1, :, 5:]
    torch.testing.assert_close(found[:, : first.dim], torch.from_numpy(first.embed([TEXTS[1]])[0]).mean(0))
    torch.testing.assert_close(found[:, first.dim :], torch.from_numpy(second.embed([TEXTS[1]])[0]).mean(0))


def test_cached_layers_are_taken(tmp_path: Path) -> None:
    made = features(encoder())
    data = TaskData(TEXTS, [[text] for text in TEXTS])
    data.cache(made, tmp_path)
    some = data.gather([1, 0])
    assert some.cached is not None
    fresh, cached = made(made.prepare(some.texts[0])), made(made.prepare(some.texts[0], some.cached[0]))
    torch.testing.assert_close(fresh.at_input, cached.at_input, atol=2e-3, rtol=0)


def test_a_frozen_encoder_is_no_part_of_the_weights_but_moves_along() -> None:
    elmo = encoder()
    made = features(elmo)
    assert not any("tuned" in name for name in made.state_dict()) and not any("encoders" in name for name in made.state_dict())
    made.double()
    assert all(weight.dtype == torch.float64 for weight in elmo.parameters())
    made.train()
    assert not elmo.training


def test_a_tuned_encoder_gets_gradients() -> None:
    made = features(encoder(), mode="finetune").train()
    made(made.prepare(TEXTS)).at_input.square().sum().backward()
    weights = [weight for name, weight in made.named_parameters() if name.startswith("tuned.")]
    assert weights and all(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in weights)


def test_the_gradients_of_a_tuned_elmo_flow_through_so_many_words() -> None:
    """What it reads is the same: only the weights' gradients differ, and on long texts alone."""
    tuned, whole = features(encoder(), mode="finetune"), encoder().requires_grad_()
    for words, same in ((BPTT // 2, True), (2 * BPTT, False)):
        text = [[f"w{number}" for number in range(words)]]
        grads = []
        for model in (tuned.tuned[0], whole):
            states = model(model.prepare(text)).states  # type: ignore[operator]
            (grad,) = torch.autograd.grad(states.square().sum(), model.contextualizer.forward_layers[0].recurrent_weight)  # type: ignore[union-attr]
            grads.append((states.detach(), grad))
        torch.testing.assert_close(grads[0][0], grads[1][0])
        assert torch.allclose(grads[0][1], grads[1][1], rtol=1e-4, atol=1e-5) == same


@pytest.mark.parametrize("tied", [False, True])
def test_a_tuned_encoder_has_no_weights_that_nothing_reads(tied: bool) -> None:
    """Several processes would wait for their gradients for ever."""
    made = small(form="words" if tied else "characters", output=not tied)
    if tied:
        assert made.config.words is not None
        made.config = made.config.replace(words=made.config.words.replace(dim=made.config.output))
        made.tokens.words = torch.nn.Embedding(made.config.words.size, made.config.output)
        made.tie_output()
    tuned = features(made, mode="finetune").tuned[0]
    learning = {name for name, weight in tuned.named_parameters() if weight.requires_grad}
    assert learning == {name for name, _ in tuned.named_parameters() if not name.startswith("output.")}
    assert ("tokens.words.weight" in learning) is tied


INSIDE = {
    "tokens": "tokens.projection.weight",
    "layer1": "lstm.forward_layers.0",
    "layer2": "lstm.backward_layers.1",
    "start": "learned.cell",
}


def rates(done: float, **options: object) -> dict[str, float]:
    """Of the parts of a fine-tuned encoder, when the run's rate is 1 and so much of it is done."""
    made = features(encoder(), mode="finetune", **options)
    optimizer = build_optimizer(OptimConfig(learning_rate=1.0), made, made.lr_multipliers(""))
    set_learning_rate(optimizer, 1.0, done)
    found = {name: group["lr"] for group in optimizer.param_groups for name in group["names"]}
    assert found["words.table.weight"] == 1.0
    by_part = {
        part: {rate for name, rate in found.items() if name.startswith(f"tuned.0.{path}")} for part, path in INSIDE.items()
    }
    assert all(len(each) <= 1 for each in by_part.values())
    return {part: each.pop() for part, each in by_part.items() if each}


@pytest.mark.parametrize(
    ("unfreeze", "trained"), [("all", set(INSIDE)), ("gradual", set(INSIDE)), ("top", {"start", "layer2"})]
)
def test_gradients_end_at_parts_that_never_train(unfreeze: str, trained: set[str]) -> None:
    """Parts that start later have gradients from the first step on: several processes must agree on what is averaged."""
    made = features(encoder(), mode="finetune", unfreeze=unfreeze).train()
    made(made.prepare(TEXTS)).at_input.square().sum().backward()
    groups = made.tuned[0].layer_groups()  # type: ignore[operator]
    found = {name: {weight.grad is not None for weight in group.parameters()} for name, group in groups.items()}
    assert found == {name: {name in trained} for name in INSIDE}


def test_a_part_whose_time_never_comes_is_frozen() -> None:
    """Gradual unfreezing reaches ten of eleven layers, from the top down."""
    deep = small(lstm=LSTM.replace(layers=11))
    groups = features(deep, mode="finetune", unfreeze="gradual").tuned[0].layer_groups()  # type: ignore[operator]
    frozen = [name for name, group in groups.items() if not any(weight.requires_grad for weight in group.parameters())]
    assert frozen == ["tokens", "layer1"] and len(groups) == 12


def test_parts_move_at_their_pace() -> None:
    assert rates(0.0) == dict.fromkeys(INSIDE, 0.03)
    slower = {"start": 0.03, "layer2": 0.03, "layer1": 0.015, "tokens": 0.0075}
    assert rates(0.0, layer_decay=2.0) == pytest.approx(slower)
    assert rates(0.99, unfreeze="top") == {"start": 0.03, "layer2": 0.03}


def test_parts_thaw_one_by_one() -> None:
    moving = [{part for part, rate in rates(done, unfreeze="gradual").items() if rate} for done in (0.0, 0.15, 0.25)]
    assert moving == [{"start", "layer2"}, {"start", "layer2", "layer1"}, set(INSIDE)]


def test_refusals() -> None:
    with pytest.raises(ConfigError, match="positions"):
        FeaturesConfig(positions=("input", "input"))
    with pytest.raises(ConfigError, match="norm"):
        FeaturesConfig(norm="allennlp")
    assert split_encoders([]) == (None, [])
    assert math.isinf(max(rule.start for rule in features(encoder(), mode="finetune", unfreeze="top").lr_multipliers("")))


def test_batches_cover_each_epoch_and_can_be_taken_up_anywhere() -> None:
    data = TaskData(list(range(23)), [[["w"] * (number % 7)] for number in range(23)])
    batches = ExampleBatches(data, size=5, seed=3)
    stream = iter(batches)
    first = [next(stream).examples for _ in range(batches.batches_per_epoch)]
    assert sorted(row for rows in first for row in rows) == list(range(23))
    position = batches.position()
    following = [next(stream).examples for _ in range(3)]
    again = ExampleBatches(data, size=5, seed=3)
    again.seek(position)
    taken_up = iter(again)
    assert [next(taken_up).examples for _ in range(3)] == following
    shares = [ExampleBatches(data, size=5, seed=3, rank=rank, world_size=2).plan(0) for rank in (0, 1)]
    assert len(shares[0]) == len(shares[1]) and {int(row) for share in shares for rows in share for row in rows} == set(
        range(23)
    )
