"""The forms in which BERT and GPT-2 were published: names of weights, several files, tokenizers, cased, uncased and Chinese.

Small random networks are written in each form by the library or by hand. Vectors are compared with the hidden states that the
library's own `AutoModel` and `AutoTokenizer` give for the same folder, and with those of the network before it was written.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import polyseme
from polyseme.encoders.bert import Bert
from polyseme.encoders.subword_model import SubwordModel
from tests.encoders.small_subwords import SIZES, bert, byte_pairs, gpt, library, wordpieces

TEXTS = [["the", "bank", "of", "the", "rivers"], ["zebra"], ["naïve", "漢"]]
BOTH = [bert, gpt]


def written(model: SubwordModel, folder: Path, **options: Any) -> Path:
    """Write a network and its tokenizer as the library does."""
    model.network.save_pretrained(folder, **options)
    model.subwords.tokenizer.save_pretrained(folder)
    return folder


def hidden_states(folder: Path, words: list[str]) -> np.ndarray:
    """All layers by the library alone, (layers, words, dim): of the first subword of a word, in GPT-2 of its last."""
    network, tokenizer = library().AutoModel.from_pretrained(folder).eval(), library().AutoTokenizer.from_pretrained(folder)
    causal = network.config.model_type == "gpt2"
    before = [tokenizer.bos_token_id] if causal else [tokenizer.cls_token_id]
    after = [] if causal else [tokenizer.sep_token_id]
    pieces = [tokenizer(" " * causal + word, add_special_tokens=False)["input_ids"] for word in words]
    ends = np.cumsum([len(each) for each in pieces])
    places = ends if causal else 1 + ends - [len(each) for each in pieces]
    with torch.no_grad():
        ids = torch.tensor([[*before, *(piece for each in pieces for piece in each), *after]])
        layers = torch.stack(network(ids, output_hidden_states=True).hidden_states)[:, 0]
    return layers[:, places].numpy()


def check(folder: Path, before: SubwordModel | None = None) -> SubwordModel:
    """Load a folder, and compare its vectors with the library's, and with those of the model that was written."""
    found = polyseme.load(folder)
    assert isinstance(found, SubwordModel)
    for number, (vectors, words) in enumerate(zip(found.embed(TEXTS), TEXTS, strict=True)):
        np.testing.assert_allclose(vectors, hidden_states(folder, words), atol=2e-6)
        if before is not None:
            np.testing.assert_array_equal(vectors, before.embed(TEXTS)[number])
    return found


def rename(folder: Path, change: dict[str, str] | None = None, prefix: str = "", **more: torch.Tensor) -> None:
    """Rename weights in place: parts of names, and a prefix that is removed; and add some."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    for old, new in (change or {}).items():
        weights = {name.replace(old, new): value for name, value in weights.items()}
    save_file({name.removeprefix(prefix): value for name, value in weights.items()} | more, path, {"format": "pt"})


def pieces_of(tokenizer: Any) -> list[str]:
    return sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().__getitem__)


def write_vocabulary(folder: Path, pieces: list[str], **config: Any) -> None:
    """The files of a slow tokenizer of BERT, and nothing else of a tokenizer."""
    for path in folder.glob("*token*"):
        path.unlink()
    (folder / "vocab.txt").write_text("".join(f"{piece}\n" for piece in pieces), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", **config}), encoding="utf-8")


# ---- weights


@pytest.mark.parametrize("make", BOTH)
def test_weights_in_one_file_and_in_several(tmp_path: Path, make: Any) -> None:
    model = make()
    check(written(model, tmp_path / "one"), model)
    folder = written(model, tmp_path / "several", max_shard_size="3KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1 and not (folder / "model.safetensors").exists()
    found = check(folder, model)
    assert found.network.get_output_embeddings().weight is found.network.get_input_embeddings().weight
    next(folder.glob("model-00002-*")).unlink()
    with pytest.raises(polyseme.PolysemeError, match=str(folder)):
        polyseme.load(folder)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision(tmp_path: Path, dtype: torch.dtype) -> None:
    model = bert()
    model.network.to(dtype).save_pretrained(tmp_path)
    wordpieces().save_pretrained(tmp_path)
    found = polyseme.load(tmp_path)
    assert {weight.dtype for weight in found.parameters()} == {torch.float32}
    again = Bert(model.config, network=model.network.float(), tokenizer=wordpieces())
    for vectors, other in zip(found.embed(TEXTS), again.embed(TEXTS), strict=True):
        np.testing.assert_array_equal(vectors, other)


def test_bert_with_the_names_of_its_first_release(tmp_path: Path) -> None:
    """`gamma` and `beta` of layer normalization, and ids of positions among the weights, as in bert-base-uncased."""
    model = bert()
    change = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    ids = {"bert.embeddings.position_ids": torch.arange(24)[None]}
    rename(written(model, tmp_path), change, **ids)
    found = check(tmp_path, model)
    assert found.network.get_output_embeddings() is not None


def test_gpt2_without_the_prefix_of_its_body(tmp_path: Path) -> None:
    """As in gpt2: neither `transformer.` nor the output layer, which is the word table; but the masks of attention."""
    model = gpt()
    masks = {f"h.{level}.attn.bias": torch.ones(1, 1, 24, 24).tril() for level in range(2)}
    rename(written(model, tmp_path), prefix="transformer.", **masks)
    assert "lm_head.weight" not in load_file(tmp_path / "model.safetensors")
    found = check(tmp_path, model)
    assert found.network.get_output_embeddings().weight is found.network.get_input_embeddings().weight
    np.testing.assert_array_equal(found.score(TEXTS[:1]), model.score(TEXTS[:1]))  # type: ignore[attr-defined]


def test_an_output_layer_of_its_own(tmp_path: Path) -> None:
    config = gpt().network.config
    config.tie_word_embeddings = False
    network = library().GPT2LMHeadModel(config).eval()
    network.save_pretrained(tmp_path)
    byte_pairs().save_pretrained(tmp_path)
    found = check(tmp_path).network
    assert found.get_output_embeddings().weight.data_ptr() != found.get_input_embeddings().weight.data_ptr()
    np.testing.assert_array_equal(found.lm_head.weight.detach(), network.lm_head.weight.detach())
    saved = polyseme.load(tmp_path).save_pretrained(tmp_path / "again")
    np.testing.assert_array_equal(polyseme.load(saved).network.lm_head.weight.detach(), network.lm_head.weight.detach())


def test_other_files_of_a_repository(tmp_path: Path) -> None:
    """Pickles, HDF5 for TensorFlow, and folders of other formats are left alone where there are safetensors."""
    h5py = pytest.importorskip("h5py")
    model = bert()
    written(model, tmp_path)
    for name in ("pytorch_model.bin", "flax_model.msgpack", "rust_model.ot", "training_args.bin"):
        (tmp_path / name).write_bytes(b"not for us")
    with h5py.File(tmp_path / "tf_model.h5", "w") as file:
        file["bert/bert/embeddings/weight:0"] = np.zeros((3, 4), np.float32)
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").write_bytes(b"nor this")
    check(tmp_path, model)


# ---- tokenizers


def test_byte_pairs_without_tokenizer_json(tmp_path: Path) -> None:
    """The files of GPT-2's slow tokenizer: `vocab.json` and `merges.txt`."""
    model = gpt()
    written(model, tmp_path)
    fast = json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    for path in tmp_path.glob("*token*"):
        path.unlink()
    merges = [each if isinstance(each, str) else " ".join(each) for each in fast["merges"]]
    (tmp_path / "vocab.json").write_text(json.dumps(fast["vocab"]), encoding="utf-8")
    (tmp_path / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]) + "\n", encoding="utf-8")
    check(tmp_path, model)


@pytest.mark.parametrize("cased", [True, False])
@pytest.mark.parametrize("fast", [True, False])
def test_cased_and_uncased(tmp_path: Path, cased: bool, fast: bool) -> None:
    """`do_lower_case` decides, as in bert-base-cased and bert-base-uncased: from vocab.txt, and from tokenizer.json."""
    bert().network.save_pretrained(tmp_path)
    write_vocabulary(tmp_path, pieces_of(wordpieces()), do_lower_case=not cased)
    if fast:
        library().AutoTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
        (tmp_path / "vocab.txt").unlink(missing_ok=True)
        assert (tmp_path / "tokenizer.json").is_file()
    model = check(tmp_path)
    lower, upper = (model.embed([[word]])[0] for word in ("bank", "BANK"))
    assert np.array_equal(lower, upper) != cased
    accented, plain = (model.embed([[word]])[0] for word in ("rivér", "river"))
    assert np.array_equal(accented, plain) != cased  # lower case takes accents off, too


def test_a_tokenizer_that_only_python_runs_is_refused(tmp_path: Path) -> None:
    bert().network.save_pretrained(tmp_path)
    kind = {"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "basic", "subword_tokenizer_type": "wordpiece"}
    write_vocabulary(tmp_path, pieces_of(wordpieces()), **kind)
    with pytest.raises(polyseme.PolysemeError, match=r"BertJapaneseTokenizer has no tokenizer\.json: convert it"):
        polyseme.load(tmp_path)


@pytest.mark.parametrize("make", BOTH)
def test_words_that_were_added(tmp_path: Path, make: Any) -> None:
    """A table of more rows, and a word that is one subword."""
    model = make()
    tokenizer = library().AutoTokenizer.from_pretrained(written(model, tmp_path / "before"))
    tokenizer.add_tokens(["polyseme"])
    model.network.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    model.network.save_pretrained(tmp_path / "after")
    tokenizer.save_pretrained(tmp_path / "after")
    found = check(tmp_path / "after")
    assert found.subwords.encode_words(["polyseme"])[0][-1] == len(tokenizer) - 1
    words = ["polyseme", "bank"]
    np.testing.assert_allclose(found.embed([words])[0], hidden_states(tmp_path / "after", words), atol=2e-6)


def test_a_tokenizer_that_truncates_and_pads(tmp_path: Path) -> None:
    """Published files of sentence encoders ask for both; texts are neither cut nor padded."""
    model = bert()
    tokenizer = library().AutoTokenizer.from_pretrained(written(model, tmp_path / "before"))
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokenizer.backend_tokenizer.enable_padding(length=12)
    model.network.save_pretrained(tmp_path / "after")
    tokenizer.save_pretrained(tmp_path / "after")
    for vectors, other in zip(polyseme.load(tmp_path / "after").embed(TEXTS), model.embed(TEXTS), strict=True):
        np.testing.assert_array_equal(vectors, other)


@pytest.mark.parametrize("fast", [True, False])
def test_chinese_bert_by_characters(tmp_path: Path, fast: bool) -> None:
    """bert-base-chinese has one piece for each character, so a word is several, whoever splits the text."""
    torch.manual_seed(0)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"银行在河边我去", "the", "##s", "3"]
    config = library().BertConfig(vocab_size=len(pieces), max_position_embeddings=20, initializer_range=0.5, **SIZES)
    library().BertForPreTraining(config).save_pretrained(tmp_path)
    write_vocabulary(tmp_path, pieces)
    if fast:
        library().AutoTokenizer.from_pretrained(tmp_path).save_pretrained(tmp_path)
        (tmp_path / "vocab.txt").unlink(missing_ok=True)
    model = polyseme.load(tmp_path)
    assert isinstance(model, Bert)
    theirs = library().AutoModel.from_pretrained(tmp_path).eval()
    ids = library().AutoTokenizer.from_pretrained(tmp_path)("我去银行", return_tensors="pt")
    assert ids["input_ids"].shape == (1, 6)
    states = theirs(**ids).last_hidden_state[0].detach().numpy()
    by_characters, by_words = model.embed(["我去银行", ["我", "去", "银行"]], layers="top")
    np.testing.assert_allclose(by_characters, states[1:5], atol=2e-6)
    np.testing.assert_allclose(by_words, states[1:4], atol=2e-6)  # the first piece of each word
    means = polyseme.load(tmp_path, subword_pooling="mean").embed([["我", "去", "银行"]], layers="top")[0]
    np.testing.assert_allclose(means[2], states[3:5].mean(0), atol=2e-6)
    assert len(model.fill("我去[MASK]行", count=2)[0]) == 2


def test_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot in the cache of the Hugging Face Hub, where files are links."""
    import huggingface_hub

    model = bert()
    source = written(model, tmp_path / "blobs")
    snapshot = tmp_path / "snapshots"
    snapshot.mkdir()
    for path in source.iterdir():
        (snapshot / path.name).symlink_to(path)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda name, ignore_patterns: str(snapshot))
    monkeypatch.setattr(huggingface_hub.HfApi, "list_repo_files", lambda self, name: [path.name for path in snapshot.iterdir()])
    found = polyseme.load("google-bert/bert-tiny")
    for vectors, other in zip(found.embed(TEXTS), model.embed(TEXTS), strict=True):
        np.testing.assert_array_equal(vectors, other)
    shutil.rmtree(snapshot)
