"""The scalar mix of layers for a batch, with the two published layer norms.

Both norms take one mean and one variance per layer over all real elements of the whole batch. They differ in what is
real: bilm-tf removes the sentence ends first (epsilon 1e-12), AllenNLP counts them (epsilon 1e-13).
"""

import numpy as np

from .parts import Array

EPSILON = {"bilm": 1e-12, "allennlp": 1e-13}


def pad_batch(sentences: list[Array], fill: float = 0.0) -> tuple[Array, Array]:
    """Sentences (L, n + 2, W), with ends, to layers (batch, L, longest, W) and mask (batch, longest)."""
    longest = max(sentence.shape[1] for sentence in sentences)
    count, _, width = sentences[0].shape
    layers = np.full((len(sentences), count, longest, width), fill)
    mask = np.zeros((len(sentences), longest), dtype=bool)
    for row, sentence in enumerate(sentences):
        layers[row, :, : sentence.shape[1]] = sentence
        mask[row, : sentence.shape[1]] = True
    return layers, mask


def inner_mask(mask: Array) -> Array:
    """The mask without each row's first and last real position, which are the sentence ends."""
    inner = mask.copy()
    for row in inner:
        real = np.flatnonzero(row)
        row[[real[0], real[-1]]] = False
    return inner


def layer_norm_mix(
    layers: Array, weights: Array, gamma: float, norm: str | None = None, *, mask: Array, top_only: bool = False
) -> list[Array]:
    """gamma * sum of softmax(weights)[l] * layer l, for each sentence (n, W) without its ends.

    Needs `layers` (batch, L, longest, W) and `mask` (batch, longest), both with the sentence ends (see `pad_batch`).
    `norm` is None, "bilm" or "allennlp". `top_only` gives gamma * top layer, never normalised.
    """
    inner = inner_mask(mask)
    if top_only:
        mixed = layers[:, -1]
    else:
        share = np.exp(weights - np.max(weights))
        share = share / share.sum()
        mixed = np.zeros_like(layers[:, 0])
        for index in range(layers.shape[1]):
            layer = layers[:, index]  # (batch, longest, W)
            if norm is not None:
                real = layer[inner if norm == "bilm" else mask]  # (real positions, W)
                layer = (layer - real.mean()) / np.sqrt(real.var() + EPSILON[norm])
            mixed = mixed + share[index] * layer
    return [gamma * row[keep] for row, keep in zip(mixed, inner, strict=True)]
