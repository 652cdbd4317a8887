"""Vectors as points on a plane, and groups among them: principal components, aligned from layer to layer; clusters.

Everything here is deterministic: the same vectors give the same picture. PCA was chosen over t-SNE and UMAP because distances
keep a meaning, nothing is random, and two layers of the same points can be aligned by a rotation (orthogonal Procrustes), so
that a point which moves between layers has moved in the model, too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.analysis.search import normalised
from polyseme.nn.matmul import array_matmul
from polyseme.nn.threads import intra_op_threads

MAX_CLUSTERS = 8
_REDUCED = 16  # dimensions in which k-means works; more only add noise
_ITERATIONS = 30
_REACH, _FEW = 10, 40  # words around a use; uses of a group in which one occurrence of a word may label it
_JUDGED = 400  # points that Ward's method merges, and by which numbers of clusters are compared
_CLEAR, _BETTER = 0.05, 0.01  # silhouette of a clear grouping, and how much better a larger number must be


def principal(vectors: NDArray[np.floating], dims: int = 2) -> NDArray[np.float64]:
    """Return the first principal components of vectors (rows, dim), (rows, dims); zeros where there are fewer.

    An axis points to the side of its largest absolute value.

    >>> principal(np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 0.0]]), 1).ravel().tolist()
    [-1.0, 2.0, -1.0]
    """
    rows = torch.from_numpy(np.array(vectors, dtype=np.float64))
    centred = rows.sub_(rows.mean(0))
    found = np.zeros((len(rows), dims))
    # one thread: those of a BLAS spend a hundred times as long in waiting for each other, where other programs run
    with torch.inference_mode(), intra_op_threads(1):
        if rows.shape[0] > rows.shape[1]:
            values, axes = torch.linalg.eigh(centred.T @ centred)
            axes = axes[:, -dims:].flip(1)
            points = (centred @ axes).numpy()
        else:
            values, axes = torch.linalg.eigh(centred @ centred.T)
            points = (axes * values.clamp(min=0.0).sqrt())[:, -dims:].flip(1).numpy()
    points = np.where(values.numpy()[::-1][: points.shape[1]] > 1e-9 * max(len(rows), 1), points, 0.0)
    largest = points[np.abs(points).round(9).argmax(0), np.arange(points.shape[1])]
    found[:, : points.shape[1]] = points * np.where(largest < 0, -1.0, 1.0)
    return found


def aligned(points: NDArray[np.float64], to: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotate and reflect points (rows, 2) so that they are nearest to others (orthogonal Procrustes)."""
    left, _, right = np.linalg.svd(points.T @ to)
    return points @ (left @ right)


def glide(stack: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the points of each layer (layers, rows, 2) of vectors (layers, rows, dim), each layer aligned to the one above.

    Vectors count by their direction, as cosines do. The scale is the same for all layers: the farthest point has radius 1.
    """
    layers = [principal(normalised(layer.astype(np.float32))) for layer in stack]
    for number in range(len(layers) - 2, -1, -1):
        layers[number] = aligned(layers[number], layers[number + 1])
    points = np.stack(layers)
    radius = float(np.sqrt(np.square(points).sum(-1)).max(initial=0.0))
    return points / radius if radius > 0 else points


def clusters(vectors: NDArray[np.floating], count: int | None = None) -> NDArray[np.int64]:
    """Group vectors (rows, dim); return the group of each, (rows,), the largest group first.

    Ward's method on evenly chosen rows gives the centres with which k-means begins on all. `count` None: the number from 2 to 8
    with the best silhouette, or one group if none is clear.
    """
    points = principal(normalised(np.asarray(vectors, dtype=np.float32)), min(_REDUCED, vectors.shape[1]))
    judged = np.linspace(0, len(points) - 1, min(_JUDGED, len(points))).round().astype(int)
    most = len(np.unique(points[judged].round(6), axis=0))
    with intra_op_threads(1):
        squares = _squared_distances(points[judged], points[judged])
        if count is not None:
            return _by_size(_k_means(points, _ward(points[judged], squares, [min(count, most)])[min(count, most)]))
        best, groups, distances = _CLEAR, np.zeros(len(points), dtype=np.int64), np.sqrt(squares)
        numbers = range(2, min(MAX_CLUSTERS, most - 1, len(points) // 3) + 1)
        for centres in _ward(points[judged], squares, numbers).values():
            found = _k_means(points, centres)
            score = silhouette(distances, found[judged])
            if score > best + _BETTER:
                best, groups = score, found
    return _by_size(groups)


def _ward(points: NDArray[np.float64], squares: NDArray[np.float64], counts: Sequence[int]) -> dict[int, NDArray[np.float64]]:
    """Merge the two groups whose union adds least to the squared distances, again and again; return centres by number.

    `squares`: the squared distances of the points.
    """
    if not counts:
        return {}
    centres, sizes, found = points.copy(), np.ones(len(points)), dict[int, NDArray[np.float64]]()
    costs = squares / 2
    np.fill_diagonal(costs, np.inf)
    partner = costs.argmin(1)  # of each group, the cheapest other
    least = costs.min(1)
    for left in range(len(points), min(counts) - 1, -1):
        if left in counts:
            found[left] = centres[sizes > 0].copy()
        if left == 1:
            break
        one = int(least.argmin())
        one, two = sorted((one, int(partner[one])))
        total = sizes[one] + sizes[two]
        centres[one] = (sizes[one] * centres[one] + sizes[two] * centres[two]) / total
        sizes[one], sizes[two] = total, 0.0
        cost = np.square(centres - centres[one]).sum(1) * sizes * total / (sizes + total)
        cost[(sizes == 0) | (np.arange(len(points)) == one)] = np.inf
        costs[one], costs[:, one], costs[two], costs[:, two] = cost, cost, np.inf, np.inf
        changed = np.flatnonzero((partner == one) | (partner == two) | (cost < least))
        changed = np.append(changed, (one, two))
        partner[changed], least[changed] = costs[changed].argmin(1), costs[changed].min(1)
    return dict(sorted(found.items()))


def _k_means(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.int64]:
    groups = np.full(len(points), -1, dtype=np.int64)
    for _ in range(_ITERATIONS):
        now = _squared_distances(points, centres).argmin(1)
        if np.array_equal(now, groups):
            break
        groups = now
        members = (now == np.arange(len(centres))[:, None]).astype(np.float64)  # (centres, points)
        sizes = members.sum(1, keepdims=True)
        centres = np.where(sizes > 0, array_matmul(members, points) / np.maximum(sizes, 1), centres)
    return groups


def _squared_distances(points: NDArray[np.float64], centres: NDArray[np.float64]) -> NDArray[np.float64]:
    """(points, centres)."""
    squares = np.square(points).sum(1)[:, None] + np.square(centres).sum(1) - 2 * array_matmul(points, centres.T)
    return np.clip(squares, 0.0, None)


def silhouette(distances: NDArray[np.float64], groups: NDArray[np.int64]) -> float:
    """Return the mean silhouette (Rousseeuw 1987) by the distances of all pairs of points (points, points).

    It is near 1 where groups are apart, near 0 where they touch.
    """
    names = np.unique(groups)
    if len(names) < 2:
        return 0.0
    members = np.stack([groups == name for name in names])  # (groups, points)
    sums, sizes = array_matmul(distances, members.T.astype(np.float64)), members.sum(1)
    own = members.T
    inside = sums[own] / np.maximum(sizes[own.argmax(1)] - 1, 1)
    outside = np.where(own, np.inf, sums / sizes).min(1)
    values = (outside - inside) / np.maximum(np.maximum(inside, outside), 1e-12)
    return float(np.where(sizes[own.argmax(1)] > 1, values, 0.0).mean())


def _by_size(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    names, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    order = np.lexsort((first, -sizes))
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return rank[np.searchsorted(names, groups)]


def labels(
    sentences: Sequence[Sequence[str]],
    positions: Sequence[int],
    groups: NDArray[np.int64],
    *,
    common: Collection[str] = (),
    count: int = 3,
) -> list[list[str]]:
    """Return for each group the words that stand around its uses and not around those of others, best first.

    A word counts once a use, within some words of it. It is ranked by its uses in the group times the log of how much more
    frequent it is there than in the other groups, and then by its distance. `common` words, in lower case, label nothing.
    """
    names = range(int(groups.max(initial=-1)) + 1)
    near: list[dict[str, list[int]]] = [{} for _ in names]  # of each group: words, and how far they are from each use
    for words, place, group in zip(sentences, positions, groups.tolist(), strict=True):
        for word, distance in _around(words, place).items():
            if word not in common:
                near[group].setdefault(word, []).append(distance)
    sizes = [int((groups == name).sum()) for name in names]
    return [_distinct(near, sizes, name, count) for name in names]


def _around(words: Sequence[str], place: int) -> dict[str, int]:
    """Words near a place, in lower case, and how far they are from it."""
    own, found = words[place].casefold(), dict[str, int]()
    for at in range(max(place - _REACH, 0), min(place + _REACH + 1, len(words))):
        word = words[at].casefold()
        if word != own and any(map(str.isalpha, word)):
            found[word] = min(abs(at - place), found.get(word, _REACH))
    return found


def _distinct(near: Sequence[dict[str, list[int]]], sizes: Sequence[int], name: int, count: int) -> list[str]:
    others, scores = sum(sizes) - sizes[name], []
    for word, distances in near[name].items():
        uses, elsewhere = len(distances), sum(len(each.get(word, ())) for each in near) - len(distances)
        ratio = (uses + 0.5) / (sizes[name] + 1) / ((elsewhere + 0.5) / (others + 1))
        if ratio > 1 and uses >= (2 if sizes[name] > _FEW else 1):
            scores.append((-uses * math.log(ratio), min(distances), word))
    return [word for *_, word in sorted(scores)[:count]]


def common_words(sentences: Iterable[Sequence[str]], share: float = 0.02, least: int = 6) -> set[str]:
    """Return the words, in lower case, that are in more than a share of all sentences, and in more than `least`.

    >>> common_words([["The", "cat"], ["the", "dog"], ["a", "bird"]], share=0.5, least=1)
    {'the'}
    """
    counts, number = dict[str, int](), 0
    for words in sentences:
        number += 1
        for word in {word.casefold() for word in words}:
            counts[word] = counts.get(word, 0) + 1
    return {word for word, found in counts.items() if found > max(share * number, least)}
