"""Draw the picture of the README: the uses of an ambiguous word, layer by layer, in English and in Chinese.

`python -m scripts.draw_senses` writes `docs/en/senses.svg` and `docs/zh/senses.svg`: the sample sentences of the package,
the layers of the shipped model, and `glide`, which projects every layer to a plane. Colours of Okabe and Ito, and a shape for
each sense, so that it can be read without colours.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

import polyseme
from polyseme.analysis.plane import glide
from polyseme.analysis.samples import Language, samples

matplotlib.use("svg")
FONTS = ["Noto Sans CJK SC", "WenQuanYi Zen Hei", "DejaVu Sans"]
matplotlib.rcParams.update({"svg.hashsalt": "senses", "font.sans-serif": FONTS})

from matplotlib import pyplot  # noqa: E402

DOCS = Path(__file__).parents[1] / "docs"
STYLES = [("#0072B2", "o"), ("#D55E00", "^"), ("#009E73", "s")]
WORDS: dict[Language, str] = {"en": "bank", "zh": "苹果"}
SENSES = {"river": "by the river", "money": "with the money", "fruit": "水果", "company": "公司"}
LAYERS = {"en": ["layer 0: the word alone", "layer 1", "layer 2"], "zh": ["第 0 层：只看词本身", "第 1 层", "第 2 层"]}


def draw(language: Language) -> Path:
    chosen = [each for each in samples(language) if each.word == WORDS[language]]
    model = polyseme.load(language)
    stack = np.stack([_vectors(model, each.sentence, each.word) for each in chosen], axis=1)  # (layers, uses, dim)
    points = glide(stack)
    figure, axes = pyplot.subplots(1, len(points), figsize=(9, 3.1), layout="constrained")
    for number, (panel, layer) in enumerate(zip(axes, points, strict=True)):
        for (colour, shape), sense in zip(STYLES, dict.fromkeys(each.sense for each in chosen), strict=False):
            own = layer[[each.sense == sense for each in chosen]]
            label = f"{WORDS[language]}: {SENSES.get(sense, sense)}"
            panel.scatter(own[:, 0], own[:, 1], c=colour, marker=shape, s=70, alpha=0.85, linewidths=0, label=label)
        panel.set_title(LAYERS[language][number], fontsize=11)
        panel.set(xticks=[], yticks=[], xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False, fontsize=11)
    path = DOCS / language / "senses.svg"
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path


def _vectors(model: polyseme.Encoder, sentence: str, word: str) -> np.ndarray:
    """The layers of a word in its sentence (layers, dim)."""
    words = model.words(sentence)
    return np.asarray(model.embed([words])[0][:, words.index(word)])


if __name__ == "__main__":
    for each in WORDS:
        draw(each)
