"""A first look at polyseme, in a minute and without a download: `make demo`.

Builds a tiny ELMo with random weights in the published bilm-tf format, then does with it what one does with a real one: look at
it, embed sentences, convert it, check it. Random weights know no meanings, but the mechanics are all there: the vector
of *bank* depends on its sentence from layer 1 on.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import torch
from typer.testing import CliRunner

import polyseme
from polyseme.cli.app import app
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.formats import bilm
from polyseme.nn.char_cnn import CharactersConfig
from polyseme.nn.lstm import LstmConfig
from polyseme.nn.output import FullSoftmax
from polyseme.text.vocabulary import Vocabulary

SENTENCES = [
    "We sat on the bank of the river and watched the boats .",
    "She put the money into the bank on Monday .",
]


def say(line: str = "") -> None:
    sys.stdout.write(f"{line}\n")


def build(folder: Path) -> None:
    """A tiny random model as bilm-tf would have written it."""
    torch.manual_seed(0)
    words = sorted({word for sentence in SENTENCES for word in sentence.split()})
    vocabulary = Vocabulary(["<S>", "</S>", "<UNK>", *words])
    config = ElmoConfig(
        characters=CharactersConfig(filters=((1, 8), (2, 16), (3, 32)), highways=1),
        dim=32,
        lstm=LstmConfig(dim=64, projection=32),
    )
    model = Elmo(config, vocabulary=vocabulary, output=FullSoftmax(len(vocabulary), 32))
    bilm.write(model.eval(), folder)


def command(*words: str) -> None:
    """Show a command and what it prints."""
    shown = " ".join(f'"{word}"' if " " in word else word for word in words)
    say(f"\n$ polyseme {shown}")
    result = CliRunner().invoke(app, list(words))
    say(result.output.rstrip())
    if result.exit_code:
        raise SystemExit(f"the demo failed at: polyseme {shown} ({result.exception})")


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def main() -> None:
    home = Path("build/demo")
    shutil.rmtree(home, ignore_errors=True)
    tiny, ours = str(home / "tiny-elmo"), str(home / "converted")
    say(f"A tiny ELMo with random weights, in the published bilm-tf format: {tiny}")
    build(Path(tiny))
    command("info", tiny)
    command("embed", SENTENCES[0], "--model", tiny, "--layers", "top")
    command("substitutes", SENTENCES[0], "--word", "bank", "--model", tiny, "--count", "3")
    command("convert", tiny, ours)
    command("verify", ours)

    say("\nThe same word in two sentences, layer by layer (cosine):")
    model = polyseme.load(ours)
    river, money = model.embed(SENTENCES)
    places = [sentence.split().index("bank") for sentence in SENTENCES]
    for layer in range(model.layers):
        value = cosine(river[layer, places[0]], money[layer, places[1]])
        say(f"  layer {layer}: {value:.3f}" + ("   (its own vector: no context yet)" if layer == 0 else ""))
    say("\nWith a published model instead of random weights, layers 1 and 2 tell the river from the money.")
    say("See README.md for where to find one and what else to do with it.")


if __name__ == "__main__":
    main()
