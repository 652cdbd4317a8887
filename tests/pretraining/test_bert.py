"""BERT's pairs and masks by their shares, its loss by the library's own, and a run that goes on to the same weights."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import PolysemeError
from polyseme.base.run import Run
from polyseme.encoders.bert import Bert
from polyseme.pretraining.bert import BertObjective
from polyseme.pretraining.bert_batches import IGNORED, BertBatch, BertBatches, sample_units
from polyseme.pretraining.subword_config import BertPretraining, MaskingConfig, default_optim
from polyseme.pretraining.subword_tokenizer import repeated, train_tokenizer
from polyseme.text.corpus import Corpus
from polyseme.text.shards.shards import Shards
from polyseme.text.shards.subwords import SubwordShards
from polyseme.text.subwords import SubwordTokenizer, train_bpe, train_wordpiece
from polyseme.training.config import TrainConfig

transformers = pytest.importorskip("transformers", reason="needs the extra `transformers`")
MARKS = 5
WORDS = [a + b for a in ("ba", "ri", "mo", "ze", "ca") for b in ("nk", "ver", "ney", "bra", "t", "ts")]


def write_text(path: Path, documents: int, seed: int = 0) -> Path:
    """Documents of 1 to 9 sentences whose words all have the document's own number, so that a pair's origin is plain."""
    source = np.random.default_rng(seed)
    lines = []
    for number in range(documents):
        words = lambda: " ".join(f"{source.choice(WORDS)} {number}" for _ in range(source.integers(1, 9)))  # noqa: B023, E731
        lines.append(" . ".join(words() for _ in range(source.integers(1, 10))) + " .")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def shards(tmp_path_factory) -> tuple[SubwordShards, SubwordTokenizer]:
    folder = tmp_path_factory.mktemp("bert")
    corpus = Corpus(write_text(folder / "text.txt", 1500), workers=0)
    pieces = SubwordTokenizer(train_wordpiece(corpus, 200))
    return SubwordShards.build(Shards.build(corpus, folder), pieces), pieces


def stream(shards: tuple[SubwordShards, SubwordTokenizer], pairs: int, length: int = 48, **masking) -> list[BertBatch]:
    batches = BertBatches(
        shards[0],
        range(len(shards[0])),
        shards[1],
        masking=MaskingConfig(**masking),
        max_length=length,
        batch_subwords=8192,
        run=Run(seed=3),
    )
    found, count = [], 0
    for batch in batches:
        found.append(batch)
        count += len(batch.related)
        if count >= pairs:
            return found
    raise AssertionError


# ---- text as pieces


def test_shards_hold_the_text(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("The banks lent. Money came.\n\nRivers flow.\n")
    corpus = Corpus(tmp_path / "t.txt", workers=0)
    pieces = SubwordTokenizer(train_wordpiece(corpus, 40))
    words = Shards.build(corpus, tmp_path)
    shards = SubwordShards.build(words, pieces)
    assert len(shards) == 2 and [len(shards.document(n)) - 1 for n in (0, 1)] == [2, 1]
    ids, begins = shards.subwords(0, int(shards.sentences[-1]))
    expected = [piece for sentence in corpus for word in pieces.encode_words(sentence) for piece in word]
    assert ids.tolist() == expected and begins.sum() == 4 + 3 + 3 == shards.words(range(2))
    assert pieces.encode_words(["banks"])[0] == ids[begins.nonzero()[0][1] : begins.nonzero()[0][2]].tolist()
    again = SubwordShards.build(words, pieces, progress=lambda words: pytest.fail("encoded again"))
    assert (again.marked == shards.marked).all()


def test_runs_that_share_a_folder_learn_their_pieces_once(tmp_path: Path) -> None:
    text = write_text(tmp_path / "t.txt", 5)
    learned: list[int] = []

    def learn(sentences):
        learned.append(1)
        return train_wordpiece(sentences, 60)

    shared, other = (Shards.build(Corpus(text, workers=0), tmp_path / name) for name in ("shared", "other"))
    for _ in range(2):
        train_tokenizer(shared, {"pieces": 60}, learn)
    assert len(learned) == 1
    train_tokenizer(other, {"pieces": 60}, learn)
    train_tokenizer(shared, {"pieces": 50}, learn)
    assert len(learned) == 3


def test_a_tokenizer_learns_the_same_from_counted_words_as_from_sentences(tmp_path: Path) -> None:
    names = ("bank", "banks", "river", "rivers", "lend", "lender", "money", "monetary")
    lines = [" ".join(names[: 1 + number % len(names)]) for number in range(40)]  # no two words equally often
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    corpus = Corpus(tmp_path / "t.txt", workers=0)
    words = Shards.build(corpus, tmp_path)
    for train in (lambda text: train_wordpiece(text, 45), lambda text: train_bpe(text, 275)):
        from_sentences, from_counts = train(corpus), train(repeated(words))
        assert set(from_counts.get_vocab()) == set(from_sentences.get_vocab())
    assert sorted(itertools.chain(*repeated(words))) == sorted(itertools.chain(*corpus))


# ---- shares


@pytest.mark.parametrize("whole_words", [pytest.param(False, marks=pytest.mark.slow), True])
def test_shares_over_20000_pairs(shards, whole_words: bool) -> None:
    batches = stream(shards, 20_000, whole_word_mask=whole_words)
    pieces = told = masked = kept = other = related = pairs = 0
    mask = shards[1].special_token_id("mask")
    for batch in batches:
        wanted = batch.targets != IGNORED
        pieces += int(batch.attention.sum()) - 3 * len(batch.related)
        told += int(wanted.sum())
        masked += int((batch.ids[wanted] == mask).sum())
        kept += int((batch.ids[wanted] == batch.targets[wanted]).sum())
        other += int(((batch.ids[wanted] != batch.targets[wanted]) & (batch.ids[wanted] != mask)).sum())
        related += int(batch.related.sum())
        pairs += len(batch.related)
        assert (batch.targets[wanted] >= MARKS).all()  # marks are never hidden
        assert (batch.ids[~wanted & (batch.attention == 1)] != mask).all()
    assert pairs >= 20_000
    lucky = 1 / (len(shards[1]) - MARKS)  # a random piece may be the right one
    assert told / pieces == pytest.approx(0.15, abs=0.0015)  # 1 % of it
    assert masked / told == pytest.approx(0.80, abs=0.008)
    assert kept / told == pytest.approx(0.10 + 0.10 * lucky, abs=0.004)
    assert other / told == pytest.approx(0.10 * (1 - lucky), abs=0.004)
    assert related / pairs == pytest.approx(0.5, abs=0.01)


def test_pairs_are_what_they_are_called(shards) -> None:
    store, pieces = shards
    maker = BertBatches(store, range(len(store)), pieces, masking=MaskingConfig(), max_length=48, batch_subwords=4096)
    owner = np.searchsorted(store.sentences[store.documents], np.arange(len(store.marked)), side="right") - 1
    pairs = [pair for plan in maker.plans(0, 0) for pair in plan.pairs]
    covered = np.zeros(len(store.marked), dtype=int)
    for (a, b), (c, d), related in pairs:
        assert a < b and c < d and b - a + d - c <= 45
        assert len(set(owner[a:b])) == len(set(owner[c:d])) == 1
        assert (owner[a] == owner[c]) == related
        if related:
            assert 0 <= c - b <= 45  # it follows, but for what was cut for want of room
            covered[c:d] += 1
        covered[a:b] += 1
    assert (covered > 0).mean() > 0.75  # all the text is read, but for cuts, which are many where there is little room
    assert covered.max() == 1


def test_a_batch_is_as_large_as_it_may_be(shards) -> None:
    store, pieces = shards
    plan = BertBatches(store, range(len(store)), pieces, masking=MaskingConfig(), max_length=48, batch_subwords=16384).plans(
        0, 0
    )
    for batch in plan[:-1]:
        longest = max(pair.subwords for pair in batch.pairs) + 3
        assert len(batch.pairs) == 16384 // longest > 128  # pieces are counted, and not pairs


def test_whole_word_mask(shards) -> None:
    continues = [token.startswith("##") for token in shards[1].tokenizer.convert_ids_to_tokens(range(len(shards[1])))]
    several = 0
    for batch in stream(shards, 300, whole_word_mask=True):
        for ids, targets, segments in zip(batch.ids, batch.targets, batch.segments, strict=True):
            truth = np.where(targets == IGNORED, ids, targets)
            for place in range(2, len(ids)):
                if continues[truth[place]] and segments[place] == segments[place - 1] and truth[place - 1] >= MARKS:
                    assert (targets[place] == IGNORED) == (targets[place - 1] == IGNORED)
                    several += targets[place] != IGNORED
    assert several > 10


def test_chosen_units_never_break() -> None:
    source = np.random.default_rng(0)
    begins = np.array([1, 0, 0, 1, 1, 0, 1], dtype=bool)
    total = np.zeros(7)
    for _ in range(4000):
        taken = sample_units(begins, np.array([7]), 0.3, source)
        assert taken[0] == taken[1] == taken[2] and taken[4] == taken[5]
        total += taken
    assert total.sum() / 4000 == pytest.approx(0.3 * 7, abs=0.06)


def test_many_texts_are_chosen_from_as_one_by_one() -> None:
    source = np.random.default_rng(5)
    lengths = np.array([6, 1, 9, 30])
    begins = source.random(46) < 0.5
    for share in (0.15, 0.5, 1.0):
        found = sample_units(begins, lengths, share, np.random.default_rng(8))
        draws = np.random.default_rng(8)
        units = [  # (text, its pieces)
            (text, run)
            for text, (first, end) in enumerate(zip(np.cumsum(lengths) - lengths, np.cumsum(lengths), strict=True))
            for run in np.split(np.arange(first, end), np.flatnonzero(begins[first + 1 : end]) + 1)
        ]
        turns, luck = draws.random(len(units)), draws.random(len(units))
        order = sorted(range(len(units)), key=lambda unit: (units[unit][0], turns[unit]))
        expected, taken_of = np.zeros(46, dtype=bool), [0] * len(lengths)
        for turn, unit in enumerate(order):
            text, run = units[unit]
            expected[run] = luck[turn] * len(run) < share * lengths[text] - taken_of[text]
            taken_of[text] += len(run)
        assert (found == expected).all()
    assert sample_units(begins, lengths, 1.0, source).all()


def test_a_batch_as_pair_by_pair(shards) -> None:
    store, pieces = shards
    batch = stream(shards, 30, mlm_probability=0.5, mask_replace_prob=0.0, random_replace_prob=0.0)[
        0
    ]  # half are to be told, and none is hidden
    plan = BertBatches(
        store, range(len(store)), pieces, masking=MaskingConfig(), max_length=48, batch_subwords=8192, run=Run(seed=3)
    )
    made = {}
    for pairs in (each.pairs for each in plan.plans(0, 0)):
        for pair in pairs:
            (one, _), (two, _) = store.subwords(*pair.first), store.subwords(*pair.second)
            marks = [pieces.special_token_id(name) for name in ("cls", "sep", "sep")]
            made[(marks[0], *one.tolist(), marks[1], *two.tolist(), marks[2])] = (len(one) + 2, len(two) + 1, pair.related)
    for row in range(len(batch.ids)):
        length = int(batch.attention[row].sum())
        first, second, related = made[tuple(batch.ids[row, :length].tolist())]
        assert batch.segments[row].tolist() == [0] * first + [1] * second + [0] * (batch.ids.shape[1] - length)
        marks = [0, first - 1, *range(length - 1, batch.ids.shape[1])]
        assert batch.related[row] == related and (batch.targets[row, marks] == IGNORED).all()
        told = batch.targets[row] != IGNORED
        assert (batch.targets[row, told] == batch.ids[row, told]).all() and 0 < told.sum() < length - 3
        assert (batch.ids[row, length:] == pieces.special_token_id("pad")).all() and (batch.attention[row, :length] == 1).all()


# ---- the stream


def test_dynamic_and_static(shards) -> None:
    store, pieces = shards
    few = range(40)

    def epochs(static: bool) -> list[set[bytes]]:
        masking = MaskingConfig(static_masking=static)
        batches = BertBatches(store, few, pieces, masking=masking, max_length=48, batch_subwords=512)
        found: list[set[bytes]] = [set(), set()]
        for batch in batches:
            epoch = batches.position()["epoch"]
            if epoch > 1:
                return found
            found[epoch].add(batch.ids.tobytes() + batch.targets.tobytes())
        raise AssertionError

    first, second = epochs(True)
    assert first == second
    first, second = epochs(False)
    assert not first & second


def test_positions_and_ranks(shards) -> None:
    store, pieces = shards

    def make(**place: int) -> BertBatches:
        return BertBatches(
            store, range(60), pieces, masking=MaskingConfig(), max_length=48, batch_subwords=512, run=Run(**place)
        )

    one, other = make(), make()
    stream_one = iter(one)
    for _ in range(17):
        next(stream_one)
    other.seek(json.loads(json.dumps(one.position())))
    for _ in range(20):
        assert (next(stream_one).ids == next(iter(other)).ids).all()
    shares = [iter(make(rank=rank, world_size=2)) for rank in (0, 1)]
    whole = iter(make())
    for _ in range(5):
        for share in shares:
            assert (next(share).ids == next(whole).ids).all()


# ---- the loss


def model_of(pieces: SubwordTokenizer) -> Bert:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.BertConfig(vocab_size=len(pieces), max_position_embeddings=48, **sizes)
    return Bert(Bert.default_config(), network=transformers.BertForPreTraining(config), tokenizer=pieces.tokenizer).eval()


def test_the_loss_is_the_librarys(shards) -> None:
    batch = stream(shards, 10)[0]
    objective = BertObjective(model_of(shards[1]))
    with torch.no_grad():
        found = objective.loss(objective.prepare(batch))
    theirs = objective.model.network(
        input_ids=torch.from_numpy(batch.ids),
        token_type_ids=torch.from_numpy(batch.segments),
        attention_mask=torch.from_numpy(batch.attention),
        labels=torch.from_numpy(batch.targets),
        next_sentence_label=torch.from_numpy(~batch.related).long(),
    )
    assert float(found.total) == pytest.approx(theirs.loss.item(), rel=1e-5)
    assert float(found.components["masked"] + found.components["next"]) == pytest.approx(float(found.total), rel=1e-5)
    scores = objective.evaluate([batch])
    assert scores["loss"] == pytest.approx(float(found.total), rel=1e-5)
    with pytest.raises(PolysemeError, match=r"the held-out text .* is too short for a pair of texts"):
        objective.evaluate([])  # and not a perfect score


# ---- a run


def run_of(folder: Path, out: str, steps: int) -> Path:
    config = BertPretraining(
        vocabulary_size=120, max_length=32, batch_subwords=256, train=TrainConfig(steps=steps, eval_every=4)
    )
    corpus = Corpus(folder / "text.txt", workers=0)
    config.fit(corpus, Run(seed=1), folder / out, accept_changes=True)
    return folder / out


def test_a_run_learns_goes_on_and_opens_everywhere(tmp_path: Path) -> None:
    write_text(tmp_path / "text.txt", 30)
    out = run_of(tmp_path, "m", 8)
    assert transformers.AutoModel.from_pretrained(out).config.hidden_size == 128
    model = polyseme.load(out)
    assert isinstance(model, Bert) and model.splitter.name == "english" and model.window == 32
    assert len(model.fill("The [MASK] of 7 .", count=3)[0]) == 3
    assert "held_out_masked_perplexity" in (out / "README.md").read_text().replace(" ", "_")
    losses = [json.loads(line) for line in (out / "run" / "log.jsonl").read_text().splitlines()]
    assert losses
    half = run_of(tmp_path, "n", 4)
    run_of(tmp_path, "n", 8)
    told = [json.loads(line) for line in (half / "run" / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in told if line["kind"] == "dev"] == [4, 8]  # and not 4 again


@pytest.mark.slow
def test_it_learns_where_nouns_stand(tmp_path: Path) -> None:
    source, lines = np.random.default_rng(0), []
    topics = [["cat", "dog", "fur", "paw"], ["bank", "money", "loan", "cash"], ["river", "water", "boat", "fish"]]
    for number in range(300):
        words = topics[number % 3]
        lines.append(" ".join(f"The {one} likes the {words[words.index(one) - 3]} ." for one in source.choice(words, 6)))
    (tmp_path / "t.txt").write_text("\n".join(lines) + "\n")
    train = TrainConfig(steps=200, optim=default_optim(1e-3))
    config = BertPretraining(vocabulary_size=100, max_length=48, batch_subwords=1024, dropout=0.0, train=train)
    result = config.fit(Corpus(tmp_path / "t.txt", workers=0), Run(seed=1), tmp_path / "m")
    assert result.scores["masked_perplexity"] < 3  # by frequencies alone it is 9
    filled = polyseme.load(tmp_path / "m").fill("The cat likes the [MASK] . The dog likes the fur .", count=4)[0]
    assert {each.subword for each in filled} <= {word for topic in topics for word in topic}


def test_mistakes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vocabulary_size is 3; .*length is 4; .*dropout is 1"):
        BertPretraining(vocabulary_size=3, max_length=4, dropout=1.0)
    with pytest.raises(ConfigError, match=r"mlm_probability is 0.0"):
        MaskingConfig(mlm_probability=0.0)
    (tmp_path / "t.txt").write_text("One line .\n")
    with pytest.raises(
        PolysemeError,
        match="the text has 1 document; blank lines separate them, or each line is one: training needs at least 2",
    ):
        BertPretraining(vocabulary_size=30).fit(Corpus(tmp_path / "t.txt", workers=0), Run(), tmp_path / "m")
    (tmp_path / "t.txt").write_text("a\nb\nc\n")
    config = dataclasses.replace(BertPretraining(vocabulary_size=30), train=TrainConfig(steps=1))
    with pytest.raises(PolysemeError, match="nothing to predict"):
        config.fit(Corpus(tmp_path / "t.txt", workers=0), Run(), tmp_path / "m")


def test_a_larger_vocabulary_is_reported_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    corpus = Corpus(write_text(tmp_path / "t.txt", 30), workers=0)
    for pieces, out in ((20, "few"), (20, "few"), (120, "enough")):
        config = BertPretraining(vocabulary_size=pieces, max_length=32, batch_subwords=256, train=TrainConfig(steps=1))
        config.fit(corpus, Run(seed=1), tmp_path / out)
    made = len(train_wordpiece(corpus, 20))
    assert made > 20 and [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        f"the vocabulary has {made} subwords: the text has more characters than vocabulary_size=20 allows"
    ]
