"""Draw the figures of the Chinese results pages: `python -m scripts.draw_results`.

The English figures are those that `polyseme ... --plot` writes. The Chinese ones show the same numbers, read from the tables of
the Chinese pages, whose headers are the labels. Text stays text in the files, so the reader's browser draws it in its own font.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib import pyplot, rc_context

PAGES = Path(__file__).parents[1] / "docs" / "zh" / "results"
FONTS = ["PingFang SC", "Microsoft YaHei", "Noto Sans CJK SC", "DejaVu Sans"]
STYLE: Any = {"svg.fonttype": "none", "svg.hashsalt": "results", "font.sans-serif": FONTS, "font.size": 12}
BAR, BEST, LINE, TEXT = "#9fb8cc", "#2f6690", "#b5543a", "#333333"
STYLES = [("#0072B2", "o", "-"), ("#D55E00", "^", "--"), ("#009E73", "s", ":")]
LAYERS = {  # figure: table of models.md that has its numbers, row, title
    "ewt.svg": (1, 0, "词性：25,094 个词的准确率，%"),
    "senses.svg": (2, 0, "词义：1,952 个词的准确率，%"),
    "wic.svg": (3, 1, "词义是否相同：1,400 对的准确率，%"),
    "zh-ud.svg": (4, 0, "中文词性：准确率，%"),
    "resume.svg": (4, 2, "中文命名实体：F1，%"),
}
CHANCE = {"wic.svg": ("随机猜测", 50.0)}

Table = list[list[str]]


def tables(page: str) -> list[Table]:
    """Return the tables of a page, header first, without the line below it and without bold type."""
    found: list[Table] = [[]]
    for line in (PAGES / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            found[-1].append([cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")])
        elif found[-1]:
            found.append([])
    return [[table[0], *table[2:]] for table in found if table]


def table_with(page: str, header: str) -> Table:
    """Return the table of a page whose first cell or row name is `header`."""
    for table in tables(page):
        if header in (table[0][0], *(row[0] for row in table[1:])):
            return table
    raise SystemExit(f"no table of {page} has a row or a first cell {header!r}")


def number(cell: str) -> float:
    """Read the first number of a cell, such as `**96.42** ± 0.13`, `1,460` or `5%`."""
    match = re.search(r"\d[\d,]*(?:\.\d+)?", cell)
    return float(match[0].replace(",", "")) if match else float("nan")


def draw_layers(name: str, table: Table, row: int, title: str) -> None:
    """One bar for each layer; the baseline, where the first column is one, as a line."""
    values = dict(zip(table[0][1:], map(number, table[row + 1][1:]), strict=True))
    baseline, height = CHANCE[name] if name in CHANCE else (next(iter(values)), values.pop(next(iter(values))))
    figure, axes = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
    colours = [BEST if value == max(values.values()) else BAR for value in values.values()]
    bars = axes.bar(list(values), list(values.values()), color=colours, width=0.65)
    axes.bar_label(bars, labels=[f"{value:.1f}" for value in values.values()], padding=3, color=TEXT)
    axes.axhline(height, color=LINE, linestyle="--", label=f"{baseline}：{height:.1f}", zorder=3)
    low = min(*values.values(), height)
    start = 0 if low < 40 else low // 5 * 5 - 5
    axes.set_ylim(start, max(values.values()) + 3)
    axes.set_title(title + (f"（纵轴从 {start:.0f} 开始）" if start else ""), loc="left", fontsize=13, color=TEXT)
    save(figure, axes, name)


def draw_curve(name: str) -> None:
    """F1 by the share of the training data."""
    header, *rows = table_with("tasks.md", "训练数据的比例")
    figure, axes = pyplot.subplots(figsize=(6.4, 4.4), layout="constrained")
    for column, (colour, marker, dash) in enumerate(STYLES, start=1):
        values = [number(row[column]) for row in rows]
        label = "无编码器" if header[column] == "none" else header[column]
        axes.plot([number(row[0]) for row in rows], values, color=colour, marker=marker, linestyle=dash, label=label)
    axes.set_xscale("log")
    axes.set_xticks([number(row[0]) for row in rows], [row[0] for row in rows])
    axes.minorticks_off()
    axes.set_xlabel("训练数据的比例")
    axes.set_title("CoNLL-2003 命名实体：测试集 F1，%", loc="left", fontsize=13, color=TEXT)
    save(figure, axes, name)


def draw_cost(name: str) -> None:
    """A line for each method, with its time of pre-training, and a panel for each task; fine-tuned models are hollow."""
    seconds = {
        row[0].removeprefix("en-").casefold(): row[1]
        for key in ("en-ngram", "en-word2vec")
        for row in table_with("lineage.md", key)[1:]
    }
    seconds |= {"elmo": seconds["taglm"], "n 元语法（4）": seconds["ngram"]}
    header, none, *frozen = table_with("lineage.md", "编码器")
    places = {row[0]: -place for place, row in enumerate(frozen)}
    tuned = table_with("lineage.md", "微调")[1:]
    figure, panels = pyplot.subplots(1, len(header) - 1, figsize=(9.6, 4.8), layout="constrained", sharey=True)
    for column, axes in enumerate(panels, start=1):
        axes.axvline(number(none[column]), color=LINE, linestyle="--", label="不用编码器")
        for rows, face, edge, marker, label in ((frozen, BEST, BEST, "o", "冻结"), (tuned, "white", "#D55E00", "D", "微调")):
            scores = [number(row[column]) for row in rows]
            heights = [places[row[0]] for row in rows]
            axes.scatter(scores, heights, s=48, facecolor=face, edgecolor=edge, marker=marker, label=label, zorder=3)
        axes.set_title(f"{header[column]}，%", loc="left", fontsize=13, color=TEXT)
        axes.set_yticks(list(places.values()), [f"{method}（{seconds[method.casefold()]} 秒）" for method in places])
        plain(axes, "x")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    write(figure, name)


def save(figure: Any, axes: Any, name: str) -> None:
    figure.legend(loc="outside lower left", frameon=False, ncols=3)
    plain(axes, "y")
    write(figure, name)


def plain(axes: Any, grid: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)


def write(figure: Any, name: str) -> None:
    figure.savefig(PAGES / name, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    found = tables("models.md")
    with rc_context(STYLE):
        for name, (position, row, title) in LAYERS.items():
            draw_layers(name, found[position], row, title)
        draw_curve("curve-ner.svg")
        draw_cost("lineage-cost.svg")


if __name__ == "__main__":
    main()
