"""Networks of the `transformers` library (extra `transformers`): where their layers are, how they are read and written.

Only safetensors are read and no code of a folder is run, so a folder from anywhere can be opened. The network is read together
with those heads whose weights are complete (masked words, next words, next sentence), because a random head is worse than none.

Weights in int8 are in a file of another name (`INT8`), which the library does not take for its own.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from polyseme.base.errors import FormatError, MissingExtraError, PolysemeError, nearest
from polyseme.base.files import read_json
from polyseme.base.tensor_files import read_tensors, write_tensors, write_unchanged
from polyseme.encoders.folder import LIBRARY_KEY

log = logging.getLogger(__name__)

WEIGHTS, INT8 = "model.safetensors", "model.int8.safetensors"
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "tokenizer.model", "sentencepiece.bpe.model", "spiece.model")


@dataclass(frozen=True)
class Family:
    """Where the layers of a network are, by the names of the library."""

    blocks: str
    """The layers."""
    embeddings: tuple[str, ...] = ("embeddings",)
    """The modules below them."""
    top: tuple[str, ...] = ()
    """The modules above the last one, which belong to it."""
    causal: bool = False
    """Whether it reads from left to right only."""
    after_padding: bool = False
    """Whether positions are counted from the id of the padding token on, so that some cannot be used."""


_BERT, _ROBERTA = Family("encoder.layer"), Family("encoder.layer", after_padding=True)
_GPT = Family("h", ("wte", "wpe"), ("ln_f",), causal=True)
FAMILIES = {
    "bert": _BERT,
    "electra": Family("encoder.layer", ("embeddings", "embeddings_project")),
    "distilbert": Family("transformer.layer"),
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "camembert": _ROBERTA,
    "gpt2": _GPT,
    "gpt_neo": _GPT,
    "gpt_neox": Family("layers", ("embed_in",), ("final_layer_norm",), causal=True),
}
"""By the `model_type` of `config.json`."""


def library() -> Any:
    """The package `transformers`."""
    try:
        import transformers
    except ImportError as error:
        raise MissingExtraError("BERT, GPT and their like are run by transformers", "transformers") from error
    return transformers


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the messages and progress bars of the library."""
    logging_ = library().utils.logging
    level, bars = logging_.get_verbosity(), logging_.is_progress_bar_enabled()
    logging_.set_verbosity_error()
    logging_.disable_progress_bar()
    try:
        yield
    finally:
        logging_.set_verbosity(level)
        if bars:
            logging_.enable_progress_bar()


def family_of(folder: Path) -> Family:
    """The family of the model in a folder, by its `config.json`."""
    path = folder / "config.json"
    values = read_json(path)
    kind = values.get("model_type")
    if kind not in FAMILIES:
        raise FormatError(path, f"has model_type {kind!r}, which polyseme does not read{nearest(str(kind), FAMILIES)}")
    if values.get("is_encoder_decoder") or (values.get("is_decoder") and not FAMILIES[kind].causal):
        raise FormatError(path, "is a decoder; polyseme reads encoders (BERT and the like) and GPT and the like")
    _check_weights(folder)
    return FAMILIES[kind]


def _check_weights(folder: Path) -> None:
    names = sorted(path.name for path in folder.iterdir())
    if any(name.endswith(".safetensors") for name in names):
        return
    pickles = [name for name in names if name.endswith((".bin", ".pt", ".pth", ".ckpt"))]
    if pickles:
        raise FormatError(
            folder,
            f"holds its weights as a pickle ({pickles[0]}), which can run code when it is opened; polyseme reads safetensors "
            'only. If you trust the file, convert it once: python -c "from transformers import AutoModelForPreTraining as A; '
            f"A.from_pretrained('{folder}').save_pretrained('{folder}')\"",
        )
    raise FormatError(folder, f"has a config.json but no weights: model.safetensors is missing (found: {', '.join(names)})")


def read_network(folder: Path, family: Family) -> Any:
    """Read the network of a folder as float32, in evaluation mode, with the heads whose weights are complete."""
    with _readable(folder) as plain, _wrap_errors(folder):
        return _read_network(plain, family, folder)


@contextmanager
def _readable(folder: Path) -> Iterator[Path]:
    """The folder itself, or, where its weights are in int8, a temporary one that has them in float32."""
    if not (folder / INT8).is_file():
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="polyseme-", ignore_cleanup_errors=True) as name:
        write_unchanged(read_tensors(folder / INT8), Path(name) / WEIGHTS, {"format": "pt"})
        shutil.copyfile(folder / "config.json", Path(name) / "config.json")
        yield Path(name)


def _read_network(folder: Path, family: Family, where: Path) -> Any:
    transformers = library()
    if family.causal:
        classes: list[tuple[Any, dict[str, Any]]] = [(transformers.AutoModelForCausalLM, {})]
    else:
        classes = [(transformers.AutoModelForPreTraining, {}), (transformers.AutoModelForMaskedLM, {})]
    classes.append((transformers.AutoModel, {}))
    if not family.causal:
        classes.append((transformers.AutoModel, {"add_pooling_layer": False}))  # fine-tuned models often lack the pooler
    common = {"local_files_only": True, "trust_remote_code": False}
    missing: list[str] = []
    with quiet(), torch.random.fork_rng(devices=[]):
        config = transformers.AutoConfig.from_pretrained(folder, **common)
        config.__dict__.pop(LIBRARY_KEY, None)
        for kind, options in classes:
            try:
                network, found = kind.from_pretrained(
                    folder,
                    config=config,
                    dtype=torch.float32,
                    use_safetensors=True,
                    output_loading_info=True,
                    **common,
                    **options,
                )
            except TypeError:
                if not options:
                    raise
                continue  # this family has no pooler
            missing = sorted(found["missing_keys"])
            if not missing:
                _log_unused(where, found["unexpected_keys"])
                return network.float().eval()
    raise FormatError(where, f"lacks weights of its network: {', '.join(missing[:3])}{' ...' if len(missing) > 3 else ''}")


def _log_unused(folder: Path, names: set[str]) -> None:
    if names:
        log.info("%s: ignored unused weights %s", folder, ", ".join(sorted(names)[:5]))


def read_tokenizer(folder: Path) -> Any:
    """Read the tokenizer of a folder; without its files the library would return an empty one."""
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise FormatError(folder, f"has no tokenizer; expected one of {', '.join(TOKENIZERS)}")
    with quiet(), _wrap_errors(folder):
        return library().AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)


@contextmanager
def _wrap_errors(folder: Path) -> Iterator[None]:
    """Turn errors of the library into one sentence that names the folder."""
    try:
        yield
    except PolysemeError:
        raise
    except Exception as error:  # the library raises many kinds
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise FormatError(folder, f"is a model that the transformers library cannot read ({lines[0]})") from error


def write_network(network: Any, tokenizer: Any, folder: Path, dtype: torch.dtype) -> None:
    """Write both as the library does, so that its Auto classes open the folder; int8 only we can read."""
    weights = None
    if dtype == torch.float16:
        weights = {name: value.detach().to(dtype) for name, value in network.state_dict().items()}
        for name, value in weights.items():
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                raise PolysemeError(f"{name} has numbers too large for fp16: save it in fp32")
    with quiet():
        network.save_pretrained(folder, state_dict=weights, max_shard_size="1000GB")
        tokenizer.save_pretrained(folder)
    if dtype == torch.int8:
        write_tensors(read_tensors(folder / WEIGHTS), folder / INT8, dtype)
        (folder / WEIGHTS).unlink()
    for path in folder.iterdir():
        path.chmod(0o644)


def submodule(module: nn.Module, path: str) -> nn.Module | None:
    """Return the module of a dotted name; None: there is none."""
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name, None)
    return found
