"""The explorer's files over HTTP, and what the page asks of the service."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import polyseme
from polyseme.serve import page_files
from polyseme.serve.models import ServedModels
from polyseme.serve.runs import runs_in
from tests.serve.small_service import client, searchable, tiny_models

PAGE = page_files.files("polyseme.serve") / "page"
UNSAFE = re.compile(r"https?://(?!www\.w3\.org/)|innerHTML|insertAdjacentHTML|document\.write|\beval\(")


@pytest.fixture(scope="module")
def models() -> ServedModels:
    return searchable(tiny_models())


@pytest.fixture(scope="module")
def service(models: ServedModels) -> Iterator[TestClient]:
    with client(models) as made:
        yield made


def test_the_page_has_a_strict_policy_and_no_inline_code(service: TestClient) -> None:
    answer = service.get("/")
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert not re.search(r"<script(?![^>]*src=)|<style|\son\w+=|\sstyle=|https?://", answer.text)
    again = service.get("/", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304 and not again.content


def test_every_file_is_served_and_names_no_other_address(service: TestClient) -> None:
    names = [name for name, _ in page_files._files(PAGE)]
    assert {"main.js", "style.css", "views/sentence.js"} <= set(names)
    for name in names:
        answer = service.get(f"/page/{name}")
        assert answer.status_code == 200 and "content-security-policy" in answer.headers
        assert answer.headers["content-type"].split(";")[0] in ("text/html", "text/javascript", "text/css", "image/svg+xml")
        assert not re.search(
            r"https?://(?!www\.w3\.org/)|innerHTML|insertAdjacentHTML|document\.write|\beval\(", answer.text
        ), name


@pytest.mark.parametrize("name", ["", "none.js", "../app.py", "..%2fapp.py", "%2e%2e/app.py", "views"])
def test_nothing_else_is_served(service: TestClient, name: str) -> None:
    assert service.get(f"/page/{name}").status_code == 404


def test_the_page_needs_no_key(models: ServedModels) -> None:
    with client(models, api_key="secret") as made:
        assert made.get("/").status_code == made.get("/page/main.js").status_code == 200
        assert made.get("/v1/models").status_code == 401


def test_both_languages_have_the_same_strings() -> None:
    keys = [re.findall(r'^  "([\w.]+)": "', (PAGE / f"strings.{each}.js").read_text("utf-8"), re.M) for each in ("en", "zh")]
    assert len(keys[0]) > 50 and keys[0] == keys[1]
    sources = "".join(text.decode() for name, text in page_files._files(PAGE) if name.endswith(".js"))
    assert set(re.findall(r'\bt\("([\w.]+)"', sources)) <= set(keys[0])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_shipped_models_know_all_words_of_the_examples(language: str) -> None:
    pattern = r'text: "([^"]+)", word: "([^"]+)"'
    model, found = polyseme.load(language), list[tuple[str, str]]()
    for name in ("examples.js", "views/edit.js"):
        found += re.findall(pattern, (PAGE / name).read_text("utf-8"))
    mine = [(text, word) for text, word in found if text.isascii() == (language == "en")]
    assert len(mine) >= 5
    for text, word in mine:
        words = model.words(text)
        assert word in words and set(words) <= set(model.vocabulary or ()), text


def test_surprise_is_in_bits(service: TestClient, models: ServedModels) -> None:
    encoder = models.model("tiny").encoder
    assert encoder.vocabulary is not None
    answer = service.post("/v1/surprise", json={"text": ["the", "bank", "zzz"]}).json()
    (scores,) = encoder.log_probs([["the", "bank", "zzz"]])
    assert scores.backward is not None and scores.known.tolist() == [True, True, False]
    assert answer["left"][:2] == pytest.approx(-scores.forward[:2] / math.log(2))
    assert answer["right"][:2] == pytest.approx(-scores.backward[:2] / math.log(2))
    fits = encoder.substitutes(["the", "bank", "zzz"], 1, count=len(encoder.vocabulary))
    assert 2.0 ** -answer["both"][1] == pytest.approx(next(each.probability for each in fits if each.word == "bank"), rel=1e-4)
    assert answer["left"][2] is answer["right"][2] is answer["both"][2] is None
    assert np.isfinite(answer["both"][:2]).all()
    refused = service.post("/v1/surprise", json={"text": ["a"] * 1001})
    assert refused.status_code == 422 and "1,000" in refused.json()["error"]["message"]


def test_map_mix_and_words_of_a_text(service: TestClient) -> None:
    text = "The bank of the river. Money in the bank.\nA bank account. " + "A boat on the river. " * 3
    found = service.post("/v1/map", json={"word": "Bank", "text": text}).json()
    assert found["source"] == "given" and found["total"] == 3 and len(found["points"]) == 3
    assert [use["words"][use["position"]] for use in found["uses"]] == ["bank"] * 3
    mixed = service.post("/v1/map", json={"word": "bank", "text": text, "weights": [0, 0, 1]}).json()
    assert np.allclose(mixed["points"], found["points"][-1:], atol=1e-3) and len(mixed["points"]) == 1
    assert service.post("/v1/map", json={"word": "bank"}).json()["total"] == 2  # of the searched text
    words = service.post("/v1/text-words", json={"text": text}).json()
    assert (words["sentences"], words["source"]) == (6, "given")
    asked = {"text": "A river , a cat", "position": 1, "count": 4}
    near = service.post("/v1/neighbours", json={**asked, "window": 0}).json()["in_context"]
    top = service.post("/v1/mix", json={**asked, "weights": [0, 0, 2]}).json()
    assert [each["words"] for each in top["in_context"]] == [each["words"] for each in near]
    assert [each["cosine"] for each in top["in_context"]] == pytest.approx([each["cosine"] for each in near], abs=5e-3)


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("map", {"word": "zebra"}, "no use of this word"),
        ("map", {"word": "bank", "weights": [1]}, "has 3 layers"),
        ("map", {"word": "bank", "weights": [0, 0, 0]}, "all weights are 0"),
        ("map", {"word": "bank", "groups": 9}, "groups"),
        ("map", {"word": "bank", "text": " "}, "no words"),
        ("map", {"word": "bank", "text": "a " * 200_001}, "200,000"),
        ("text-words", {"model": "other"}, "--corpus"),
    ],
)
def test_what_cannot_be_mapped_is_refused(service: TestClient, path: str, body: dict[str, object], says: str) -> None:
    answer = service.post(f"/v1/{path}", json=body)
    assert answer.status_code == 422 and says in answer.json()["error"]["message"], answer.text


def test_runs_say_their_state_and_the_best_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(Path(__file__).parents[1] / "old_folders" / "runs", tmp_path / "old")
    for name, scores in (("stopped", (0.5, 0.8, 0.7)), ("going", (0.5,)), ("cell", (0.5,))):
        (tmp_path / name / "run").mkdir(parents=True)
        lines, best = [], 0.0
        for step, score in enumerate(scores, 1):
            lines.append(json.dumps({"step": step, "kind": "dev", "f1": score, "best": score > best}))
            best = max(best, score)
        (tmp_path / name / "run" / "log.jsonl").write_text("\n".join(lines))
    (tmp_path / "cell" / "result.json").write_text("{}")
    os.utime(tmp_path / "stopped" / "run" / "log.jsonl", (0, 0))
    monkeypatch.chdir(tmp_path)
    found = runs_in(".")
    runs = {run["name"]: run for run in found["runs"]}
    assert found["folder"] == tmp_path.name
    states = {name: runs[name]["state"] for name in ("stopped", "going", "cell")}
    assert states == {"stopped": "stopped", "going": "training", "cell": "finished"}
    assert runs["going"]["live"] and not runs["cell"]["live"]
    assert runs["stopped"]["dev"]["best"] == (2, 0.8) and runs["stopped"]["dev"]["points"][-1] == (3, 0.7)
    assert {run["state"] for name, run in runs.items() if name.startswith("old/")} <= {"finished", "stopped", "training"}


def test_the_models_say_what_they_search(models: ServedModels, service: TestClient) -> None:
    found = {each["id"]: each["searches"] for each in service.get("/v1/models").json()["data"]}
    assert found == {"tiny": "corpus", "other": None}
