"""Draw the uses of an ambiguous word, layer by layer, in English and in Chinese.

`python -m scripts.draw_senses` writes, for each language, `docs/en/senses.svg` (the picture of the README, a panel for each
layer) and `docs/en/senses-moving.svg` (one panel, in which the uses glide from layer to layer). Both take the sample sentences
of the package, the layers of the shipped model, and `glide`, which projects every layer to a plane. Colours of Okabe and Ito,
and a shape for each sense, so that they can be read without colours. Who asks for less motion (`prefers-reduced-motion`) sees
the top layer, and the way to it as lines.
"""

from __future__ import annotations

from dataclasses import dataclass
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
LAYERS = {"en": ["layer 0: word alone", "layer 1", "layer 2"], "zh": ["第 0 层：词本身", "第 1 层", "第 2 层"]}

FONT_SIZE = 15
"""In a picture 6.4 inches wide: the labels can be read on a phone, where it is 360 pixels wide."""
SHAPES = {"o": '<circle r="9"/>', "^": '<path d="M0-10 10 8-10 8z"/>', "s": '<path d="M-8-8H8V8H-8z"/>'}
SECONDS, ROUNDS = 8, 3
"""The moving picture goes from layer 0 to the top this often, and then stays there: motion without an end distracts readers."""
MOVING = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 600 500" role="img" font-family="sans-serif" font-size="20">
<title>{title}</title>
<style>
.use {{ transform: translate(var(--x2), var(--y2)); animation: glide {seconds}s ease-in-out {rounds}; }}
@keyframes glide {{
  0%, 20% {{ transform: translate(var(--x0), var(--y0)); }}
  35%, 50% {{ transform: translate(var(--x1), var(--y1)); }}
  65%, 100% {{ transform: translate(var(--x2), var(--y2)); }}
}}
.way {{ opacity: 0; }}
.layer {{ opacity: 0; animation: {seconds}s linear {rounds}; }}
.layer0 {{ animation-name: first; }} .layer1 {{ animation-name: second; }} .layer2 {{ animation-name: third; opacity: 1; }}
@keyframes first {{ 0%, 22% {{ opacity: 1; }} 27%, 100% {{ opacity: 0; }} }}
@keyframes second {{ 0%, 27% {{ opacity: 0; }} 32%, 52% {{ opacity: 1; }} 57%, 100% {{ opacity: 0; }} }}
@keyframes third {{ 0%, 57% {{ opacity: 0; }} 62%, 100% {{ opacity: 1; }} }}
@media (prefers-reduced-motion: reduce) {{
  .use, .layer {{ animation: none; }}
  .way {{ opacity: 0.35; }}
}}
</style>
<rect width="600" height="500" rx="6" fill="white"/>
<rect x="10" y="45" width="580" height="400" fill="none" stroke="#666"/>
{parts}
</svg>
"""


@dataclass(frozen=True)
class Uses:
    """The uses of a word in the sample sentences: their sense, and their place in every layer, from -1 to 1."""

    senses: list[str]
    points: np.ndarray  # (layers, uses, 2)

    @property
    def styles(self) -> dict[str, tuple[str, str]]:
        """Colour and marker of each sense."""
        return dict(zip(dict.fromkeys(self.senses), STYLES, strict=False))


def uses_of(language: Language) -> Uses:
    chosen = [each for each in samples(language) if each.word == WORDS[language]]
    model = polyseme.load(language)
    stack = np.stack([_vectors(model, each.sentence, each.word) for each in chosen], axis=1)  # (layers, uses, dim)
    return Uses([each.sense for each in chosen], np.asarray(glide(stack)))


def label(language: Language, sense: str) -> str:
    return f"{WORDS[language]}: {SENSES.get(sense, sense)}"


def draw(language: Language, uses: Uses, path: Path) -> None:
    """A panel for each layer."""
    figure, axes = pyplot.subplots(1, len(uses.points), figsize=(6.4, 3), layout="constrained")
    for number, (panel, layer) in enumerate(zip(axes, uses.points, strict=True)):
        for sense, (colour, shape) in uses.styles.items():
            own = layer[[each == sense for each in uses.senses]]
            look = {"c": colour, "marker": shape, "s": 70, "alpha": 0.85, "linewidths": 0}
            panel.scatter(own[:, 0], own[:, 1], label=label(language, sense), **look)
        panel.set_title(LAYERS[language][number], fontsize=FONT_SIZE)
        panel.set(xticks=[], yticks=[], xlim=(-1.15, 1.15), ylim=(-1.15, 1.15))
    look = {"frameon": False, "fontsize": FONT_SIZE, "handletextpad": 0.1}
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, **look)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def draw_moving(language: Language, uses: Uses, path: Path) -> None:
    """One panel, in which the uses glide from layer to layer."""
    texts = LAYERS[language]
    parts = [f'<text class="layer layer{n}" x="300" y="30" text-anchor="middle">{text}</text>' for n, text in enumerate(texts)]
    places = np.round(np.array([300, 245]) + uses.points * np.array([240, -165]), 1)  # (layers, uses, 2), in pixels
    for sense, way in zip(uses.senses, places.transpose(1, 0, 2).tolist(), strict=True):
        corners = " ".join(f"{x},{y}" for x, y in way)
        parts.append(f'<polyline class="way" points="{corners}" fill="none" stroke="{uses.styles[sense][0]}"/>')
    for sense, way in zip(uses.senses, places.transpose(1, 0, 2).tolist(), strict=True):
        colour, marker = uses.styles[sense]
        moves = ";".join(f"--x{n}:{x}px;--y{n}:{y}px" for n, (x, y) in enumerate(way))
        parts.append(f'<g class="use" style="{moves}" fill="{colour}" fill-opacity="0.85">{SHAPES[marker]}</g>')
    for number, (sense, (colour, marker)) in enumerate(uses.styles.items()):
        x = 60 + 250 * number
        parts.append(f'<g transform="translate({x} 472)" fill="{colour}">{SHAPES[marker]}</g>')
        parts.append(f'<text x="{x + 20}" y="479">{label(language, sense)}</text>')
    title = {"en": f"Uses of the word {WORDS[language]}, layer by layer", "zh": f"“{WORDS[language]}”的各次出现，逐层显示"}
    path.write_text(
        MOVING.format(title=title[language], seconds=SECONDS, rounds=ROUNDS, parts="\n".join(parts)), encoding="utf-8"
    )


def _vectors(model: polyseme.Encoder, sentence: str, word: str) -> np.ndarray:
    """The layers of a word in its sentence (layers, dim)."""
    words = model.words(sentence)
    return np.asarray(model.embed([words])[0][:, words.index(word)])


if __name__ == "__main__":
    for each in WORDS:
        found = uses_of(each)
        draw(each, found, DOCS / each / "senses.svg")
        draw_moving(each, found, DOCS / each / "senses-moving.svg")
