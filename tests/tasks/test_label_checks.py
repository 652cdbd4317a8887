"""Labels in several spellings, repeated rows, rare classes: reported, and the same in all files of a task."""

import numpy as np
import pytest

import polyseme
from polyseme.base.errors import FormatError, PolysemeError, UsageError
from polyseme.studies import train as module
from polyseme.tasks.classification import Classification, LabelledText
from polyseme.tasks.label_checks import combined_problems, label_problems, number_problems
from polyseme.tasks.leakage import FILE, leaked_examples, text_hashes
from polyseme.tasks.pairs import Pairs
from polyseme.tasks.registry import configure_task
from polyseme.tasks.tagging import Tagging
from polyseme.text.labelled.conll import TaggedSentence
from tests.cli.labelled import TINY

RARE = "1 of 2 classes has fewer than 3 examples, too few to learn it"


def job(train, dev=None, **options):
    heard: list[str] = []
    config, _ = configure_task("classification", options)
    files = module.DataFiles(train, dev)
    return module.TaskJob("classification", files, "run", "none")._read(config, 0, heard.append), heard


def write(path, rows):
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    return path


def test_spellings_of_a_label_are_one(tmp_path):
    labels = ["neg", "Neg", "neg", "NEG", "pos", "very  good", "very good", "neg", "pos", "very good"]
    train = write(tmp_path / "a.tsv", [(f"text {number}", label) for number, label in enumerate(labels)])
    dev = write(tmp_path / "b.tsv", [("one", "NEG"), ("two", "Pos"), ("three", "VERY GOOD"), ("four", "other")])
    data, heard = job(train, dev)
    assert {each.label for each in data.train} == {"neg", "pos", "very good"}
    assert [each.label for each in data.dev] == ["neg", "pos", "very good", "other"]
    merged = "'NEG' and 'Neg' are read as 'neg'; 'very  good' are read as 'very good'"
    assert heard[0] == f"{train}: labels that differ only in case or blanks are one: {merged}"
    assert heard[-2].startswith(f"{dev}: labels that differ") and "'other'" in heard[-1]
    kept, heard = job(train, dev, strict=True)
    assert {each.label for each in kept.train} == set(labels) and not any("differ" in each for each in heard)


def test_a_trained_task_matches_labels(tmp_path):
    rows = [(f"good {number}", "pos") for number in range(8)] + [(f"bad {number}", "Neg") for number in range(8)]
    options = {"encoder": "none", "out": tmp_path / "run", "network": "pooled", **TINY}
    task = polyseme.train("classification", write(tmp_path / "a.tsv", rows), **options)
    test = write(tmp_path / "b.tsv", [("good", "POS"), ("bad", " neg ")])
    report = polyseme.evaluate(task, test)
    assert report.unknown_labels == [] and set(report.confusion.classes) <= {"pos", "Neg"}
    assert "only 2 examples: too few for a score to mean anything" in str(report)


def test_columns_of_an_evaluated_file_are_those_of_one_call(tmp_path):
    rows = [(f"good {number}", "pos") for number in range(8)] + [(f"bad {number}", "neg") for number in range(8)]
    train = write(tmp_path / "a.tsv", rows)
    task = polyseme.train("classification", train, out=tmp_path / "run", encoder="none", network="pooled", **TINY)
    before, usual = task.config, polyseme.evaluate(task, train).scores
    (tmp_path / "turned.tsv").write_text("x\ty\n" + "".join(f"{label}\t{text}\n" for text, label in rows))
    assert polyseme.evaluate(task, tmp_path / "turned.tsv", text="y", label="x").scores == usual
    assert task.config == before and polyseme.evaluate(task, train).scores == usual
    for wrong in ({"text": "z"}, {"text": "y", "source": "x"}):
        with pytest.raises(PolysemeError):
            polyseme.evaluate(task, tmp_path / "turned.tsv", label="x", **wrong)
    assert task.config == before and polyseme.evaluate(task, train).scores == usual


def test_a_loaded_task_prints_the_scores_of_its_folder(tmp_path):
    rows = [(f"good {number}", "pos") for number in range(8)] + [(f"bad {number}", "neg") for number in range(8)]
    options = {"encoder": "none", "network": "pooled", **TINY}
    trained = polyseme.train("classification", write(tmp_path / "a.tsv", rows), out=tmp_path / "run", **options)
    loaded = polyseme.load_task(tmp_path / "run")
    assert loaded.report.scores == trained.report.scores and str(loaded).splitlines()[:4] == str(trained).splitlines()[:4]
    (tmp_path / "run" / "result.json").write_text("{}")  # not needed to predict
    assert polyseme.load_task(tmp_path / "run").report is None


def test_the_training_file_says_nothing_of_new_texts(tmp_path, caplog):
    rows = [(f"good {number}", "pos") for number in range(8)] + [(f"bad {number}", "neg") for number in range(8)]
    options = {"encoder": "none", "network": "pooled", **TINY}
    polyseme.train("classification", write(tmp_path / "a.tsv", rows), out=tmp_path / "run", **options)
    trained_on = np.load(tmp_path / "run" / FILE)
    part = [(text.upper(), label) for text, label in rows][:-2]
    found = polyseme.evaluate(tmp_path / "run", write(tmp_path / "part.tsv", [*part, ("quite new", "pos")]))
    held_out = 16 - len(trained_on)
    assert 14 - held_out <= found.leaked <= 14 and f"part.tsv: {found.leaked} of 15 examples have texts of the" in caplog.text
    caplog.clear()
    others = [(f"another text {number}", "pos") for number in range(9)]
    assert polyseme.evaluate(tmp_path / "run", write(tmp_path / "other.tsv", others)).leaked == 0
    (tmp_path / "run" / FILE).unlink()  # of an earlier version
    assert polyseme.evaluate(tmp_path / "run", tmp_path / "part.tsv").leaked == 0 and "examples have texts" not in caplog.text
    (tmp_path / "run" / FILE).write_bytes(b"no array")
    with pytest.raises(FormatError, match=FILE):
        polyseme.evaluate(tmp_path / "run", tmp_path / "part.tsv")


def test_columns_of_the_training_file_hold_for_all(tmp_path):
    rows = [(f"this one is good {number}", "pos") for number in range(8)] + [
        (f"rather bad {number}", "neg") for number in range(8)
    ]
    (tmp_path / "a.csv").write_text("Urteil,Text der Kritik\n" + "".join(f"{label},{text}\n" for text, label in rows))
    options = {"encoder": "none", "network": "pooled", **TINY}
    task = polyseme.train("classification", tmp_path / "a.csv", out=tmp_path / "run", **options)
    assert (task.config.text, task.config.label, task.config.header) == ("Text der Kritik", "Urteil", True)
    (tmp_path / "one.csv").write_text("Urteil,Text der Kritik\npos,good\n")
    assert polyseme.evaluate(task, tmp_path / "one.csv").examples == 1


@pytest.mark.parametrize(
    ("texts", "labels", "told"),
    [
        ("abc", "xxx", []),
        ("aabbb", "xxyyy", ["3 of 5 rows repeat another", f"{RARE}: x (2); macro_f1 counts each class alike"]),
        ("abcaefb", "xxxyyyy", ["2 texts have several labels, such as 'a'"]),
        (
            "a" + "".join(map(chr, range(200, 297))) + "bc",
            "x" * 98 + "yy",
            ["1 of 2 classes", "98.0% of the examples have the label 'x'"],
        ),
    ],
)
def test_what_is_reported(texts, labels, told):
    found = label_problems(list(texts), list(labels))
    assert len(found) == len(told) and all(each in text for text, each in zip(found, told, strict=True))
    assert label_problems(["a", "b"], ["1.5", "2"], classes=False) == []


def test_lines_of_a_text_with_several_labels_are_named():
    texts, labels = ["a", "b", "a", "c", *"bbbb"], ["x", "y", "y", "x", *"yyyy"]
    found = label_problems(texts, labels, lines=[2, 3, 4, 5, 6, 7, 8, 9])
    assert "1 text has several labels, such as 'a' (lines 2, 4)" in found


def test_a_column_of_ids_is_refused_before_training(tmp_path):
    rows = [f"{number % 290},this is the text {number},{'ab'[number % 2]}\n" for number in range(300)]
    (tmp_path / "a.csv").write_text("id,words of it,my class\n" + "".join(rows))
    told = r"a\.csv: the labels of 300 rows are 290 different ones \(0, 1, 2 \.\.\.\), so nothing can be learned: "
    with pytest.raises(FormatError, match=rf"{told}.*; 'my class' looks like the label: give label='my class'"):
        job(tmp_path / "a.csv", label="id")
    pairs = "".join(f"{number},one {number},two {number}\n" for number in range(30))
    (tmp_path / "pairs.csv").write_text(f"id,sentence1,sentence2\n{pairs}")
    config, _ = configure_task("pairs", {"label": "id"})
    with pytest.raises(FormatError, match=r"nothing can be learned: .*; name the label's with label$"):
        Pairs.read(tmp_path / "pairs.csv", config, training=True)
    assert len(Pairs.read(tmp_path / "pairs.csv", config)) == 30  # a file that is only scored


def test_labels_that_the_training_data_lacks_are_told_on_one_line(tmp_path):
    train = write(tmp_path / "a.tsv", [(f"text {number}", "xy"[number % 2]) for number in range(20)])
    dev = write(tmp_path / "b.tsv", [("known", "x"), *((f"new {number}", f"id{number}") for number in range(9))])
    lacks = (
        "has 9 labels that the training data lacks, which count as wrong: 'id0' (line 3), 'id1' (line 4), 'id2' (line 5) ..."
    )
    assert job(train, dev)[1][-1] == f"{dev}: {lacks}"


def test_equal_whole_numbers_are_one_label(tmp_path):
    labels = ["1.0", "0.0", "1.0", "1", "0", "0.0", "0.5", "0.50", "2", "2.00"]
    train = write(tmp_path / "a.tsv", [(f"text {number}", label) for number, label in enumerate(labels)])
    dev = write(tmp_path / "b.tsv", [("one", "1.0"), ("two", "0"), ("three", "+7.0")])
    data, heard = job(train, dev)
    assert [each.label for each in data.train] == ["1", "0", "1", "1", "0", "0", "0.5", "0.50", "2", "2"]
    assert [each.label for each in data.dev] == ["1", "0", "+7.0"]
    merged = "'0.0' are read as '0'; '1.0' are read as '1'; '2.00' are read as '2'"
    assert heard[0] == f"{train}: labels that are the same number are one: {merged}"


@pytest.mark.parametrize(("known", "given"), [("1.0", "1"), ("__label__pos", "pos")])
def test_a_trained_task_matches_numbers_and_old_labels(tmp_path, known, given):
    examples = [LabelledText("good", given), LabelledText("bad", "other")]
    found, _ = Classification.merge_labels(examples, configure_task("classification", {})[0], [known, "other"])
    assert [each.label for each in found] == [known, "other"]


def test_numbers_as_classes():
    numbers = [f"{number / 7:.3f}" for number in range(1, 50)]
    assert number_problems(["0.5", "1.5", "2"] * 30) == [] == number_problems([str(number) for number in range(90)])
    (told,) = number_problems(numbers * 3)
    assert told.startswith("the labels are 49 different numbers (0.143, 0.286, 0.429 ...), and classification needs classes")
    with pytest.raises(UsageError, match=r"make classes of them, or give another column with label; .* with goal='score'"):
        number_problems(numbers)


def test_lists_of_labels_are_told():
    (told,) = combined_problems(["pos,a", "neg,b", "pos,b", "neg, a"] * 3)
    assert "such as 'neg, a': several labels of a text are not supported" in told
    assert combined_problems(["yes", "no", "yes, but", "Bonn, Germany"]) == [] == combined_problems(["a", "b", None])
    assert combined_problems(["1,5", "2,5", "3"] * 3) == []
    assert combined_problems(["Smith, John", "Miller, Ann", "Jones, Tom"]) == []


def test_a_table_of_pairs_whose_label_is_guessed(tmp_path):
    rows = "".join(f"one text {number}\tother text {number}\t{'yn'[number % 2]}\n" for number in range(8))
    (tmp_path / "a.tsv").write_text("premise\thypothesis\tgold\n" + rows)
    with pytest.raises(UsageError, match="holds pairs of texts: train `pairs`"):
        Classification.guessed_options(tmp_path / "a.tsv", configure_task("classification", {})[0])


def test_texts_of_the_training_data_are_reported(tmp_path):
    rows = [(f"a text about the number {number}", ("a", "b")[number % 2]) for number in range(20)]
    train = write(tmp_path / "a.tsv", rows)
    _, heard = job(train, write(tmp_path / "b.tsv", [(text.upper(), label) for text, label in rows]))
    assert "b.tsv: 20 of 20 examples have texts of the training data, so its scores say little of new texts" in heard[-1]
    others = [(f"another one of {number}", "a") for number in range(30)]
    _, heard = job(train, write(tmp_path / "c.tsv", [*others, rows[0]]))
    assert not heard
    _, heard = job(train, write(tmp_path / "d.tsv", [*others[:9], *rows[:3]]))  # a small file
    assert "d.tsv: 3 of 12 examples have texts of the training data" in heard[-1]


def test_short_texts_of_the_training_data_are_no_leak(tmp_path):
    config, _ = configure_task("tagging", {})
    sentences = "".join(f"A O\nlong O\nsentence O\nabout O\n{each} B-X\n\n" for each in range(40))
    (tmp_path / "a.conll").write_text("x O\n\nAnn B-X\n\n")
    (tmp_path / "b.conll").write_text("x O\n\n" * 12 + sentences)
    train, dev = (Tagging.read(tmp_path / name, config) for name in ("a.conll", "b.conll"))
    known, own = text_hashes(Tagging, train), text_hashes(Tagging, dev)
    assert leaked_examples(Tagging, known, dev) == 0 and leaked_examples(Tagging, own, dev) == 52


def test_rare_types_of_spans_are_named():
    sentences = [TaggedSentence([f"Ann{number}", "left"], ["B-PER", "O"], [1, 2]) for number in range(9)]
    typo = TaggedSentence(["Bob", "left"], ["B-PRE", "O"], [1, 2])
    config, _ = configure_task("tagging", {})
    assert Tagging.data_problems(sentences, config) == []
    assert Tagging.data_problems([*sentences, typo], config) == [RARE.replace("classes", "types of spans") + ": PRE (1)"]
    assert Tagging.data_problems([TaggedSentence(["a", "b"], ["N", "V"], [1, 2])], config) == []


def test_repeated_sentences_of_a_tagger_are_named_where_they_are_much():
    config, _ = configure_task("tagging", {})
    whole = [TaggedSentence(["We", "met", name, "there"], ["O", "O", "B-PER", "O"], [1, 2, 3, 4]) for name in "abcdefghij"]
    short = TaggedSentence(["Thanks"], ["O"], [1])
    assert Tagging.data_problems([*whole, short, short, short], config) == []
    assert Tagging.data_problems([*whole, *whole[:2]], config) == ["2 of 12 sentences repeat another, words and tags"]


def test_a_file_with_labels_of_its_own_is_refused(tmp_path):
    train = write(tmp_path / "a.tsv", [("good", "positive"), ("bad", "negative"), ("fine", "positive")])
    dev = write(tmp_path / "b.tsv", [("so good", "Pos."), ("so bad", "Neg.")] * 3)
    with pytest.raises(
        UsageError, match=r"b.tsv has the labels 'Pos.', 'Neg.', and none is one .*\('negative', 'positive'\): rename"
    ):
        job(train, dev)
    job(train, write(tmp_path / "b.tsv", [("so good", "Pos.")]))  # one example with a label of its own is chance


def test_scores_of_another_file_need_not_be_those_of_the_training_data(tmp_path):
    for name, first in (("a.tsv", 0.5), ("b.tsv", 0.75)):
        rows = [f"one {number}\tanother {number}\t{number + first}\n" for number in range(8)]
        (tmp_path / name).write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
    config, _ = configure_task("pairs", {"goal": "score"})
    files = module.DataFiles(tmp_path / "a.tsv", tmp_path / "b.tsv", tmp_path / "b.tsv")
    data = module.TaskJob("pairs", files, "run", "none")._read(config, 0, list[str]().append)
    assert len(data.dev) == len(data.test) == 8


def test_a_class_named_none_is_reported():
    found = label_problems(["x", "y", "z", "u"], ["a", "b", "None", "None"])
    assert found[-1] == "'None' is read as a class (2 examples); if it means that there is no label, leave the cells empty"


def test_types_of_spans_that_differ_only_in_case_are_one(tmp_path):
    train, other = tmp_path / "train.conll", tmp_path / "other.conll"
    train.write_text("Ann B-PER\nsaw O\nRome B-LOC\n\n" * 8 + "Bob B-Per\nran O\n\n")
    other.write_text("Ann B-per\nleft O\nRome B-loc\n")
    heard, (config, _) = [], configure_task("tagging", {})
    data = module.TaskJob("tagging", module.DataFiles(train, other), "run", "none")._read(config, 0, heard.append)
    assert f"{train}: labels that differ only in case or blanks are one: 'Per' are read as 'PER'" in heard
    assert (
        f"{other}: labels that differ only in case or blanks are one: 'loc' are read as 'LOC'; 'per' are read as 'PER'" in heard
    )
    assert data.train[-1].tags == ["B-PER", "O"] and data.dev[0].tags == ["B-PER", "O", "B-LOC"]
    found, _ = Tagging.merge_labels(data.dev, config, ["O", "S-Per", "B-loc"])
    assert found[0].tags == ["B-Per", "O", "B-loc"]
    plain = [TaggedSentence(["so", "So"], ["a", "A"])]
    assert Tagging.merge_labels(plain, config, ["a"]) == (plain, {})
