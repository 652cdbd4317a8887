"""Questions about words and trained tasks over HTTP give what the Python functions give; examples of the document run."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import polyseme
from polyseme.analysis.neighbours import neighbours
from polyseme.serve.models import ServedModel, ServedModels
from tests.serve.small_service import client, searchable, tiny_models

OLD = Path(__file__).parents[1] / "old_folders"
TASKS = {
    "tagging-mix": ["Ann lives in Paris .", "Bob left"],
    "tagging-document": ["Ann lives in Paris .", "Bob left"],
    "classification-mean": ["a good day", ""],
    "pairs-esim": ["a good day\ta bad day"],
    "reading-no-answer": ["Who left?\tAnn saw Bob leave."],
    "roles": ["1,3 Ann saw Bob leave"],
    "coreference": ["Ann said that she left. Bob saw her."],
}
TEXT = "The bank of the river."


@pytest.fixture(scope="module")
def models() -> Iterator[ServedModels]:
    pytest.importorskip("transformers")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(OLD)  # where the folders of tasks look for their encoders
        tasks = {name: polyseme.load_task(OLD / "tasks" / name) for name in TASKS}
        made = searchable(tiny_models())
        bert = ServedModel("bert", polyseme.load(OLD / "encoders" / "bert"))
        yield ServedModels({**made.models, "bert": bert}, {**tasks, "names": tasks["tagging-mix"]})


@pytest.fixture(scope="module")
def service(models: ServedModels) -> Iterator[TestClient]:
    with client(models) as made:
        yield made


def ask(service: TestClient, path: str, **body: Any) -> Any:
    answer = service.post(f"/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def test_neighbours(service: TestClient, models: ServedModels) -> None:
    tiny = models.model("tiny")
    answer = ask(service, "neighbours", text=TEXT, word="bank", count=3, same_word=False)
    expected = neighbours(tiny.encoder, TEXT, word="bank", index=tiny.index, config=None).to_json()
    assert answer["words"] == expected["words"] and answer["position"] == 1 and answer["offsets"][1] == [4, 8]
    assert len(answer["in_context"]) == 3 and all(each["word"].casefold() != "bank" for each in answer["in_context"])
    everything = ask(service, "neighbours", text=TEXT, position=1)
    assert everything["in_context"] == plain(expected["in_context"]) and everything["by_itself"] == plain(expected["by_itself"])


def test_the_words_of_the_same_sentence_are_no_neighbours(service: TestClient) -> None:
    own = ["Money", "in", "the", "bank", "."]
    for path, more in {"neighbours": {}, "mix": {"weights": [0, 0.5, 0.5]}}.items():
        for same_word in (None, True):
            found = ask(service, path, text=own, position=3, count=50, same_word=same_word, **more)["in_context"]
            assert found and own not in [each["words"] for each in found], path


def test_substitutes_scores_and_similar_words(service: TestClient, models: ServedModels) -> None:
    encoder = models.model("tiny").encoder
    answer = ask(service, "substitutes", text=TEXT, word="bank", count=4)
    assert answer["substitutes"] == plain(encoder.substitutes(TEXT, word="bank", count=4).to_json()["substitutes"])
    scored = ask(service, "score", input=[TEXT, ["a", "cat"]], words=True)["data"]
    for found, expected in zip(scored, encoder.log_probs([TEXT, ["a", "cat"]]), strict=True):
        assert found["mean"] == pytest.approx(expected.score, abs=1e-4) and found["words"] == expected.words
        assert found["forward_words"] == pytest.approx(expected.forward[:-1].tolist(), abs=1e-4)
    assert ask(service, "similar", word="bank", count=2)["similar"] == plain(
        polyseme.similar("bank", count=2, model=encoder).to_json()["similar"]
    )


def test_fill(service: TestClient, models: ServedModels) -> None:
    text = "the [MASK] of the river"
    answer = ask(service, "fill", model="bert", text=text, count=2)
    assert answer["fillings"] == plain(models.model("bert").encoder.fill(text, count=2).to_json()["fillings"])


@pytest.mark.parametrize("name", TASKS)
def test_predictions(service: TestClient, models: ServedModels, name: str) -> None:
    lines = TASKS[name]
    answer = ask(service, f"predict/{name}", input=lines)
    expected = [each.to_json() for each in polyseme.predict(models.task(name), iter(lines))]
    assert [{key: value for key, value in each.items() if key != "index"} for each in answer["data"]] == plain(expected)
    task = models.task(name)
    assert [each.to_json() for each in task.predict([task.parse_line(line, "") for line in lines])] == expected


@pytest.mark.parametrize("name", ["tagging-mix", "tagging-document", "classification-mean", "coreference"])
def test_predictions_for_lists_of_words(service: TestClient, models: ServedModels, name: str) -> None:
    inputs = [["F:9", "lives", "in", "Paris", "."], "Bob left .", []]
    data = ask(service, f"predict/{name}", input=inputs)["data"]
    for found, expected in zip(data, models.task(name).predict(inputs), strict=True):
        assert {key: value for key, value in found.items() if key != "index"} == plain(expected.to_json())
    assert "words" not in data[0] or data[0]["words"] == inputs[0]


@pytest.mark.parametrize(
    ("path", "body", "says"),
    [
        ("neighbours", {"text": TEXT}, "give word or position"),
        ("neighbours", {"text": TEXT, "word": "sea"}, "not in the sentence"),
        ("neighbours", {"text": "", "word": "sea"}, "the sentence has no words"),
        ("neighbours", {"text": TEXT, "position": 9}, "6 words"),
        ("neighbours", {"text": TEXT, "word": "bank", "model": "bert"}, "corpus"),
        ("substitutes", {"text": TEXT, "word": "bank", "count": 0}, "count"),
        ("substitutes", {"text": TEXT, "word": "bank", "model": "bert"}, "no substitutes"),
        ("score", {"input": TEXT, "model": "other"}, "output layer"),
        ("fill", {"text": TEXT}, "no masked-word prediction"),
        ("similar", {"word": ""}, "empty"),
        ("predict/roles", {"input": ["1 Ann left", "Ann left"]}, "item 1"),
        ("predict/pairs-esim", {"input": ["alone"]}, "item 0"),
        ("predict/pairs-esim", {"input": ["a\tb", ["a", "b"]]}, "item 1: is a list of words, and a task for pairs reads more"),
        ("predict/roles", {"input": [["Ann", "left"]]}, "give a text in the form of a line of `polyseme predict`"),
        ("predict/tagging-mix", {"input": [[1, 2]]}, "item 0 is a list: token numbers of another model mean nothing here"),
        ("predict/tagging-mix", {"input": [1]}, "mean nothing here; allowed: a text, or a list of texts and lists of words"),
        ("predict/tagging-mix", {"input": [["a", 2]]}, "word 1 of item 0 is a number; allowed: text"),
        ("predict/tagging-mix", {"input": []}, "empty"),
        ("embeddings", {"input": [["a", "cat"]]}, "item 0 is a list: token numbers"),
    ],
)
def test_questions_that_cannot_be_answered(service: TestClient, path: str, body: Any, says: str) -> None:
    answer = service.post(f"/v1/{path}", json=body)
    assert answer.status_code == 422 and says in answer.json()["error"]["message"], answer.text
    assert "--" not in answer.json()["error"]["message"].replace("--corpus", "").replace("--splitter", "")


def test_a_word_that_is_only_spelled_gets_a_warning(service: TestClient) -> None:
    assert "'Bankkkkk' is not among the" in ask(service, "similar", word="Bankkkkk")["warning"]
    assert "warning" not in ask(service, "similar", word="bank")


def test_errors_keep_chinese_as_it_is(service: TestClient) -> None:
    answer = service.post("/v1/neighbours", json={"text": TEXT, "word": "上海"})
    assert answer.status_code == 422 and "'上海' is not in the sentence" in answer.text


def test_texts_that_the_model_cannot_read_get_a_warning() -> None:
    made = tiny_models()
    made.model("tiny").encoder.source, chinese = "en", polyseme.load("zh")
    with client(ServedModels({**made.models, "zh": ServedModel("zh", chinese)})) as service:
        assert "warning" not in ask(service, "tokenize", input=["We sat.", "Café."])
        for path, body in {
            "words": {"input": ["他很高兴。"], "layers": "top"},
            "embeddings": {"input": "他很高兴。"},
            "score": {"input": ["他很高兴。"]},
            "substitutes": {"text": "他很高兴。", "position": 0},
            "surprise": {"text": "他很高兴。"},
            "next": {"text": "他很高兴。"},
        }.items():
            told = ask(service, path, **body)["warning"]
            assert "100 % of its letters), and en is an English model: give model='zh'" in told, path
        swahili = "Jana tulitembea msituni na kutafuta mto ambao baba yangu alivua samaki alipokuwa mtoto. " * 3
        assert (
            "% of the words of the text are not in the vocabulary of en" in ask(service, "tokenize", input=[swahili])["warning"]
        )
        assert "mostly in Cyrillic" in ask(service, "tokenize", input=["Вчера мы видели", ["его"]])["warning"]
        raw = {"Accept": "application/octet-stream"}
        answer = service.post("/v1/words", json={"model": "zh", "input": ["臺灣的夜市"], "layers": "top"}, headers=raw)
        assert r"traditional characters (\u81fa\u7063 ...)" in answer.headers["x-warning"]
        english = ask(service, "tokenize", model="zh", input=["We sat on the bank of the river."])
        assert "zh is a Chinese model" in english["warning"]
        for path in ("words", "embeddings"):
            assert "zh is a Chinese model" in ask(service, path, model="zh", input="The river bank is here.")["warning"]
            assert "warning" not in ask(service, path, model="zh", input="我在 the river bank 旁边。")
        assert "warning" not in ask(service, "tokenize", model="zh", input=["他很高兴。"])


def test_the_log_names_a_known_task_alone(service: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "polyseme.serve"):
        ask(service, "predict/classification-mean", input=["a cat"])
        service.post("/v1/predict/secret", json={"input": ["a cat"]})
    fields = [record.fields for record in caplog.records if record.name == "polyseme.serve.access"]
    assert [each["endpoint"] for each in fields] == ["/v1/predict/classification-mean", "/v1/predict/{task}"]


def test_predictions_have_the_warning_of_the_command_line(monkeypatch: pytest.MonkeyPatch, caplog) -> None:
    monkeypatch.chdir(OLD)
    task = polyseme.load_task(OLD / "tasks" / "classification-mean")
    (encoder,) = task.features.contextual
    encoder.source, encoder.vocabulary = "zh", polyseme.load("zh").vocabulary
    traditional = "這家酒店房間很乾淨，服務也很好"
    with client(ServedModels(tiny_models().models, {"hotels": task})) as service:
        told = ask(service, "predict/hotels", input=[traditional])["warning"]
        assert "traditional characters (這間淨 ...)" in told
        list(polyseme.predict(task, [traditional]))
        assert told in caplog.text
        english = ask(service, "predict/hotels", input=["We sat on the bank of the river."])
        assert "zh is a Chinese model: predictions mean little" in english["warning"]
        assert "warning" not in ask(service, "predict/hotels", input=["这家酒店房间很干净，服务也很好"])


def test_texts_without_a_word_get_a_warning(service: TestClient) -> None:
    named = "2 texts without a word (items 1, 2), whose"
    texts = ["a good day", " ", ""]
    assert ask(service, "predict/classification-mean", input=texts)["warning"] == f"{named} prediction means nothing"
    assert ask(service, "score", input=texts)["warning"] == f"{named} score is that of the sentence boundary alone"
    answer = ask(service, "embeddings", input=texts)
    assert answer["warning"] == f"{named} vector is all zeros"
    assert not any(answer["data"][2]["embedding"])
    for path in ("predict/classification-mean", "score", "embeddings"):
        assert "warning" not in ask(service, path, input=["a good day"]), path
    assert "warning" not in ask(service, "predict/tagging-document", input=["Ann left", "", "Bob left"])  # it ends a document


def test_the_document_is_the_committed_one_and_its_examples_run(service: TestClient) -> None:
    served = service.get("/openapi.json").json()
    reference = Path(__file__).parents[2] / "docs" / "en" / "reference"
    committed = json.loads((reference / "openapi.json").read_text(encoding="utf-8"))
    assert served == committed, "run python -m scripts.write_openapi"
    ran = 0
    for path, methods in served["paths"].items():
        if "post" not in methods:
            assert service.get(path).status_code == 200
            continue
        schema = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
        for example in served["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["examples"]:
            answer = service.post(path.replace("{task}", "names"), json=example)
            assert answer.status_code == 200, (path, answer.text)
            ran += 1
    assert ran >= 9
