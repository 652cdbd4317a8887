"""Neighbours of ambiguous words in different sentences, in English and in Chinese.

Uses the two models and the sample sentences of the package: no download, no text of your own. For each sentence it shows the
nearest words in context and, below them, the nearest words by the static vector, which does not depend on the sentence.
"""

from __future__ import annotations

import shlex
import sys

from polyseme.__main__ import main as polyseme

COMMANDS = [
    'neighbours "The coach praised the defender for a fine play late in the game." --word play --count 4',
    'neighbours "His second play opened in London and ran for two hundred nights." --word play --count 4',
    'neighbours "The boat was tied to a tree on the bank of the river." --word bank --count 4',
    'neighbours "The bank raised interest on loans to small companies." --word bank --count 4',
    'neighbours "相声演员抖了一个包袱，观众哈哈大笑。" --word "包袱" --model zh --count 4',
    'neighbours "她提着沉甸甸的包袱，跟着商队翻过了山。" --word "包袱" --model zh --count 4',
    'neighbours "集市上的苹果又红又大，每斤卖三元。" --word "苹果" --model zh --count 4',
    'neighbours "苹果公布了新款手机和电脑的销量。" --word "苹果" --model zh --count 4',
    "# How often the nearest other use of a word has the same sense, for all 36 words of the sample sentences, by layer",
    "probe samples --model en",
    "probe samples --model zh",
    "# What the language models predict",
    'substitutes "We sat on the bank of the river and watched the boats." --word bank --count 5',
    'score "今天是周日。" "今天周日是。" --model zh',
]


def main() -> None:
    for command in COMMANDS:
        comment = command.startswith("#")
        sys.stdout.write(f"\n{command}\n" if comment else f"\n$ polyseme {command}\n")
        if not comment and (code := polyseme(shlex.split(command))):
            raise SystemExit(code)


if __name__ == "__main__":
    main()
