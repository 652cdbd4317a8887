"""The card of a run: unfinished on the way, whole at the end, and never written twice."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from polyseme.base.run import Run
from polyseme.pretraining import job
from polyseme.pretraining.card import UNFINISHED, CardData, write_finished
from polyseme.pretraining.elmo import ElmoObjective
from polyseme.pretraining.elmo_config import ElmoPretraining
from polyseme.text.corpus import Corpus
from polyseme.training.config import TrainConfig
from polyseme.training.trainer import TrainOutput

CONFIG = ElmoPretraining(size="tiny", vocabulary_size=50, batch_words=200, bptt=5, train=TrainConfig(epochs=2.0))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    folder = tmp_path / "private" / "my texts"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("the cat sat on the mat .\na dog saw it .\n" * 150, encoding="utf-8")
    return Corpus(folder, splitter="whitespace", sentences="lines", workers=0)


def rows(card: str) -> dict[str, str]:
    cells = [line.strip("| ").split(" | ", 1) for line in card.splitlines() if line.startswith("| ") and " | " in line[2:]]
    return {pair[0]: pair[1] for pair in cells if len(pair) == 2}


def test_a_finished_run(corpus: Corpus, tmp_path: Path) -> None:
    result = CONFIG.fit(corpus, Run(seed=3), tmp_path / "model")
    path = tmp_path / "model" / "README.md"
    card = path.read_text(encoding="utf-8")
    found = rows(card)
    assert found["text"] == "my texts" and "private" not in card and str(tmp_path) not in card
    assert found["words of text"] == f"{12 * 150:,}" and found["sentences of text"] == "300"
    assert found["distinct words of text"] == "10"
    assert found["steps"] == f"{result.steps:,}" and found["words seen"] == f"{result.words:,}"
    assert float(found["epochs"]) == pytest.approx(2.0, abs=0.1) and found["ended by"] == "budget"
    assert "size=tiny" in found["options"] and "optimizer=adamw" in found["options"] and "seed=3" in found["options"]
    assert torch.__version__ in found["machine"] and "1 process" in found["machine"]
    assert found["date"][:2] == "20" and found["training time"].endswith((" s", " min"))
    perplexity = result.scores
    assert f"Perplexity {perplexity['perplexity']:,.2f} (forward {perplexity['forward']:,.2f}" in card
    assert "by the full softmax over the vocabulary, on 30 held-out sentences" in card
    assert result.baselines is not None and f"Beside counted models of the same text: {result.lines()[-1]}." in card
    assert UNFINISHED not in card and card.startswith("---\nlibrary_name: polyseme\n")

    path.write_text(card + "\nOur own words.\n", encoding="utf-8")
    again = CONFIG.fit(corpus, Run(seed=3), tmp_path / "model")
    assert again.steps == result.steps and path.read_text(encoding="utf-8").endswith("Our own words.\n")


@pytest.mark.slow
def test_on_the_way(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best model so far says that there is more to come; a kill before the last card is mended by the next call."""
    seen = []
    save = ElmoObjective.save

    def watched(self: ElmoObjective, folder: Path) -> None:
        save(self, folder)
        seen.append((folder / "README.md").read_text(encoding="utf-8"))

    def killed(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ElmoObjective, "save", watched)
    with monkeypatch.context() as patch:
        patch.setattr(job, "write_finished", killed)
        with pytest.raises(KeyboardInterrupt):
            CONFIG.fit(corpus, Run(), tmp_path / "model")
    assert seen and all(UNFINISHED in card and "Perplexity" not in card for card in seen)
    assert rows(seen[0])["words of text"] == "1,800"
    path = tmp_path / "model" / "README.md"
    assert UNFINISHED in path.read_text(encoding="utf-8")
    CONFIG.fit(corpus, Run(), tmp_path / "model")
    assert UNFINISHED not in path.read_text(encoding="utf-8") and "Perplexity" in path.read_text(encoding="utf-8")


def card_data(**changes: object) -> CardData:
    facts: dict[str, object] = {"title": "m", "model": {}, "text": {}, "options": {}, "run": Run(), "words_per_epoch": 10}
    return CardData(**{**facts, "held_out": 1, **changes})  # type: ignore[arg-type]


def test_stopped_runs_and_odd_names(tmp_path: Path) -> None:
    stopped = TrainOutput(tmp_path, 5, 10, 1.0, None, None, {}, ended=None, stopped_by="SIGINT")
    write_finished(tmp_path, card_data(), stopped)
    assert not (tmp_path / "README.md").exists()
    odd = card_data(title="a|b", text={"text": ("x|y\nz", "w")}, options={"a": None, "b": {"c": 1}})
    card = odd.finished(TrainOutput(tmp_path, 5, 15, 1.0, None, None, {}, ended="patience"))
    assert "| text | x\\|y z, w |" in card and "| options | b.c=1 |" in card and "| epochs | 1.5 |" in card
    assert "Perplexity" not in card
    assert "4 processes" in card_data(run=Run(world_size=4)).finished(
        TrainOutput(tmp_path, 5, 15, 1.0, None, None, {}, ended="budget")
    )
