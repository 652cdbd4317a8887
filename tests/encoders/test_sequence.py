"""One vector for a whole example, as each system reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from polyseme.base.errors import UsageError
from polyseme.encoders.base import Encoder
from polyseme.encoders.config import UlmfitConfig
from polyseme.encoders.sequence import truncate
from polyseme.encoders.ulmfit import Ulmfit
from polyseme.text.vocabulary import Vocabulary
from tests.encoders.small import WORDS, elmo
from tests.encoders.small_subwords import SIZES, bert, byte_pairs, gpt, library, wordpieces

A, B = ["the", "bank", "of", "zebra"], ["money", "in"]
PAIRS = [(A, B), (["bank"], ["the", "naïve", "rivers", "sat"]), ([], ["mat"]), ([], [])]


def ulmfit() -> Ulmfit:
    torch.manual_seed(0)
    words = Vocabulary(["<s>", "</s>", "<unk>", *WORDS], unknown="<unk>", begin="<s>", end="</s>")
    model = Ulmfit(UlmfitConfig(size=len(words), dim=6, hidden_size=9, layers=2), vocabulary=words)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    return model.eval()


MAKERS = [bert, gpt, ulmfit, elmo]
all_kinds = pytest.mark.parametrize("make", MAKERS)


def vectors(model: Encoder, examples: Any) -> torch.Tensor:
    with torch.no_grad():
        return model.encode_sequence(model.prepare_sequence(examples)).vectors


@all_kinds
@pytest.mark.parametrize("texts", [1, 2])
def test_company_and_order_change_nothing(make: Callable[[], Encoder], texts: int) -> None:
    model, examples = make(), [pair[:texts] for pair in PAIRS]
    together = vectors(model, examples)
    assert together.shape == (len(PAIRS), model.sequence_dim(texts))
    torch.testing.assert_close(vectors(model, examples[::-1]).flip(0), together, rtol=1e-4, atol=1e-5)
    for example, expected in zip(examples, together, strict=True):
        torch.testing.assert_close(vectors(model, [example])[0], expected, rtol=1e-4, atol=1e-5)


@all_kinds
def test_both_texts_count_and_learn(make: Callable[[], Encoder]) -> None:
    model = make()
    found = vectors(model, [(A, B), (A, ["mat"]), (["a"], B), (B, A)])
    assert all((found[0] - other).abs().max() > 1e-3 for other in found[1:])
    model.encode_sequence(model.prepare_sequence([(A, B)])).vectors[:, 0].sum().backward()
    bottom = next(iter(model.layer_groups().values()))
    assert any(weight.grad is not None and weight.grad.abs().sum() > 0 for weight in bottom.parameters())


@pytest.mark.parametrize(("first", "second"), [("the bank of", "a zebra"), ("money", "the rivers sat on"), ("naïve", None)])
def test_bert_reads_what_its_tokenizer_makes(first: str, second: str | None) -> None:
    model = bert()
    made = wordpieces()(first, second, return_token_type_ids=True)
    inputs = model.prepare_sequence([[text.split() for text in (first, second) if text is not None]])
    assert inputs.ids[0].tolist() == made["input_ids"]
    assert inputs.types is not None and inputs.types[0].tolist() == made["token_type_ids"]
    with torch.no_grad():
        expected = model.body(**{name: torch.tensor([row]) for name, row in made.items()}).last_hidden_state[:, 0]
    torch.testing.assert_close(model.encode_sequence(inputs).vectors, expected)


def test_a_family_without_types_is_told_none() -> None:
    sizes = {"dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16, "vocab_size": len(wordpieces())}
    network = library().DistilBertModel(library().DistilBertConfig(**sizes))
    model = type(bert())(bert().config, network=network, tokenizer=wordpieces()).eval()
    assert model.prepare_sequence([(A, B)]).types is None and model.pooler() is None
    assert vectors(model, [(A, B)]).shape == (1, 8)
    assert bert(head="BertModel").pooler() is not None and SIZES["hidden_size"] == 8


def test_roberta_has_two_marks_between_and_no_types() -> None:
    made = byte_pairs().backend_tokenizer
    again = type(made).from_str(made.to_str())
    again.add_special_tokens(["<s>", "</s>"])
    ends = [(mark, again.token_to_id(mark)) for mark in ("</s>", "<s>")]
    again.post_processor = __import__("tokenizers").processors.RobertaProcessing(*ends, trim_offsets=True)
    tokenizer = library().PreTrainedTokenizerFast(tokenizer_object=again, bos_token="<s>", eos_token="</s>", unk_token="<s>")
    sizes = {**SIZES, "vocab_size": len(tokenizer), "max_position_embeddings": 30, "pad_token_id": 1, "type_vocab_size": 1}
    network = library().RobertaModel(library().RobertaConfig(**sizes)).eval()
    model = type(bert())(bert().config, network=network, tokenizer=tokenizer).eval()
    inputs = model.prepare_sequence([(A, B)])
    assert inputs.ids[0].tolist() == tokenizer(" " + " ".join(A), " " + " ".join(B))["input_ids"]
    assert inputs.ids[0].tolist().count(tokenizer.eos_token_id) == 3 and inputs.types is None
    assert vectors(model, [(A, B)]).shape == (1, 8)


@pytest.mark.parametrize("kind", ["GPTNeo", "GPTNeoX"])
def test_other_gpts(kind: str) -> None:
    sizes: dict[str, Any] = {"vocab_size": len(byte_pairs()), "hidden_size": 8, "max_position_embeddings": 24}
    if kind == "GPTNeo":
        sizes |= {"num_layers": 1, "num_heads": 2, "attention_types": [[["global"], 1]]}
    else:
        sizes |= {"num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    network = getattr(library(), f"{kind}ForCausalLM")(getattr(library(), f"{kind}Config")(**sizes))
    model = type(gpt())(gpt().config, network=network, tokenizer=byte_pairs()).eval()
    found = model.encode_sequence(model.prepare_sequence([(A, B), (B, [])]), torch.randn(2, 8), predict=True)
    assert found.vectors.shape == (2, 8) and found.lm_loss is not None and bool(found.lm_loss.isfinite())
    torch.testing.assert_close(vectors(model, [(B, [])])[0], vectors(model, [(A, B), (B, [])])[1], rtol=1e-4, atol=1e-5)


def test_gpt_reads_marks_that_are_no_pieces() -> None:
    model, marks = gpt(), torch.randn(2, 8)
    (a, b), begin = (
        ([piece for word in model.subwords.encode_words(text) for piece in word] for text in (A, B)),
        model.before[0],
    )
    table = model.network.get_input_embeddings().weight
    laid = torch.cat([table[[begin, *a]], marks[:1], table[b], marks[1:]]).unsqueeze(0)
    top = model.body(inputs_embeds=laid).last_hidden_state[0]
    found = model.encode_sequence(model.prepare_sequence([(A, B)]), marks, predict=True)
    torch.testing.assert_close(found.vectors[0], top[-1])
    before = torch.cat([top[: len(a)], top[len(a) + 1 : len(a) + 1 + len(b)]])  # what stands before each piece
    expected = F.cross_entropy(model.network.get_output_embeddings()(before), torch.tensor([*a, *b]))
    assert found.lm_loss is not None
    torch.testing.assert_close(found.lm_loss, expected)


def test_concat_pooling_is_the_plain_one() -> None:
    model = ulmfit()
    words = ["the", "cat", "sat"]
    top = model.embed([words])[0][-1][:, : model.config.dim]
    expected = np.concatenate([top[-1], top.max(0), top.mean(0)])
    np.testing.assert_allclose(vectors(model, [[words]])[0].numpy(), expected, rtol=1e-5)
    joined = model.read(torch.tensor([[model.end, *model.rows(A), model.end, *model.rows(B)]]), model.lstm.zero_state(1))
    top = joined.layers[-1][0, 1:].detach().numpy()
    expected = np.concatenate([top[-1], top.max(0), top.mean(0)])
    np.testing.assert_allclose(vectors(model, [(A, B)])[0].numpy(), expected, rtol=1e-5)
    for text in (words, []):
        loss = model.encode_sequence(model.prepare_sequence([[text]]), predict=True).lm_loss
        assert loss is not None and float(loss.detach()) == pytest.approx(-model.log_probs([text])[0].forward.mean(), rel=1e-5)


def test_an_elmo_is_pooled_where_its_directions_end() -> None:
    model = elmo()
    u, v = (model.embed([text])[0][-1] for text in (A, B))
    half = model.dim // 2
    u, v = (np.concatenate([x[-1, :half], x[0, half:], x.max(0), x.mean(0)]) for x in (u, v))
    expected = np.concatenate([u, v, np.abs(u - v), u * v])
    np.testing.assert_allclose(vectors(model, [(A, B)])[0].numpy(), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("make", [bert, gpt])
def test_long_examples_lose_the_end_of_the_longer_text(make: Callable[..., Any]) -> None:
    model = make(positions=12)
    inputs = model.prepare_sequence([(["bank"] * 50, ["money"]), (["bank"], ["money"] * 50), (["bank"] * 50, ["money"] * 50)])
    assert inputs.ids.shape[1] == 12 and bool(inputs.attention.all())
    ends = [-1] if make is bert else []  # the last mark
    assert all(inputs.ids[row, place].item() == model.after[0] for row in range(3) for place in ends)
    alone = model.prepare_sequence([[["bank"] * 50]])
    assert alone.ids.shape == (1, 12)


def test_shortened() -> None:
    assert [len(text) for text in truncate([[0] * 9, [0] * 9], 9)] == [5, 4]
    assert [len(text) for text in truncate([[0] * 3, [0] * 30], 10)] == [3, 7]
    assert [len(text) for text in truncate([[0] * 30], 10)] == [10]
    for a in range(6):
        for b in range(6):
            pair = [[0] * a, [0] * b]
            while sum(map(len, pair)) > 5:  # one piece at a time, as BERT's first code has it
                pair[0 if len(pair[0]) > len(pair[1]) else 1].pop()
            assert truncate([[0] * a, [0] * b], 5) == pair


@pytest.mark.parametrize("pieces", ["first", "last", "mean"])
def test_words_beside_another_text(pieces: str) -> None:
    model = bert(subword_pooling=pieces)
    batch = model.prepare_pair([A, ["money"]], [B, []])
    made = wordpieces()(" ".join(A), " ".join(B), return_token_type_ids=True, return_tensors="pt")
    with torch.no_grad():
        top, layers = model.body(**made).last_hidden_state[0], model(batch)
    cut = model.subwords.encode_words(B)
    begin = made["input_ids"].shape[1] - 1 - sum(map(len, cut))
    for word, ids in enumerate(cut):
        some = top[begin : begin + len(ids)]
        expected = {"first": some[0], "last": some[-1], "mean": some.mean(0)}[pieces]
        torch.testing.assert_close(layers.states[-1, 0, word], expected, rtol=1e-4, atol=1e-5)
        begin += len(ids)
    assert layers.summary is not None
    torch.testing.assert_close(layers.summary[0], top[0], rtol=1e-4, atol=1e-5)
    assert batch.mask.tolist() == [[True, True], [False, False]]


def test_long_texts_beside_another_go_in_windows() -> None:
    model = bert(positions=14)
    batch = model.prepare_pair([["money"] * 30], [["bank"] * 20 + ["river"]])
    assert batch.inputs.ids.shape[1] == 14 and len(batch.inputs.ids) > 1
    states = model(batch).states
    assert states.shape[2] == 21 and bool((states[-1].abs().sum(-1) > 0).all())


def test_what_cannot_be() -> None:
    with pytest.raises(UsageError, match="one text each, or two each; got examples with 1, 2"):
        elmo().prepare_sequence([[A], [A, B]])
    with pytest.raises(UsageError, match="at least one example"):
        gpt().prepare_sequence([])
    with pytest.raises(UsageError, match="with 3"):
        bert().prepare_sequence([[A, B, A]])
    for model in (elmo(), bert()):
        assert not model.predicts_next_word
        with pytest.raises(UsageError, match="predict=True needs a left-to-right language model"):
            model.encode_sequence(model.prepare_sequence([[A]]), predict=True)
    assert gpt().predicts_next_word and ulmfit().predicts_next_word and not gpt(head="GPT2Model").predicts_next_word
