"""BERT, GPT and their like: words in, words out, the same vectors as the library gives, in any batch and any window."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import polyseme
from polyseme.base.config import ConfigError
from polyseme.base.errors import FormatError, MissingExtraError, PolysemeError, UsageError
from polyseme.encoders.bert import Bert
from polyseme.encoders.fingerprint import model_fingerprint
from polyseme.encoders.gpt import Gpt
from polyseme.encoders.subword_windows import windows
from tests.encoders.small_subwords import bert, byte_pairs, gpt, library, wordpieces

BOTH = [bert, gpt]
TEXTS = [["the", "bank", "of", "the", "rivers"], ["zebra"], [], ["", "\udc80", "漢", "naïve", "antidisestablishment"]]


# ---- the library's own numbers


def test_bert_is_what_the_library_computes() -> None:
    model = bert()
    words = ["the", "banks", "of", "zebras"]
    ids = wordpieces()(words, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model.network.base_model(**ids, output_hidden_states=True).hidden_states
    firsts = [ids.word_ids(0).index(number) for number in range(len(words))]
    layers = model(model.prepare([words]))
    assert ids["input_ids"].shape[1] > len(words) + 2  # some words have several pieces
    torch.testing.assert_close(layers.states[:, 0], torch.stack(hidden)[:, 0, firsts], atol=1e-6, rtol=0)
    torch.testing.assert_close(layers.summary, hidden[-1][:, 0], atol=1e-6, rtol=0)
    means = torch.stack(
        [torch.stack(hidden)[:, 0, [at for at, owner in enumerate(ids.word_ids(0)) if owner == n]].mean(1) for n in range(4)], 1
    )
    model.config = model.config.replace(subword_pooling="mean")
    torch.testing.assert_close(model(model.prepare([words])).states[:, 0], means, atol=1e-6, rtol=0)


def test_gpt_is_what_the_library_computes() -> None:
    model = gpt()
    text = " the banks of zebras"
    ids = torch.tensor([[byte_pairs().bos_token_id, *byte_pairs()(text)["input_ids"]]])
    with torch.no_grad():
        hidden = torch.stack(model.network.base_model(input_ids=ids, output_hidden_states=True).hidden_states)[:, 0]
    ends, at = [], 0
    for word in text.split():
        at += len(byte_pairs()(" " + word)["input_ids"])
        ends.append(at)
    np.testing.assert_allclose(model.embed([text.split()])[0], hidden[:, ends], atol=1e-6)
    assert model(model.prepare([text])).summary is None


# ---- the same vectors everywhere


@pytest.mark.parametrize("make", BOTH)
@pytest.mark.parametrize("pieces", ["first", "last", "mean"])
def test_batch_order_and_padding_change_nothing(make, pieces: str) -> None:
    model = make(subword_pooling=pieces)
    expected = [model.embed([text])[0] for text in TEXTS]
    for settings in ({}, {"batch_size": 1}, {"batch_words": 6}):
        for order in (TEXTS, TEXTS[::-1]):
            found = model.embed(order, **settings)
            for one, other in zip(expected, found if order is TEXTS else found[::-1], strict=True):
                np.testing.assert_allclose(one, other, atol=2e-6)
    assert [array.shape for array in expected] == [(3, len(text), 8) for text in TEXTS]


@pytest.mark.parametrize("make", BOTH)
def test_context_counts_and_gpt_never_sees_the_future(make) -> None:
    model = make(subword_pooling="mean")
    before, after = model.embed([["the", "bank", "of", "the", "river"], ["the", "bank", "of", "a", "zebra"]])
    same = np.abs(before - after)[:, :3].max(-1)
    assert (same[0] < 1e-6).all()  # layer 0 is the word alone
    assert (same < 1e-6).all() if model.causal else (same[1:] > 1e-4).all()
    assert np.abs(before[1:, 0] - before[1:, 3]).max() > 1e-4  # the same word elsewhere


# ---- long texts


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 23, 100])
def test_windows_take_every_piece_once(count: int, causal: bool) -> None:
    for overlap in (0.0, 0.3, 0.5, 0.9):
        found = windows(count, 8, overlap, causal=causal)
        assert [place for window in found for place in range(window.first, window.last)] == list(range(count))
        assert all(w.begin <= w.first <= w.last <= w.end <= w.begin + 8 for w in found)
        for window in found[1:]:  # the context that an overlap promises
            shared = int(overlap * 8)
            assert window.first - window.begin >= (shared if causal else shared // 2)


@pytest.mark.parametrize("make", BOTH)
def test_long_texts_and_long_words_lose_nothing(make) -> None:
    model = make(positions=16, subword_pooling="mean")
    long = ["the", "bank", "antidisestablishment" * 4, "of", "rivers"] * 9
    found = model.embed([long, ["zebra"]])
    assert found[0].shape == (3, 45, 8) and np.abs(found[0]).sum(-1).min() > 0
    np.testing.assert_allclose(model.embed([long])[0], found[0], atol=2e-6)
    short = make(positions=16)
    whole = short.embed([["the", "bank"]])[0]
    if model.causal:  # what fits into the first window does not change with what follows
        np.testing.assert_allclose(short.embed([["the", "bank", *long]])[0][:, :2], whole, atol=2e-6)


def test_a_window_is_read_as_the_library_reads_it() -> None:
    """Pieces of a middle window, computed by hand."""
    model = bert(positions=10)  # room for 8
    words = ["the", "bank", "of", "river", "money", "in"] * 4  # 24 pieces
    ids = [wordpieces().convert_tokens_to_ids(word) for word in words]
    cls, sep = wordpieces().cls_token_id, wordpieces().sep_token_id
    assert wordpieces().unk_token_id not in ids
    with torch.no_grad():
        middle = model.network.base_model(torch.tensor([[cls, *ids[4:12], sep]])).last_hidden_state[0]
    found = model.embed([words], layers="top")[0]
    np.testing.assert_allclose(found[6:10], middle[3:7], atol=1e-6)  # windows begin at 0, 4, 8, ...: 6 to 9 are its own
    summary = model(model.prepare([words])).summary
    assert summary is not None and summary.shape == (1, 8)


# ---- learning


@pytest.mark.parametrize("make", BOTH)
def test_parts_freeze_one_by_one(make) -> None:
    model = make()
    own = [] if model.causal else ["output"]  # GPT's head is the table of its embeddings and has no weights of its own
    assert list(model.layer_groups()) == ["embeddings", "layer1", "layer2", *own]
    model.freeze()
    model.unfreeze("layer2")
    layers = model(model.prepare([["the", "bank"]]))
    layers.states.square().sum().backward()
    moved = {name for name, weight in model.named_parameters() if weight.grad is not None}
    assert moved and all(".1." in name or "ln_f" in name for name in moved)
    model.unfreeze("embeddings")
    for part in own:
        model.freeze(part)  # tied to the embeddings, which stay as they are
    assert model.network.get_input_embeddings().weight.requires_grad
    with pytest.raises(UsageError, match="unknown layer group 'layer3'"):
        model.freeze("layer3")


# ---- folders


@pytest.mark.parametrize(("make", "head"), [(bert, "BertForPreTraining"), (bert, "BertModel"), (gpt, "GPT2LMHeadModel")])
def test_the_folder_opens_in_both_libraries(tmp_path: Path, make, head: str) -> None:
    model = make(head=head, subword_pooling="mean")
    folder = model.save_pretrained(tmp_path / "m")
    theirs = library().AutoModel.from_pretrained(folder)
    for name, value in theirs.state_dict().items():
        torch.testing.assert_close(value, model.body.state_dict()[name], rtol=0, atol=0)
    assert library().AutoTokenizer.from_pretrained(folder)("the bank")["input_ids"]
    again = polyseme.load(folder)
    assert type(again) is type(model) and again.config == model.config
    assert list(again.layer_groups()) == list(model.layer_groups())
    assert (again.network.get_output_embeddings() is not None) == (head != "BertModel")
    assert model_fingerprint(again) == model_fingerprint(model) == model_fingerprint(polyseme.load(folder))
    np.testing.assert_array_equal(again.embed(TEXTS)[0], model.embed(TEXTS)[0])
    again.save_pretrained(tmp_path / "m")  # over itself
    assert "polyseme" not in json.loads((tmp_path / "m/config.json").read_text())["polyseme"]
    half = polyseme.load(model.save_pretrained(tmp_path / "half", precision="fp16"))
    np.testing.assert_allclose(half.embed(TEXTS)[0], model.embed(TEXTS)[0], atol=0.05)


@pytest.mark.parametrize("make", BOTH)
def test_published_folders(tmp_path: Path, make) -> None:
    model = make()
    model.network.save_pretrained(tmp_path)
    model.subwords.tokenizer.save_pretrained(tmp_path)
    found = polyseme.load(tmp_path)
    assert type(found) is type(model) and found.source == str(tmp_path) and not found.training
    assert found.splitter.name == ("whitespace" if make is gpt else "characters")
    assert found.config.subword_pooling == ("last" if make is gpt else "first")
    np.testing.assert_array_equal(found.embed(TEXTS)[0], model.embed(TEXTS)[0])
    assert polyseme.load(tmp_path, subword_pooling="mean", splitter="english").config.subword_pooling == "mean"
    with pytest.raises(ConfigError, match="subword_pooling is 'middle'; allowed: first, last, mean"):
        polyseme.load(tmp_path, subword_pooling="middle")
    with pytest.raises(UsageError, match="vocabulary does not apply to a model of the transformers library"):
        polyseme.load(tmp_path, vocabulary=tmp_path / "config.json")


def test_a_fine_tuned_model_keeps_its_body_and_no_random_weights(tmp_path: Path) -> None:
    model = bert(head="BertForTokenClassification")
    model.network.save_pretrained(tmp_path)
    wordpieces().save_pretrained(tmp_path)
    found, again = polyseme.load(tmp_path), polyseme.load(tmp_path)
    assert "output" not in found.layer_groups() and not any("pooler" in name for name, _ in found.named_parameters())
    np.testing.assert_array_equal(found.embed(TEXTS)[0], model.embed(TEXTS)[0])
    assert model_fingerprint(found) == model_fingerprint(again)


OTHER_FAMILIES = [
    *("Roberta", "DistilBert", "Electra", "GPTNeo", "GPTNeoX"),
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("XLMRoberta", "Camembert")),  # of the same family as Roberta
]


@pytest.mark.parametrize("kind", OTHER_FAMILIES)
def test_other_families(tmp_path: Path, kind: str) -> None:
    sizes = {"hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 20}
    layers = {"num_layers": 2, "attention_types": [[["global"], 2]]} if kind == "GPTNeo" else {"num_hidden_layers": 2}
    if kind == "DistilBert":
        sizes, layers = {"dim": 8, "n_heads": 2, "hidden_dim": 16, "max_position_embeddings": 20}, {"n_layers": 2}
    if kind == "GPTNeo":
        sizes = {"hidden_size": 8, "num_heads": 2, "intermediate_size": 16, "max_position_embeddings": 20}
    if kind == "Electra":
        sizes["embedding_size"] = 4
    tokenizer = byte_pairs() if kind.startswith("GPT") else wordpieces()
    marks = {"bos_token_id": 0, "eos_token_id": 0} if kind.startswith("GPT") else {"pad_token_id": 1}
    config = getattr(library(), f"{kind}Config")(vocab_size=len(tokenizer), **sizes, **layers, **marks)
    torch.manual_seed(0)
    getattr(library(), f"{kind}Model")(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = polyseme.load(tmp_path)
    assert isinstance(model, Gpt if kind.startswith("GPT") else Bert) and model.layers == 3 and model.dim == 8
    assert list(model.layer_groups()) == ["embeddings", "layer1", "layer2"]
    assert model.window == (18 if "oberta" in kind or kind == "Camembert" else 20)
    inside = {id(weight) for part in model.layer_groups().values() for weight in part.parameters()}
    outside = [name for name, weight in model.body.named_parameters() if id(weight) not in inside]
    assert all("pooler" in name for name in outside)
    texts = [["the", "bank"] * 20, ["zebra"], []]
    for one, text in zip(model.embed(texts), texts, strict=True):
        np.testing.assert_allclose(one, model.embed([text])[0], atol=2e-6)


def test_old_files_of_pieces(tmp_path: Path) -> None:
    model = bert()
    model.network.save_pretrained(tmp_path)
    pieces = sorted(wordpieces().get_vocab().items(), key=lambda item: item[1])
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece, _ in pieces), encoding="utf-8")
    np.testing.assert_array_equal(polyseme.load(tmp_path).embed(TEXTS[:1])[0], model.embed(TEXTS[:1])[0])


def test_bad_folders(tmp_path: Path) -> None:
    def said(kind: type[Exception], text: str) -> None:
        with pytest.raises(kind, match=text):
            polyseme.load(tmp_path)

    bert().network.save_pretrained(tmp_path)
    good = json.loads((tmp_path / "config.json").read_text())
    said(FormatError, "has no tokenizer; expected one of tokenizer.json, vocab.txt")
    wordpieces().save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps({**good, "model_type": "t5"}))
    said(FormatError, r"has model_type 't5', which polyseme does not read \(known: bert, camembert, ")
    (tmp_path / "config.json").write_text(json.dumps({**good, "is_decoder": True}))
    said(FormatError, "is a decoder")
    (tmp_path / "config.json").write_text(json.dumps({**good, "num_hidden_layers": 3}))
    said(FormatError, r"lacks weights of its network: (bert\.)?encoder.layer.2")
    (tmp_path / "config.json").write_text(json.dumps({**good, "hidden_size": 4}))
    said(FormatError, "the transformers library cannot read")
    (tmp_path / "config.json").write_text(json.dumps(good))
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    said(FormatError, r"a pickle \(pytorch_model.bin\), which can run code .* convert it once")
    (tmp_path / "pytorch_model.bin").unlink()
    said(FormatError, "model.safetensors is missing")


def test_remote_code_is_not_run(tmp_path: Path) -> None:
    model = bert()
    model.network.save_pretrained(tmp_path)
    wordpieces().save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["auto_map"] = dict.fromkeys(("AutoConfig", "AutoModel", "AutoModelForPreTraining", "AutoTokenizer"), "evil.Evil")
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil: pass\n")
    np.testing.assert_array_equal(polyseme.load(tmp_path).embed(TEXTS)[0], model.embed(TEXTS)[0])
    assert not (tmp_path / "ran").exists()


def test_other_mistakes() -> None:
    with pytest.raises(ConfigError, match=r"window is 2; .*; overlap is 1.0"):
        bert(window=2, overlap=1.0)
    with pytest.raises(ConfigError, match="a gpt2 is no bert"):
        Bert(bert().config, network=gpt().network, tokenizer=byte_pairs())
    with pytest.raises(ConfigError, match="are both of one model"):
        Bert(bert().config, network=bert().network, tokenizer=byte_pairs())
    with pytest.raises(UsageError, match="at least one sentence"):
        bert().prepare([])
    with pytest.raises(UsageError, match="start does not apply to embed for models of kind bert"):
        bert().embed(["a"], start="warm")


def test_the_extra_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bert().save_pretrained(tmp_path / "m")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(
        MissingExtraError, match=r"run by transformers, which is not installed: pip install 'polyseme\[transformers\]'"
    ):
        polyseme.load(tmp_path / "m")


# ---- predicting


def test_fill_is_the_masked_language_model() -> None:
    model = bert()
    found = model.fill("the [MASK] of the river, [MASK]", count=3)
    assert [len(each) for each in found] == [3, 3]
    ids = wordpieces()("the [MASK] of the river , [MASK]", return_tensors="pt")
    with torch.no_grad():
        logs = torch.log_softmax(model.network(**ids).prediction_logits[0], -1)
    for place, answers in zip((ids["input_ids"][0] == wordpieces().mask_token_id).nonzero()[:, 0], found, strict=True):
        best = logs[place].topk(3)
        assert [answer.subword for answer in answers] == wordpieces().convert_ids_to_tokens(best.indices.tolist())
        np.testing.assert_allclose([answer.log_prob for answer in answers], best.values, atol=1e-5)
    with pytest.raises(UsageError, match=r"the text has no \[MASK\]"):
        model.fill("the bank")
    with pytest.raises(UsageError, match="reads 24: shorten it"):
        model.fill("[MASK] " + "the " * 30)
    with pytest.raises(PolysemeError, match="has no masked-word head"):
        bert(head="BertModel").fill("[MASK]")
    masked = model.fill("the [MASK] of the river", count=3)
    assert model.fill("the bank of the river", word="bank", count=3) == masked and len(str(masked).splitlines()) == 4
    assert [*masked.to_json()] == ["text", "fillings"] and "piece" in masked.to_json()["fillings"][0][0]
    with pytest.raises(PolysemeError, match=r"kind bert, which has no substitutes: .*call fill"):
        model.substitutes("the bank", word="bank")


def test_gpt_is_a_language_model() -> None:
    model = gpt()
    assert model.predicts_words
    words = ["the", "banks", "of", "zebras"]
    end = byte_pairs().eos_token_id
    pieces = [byte_pairs()(" " + word)["input_ids"] for word in words] + [[end]]
    flat = [piece for each in pieces for piece in each]
    with torch.no_grad():
        logs = torch.log_softmax(model.network(torch.tensor([[end, *flat]])).logits[0], -1)
    each = [float(logs[place, piece]) for place, piece in enumerate(flat)]
    expected, at = [], 0
    for some in pieces:
        expected.append(sum(each[at : at + len(some)]))
        at += len(some)
    found = model.log_probs([words])[0]
    np.testing.assert_allclose(found.forward, expected, atol=1e-5)
    assert found.backward is None and found.score == pytest.approx(sum(expected), abs=1e-4)
    assert model.perplexity([words]).forward == pytest.approx(np.exp(-sum(expected) / 5), rel=1e-4)
    both = model.log_probs([["zebra"], words, []])  # padding changes nothing
    np.testing.assert_allclose(both[1].forward, expected, atol=1e-5)
    assert len(both[2].forward) == 1
    long = gpt(positions=8).log_probs([words * 6])[0]
    assert np.isfinite(long.forward).all() and (long.forward < 0).all()
    with pytest.raises(PolysemeError, match="has no next-word head"):
        gpt(head="GPT2Model").score([words])
