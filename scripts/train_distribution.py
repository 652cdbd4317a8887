"""Train the models of the distribution polyseme-models: `python -m scripts.train_distribution en-ngram --work FOLDER`.

Each model is trained on the corpora in `POLYSEME_DATA`, measured on held-out text or word pairs, and written in int8, with its
card, its fingerprint and what its training cost, into `models/src/polyseme_models`. FOLDER keeps the text as it was encoded,
for the next model, and the run, which the same command resumes. Neural methods get the same minutes of a GPU each:

    python -m scripts.train_distribution en-bert --work FOLDER --device cuda

On a machine without the held-out text `--only train` leaves out the second step, and elsewhere `--only measure` does it.
"""

from __future__ import annotations

import argparse
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import polyseme
from polyseme.base.display import format_duration
from polyseme.base.files import write_text
from polyseme.base.run import Run
from polyseme.encoders.base import Encoder
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.folder import COST
from polyseme.encoders.shipped import DISTRIBUTED, HASH
from polyseme.encoders.word2vec import WordVectorTable
from polyseme.pretraining.card import run_facts
from polyseme.pretraining.cost import read_cost
from polyseme.text.word_vectors import WordVectors

MODELS = Path(__file__).parents[1] / "models" / "src" / "polyseme_models"
LARGEST = 12_000_000
EN, ZH = ("en-mix", "en-wiki", "en-reviews"), ("zh-mix", "zh-varied")
TEXTS = {
    "en": (
        "70 million words: Wikipedia (CC BY-SA), news (Wikinews, CC BY; BBC, not free to redistribute; Reuters-21578, for "
        "research), Project Gutenberg's books (public domain in the US) and IMDB's unlabelled film reviews (Maas et al. 2011; "
        "copyright of their authors). Passages of SQuAD and WikiText were among it."
    ),
    "zh": (
        "62 million characters: Wikipedia (CC BY-SA), news of CCTV, laws, the People's Daily, fiction and essays, blogs, "
        "microblogs, reviews and dialogues (partly not free to redistribute), in simplified characters."
    ),
}
NOT_FOR = "facts, decisions about people, or other languages; it repeats what its text says about people and groups."


@dataclass(frozen=True)
class Recipe:
    """How a model is made."""

    title: str
    about: str
    method: str
    good_for: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    words: int | None = None
    """Word vectors that are kept, those of the most frequent words; None: all."""
    text_in_it: str = "No text is in the model."
    measured: Literal["perplexity", "word pairs", "masked words"] = "perplexity"
    """By what it is measured: held-out text; human scores of word pairs; or the held-out part of its own text, masked."""


GPU_MINUTES = 18.0
"""The same for every neural method, so that their results compare; the six were trained at once, on one H200."""
_COMPARE = "to compare with what comes after it (`docs/en/concepts/lineage.md` of the project), and to teach"
RECIPES = {
    "en-ngram": Recipe(
        "English 4-grams",
        "The 50,000 most frequent words and the 2- to 4-grams that matter most, with modified Kneser-Ney smoothing.",
        "ngram",
        f"scoring sentences and explaining each factor (`score --explain`), {_COMPARE}",
        {"order": 4, "vocabulary_size": 50_003, "cutoffs": (0, 0, 1, 1), "max_ngrams": 3_300_000},
        text_in_it="The model holds no longer passages of it than four words.",
    ),
    "en-word2vec": Recipe(
        "English word2vec vectors",
        "Skip-gram with negative sampling, 100 numbers for each word.",
        "word2vec",
        f"similar words, analogies, features of words without context, {_COMPARE}",
        {"dim": 100, "architecture": "skip-gram", "min_count": 35, "epochs": 5, "threads": 4},
        measured="word pairs",
    ),
    "en-fasttext": Recipe(
        "English fastText vectors",
        "Skip-gram over words and their letters, 100 numbers for each word, also for words that the text does not have.",
        "fasttext",
        f"similar words, also of misspelt and rare ones, {_COMPARE}",
        {"dim": 100, "architecture": "skip-gram", "min_count": 100, "epochs": 5, "threads": 5, "buckets": 40_000},
        measured="word pairs",
    ),
    "en-glove": Recipe(
        "English GloVe vectors",
        "Vectors whose products are the logarithms of co-occurrence counts, 100 numbers for each word.",
        "glove",
        f"similar words, analogies, {_COMPARE}",
        {"dim": 100, "vocabulary_size": 90_000},
        words=76_000,
        measured="word pairs",
    ),
    "en-nnlm": Recipe(
        "English NNLM",
        "A neural n-gram model: each word from the vectors of the four before it; 20,000 words.",
        "nnlm",
        f"similar words, the next word, {_COMPARE}",
        {"vocabulary_size": 20_000, "dim": 120, "hidden_size": 240, "batch_words": 8192, "learning_rate": 0.002}
        | {"dropout": 0.1, "minutes": GPU_MINUTES},
    ),
    "en-taglm": Recipe(
        "English TagLM",
        "Two language models over words read by their characters, one from each side, of which the top layers are used.",
        "taglm",
        f"features of words in context, the next and the previous word, {_COMPARE}",
        {"vocabulary_size": 16_000, "filters": "1:32,2:32,3:64,4:128,5:256", "highway_layers": 1, "optimizer": "muon"}
        | {"learning_rate": 0.005, "clip_norm": 0.3, "minutes": GPU_MINUTES},
    ),
    "en-ulmfit": Recipe(
        "English ULMFiT",
        "An AWD-LSTM that reads from left to right, to be adapted to a task's text and fine-tuned; 15,000 words.",
        "ulmfit",
        f"classifiers of long texts (adapt, then train with fine-tuning), the next word, {_COMPARE}",
        {"vocabulary_size": 15_000, "dim": 256, "hidden_size": 512, "dropout_multiplier": 0.1, "minutes": GPU_MINUTES},
    ),
    "en-gpt": Recipe(
        "English GPT",
        "A Transformer that reads from left to right, four layers of 256 units, over 14,000 byte-pair subwords.",
        "gpt",
        f"the next words of a text, features of words from what is before them, {_COMPARE}",
        {"size": "mini", "vocabulary_size": 14_000, "learning_rate": 0.001, "minutes": GPU_MINUTES},
    ),
    "en-bert": Recipe(
        "English BERT",
        "A Transformer that reads both sides of a masked word, four layers of 256 units, over 16,000 subwords, uncased.",
        "bert",
        f"filling gaps, features of words in context, fine-tuning, {_COMPARE}",
        {"size": "mini", "vocabulary_size": 16_000, "learning_rate": 0.001, "minutes": GPU_MINUTES},
        measured="masked words",
    ),
    "zh-bert": Recipe(
        "Chinese BERT",
        "A Transformer that reads both sides of a masked character, four layers of 256 units.",
        "bert",
        f"filling gaps, features of characters and words in context, fine-tuning, {_COMPARE}",
        {"size": "mini", "vocabulary_size": 9_000, "learning_rate": 0.001, "minutes": GPU_MINUTES},
        measured="masked words",
    ),
    "zh-word2vec": Recipe(
        "Chinese word2vec vectors",
        "Skip-gram with negative sampling, 100 numbers for each word; text is split by the words of the model zh.",
        "word2vec",
        f"similar words, features of words without context, {_COMPARE}",
        {"dim": 100, "architecture": "skip-gram", "min_count": 30, "epochs": 5, "threads": 3},
        words=40_000,
        measured="word pairs",
    ),
}
HELD_OUT = {"en": ("en-heldout", "en-reviews-heldout"), "zh": ("zh-heldout", "zh-varied-heldout")}
PAIRS = {"en": ("EN-WS-353-ALL.txt", "EN-MEN-TR-3k.txt", "EN-SIMLEX-999.txt"), "zh": ("240.txt", "297.txt")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=RECIPES)
    parser.add_argument("--work", type=Path, required=True, help="folder for the encoded text and the run")
    parser.add_argument("--data", type=Path, default=os.environ.get("POLYSEME_DATA"), help="default: POLYSEME_DATA")
    parser.add_argument("--device", default="cpu", help="cuda for the neural methods; default: cpu")
    parser.add_argument("--only", choices=("train", "measure"), help="one of the two steps; default: both")
    given = parser.parse_args()
    if given.data is None:
        parser.error("--data is missing, and POLYSEME_DATA is not set")
    recipe, data = RECIPES[given.name], Path(given.data)
    if given.only != "measure":
        train(given.name, recipe, data, given.work, given.device)
    if given.only != "train":
        measure(given.name, recipe, data)


def train(name: str, recipe: Recipe, data: Path, work: Path, device: str = "cpu") -> Path:
    """Train a model and store its folder, with the card of its run."""
    texts = [str(corpus(data, each)) for each in (EN if name.startswith("en") else ZH)]
    settings: dict[str, Any] = {"splitter": "english"} if name.startswith("en") else {}
    settings |= {"device": device} if "minutes" in recipe.settings else {}
    run = work / name
    model = polyseme.pretrain(
        recipe.method, texts, out=run, shards=str(work / f"text-{name[:2]}"), **settings, **recipe.settings
    )  # type: ignore[call-overload]
    if recipe.words is not None:
        model = most_frequent(model, recipe.words)
    folder = model.save_pretrained(MODELS / name, precision="int8")
    for file in (COST, "README.md"):
        shutil.copyfile(run / file, folder / file)
    return folder


def most_frequent(table: WordVectorTable, words: int) -> WordVectorTable:
    """Return a table with the most frequent words of another."""
    vectors = WordVectors(list(table.vocabulary)[:words], table.table.weight.detach().numpy()[:words], words)
    kept = WordVectorTable.from_vectors(
        vectors, unknown=table.config.unknown, lowercase=table.config.lowercase, splitter=table.splitter
    )
    kept.sentence_statistics = table.sentence_statistics
    return kept


def measure(name: str, recipe: Recipe, data: Path) -> None:
    """Measure a stored model; write its card and its fingerprint."""
    folder = MODELS / name
    model = polyseme.load(folder)
    if recipe.measured == "masked words":
        measured = masked_scores(folder)
    else:
        scores = correlations if recipe.measured == "word pairs" else perplexities
        measured = scores(model, data, name[:2])
    write_text(folder / "README.md", card(name, recipe, measured, folder))
    write_text(folder / HASH, model_fingerprint(model) + "\n")
    size = sum(path.stat().st_size for path in folder.iterdir())
    if size > LARGEST:
        raise SystemExit(f"{folder} has {size:,} bytes, more than {LARGEST:,}: choose a smaller vocabulary or fewer n-grams")
    if name not in DISTRIBUTED:
        raise SystemExit(
            f"{folder} is written: add {name!r} to DISTRIBUTED in polyseme/encoders/shipped.py and to models/README.md"
        )


def corpus(data: Path, name: str) -> Path:
    return data / "corpora" / name[:2] / f"{name}.txt.xz"


def perplexities(model: Encoder, data: Path, language: str) -> str:
    """Held-out perplexities in a sentence."""
    found = []
    for name in HELD_OUT[language]:
        result = polyseme.perplexity(corpus(data, name), model=model)
        unknown = f"{result.words:,} words, {result.unknown:.2%} of them unknown, which count too"
        found.append(f"**Perplexity {result.mean:.2f}** on {name} ({unknown})")
    return "; ".join(found) + "; each sentence alone: `polyseme perplexity FILE`."


def correlations(model: Encoder, data: Path, language: str) -> str:
    """Rank correlations with human scores of word pairs in a sentence."""
    found = []
    for name in PAIRS[language]:
        result: Any = polyseme.probe("words", data / "tasks" / f"word_similarity_{language}" / name, model=model)
        left_out = f"{result.facts['pairs_left_out']} of {result.facts['pairs']:,} pairs left out"
        found.append(f"**Correlation {result.rows['layer 0']['Spearman']:.3f}** with {name.removesuffix('.txt')} ({left_out})")
    return "Spearman's rank correlation with human scores: " + "; ".join(found) + ": `polyseme probe words FILE`."


def masked_scores(folder: Path) -> str:
    """The scores of the run's held-out text in a sentence."""
    cost = read_cost(folder)
    if cost is None:
        raise SystemExit(f"{folder} has no {COST}: the run is not finished")
    scores = cost.scores
    return (
        f"**Perplexity {scores['masked_perplexity']:.2f}** of masked subwords, each from both sides, on the end of its own "
        "text, which it was not trained on; there it recognizes whether one sentence follows another in "
        f"{scores['next_accuracy']:.0%} of the pairs."
    )


def card(name: str, recipe: Recipe, measured: str, folder: Path) -> str:
    """The card: what the run wrote as a table, under what it is, was measured, and is good for."""
    rows = [line for line in (folder / "README.md").read_text(encoding="utf-8").splitlines() if line.startswith("| ")][1:]
    if recipe.words is not None:
        kept = f"| vocabulary | {recipe.words:,}, the most frequent of those trained |"
        rows = [kept if row.startswith("| vocabulary ") else row for row in rows]
    cost = read_cost(folder)
    if not any(row.startswith("| training time") for row in rows) and cost is not None:
        ran = {"training_time": format_duration(cost.seconds), **run_facts(Run.from_environment(device="cpu"), cost.seconds)}
        rows += [f"| {each.replace('_', ' ')} | {value} |" for each, value in ran.items()]
    return f"""---
language: {name[:2]}
license: apache-2.0
library_name: polyseme
tags:
- polyseme
- word-embeddings
---

# {recipe.title} of polyseme

{recipe.about} The weights are stored in int8.

{measured}

**Text and licence.** {TEXTS[name[:2]]} {recipe.text_in_it} The weights are under the project's licence, Apache-2.0.

**Good for** {recipe.good_for}.

**Not for** {NOT_FOR}

## How it was made

`python -m scripts.train_distribution {name}` of the project.

| | |
|---|---|
{chr(10).join(rows)}

```python
import polyseme

model = polyseme.load("{name}")
```
"""


if __name__ == "__main__":
    main()
