"""The same word in different sentences has different neighbours, in English and in Chinese.

Looks at sentences that come with the package, by the two models that come with it: no download, no text of your own. For each
sentence the nearest words in their sentences, and below them the nearest by the word's own vector, which knows no sentence.
"""

from __future__ import annotations

import sys

from typer.testing import CliRunner

from polyseme.cli.app import app

QUESTIONS = [
    ("en", "play", "The coach praised the defender for a fine play late in the game."),
    ("en", "play", "His second play opened in London and ran for two hundred nights."),
    ("en", "bank", "The boat was tied to a tree on the bank of the river."),
    ("en", "bank", "The bank raised interest on loans to small companies."),
    ("zh", "包袱", "相声演员抖了一个包袱，观众哈哈大笑。"),
    ("zh", "包袱", "她提着沉甸甸的包袱，跟着商队翻过了山。"),
    ("zh", "苹果", "集市上的苹果又红又大，每斤卖三元。"),
    ("zh", "苹果", "苹果公布了新款手机和电脑的销量。"),
]


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")


def command(*words: str) -> None:
    """Show a command and what it prints."""
    shown = " ".join(f'"{word}"' if " " in word or not word.isascii() else word for word in words)
    say(f"\n$ polyseme {shown}")
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, list(words))
    say(result.output.rstrip())
    if result.exit_code:
        raise SystemExit(f"the demo failed at: polyseme {shown} ({result.exception})")


def main() -> None:
    for model, word, sentence in QUESTIONS:
        command("neighbours", sentence, "--word", word, "--model", model, "--count", "4")
    say("\nAnd how well all 36 words of the sample sentences part company, layer by layer:")
    command("probe", "samples", "--model", "en")
    command("probe", "samples", "--model", "zh")
    say("\nWhat the language models inside expect:")
    command("substitutes", "We sat on the bank of the river and watched the boats.", "--word", "bank", "--count", "5")
    command("score", "今天是周日。", "今天周日是。", "--model", "zh")


if __name__ == "__main__":
    main()
