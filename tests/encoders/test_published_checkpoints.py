"""The forms in which BERT and GPT-2 were published: names of weights, several files, tokenizers, cased, uncased and Chinese.

Small random networks are written in each form by hand; vectors are compared with those of the library on the plain form.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import polyseme
from polyseme.encoders.bert import Bert
from polyseme.encoders.subword_model import SubwordModel
from tests.encoders.small_subwords import bert, byte_pairs, gpt, library, wordpieces

TEXTS = [["the", "bank", "of", "the", "rivers"], ["zebra"], ["naïve", "漢"]]


def written(model: SubwordModel, folder: Path) -> Path:
    """Write a network and its tokenizer as the library does."""
    model.network.save_pretrained(folder)
    model.subwords.tokenizer.save_pretrained(folder)
    return folder


def check_vectors(folder: Path, model: SubwordModel) -> SubwordModel:
    found = polyseme.load(folder)
    assert isinstance(found, SubwordModel)
    for one, other in zip(found.embed(TEXTS), model.embed(TEXTS), strict=True):
        np.testing.assert_array_equal(one, other)
    return found


def rename(folder: Path, change: dict[str, str] | None = None, prefix: str = "") -> None:
    """Rename weights in place: parts of names, and a prefix that is removed."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    for old, new in (change or {}).items():
        weights = {name.replace(old, new): value for name, value in weights.items()}
    save_file({name.removeprefix(prefix): value for name, value in weights.items()}, path, {"format": "pt"})


def test_weights_in_several_files(tmp_path: Path) -> None:
    for make in (bert, gpt):
        model = make()
        folder = tmp_path / make.__name__
        model.network.save_pretrained(folder, max_shard_size="3KB")
        model.subwords.tokenizer.save_pretrained(folder)
        assert len(list(folder.glob("model-*.safetensors"))) > 1 and not (folder / "model.safetensors").exists()
        check_vectors(folder, model)
        next(folder.glob("model-00002-*")).unlink()
        with pytest.raises(polyseme.PolysemeError, match=str(folder)):
            polyseme.load(folder)


def test_bert_with_the_names_of_its_first_release(tmp_path: Path) -> None:
    """`gamma` and `beta` of layer normalization, as in bert-base-uncased."""
    model = bert()
    rename(written(model, tmp_path), {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"})
    found = check_vectors(tmp_path, model)
    assert found.network.get_output_embeddings() is not None


def test_gpt2_without_the_prefix_of_its_body(tmp_path: Path) -> None:
    """Neither `transformer.` nor the output layer, which is the word table, are among the weights of gpt2."""
    model = gpt()
    rename(written(model, tmp_path), prefix="transformer.")
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    found = check_vectors(tmp_path, model)
    assert found.network.get_output_embeddings().weight is found.network.get_input_embeddings().weight
    np.testing.assert_array_equal(found.score(TEXTS[:1]), model.score(TEXTS[:1]))  # type: ignore[attr-defined]


def test_an_output_layer_of_its_own(tmp_path: Path) -> None:
    config = gpt().network.config
    config.tie_word_embeddings = False
    network = library().GPT2LMHeadModel(config).eval()
    network.save_pretrained(tmp_path)
    byte_pairs().save_pretrained(tmp_path)
    found = polyseme.load(tmp_path).network
    assert found.get_output_embeddings().weight.data_ptr() != found.get_input_embeddings().weight.data_ptr()
    np.testing.assert_array_equal(found.lm_head.weight.detach(), network.lm_head.weight.detach())
    saved = polyseme.load(tmp_path).save_pretrained(tmp_path / "again")
    np.testing.assert_array_equal(polyseme.load(saved).network.lm_head.weight.detach(), network.lm_head.weight.detach())


def test_tokenizers_without_tokenizer_json(tmp_path: Path) -> None:
    """The files of slow tokenizers: `vocab.json` and `merges.txt`."""
    model = gpt()
    written(model, tmp_path)
    fast = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    for path in tmp_path.glob("*token*"):
        path.unlink()
    merges = [each if isinstance(each, str) else " ".join(each) for each in fast["merges"]]
    (tmp_path / "vocab.json").write_text(json.dumps(fast["vocab"]), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n", encoding="utf-8")
    check_vectors(tmp_path, model)


@pytest.mark.parametrize("cased", [True, False])
def test_cased_and_uncased(tmp_path: Path, cased: bool) -> None:
    """`do_lower_case` of tokenizer_config.json decides, as in bert-base-cased and bert-base-uncased."""
    bert().network.save_pretrained(tmp_path)
    pieces = sorted(wordpieces().get_vocab().items(), key=lambda item: item[1])
    (tmp_path / "vocab.txt").write_text("".join(f"{piece}\n" for piece, _ in pieces), encoding="utf-8")
    config = {"do_lower_case": not cased, "tokenizer_class": "BertTokenizer"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    model = polyseme.load(tmp_path)
    lower, upper = (model.embed([[word]], layers=0)[0] for word in ("bank", "BANK"))
    assert np.array_equal(lower, upper) != cased


def test_chinese_bert_by_characters(tmp_path: Path) -> None:
    """bert-base-chinese has one piece for each character, so a word is several, whoever splits the text."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"银行在河边我去", "the", "##s", "3"]
    tmp_path.joinpath("vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    sizes = {"hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    config = library().BertConfig(vocab_size=len(pieces), max_position_embeddings=20, **sizes)
    library().BertForPreTraining(config).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}', encoding="utf-8")
    model = polyseme.load(tmp_path)
    assert isinstance(model, Bert)
    theirs = library().AutoModel.from_pretrained(tmp_path).eval()
    ids = library().AutoTokenizer.from_pretrained(tmp_path)("我去银行", return_tensors="pt")
    assert ids["input_ids"].shape == (1, 6)
    states = theirs(**ids).last_hidden_state[0].detach().numpy()
    by_characters, by_words = model.embed(["我去银行", ["我", "去", "银行"]], layers="top")
    np.testing.assert_allclose(by_characters, states[1:5], atol=1e-6)
    np.testing.assert_allclose(by_words, states[1:4], atol=1e-6)  # the first piece of each word
    assert len(model.fill("我去[MASK]行", count=2)[0]) == 2
