"""What every ELMo holds to: the same vectors in any company, each start state, texts of any length, gradients."""

from __future__ import annotations

import copy
import io
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from polyseme.base.config import ConfigError
from polyseme.base.errors import UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import SIZES, ElmoConfig
from polyseme.nn.config import LstmConfig, TransformerConfig
from polyseme.nn.lstm.layers import plain_only
from tests.encoders.small import CHARACTERS, WARM_UP, WORDS, elmo, sentences

TEXTS = sentences(20)  # of 0 to 12 words


def assert_close(found: list[np.ndarray], expected: list[np.ndarray], atol: float = 1e-6) -> None:
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, atol=atol)


@pytest.mark.parametrize("form", ["characters", "words", "both"])
def test_shapes(form: str) -> None:
    found = elmo(form=form).embed(["the cat", [], ["river"]])
    assert [array.shape for array in found] == [(3, 2, 16), (3, 0, 16), (3, 1, 16)]
    assert all(array.dtype == np.float32 for array in found)
    np.testing.assert_array_equal(found[0][0, :, :8], found[0][0, :, 8:])


def test_context_changes_the_upper_layers_only() -> None:
    river, money = elmo().embed(["the bank of the river", "the bank money"])
    np.testing.assert_allclose(river[0, 1], money[0, 1], atol=1e-6)
    assert np.abs(river[1:, 1] - money[1:, 1]).max() > 1e-3


@pytest.mark.parametrize("start", ["zero", "learned", "warm"])
def test_company_does_not_matter(start: str) -> None:
    model = elmo(start="learned")
    alone = [model.embed([text], start=start)[0] for text in TEXTS]
    order = np.random.default_rng(0).permutation(len(TEXTS))
    assert_close(model.embed(TEXTS, start=start), alone)
    assert_close(model.embed([TEXTS[i] for i in order], start=start, batch_words=30, batch_size=5), [alone[i] for i in order])
    with plain_only():
        assert_close(model.embed(TEXTS, start=start, batch_size=3), alone)


def test_start_states_differ_and_the_config_says_which_is_taken() -> None:
    model = elmo(start="learned")
    found = {start: model.embed([["cat"]], start=start)[0] for start in ("zero", "learned", "warm")}
    assert np.abs(found["zero"] - found["learned"]).max() > 1e-3
    assert np.abs(found["zero"] - found["warm"]).max() > 1e-4
    assert_close(model.embed([["cat"]]), [found["learned"]])
    assert_close(elmo().embed([["cat"]]), [found["zero"]])


def test_warm_is_the_state_after_fifty_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("polyseme.encoders.elmo.WARM_UP", WARM_UP)
    model = elmo()
    assert WARM_UP == 50
    for _ in range(WARM_UP):
        model.embed([["."]], start="carry", batch_size=1)
    expected = model.embed([["cat", "sat"]], start="carry", batch_size=1)
    assert_close(model.embed([["cat", "sat"]], start="warm"), expected)


def test_carry_keeps_rows_in_arrival_order() -> None:
    """Row k goes on from row k of the batch before; a shorter batch leaves the rows beyond it alone."""
    model = elmo()
    batches = [TEXTS[0:3], TEXTS[3:5], TEXTS[5:8]]
    found = [array for batch in batches for array in model.embed(batch, start="carry", batch_size=3)]
    expected: list[np.ndarray] = [np.zeros(0)] * 8
    for places in ([0, 3, 5], [1, 4, 6], [2, 7]):
        alone = elmo()
        for place in places:
            expected[place] = alone.embed([TEXTS[place]], start="carry", batch_size=1)[0]

    assert_close(found, expected)
    model.reset_state()
    assert_close(model.embed(TEXTS[:3], start="carry"), model.embed(TEXTS[:3], start="zero"))


@pytest.mark.parametrize("start", ["zero", "carry"])
def test_chunks_change_nothing(start: str) -> None:
    texts = [["the", "cat", "sat", "on"] * 25, ["bank"], ["river", "money"] * 20]
    model = elmo()
    whole = model.embed(texts, start=start, batch_words=10_000, batch_size=3)
    model.reset_state()
    assert_close(model.embed(texts, start=start, batch_words=7, batch_size=3), whole)


@pytest.mark.slow
def test_a_long_text_needs_little_beyond_its_vectors() -> None:
    """20,000 words: the vectors are 15 MB; without chunks the input products alone would take more than that."""
    code = (
        "import resource\n"
        "from polyseme.nn.lstm.elmo_lstm import LstmConfig\n"
        "from tests.encoders.small import elmo\n"
        "model = elmo(lstm=LstmConfig(cell_size=64, projection_size=32)); model.embed([['cat'] * 5000])\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "vectors = model.embed([['the', 'cat', 'sat', 'on'] * 5000])[0]\n"
        "after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "print((after - before) * 1024 / vectors.nbytes)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(found) < 1.5


@pytest.mark.parametrize("choice", ["top", "mean", 0, 1, 2, [2, 0], (1,)])
def test_layer_choice(choice: str | int | list[int]) -> None:
    model = elmo()
    full, chosen = model.embed(TEXTS), model.embed(TEXTS, layers=choice)  # type: ignore[arg-type]
    pick = {"top": lambda a: a[2], "mean": lambda a: a.mean(0)}.get(
        str(choice), lambda a: a[list(choice) if isinstance(choice, list | tuple) else choice]
    )
    assert_close(chosen, [pick(array) for array in full])
    (document,) = model.embed_documents([TEXTS[:2]], layers=choice)  # type: ignore[arg-type]
    assert [array.ndim for array in document] == [chosen[0].ndim] * 2


def test_single_words_as_sentences_get_a_warning() -> None:
    model = elmo()
    with pytest.warns(UserWarning, match=r"each of the 2 sentences is a single word; .* \[\['the', 'cat', \.\.\.\]\]") as seen:
        model.encode(["the", "cat"])
    assert len(seen) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.embed(["the cat", "cat"])
        model.embed([["the"], ["cat"]])
        model.embed(["cat"])


def test_calling_a_model_with_texts() -> None:
    for texts in (["the cat"], "the cat", None):
        with pytest.raises(UsageError, match=r"call model\.embed\(\[\.\.\.\]\) for arrays"):
            elmo()(texts)


def test_numbers_of_numpy_are_numbers() -> None:
    model = elmo()
    found = model.embed(TEXTS, layers=np.int64(1), batch_words=np.int32(50), batch_size=np.int64(4))
    assert_close(found, model.embed(TEXTS, layers=1))


def test_forward_gives_what_embed_gives() -> None:
    model = elmo(start="learned")
    texts = [text for text in TEXTS[:6] if text]
    layers = model(model.prepare(texts))
    assert layers.states.shape == (3, len(texts), max(map(len, texts)), 16)
    assert layers.ends is not None and layers.ends.shape == (3, len(texts), 2, 16)
    for row, (text, array) in enumerate(zip(texts, model.embed(texts), strict=True)):
        np.testing.assert_allclose(layers.states[:, row, : len(text)].detach(), array, atol=1e-6)
        assert layers.mask[row].sum() == len(text)
        assert not layers.states[:, row, len(text) :].any()


@pytest.mark.parametrize("form", ["characters", "words", "both"])
def test_gradients_reach_every_weight_and_freezing_stops_them(form: str) -> None:
    model = elmo(form=form, start="learned")
    model(model.prepare(["the cat sat", "a dog"])).states.square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    model.zero_grad(set_to_none=True)
    model.freeze()
    model.unfreeze("layer2")
    model(model.prepare(["the cat sat"])).states.square().sum().backward()
    trained = {name for name, p in model.named_parameters() if p.grad is not None}
    assert trained and all("_layers.1." in name for name in trained)


def test_training_changes_what_embed_gives() -> None:
    """The word cache and the prepared weights follow the weights."""
    model = elmo()
    before = model.embed(["the cat"])[0]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(model.prepare(["the cat"])).states.square().sum().backward()
    optimizer.step()
    after = model.embed(["the cat"])[0]
    assert np.abs(before - after).max() > 1e-3
    with plain_only():
        assert_close([after], model.embed(["the cat"]))


def test_threads_may_share_a_model() -> None:
    model = elmo()
    texts = sentences(40, seed=5)
    expected = model.embed(texts)
    for _ in range(5):
        model.cache.clear()
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda start: model.embed(texts[start::4]), range(4)))
        for start in range(4):
            assert_close(found[start], expected[start::4])


def test_copies() -> None:
    model = elmo(start="learned")
    expected = model.embed(TEXTS, start="warm")
    again = copy.deepcopy(model)
    assert_close(again.embed(TEXTS, start="warm"), expected)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    assert_close(torch.load(buffer, weights_only=False).embed(TEXTS, start="warm"), expected)


def test_autocast() -> None:
    model = elmo()
    expected = model.embed(TEXTS[:5])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_close(model.embed(TEXTS[:5]), expected, atol=0.1)
        layers = model(model.prepare(TEXTS[:5]))
    layers.states.float().square().sum().backward()
    assert all(p.grad is not None for p in model.parameters())


def test_writes_through_data_are_seen() -> None:
    model = elmo()
    before = model.embed(["the cat"])[0]
    for parameter in model.parameters():
        parameter.data.mul_(0.5)
    after = model.embed(["the cat"])[0]
    assert np.abs(before - after).max() > 1e-3
    model.refresh()
    assert_close(model.embed(["the cat"]), [after])


def test_carried_state_follows_the_model() -> None:
    model = elmo()
    model.embed([["cat"]], start="carry")
    assert model.double().embed([["cat"]], start="carry")[0].shape == (3, 1, 16)


def test_a_chosen_layer_does_not_keep_the_others() -> None:
    array = elmo().embed([["cat"] * 50], layers="top")[0]
    assert array.base is None or array.base.nbytes <= 2 * array.nbytes


def test_reading_builds_no_graph() -> None:
    model = elmo()
    states, _ = model.read([["cat", "sat"]], start=None)
    assert not states.requires_grad


def test_odd_words() -> None:
    odd = ["", " ", "\x00", "\ud800", "x" * 1_000_000, "\n", "<S>", "</S>", "👩‍👩‍👧", "ß" * 49]
    vectors = elmo().embed([odd])[0]
    assert vectors.shape == (3, len(odd), 16) and np.isfinite(vectors).all()


@pytest.mark.parametrize("form", ["characters", "words", "both"])
@pytest.mark.parametrize("architecture", ["narrow", "wide", "transformer"])
def test_layer_0_alone_is_layer_0_of_all(form: str, architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = LstmConfig(cell_size=6, projection_size=4, layers=1, residual=False)
    transformer = TransformerConfig(layers=1, heads=2, feedforward_size=8) if architecture == "transformer" else None
    model = elmo(form=form, transformer=transformer, **({"lstm": narrow} if architecture == "narrow" else {}))
    texts = [["the", "cat", "sat"], ["cat"], []]
    expected = [array[0] for array in model.embed(texts)]
    monkeypatch.setattr(model, "read", None)  # the network above is not run
    for found, listed, layer in zip(model.embed(texts, layers=0), model.embed(texts, layers=[0]), expected, strict=True):
        np.testing.assert_array_equal(found, layer)
        np.testing.assert_array_equal(listed[0], layer)
    with pytest.raises(UsageError, match="unknown start"):
        model.embed(texts, layers=0, start="cold")


def test_long_words_are_remembered_by_what_is_read_of_them() -> None:
    model = elmo()
    words = ["x" * 2000, "\ud800" * 2000 + "cat", "x" * 50 + "y" * 2000]
    expected = model.tokens(model.word_inputs(words)).detach().numpy()
    np.testing.assert_allclose(model.embed([words], layers=0)[0][:, :8], expected, atol=1e-6)
    assert max(map(len, model.cache._rows)) <= 50


def test_encode() -> None:
    model = elmo()
    texts = ["the cat sat", "", "dog"]
    found = model.encode(texts)
    expected = [array.mean(0).mean(0) if array.size else np.zeros(16) for array in model.embed(texts)]
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert model.encode("dog").shape == (16,)
    np.testing.assert_array_equal(model.encode(text for text in texts), found)  # as `embed` takes them
    assert isinstance(model.encode(texts, convert_to_tensor=True), torch.Tensor)
    np.testing.assert_allclose(np.linalg.norm(model.encode(texts, normalize_embeddings=True), axis=1), [1, 0, 1], atol=1e-6)
    assert model.encode(texts, layers="all", pooling="ends").shape == (3, 96)
    assert model.encode([], layers="all").shape == (0, 48)
    plain = model.encode(texts, show_progress_bar=False, convert_to_numpy=True, start="zero")
    np.testing.assert_allclose(plain, found, atol=1e-6)


def test_progress_counts_every_sentence() -> None:
    seen: list[int] = []
    elmo().embed(TEXTS, batch_size=7, progress=seen.append)
    assert sum(seen) == len(TEXTS) and len(seen) > 1


def test_a_full_device_goes_on_with_half_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = elmo()
    expected = model.embed(TEXTS)
    read = model.read

    def small(texts: list[list[str]], **options: object) -> object:
        if len(texts) > 4:
            raise torch.OutOfMemoryError("too small")
        return read(texts, **options)

    monkeypatch.setattr(model, "read", small)
    assert_close(model.embed(TEXTS), expected)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda m: m.embed("one string"), "expected a list of sentences, got one string"),
        (lambda m: m.embed(None), r"expected a list of sentences \(strings, or lists of words\), got None"),
        (lambda m: m.encode(3), "expected a list of sentences .*, got 3"),
        (lambda m: m.embed([["cat", 3]]), "this one holds 3"),
        (lambda m: m.prepare([]), "at least one sentence"),
        (lambda m: m.embed([None]), "a sentence is a string or a list of words; got None"),
        (lambda m: m.embed(["cat"], layers=1.0), "layers is 1.0"),
        (lambda m: m.embed(["cat"], layers=True), "layers is True"),
        (lambda m: m.embed(["cat"], start=""), "unknown start ''"),
        (
            lambda m: m.embed(["cat"], layers=3),
            "layers is 3; allowed: all, top, mean, a number from 0 to 2, or a list",
        ),
        (lambda m: m.embed(["cat"], layers="last"), "layers is 'last'"),
        (lambda m: m.embed(["cat"], layers=[]), r"layers is \[\]"),
        (lambda m: m.embed(["cat"], layers=[0, 3]), r"layers is \[0, 3\]"),
        (lambda m: m.embed(["cat"], start="wram"), r"unknown start 'wram' \(did you mean 'warm'\?\)"),
        (lambda m: m.embed(["cat"], start=3), r"unknown start 3 \(known: .*zero"),
        (lambda m: m.encode(["cat"], pooling=5), r"unknown pooling 5 \(known: .*mean"),
        (lambda m: m.embed(["cat"], start="learned"), "no learned state\\); allowed: zero, warm, carry"),
        (lambda m: m.start_state("carry", 1), "start='carry' is no fixed state"),
        (lambda m: m.embed(["cat"], batch_words=0), "batch_words is 0"),
        (lambda m: m.embed(["cat"], batch_words="x"), "batch_words is 'x' and batch_size is 128; allowed: whole numbers"),
        (lambda m: m.embed(["cat"], batch_size=1.5), "batch_size is 1.5; allowed: whole numbers of 1 or more"),
        (lambda m: m.embed(["cat"], start="carry", batch_size=0), "batch_size is 0"),
        (lambda m: m.freeze("layer3"), r"unknown layer group 'layer3' \(did you mean 'layer"),
        (lambda m: m.freeze(3), r"unknown layer group 3 \(known: "),
        (lambda m: setattr(m, "precision", "fp8"), r"unknown precision 'fp8'"),
        (lambda m: setattr(m, "precision", None), r"unknown precision None \(known: .*fp32"),
    ],
)
def test_mistakes(call: object, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        call(elmo())  # type: ignore[operator]


def test_a_model_needs_an_input() -> None:
    with pytest.raises(ConfigError, match="characters and words are both missing"):
        ElmoConfig(characters=None)
    with pytest.raises(ConfigError, match="set project to true"):
        ElmoConfig(characters=CHARACTERS, dim=8, project=False)
    with pytest.raises(ConfigError, match="needs a vocabulary"):
        Elmo(elmo(form="words").config)


@pytest.mark.parametrize(("size", "count"), [("small", 13_593_296), ("medium", 28_027_728), ("original", 93_600_848)])
def test_published_parameter_counts(size: str, count: int) -> None:
    with torch.device("meta"):
        model = Elmo(SIZES[size])
    # the published count leaves out the row for padding, which is never read
    assert sum(p.numel() for p in model.parameters()) - SIZES[size].characters.dim == count


def test_layers_of_different_width_are_padded() -> None:
    model = elmo(lstm=LstmConfig(cell_size=6, projection_size=None))
    vectors = model.embed([WORDS])[0]
    assert vectors.shape[2] == 16
    assert vectors[0].all(axis=0).any() and not vectors[1:, :, 6:8].any() and not vectors[1:, :, 14:].any()


def test_a_call_with_carried_state_equals_embed_and_has_gradients() -> None:
    model, other = elmo(), elmo()
    batches = [TEXTS[:3], TEXTS[3:4], TEXTS[:3]]
    for batch in batches:
        expected = other.embed(batch, start="carry", batch_size=len(batch))
        states = model(model.prepare(batch), start="carry").states
        for row, array in enumerate(expected):
            torch.testing.assert_close(states[:, row, : array.shape[1]].detach().numpy(), array, atol=1e-5, rtol=1e-5)
    states.sum().backward()  # of the last batch alone
    assert all(p.grad is not None for p in model.lstm.parameters())
    model.embed([["cat"]], start="carry")  # a state without gradients, from inference mode
    model(model.prepare([["cat"]]), start="carry").states.sum().backward()
