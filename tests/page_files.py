"""The files that the pages of the documentation name: tiny models (`my-elmo`, `old-elmo`), a text and labelled data."""

from __future__ import annotations

import json
from pathlib import Path

from tests.oracle.make import VOCABULARY, write_bilm

TAGS = "Ann B-PER\nsaw O\nthe O\nSeine B-LOC\n\nMoney O\nhelps O\nAnn B-PER\n"
TEXTS = ["sentence\tlabel", *["a good bank\tgood"] * 3, *["a bad bank\tbad"] * 3]
PAIRS = ["sentence1\tsentence2\tlabel", *["a good bank\ta fine bank\tyes"] * 3, *["a bad bank\ta river\tno"] * 3]
REVIEWS = ["文本\t标签", "房间很干净，下次还来\t好评", "早餐也不错\t好评", "服务态度太差了\t差评", "房间又小又吵\t差评"]
PAGE = (
    "The river bank is a good place for a walk in the morning, when the water is calm and the birds come to drink. We sat "
    "there with our books and watched the boats that carry sand to the town. In the evening the bank was full of people, and a "
    "man who had lived near the river all his life told how the floods of his youth had changed the land around the old mill."
)
"""A page of a crawl: long enough for the rules of `corpus filter`."""
FILES = {
    "crawl/pages.jsonl": "".join(json.dumps({"text": page}) + "\n" for page in (PAGE, "Home | Menu | Log in")),
    "sentences.txt": "The bank of the river .\n\nMoney in the bank .\n",
    "train.conll": TAGS,
    "dev.conll": TAGS,
    "train.tsv": "\n".join(TEXTS) + "\n",
    "dev.tsv": "\n".join(TEXTS) + "\n",
    "pairs.tsv": "\n".join(PAIRS) + "\n",
    "reviews.tsv": "\n".join(REVIEWS) + "\n",
}


CHINESE = {"sentences.txt": "银行提高了贷款利率。\n河岸边的银行今天不开门。\n他去银行存钱。\n我们在河边散步。\n"}
"""Of the Chinese pages."""


def make_files(folder: Path, page: Path | None = None) -> None:
    """Write them into a folder, for a page of either language."""
    for model in ("my-elmo", "old-elmo"):
        write_bilm(folder / model, vocabulary=list(VOCABULARY), softmax=True)
    for name, text in (FILES | (CHINESE if page is not None and "zh" in page.parts else {})).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
