"""Measure the statistics that `encode` needs on text, and write them into a model folder (`sentence.safetensors`).

    python -m scripts.sentence_statistics my-model text.txt more.txt.xz

`pretrain` and `adapt` do the same at their end. This is for folders that are older, and for the shipped models:

    python -m scripts.sentence_statistics src/polyseme/models/en en-mix.txt.xz en-wiki.txt.xz
    python -m scripts.sentence_statistics src/polyseme/models/zh zh-mix.txt.xz

Paragraphs are drawn at random, the same ones every time, in proportion to the sizes of the files.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import polyseme
from polyseme.encoders.sentence_vectors import FILE, SentenceStatistics
from polyseme.text.files.lines import file_lines
from polyseme.text.script import ScriptProfile
from polyseme.text.sentences import SentenceSplitter


def sample(texts: list[Path], count: int = 4000) -> list[str]:
    """Draw sentences from files of paragraphs: as many paragraphs as sentences are wanted, and of each a sentence."""
    draw = random.Random(0)
    kept: list[str] = []
    seen = 0
    for line in (line for text in texts for line in file_lines(text)):
        if not line.strip():
            continue
        seen += 1
        if len(kept) < count:
            kept.append(line)
        elif (place := draw.randrange(seen)) < count:  # reservoir sampling: every paragraph has the same chance
            kept[place] = line
    chinese = ScriptProfile.of("\n".join(kept[:100])).is_chinese
    split = SentenceSplitter("chinese" if chinese else "english")
    return [draw.choice(split(line)) for line in kept]


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the statistics of a model's text into its folder.")
    parser.add_argument("folder", type=Path, help="a polyseme model folder")
    parser.add_argument("texts", type=Path, nargs="+", help="text, one paragraph per line")
    given = parser.parse_args()
    model = polyseme.Encoder.from_pretrained(given.folder)
    SentenceStatistics.fit(model, [model.words(text) for text in sample(given.texts)]).save(given.folder)
    sys.stdout.write(f"{given.folder / FILE}: {(given.folder / FILE).stat().st_size:,} bytes\n")


if __name__ == "__main__":
    main()
