"""Folders written by earlier code: models, tasks, runs, indexes, files of vectors and studies still load and give the same.

`old_folders/README.md` says what each folder is. Nothing here writes into it: what a command changes is copied first.
"""

from __future__ import annotations

import functools
import hashlib
import json
import platform
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from polyseme.__main__ import main
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.folder import load as load_encoder
from polyseme.encoders.shipped import find_by_hash

HERE = Path(__file__).parent / "old_folders"
MODELS = Path(polyseme.__file__).parent / "models"
EXPECTED: dict[str, Any] = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
RUNS: dict[str, Any] = json.loads((HERE / "runs.json").read_text(encoding="utf-8"))
SAME_MACHINE = platform.machine() == EXPECTED["machine"]
PACKAGES = {
    "rjieba": ("elmo-chinese", "reading-chinese"),
    "gensim": ("word2vec", "fasttext"),
    "sacrebleu": ("generation",),
    "pyarrow": (".parquet",),
}
"""What the extras bring, and the parts of names that need them."""
same_text_rules = pytest.mark.skipif(
    unicodedata.unidata_version != EXPECTED["unicode"], reason="text that another Python has split counts as other text"
)
Copied = Callable[..., Path]
Run = Callable[..., list[Any]]


def needs(name: str) -> None:
    """Skip what an extra or a shipped model is missing for."""
    for package, parts in PACKAGES.items():
        if any(part in name for part in parts):
            pytest.importorskip(package)
    if "shipped" in name and not has_first_english():
        pytest.skip("this copy lacks the first version of the model en")
    if any(part in name for part in ("bert", "gpt", "choices")):
        version = pytest.importorskip("transformers").__version__
        if version != EXPECTED["transformers"]:
            pytest.skip("another version of transformers has other defaults, which are part of the fingerprint")


@functools.cache
def has_first_english() -> bool:
    """Whether the package or polyseme-models has the model that `tagging-shipped` names by its hash."""
    (named,) = json.loads((HERE / "tasks" / "tagging-shipped" / "task.json").read_text(encoding="utf-8"))["encoders"]
    now = MODELS / named["shipped"]
    is_now = (now / "config.json").is_file() and model_fingerprint(load_encoder(now)) == named["sha256"]
    return is_now or find_by_hash(named["sha256"]) is not None


@pytest.fixture
def old(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folders themselves, to read from, as the current folder."""
    monkeypatch.chdir(HERE)
    return HERE


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copied:
    """Copies some of them, with the data, into an empty folder, which becomes the current one."""

    def copy(*names: str) -> Path:
        for name in ("data", *names):
            shutil.copytree(HERE / name, tmp_path / name)
        monkeypatch.chdir(tmp_path)
        return tmp_path

    return copy


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command that must succeed; gives its lines of JSON."""

    def lines(*arguments: object) -> list[Any]:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        found = capsys.readouterr()
        assert code == 0, found.err
        return [json.loads(line) for line in found.out.splitlines()]

    return lines


def assert_same(found: Any, expected: Any, where: str = "", *, rel: float = 1e-4) -> None:
    """Equal, but for the last digits of numbers, and for keys that are new."""
    if isinstance(expected, dict):
        assert isinstance(found, dict) and [name for name in found if name in expected] == list(expected), where
        for name, value in expected.items():
            assert_same(found[name], value, f"{where}.{name}", rel=rel)
    elif isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected), where
        for place, value in enumerate(expected):
            assert_same(found[place], value, f"{where}[{place}]", rel=rel)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=1e-5, rel=rel, nan_ok=True), where
    else:
        assert found == expected and type(found) is type(expected), where


def assert_close(found: np.ndarray, name: str, tolerance: float = 1e-5) -> None:
    with np.load(HERE / "expected.npz") as arrays:
        expected = arrays[name]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.astype(np.float32), expected, atol=tolerance, rtol=tolerance)


def stamps(folder: Path) -> dict[Path, tuple[int, int]]:
    """What tells a file from one that was written again."""
    return {path: (path.stat().st_mtime_ns, path.stat().st_ino) for path in folder.rglob("*") if path.is_file()}


def tensors_hash(model: torch.nn.Module) -> str:
    """Of all tensors, whatever their names and order are."""
    hashes = []
    for value in model.state_dict().values():
        data = value.contiguous().view(-1).view(torch.uint8).numpy().tobytes()
        hashes.append(hashlib.sha256(str((value.dtype, tuple(value.shape))).encode() + data).hexdigest())
    return hashlib.sha256("".join(sorted(hashes)).encode()).hexdigest()


def of_each_kind(names: Iterable[str], *slow: str) -> list[Any]:
    """Names as parameters; those that differ little from another one are left to the slow tests."""
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in names]


SLOW_TASKS = ("classification-mean", "classification-pooled", "coreference-plain", "generation-sample")
SLOW_TASKS += ("pairs-frozen", "pairs-siamese", "reading-chinese", "tagging-alone", "tagging-bert", "tagging-finetuned")
SLOW_TASKS += ("tagging-probabilities", "tagging-shipped")


def test_every_folder_is_tested() -> None:
    for kind in ("encoders", "tasks"):
        assert sorted(path.name for path in (HERE / kind).iterdir()) == sorted(EXPECTED[kind])
    runs = {**RUNS["commands"], **RUNS["trainings"]}
    assert sorted(path.name for path in (HERE / "runs").iterdir()) == sorted(runs) == sorted(EXPECTED["runs"])


@pytest.mark.parametrize("name", EXPECTED["encoders"])
def test_encoders_give_the_same(name: str, old: Path, run: Run) -> None:

    needs(name)
    model, expected = polyseme.load(old / "encoders" / name), EXPECTED["encoders"][name]
    assert tensors_hash(model) == expected["tensors"]
    assert model_fingerprint(model) == expected["fingerprint"]  # or tasks, indexes and caches would not know it again
    for place, vectors in enumerate(model.embed(EXPECTED["sentences"], layers="all")):
        assert_close(vectors, f"{name}/{place}")
    folder, sentences = f"encoders/{name}", EXPECTED["sentences"]
    ask = {
        "score": sentences,
        "perplexity": ["data/lines.txt"],
        "substitutes": [sentences[0], "--word", "bank", "--count", 5],
        "fill": ["The [MASK] of the river.", "--count", 3],
        "similar": ["bank", "--count", 3],
    }
    for verb, answer in expected["answers"].items():
        if verb == "verify":  # against the vectors that the folder itself holds
            run("verify", folder, "--json")
        else:
            assert_same(run(verb, *ask[verb], "--model", folder, "--json"), answer, verb)


@pytest.mark.parametrize("name", of_each_kind(EXPECTED["tasks"], *SLOW_TASKS))
def test_tasks_answer_the_same(name: str, old: Path, run: Run, tmp_path: Path) -> None:
    needs(name)
    expected = EXPECTED["tasks"][name]
    assert polyseme.load_task(old / "tasks" / name).labels
    lines = tmp_path / "lines.txt"
    lines.write_text("".join(f"{line}\n" for line in expected["lines"]), encoding="utf-8")
    assert_same(run("predict", f"tasks/{name}", "--input", lines, "--json"), expected["predict"], "predict")
    assert_same(run("evaluate", f"tasks/{name}", expected["data"], "--json"), expected["evaluate"], "evaluate")


def assert_log_goes_on(folder: Path, name: str) -> None:
    """A run that began anew would have a log of its own."""
    log = Path("runs", name, "run", "log.jsonl")
    before = HERE / log
    now, then = (folder / log).read_bytes(), before.read_bytes()
    assert now.startswith(then) and len(now) > len(then)


@same_text_rules
@pytest.mark.parametrize("name", of_each_kind(RUNS["commands"], "taglm", "fasttext", "nnlm"))
def test_pretraining_goes_on(name: str, copied: Copied, run: Run) -> None:
    needs(name)
    command = RUNS["commands"][name]
    folder = copied(f"runs/{name}", *(part for part in command if part.startswith("encoders/")))
    before = stamps(folder / "runs" / name / "run")
    (found,) = run(*command)
    found.pop("seconds", None)
    expected = EXPECTED["runs"][name]
    assert_same(found, expected, rel=1e-2 if SAME_MACHINE else 0.2)
    if (HERE / "runs" / name / "run" / "log.jsonl").is_file():
        assert_log_goes_on(folder, name)
    elif name != "ngram":  # methods that go by whole epochs have no log; begun anew, they would write this checkpoint, too
        kept = {path: stamp for path, stamp in before.items() if path.name.startswith("checkpoint-")}
        assert len(kept) == 2 and kept.items() <= stamps(folder / "runs" / name / "run").items()
    assert polyseme.load(f"runs/{name}").embed([["bank"]])[0].size


@pytest.mark.parametrize("name", of_each_kind(RUNS["trainings"], "pairs", "choices", "reading", "roles"))
def test_training_goes_on(name: str, copied: Copied, run: Run) -> None:
    needs("generation" if name == "generation" else "")
    options = dict(RUNS["trainings"][name])
    encoder = options["encoder"]
    folder = copied(f"runs/{name}", *([] if encoder == "none" else [encoder]))
    task, data = options.pop("task"), options.pop("data")
    assert polyseme.train(task, data, **options).labels
    assert_log_goes_on(folder, name)
    (found,) = run("evaluate", f"runs/{name}", data, "--json")
    expected = EXPECTED["runs"][name]
    assert (found["main"], list(found["scores"])) == (expected["main"], list(expected["scores"]["dev"]))
    if SAME_MACHINE:  # rounding that differs can turn an answer, and a score of four examples with it
        assert_same(found["scores"], expected["scores"]["dev"], rel=1e-2)


@same_text_rules
def test_an_index_is_found_again(copied: Copied, run: Run) -> None:
    folder = copied("index", "encoders/elmo-characters") / "index"
    before = stamps(folder)
    assert_same(run(*EXPECTED["index"]["command"], "--window", "0"), EXPECTED["index"]["output"])  # there was no window then
    assert before and stamps(folder) == before


def read_vectors(path: Path) -> list[np.ndarray]:
    """The vectors of each line, by other programs than ours."""
    if path.suffix == ".hdf5":
        import h5py

        with h5py.File(path) as file:
            return [file[str(line)][:] for line in range(8)]
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return [arrays[str(line)] for line in range(8)]
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [np.array(row["vectors"]) for row in rows]
    import pyarrow.parquet

    rows = pyarrow.parquet.read_table(path).to_pylist()
    return [np.array(row["vectors"]).reshape(row["layers"], len(row["words"]), row["dim"]) for row in rows]


@pytest.mark.parametrize("name", EXPECTED["vectors"])
def test_files_of_vectors_go_on(name: str, copied: Copied, run: Run) -> None:
    needs(name)
    command = EXPECTED["vectors"][name]["command"]
    folder = copied("vectors", *(part for part in command if part.startswith("encoders/")))
    (found,) = run(*command)
    assert found.pop("out") == f"vectors/{name}"
    assert_same(found, EXPECTED["vectors"][name]["output"])
    rows = read_vectors(folder / "vectors" / name)
    assert len(rows) == found["lines"]
    for line, vectors in enumerate(rows):
        if vectors.size:  # JSON cannot tell the size of a line without words
            assert_close(vectors, f"{name}/{line}", 1e-3 if "--fp16" in command else 1e-5)


def without_english_cost(table: str) -> str:
    """A report without what the pre-training of the model `en` cost, which another version changes."""
    return "\n".join(line for line in table.splitlines() if line.strip("| ").split()[:1] != ["en"])


@pytest.mark.parametrize("name", EXPECTED["studies"])
def test_studies_stay_done(
    name: str, copied: Copied, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not (MODELS / "en" / "config.json").is_file():
        pytest.skip("this copy lacks the shipped models")
    folder = copied("studies") / "studies" / name
    monkeypatch.setenv("POLYSEME_DATA", "studies/data")
    before = {path: stamp for path, stamp in stamps(folder).items() if path.name in ("result.json", "pretraining.json")}
    assert main(EXPECTED["studies"][name]["command"]) == 0
    found = capsys.readouterr()
    numbers = re.compile(r"-?\d[\d,.]*")
    shown, expected = map(without_english_cost, (found.out, EXPECTED["studies"][name]["output"]))
    expected = expected.replace("| 0.00 | 1 |", "|  | 1 |")  # one seed has no standard deviation
    assert numbers.findall(shown) == numbers.findall(expected) != []
    assert before and before.items() <= stamps(folder).items()
    assert found.err.count("\n") == EXPECTED["studies"][name]["notes"]  # none says that something changed since
