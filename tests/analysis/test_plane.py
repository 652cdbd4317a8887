"""Points on a plane and groups, beside plain NumPy: principal components, rotations, clusters, labels."""

from __future__ import annotations

import numpy as np
import pytest

from polyseme.analysis.index import Index
from polyseme.analysis.plane import aligned, clusters, common_words, glide, labels, principal, silhouette
from polyseme.analysis.sense_map import LayerStack, find_uses, indexed_uses, search_mix, sense_map
from tests.encoders.small import elmo

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("shape", [(40, 6), (6, 40)])
def test_principal_components_are_those_of_the_svd(shape: tuple[int, int]) -> None:
    rows = RANDOM.normal(size=shape)
    centred = rows - rows.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ axes[:2].T
    found = principal(rows)
    signs = np.sign((found * expected).sum(0))
    assert np.allclose(found, expected * signs)
    assert (found[np.abs(found).argmax(0), [0, 1]] > 0).all()
    assert principal(np.ones((3, 4))).tolist() == [[0.0, 0.0]] * 3  # a static layer: all uses in one place
    assert principal(np.ones((1, 4))).tolist() == [[0.0, 0.0]]


def test_alignment_is_the_best_rotation_or_reflection() -> None:
    points, others = RANDOM.normal(size=(30, 2)), RANDOM.normal(size=(30, 2))
    found = aligned(points, others)
    assert np.allclose(np.linalg.norm(found, axis=1), np.linalg.norm(points, axis=1))
    angles = np.linspace(0, 2 * np.pi, 3600)
    turns = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    turns += [turn @ np.diag([1.0, -1.0]) for turn in turns]
    best = min(np.square(points @ turn - others).sum() for turn in turns)
    assert np.square(found - others).sum() <= best + 1e-9


def test_a_layer_that_is_turned_does_not_move() -> None:
    top = RANDOM.normal(size=(20, 8))
    turn = np.linalg.qr(RANDOM.normal(size=(8, 8)))[0]
    points = glide(np.stack([np.ones((20, 8)), top @ turn, top]))
    assert np.allclose(points[1], points[2], atol=1e-5)
    assert np.allclose(points[0], 0.0, atol=1e-5)
    assert np.linalg.norm(points, axis=-1).max() == pytest.approx(1.0)


def test_clusters_find_groups_and_are_the_same_again() -> None:
    centres = np.eye(8)[:3] * 5
    truth = np.repeat([0, 1, 2], [30, 20, 10])
    rows = centres[truth] + RANDOM.normal(scale=0.3, size=(60, 8))
    order = RANDOM.permutation(60)
    found = clusters(rows[order])
    assert found.tolist() == truth[order].tolist()  # the largest is 0
    assert clusters(rows[order]).tolist() == found.tolist()
    assert clusters(rows, 2).max() == 1
    assert clusters(np.ones((12, 4))).tolist() == [0] * 12
    assert clusters(np.ones((1, 4)), 5).tolist() == [0]


def test_silhouette_by_its_definition() -> None:
    points, groups = RANDOM.normal(size=(12, 3)), np.array([0, 1, 2] * 3 + [0, 0, 3])
    values = []
    for at in range(12):
        means = {
            name: np.mean([np.linalg.norm(points[at] - points[o]) for o in range(12) if groups[o] == name and o != at] or [0])
            for name in range(4)
        }
        own = means.pop(int(groups[at]))
        values.append(0.0 if groups[at] == 3 else (min(means.values()) - own) / max(min(means.values()), own))
    distances = np.linalg.norm(points[:, None] - points, axis=-1)
    assert silhouette(distances, groups) == pytest.approx(np.mean(values))


def test_labels_are_words_of_one_group() -> None:
    sentences = ["the river bank was green", "a river bank", "the money bank was open", "a money bank"]
    words = [each.split() for each in sentences]
    positions = [each.index("bank") for each in words]
    found = labels(words, positions, np.array([0, 0, 1, 1]), common=common_words(words, 0.6, least=1), count=1)
    assert found == [["river"], ["money"]]


def test_the_map_of_an_index_and_of_a_text_are_the_same() -> None:
    model = elmo()
    sentences = [["They", "sat", "on", "the", "bank"], ["Money", "in", "the", "Bank", "bank"], ["A", "river"]]
    layers = LayerStack(1 << 20)
    index = Index.build(model, sentences, keep_stack=layers.add)
    assert layers.stack is not None and layers.stack.shape == (model.layers, 12, model.dim)
    uses, rows = indexed_uses(index, "BANK")
    assert (uses.positions, uses.total) == ([4, 3, 4], 3) and find_uses(sentences, "bank") == uses
    expected = np.stack([model.embed([words])[0][:, at] for words, at in zip(uses.sentences, uses.positions, strict=True)], 1)
    assert np.allclose(layers.stack[:, rows], expected, atol=2e-3)
    drawn = sense_map(uses, layers.stack[:, rows]).to_json()
    assert len(drawn["points"]) == model.layers and len(drawn["clusters"]) == 3
    assert sum(group["uses"] for group in drawn["groups"]) == 3
    top = search_mix(layers.stack, [0.0] * (model.layers - 1) + [1.0], expected[-1, 0], 1, np.ones(12, dtype=bool))
    assert top.rows.tolist() == [4] and top.cosines[0] == pytest.approx(1.0, abs=1e-3)
    small = LayerStack(10)
    Index.build(model, sentences, keep_stack=small.add)
    assert small.stack is None
