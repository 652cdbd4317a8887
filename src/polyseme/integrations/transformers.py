"""transformers: an ELMo behind the Auto classes, the Trainer and pipelines (extra `transformers`).

    import polyseme.integrations.transformers as elmo          # registers the model type "polyseme"
    elmo.export("en", "hf-elmo")                               # a folder of transformers: weights, config, tokenizer
    AutoTokenizer.from_pretrained("hf-elmo"), AutoModelForTokenClassification.from_pretrained("hf-elmo", num_labels=9)

A token is a word. `input_ids` are the rows of words in the vocabulary (that of the unknown word for all others), and
`character_ids` (batch, words, characters) what the model reads of their spelling; a model of words alone has none. The begin
and end of a sentence are the network's own affair, so every position of an output is a word. Texts are padded on the right.

Folders have weights as safetensors, JSON and text. No code is in them, and none is run: `auto_map` is not written, and whoever
opens a folder imports this module first.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from polyseme.base.errors import MissingExtraError, PolysemeError, UsageError
from polyseme.base.files import write_text
from polyseme.encoders.base import Encoder
from polyseme.encoders.batch import Batch
from polyseme.encoders.elmo import Elmo
from polyseme.encoders.elmo_config import ElmoConfig
from polyseme.encoders.elmo_words import ElmoInputs, WordInputs, character_encoder
from polyseme.integrations.model_reference import AnyModel, shared_model
from polyseme.nn.mix import Mix
from polyseme.nn.pooling import concat_pool
from polyseme.nn.stacked_bilstm import final_states
from polyseme.text.splitting.offsets import spelled_prefix, word_offsets
from polyseme.text.splitting.unigram import UNIGRAM, UnigramSegmenter
from polyseme.text.vocabulary import Vocabulary
from polyseme.text.words import get_splitter, normalise_quotes, plain_word

try:
    from transformers import (
        AutoConfig,
        AutoModel,
        AutoModelForSequenceClassification,
        AutoModelForTokenClassification,
        AutoTokenizer,
        BatchEncoding,
        PreTrainedConfig,
        PreTrainedModel,
        PreTrainedTokenizer,
    )
    from transformers.modeling_outputs import BaseModelOutput, SequenceClassifierOutput, TokenClassifierOutput
except ImportError as error:
    raise MissingExtraError("polyseme.integrations.transformers needs transformers 5 or later", "transformers") from error

_SYMBOLS = ["<bow>", "<eow>", "<oov>", "<pad>", "<bos>", "<eos>"]
"""In place of the alphabet, which the network does not need: the tokenizer spells the words."""


def export(model: AnyModel, folder: str | Path, **settings: Any) -> Path:
    """Write an ELMo as a folder of transformers, with its tokenizer; `settings` are values of `PolysemeConfig`."""
    encoder = _checked(shared_model(model))
    if not isinstance(folder, str | Path) or Path(folder).is_file():
        raise UsageError(f"cannot write a model to {folder!r}: expected the path of a folder")
    PolysemeModel.from_encoder(encoder, **settings).save_pretrained(folder)
    PolysemeTokenizer.from_encoder(encoder).save_pretrained(folder)
    return Path(folder)


def to_encoder(model: PolysemePreTrainedModel, tokenizer: PolysemeTokenizer) -> Elmo:
    """Return the ELMo inside a model, trained or not, as a model of ours: `save_pretrained` writes a polyseme folder."""
    _need(model, PolysemePreTrainedModel)
    _need(tokenizer, PolysemeTokenizer)
    network = model.base_model.encoder
    config: ElmoConfig = network.config
    words = {"begin": config.begin, "end": config.end, "unknown": config.unknown}
    vocabulary = Vocabulary(tokenizer.vocabulary.words, **words)
    encoder = Elmo(config, splitter=tokenizer.splitter, vocabulary=vocabulary, alphabet=tokenizer.alphabet)
    encoder.load_state_dict(network.state_dict())
    return encoder.eval()


def optimizer(
    model: PolysemePreTrainedModel, *, learning_rate: float = 5e-4, head_learning_rate: float = 2e-2
) -> torch.optim.AdamW:
    """Return an optimizer for `Trainer(..., optimizers=(optimizer(model), None))`: the new head learns faster than the ELMo.

    Parts of speech after 50 steps of 16 short sentences: 90 % right; with one rate of 2e-3 for all weights, 45 %.
    """
    _need(model, nn.Module)
    inside = {id(weight): weight for weight in model.base_model.parameters()}
    head = [weight for weight in model.parameters() if id(weight) not in inside]
    groups = [{"params": list(inside.values()), "lr": learning_rate}, {"params": head, "lr": head_learning_rate}]
    return torch.optim.AdamW(groups)


def _need(value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise UsageError(f"expected a {kind.__name__}, got {type(value).__name__}: an Auto class opens one (from_pretrained)")


def _checked(encoder: Encoder) -> Elmo:
    if not isinstance(encoder, Elmo) or type(encoder) is not Elmo:
        raise UsageError(
            f"transformers gets ELMo models from polyseme, and this is a {encoder.kind}: BERT and GPT are models of "
            "transformers already"
        )
    return encoder


# ---- config


class PolysemeConfig(PreTrainedConfig):
    """The config of an ELMo for transformers; `encoder` has the values of `ElmoConfig`."""

    model_type = "polyseme"

    def __init__(
        self,
        encoder: dict[str, Any] | None = None,
        begin: dict[str, Any] | None = None,
        end: dict[str, Any] | None = None,
        character_padding: int = 0,
        classifier_dropout: float = 0.1,
        **kwargs: Any,
    ) -> None:
        self.encoder = ElmoConfig().to_dict() if encoder is None else encoder
        elmo = self.elmo_config()
        self.begin = {"characters": None, "word": 0} if begin is None else begin
        """How the begin of a sentence is spelled, and its row in the vocabulary."""
        self.end = {"characters": None, "word": 1} if end is None else end
        self.character_padding = character_padding
        self.classifier_dropout = classifier_dropout
        """Dropout before the last layer of classifiers."""
        self.hidden_size = 2 * elmo.half
        self.num_hidden_layers = elmo.num_layers
        super().__init__(**kwargs)

    def elmo_config(self) -> ElmoConfig:
        """Return the config of the network; an unknown key is an error."""
        return ElmoConfig.from_dict(self.encoder, where="config.json: encoder")

    @classmethod
    def from_encoder(cls, encoder: Elmo, **settings: Any) -> Self:
        """Return the config of a model of ours."""
        config, speller = encoder.config, encoder.speller
        if config.start == "warm":  # a state that is computed from the weights; here it becomes one of them
            config = config.replace(start="learned")
        ids = None if speller is None else speller.encode([config.begin, config.end])[0].tolist()
        vocabulary, cut = _vocabulary(encoder), None if config.words is None else config.words.max_characters
        ends = [
            {"characters": None if ids is None else ids[number], "word": int(vocabulary.ids([word[:cut]])[0])}
            for number, word in enumerate((config.begin, config.end))
        ]
        padding = 0 if speller is None else speller.padding
        return cls(encoder=config.to_dict(), begin=ends[0], end=ends[1], character_padding=padding, **settings)


def _vocabulary(encoder: Elmo) -> Vocabulary:
    """The vocabulary of a model; one of special tokens alone where it has none."""
    config = encoder.config
    words = {"begin": config.begin, "end": config.end, "unknown": config.unknown}
    known = list(words.values()) if encoder.vocabulary is None else encoder.vocabulary.words
    more = [word for word in words.values() if word not in set(known)]
    if more and config.words is not None:
        raise PolysemeError(f"the vocabulary of {encoder.source} lacks {', '.join(more)}, which transformers needs")
    return Vocabulary([*known, *more], **words)


# ---- tokenizer


class PolysemeTokenizer(PreTrainedTokenizer):
    """Splits text into words as the model was trained, and spells them; offsets of words in the text on demand."""

    vocab_files_names: ClassVar[dict[str, str]] = {
        "vocab_file": "vocabulary.txt",
        "characters_file": "characters.txt",
        "words_file": "words.txt",
    }
    model_input_names: ClassVar[list[str]] = ["input_ids", "character_ids", "attention_mask"]
    padding_side = "right"

    def __init__(
        self,
        vocab_file: str,
        encoder: dict[str, Any],
        word_splitter: str = "whitespace",
        characters_file: str | None = None,
        words_file: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.elmo_config = config = ElmoConfig.from_dict(encoder, where="tokenizer_config.json: encoder")
        names = {"begin": config.begin, "end": config.end, "unknown": config.unknown}
        self.vocabulary = Vocabulary.read(vocab_file, **names)
        self.alphabet = None
        if config.characters is not None and config.characters.alphabet != "utf8":
            if characters_file is None:
                raise UsageError("this tokenizer needs characters.txt, the alphabet of its model")
            self.alphabet = Path(characters_file).read_text(encoding="utf-8").split("\n")[:-1]
        self.speller = character_encoder(config, self.alphabet)
        word_list = Vocabulary.read(words_file).words if word_splitter == UNIGRAM and words_file is not None else None
        self.splitter = get_splitter(word_splitter, word_list)
        for name, token in (("bos_token", config.begin), ("eos_token", config.end), ("unk_token", config.unknown)):
            kwargs.setdefault(name, token)
        kwargs.setdefault("pad_token", "<pad>")
        super().__init__(encoder=encoder, word_splitter=word_splitter, **kwargs)

    @classmethod
    def from_encoder(cls, encoder: Elmo, **kwargs: Any) -> Self:
        """Return the tokenizer of a model of ours."""
        encoder = _checked(encoder)
        with tempfile.TemporaryDirectory(prefix="polyseme-") as folder:
            files = _write_words(Path(folder), _vocabulary(encoder), encoder.alphabet, encoder.splitter)
            return cls(encoder=encoder.config.to_dict(), word_splitter=encoder.splitter.name, **files, **kwargs)

    @property
    def is_fast(self) -> bool:
        """Whether it returns offsets of words, which pipelines ask for: it does."""
        return True

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    def get_vocab(self) -> dict[str, int]:
        return {**{word: number for number, word in enumerate(self.vocabulary)}, **self.added_tokens_encoder}

    def tokenize(self, text: str, **kwargs: Any) -> list[str]:
        """Split a text into words."""
        return self.splitter(normalise_quotes(text) if self.elmo_config.normalize_quotes else text)

    def _convert_token_to_id(self, token: str) -> int:
        return int(self.vocabulary.ids([token])[0])

    def _convert_id_to_token(self, index: int) -> str:
        return self.vocabulary[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return " ".join(tokens)

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        return 2 if pair else 0

    def _words(self, text: Any) -> list[str]:
        if isinstance(text, str):
            return self.tokenize(text)
        return [plain_word(word) for word in text] if self.elmo_config.normalize_quotes else list(text)

    def _encode_plus(self, text: Any, text_pair: Any = None, **options: Any) -> BatchEncoding:
        """Encode one text, or one pair: two sentences with an end and a begin between them, as in running text."""
        split = options.get("is_split_into_words", False)
        if isinstance(text, list | tuple) and (not split or (len(text) > 0 and isinstance(text[0], list | tuple))):
            return super()._encode_plus(text, text_pair, **options)  # many
        words = self._words(text)
        if text_pair is not None:
            words = [*words, self.elmo_config.end, self.elmo_config.begin, *self._words(text_pair)]
        limit = options.get("max_length")
        cut = getattr(options.get("truncation_strategy"), "value", "do_not_truncate") != "do_not_truncate"
        words = words[:limit] if cut and limit is not None else words
        encoded = self._encoded(words)
        if options.get("return_attention_mask") is not False:  # the library leaves it out for an empty text
            encoded["attention_mask"] = [1] * len(words)
        if options.get("return_special_tokens_mask"):
            encoded["special_tokens_mask"] = [0] * len(words)
        if options.get("return_length"):
            encoded["length"] = len(words)
        if options.get("return_offsets_mapping"):
            whole = " ".join(words) if split or text_pair is not None else text
            encoded["offset_mapping"] = word_offsets(words, spelled_prefix(words, whole) if cut else whole)
        strategy = options.get("padding_strategy")
        encoded = self.pad(
            encoded,
            padding=getattr(strategy, "value", "do_not_pad"),
            max_length=limit,
            pad_to_multiple_of=options.get("pad_to_multiple_of"),
            padding_side=options.get("padding_side"),
            return_attention_mask=options.get("return_attention_mask"),
        )
        tensors = options.get("return_tensors")
        return BatchEncoding(dict(encoded), tensor_type=tensors, prepend_batch_axis=tensors is not None)

    def _encoded(self, words: list[str]) -> dict[str, Any]:
        table = self.elmo_config.words
        rows = words if table is None else [word[: table.max_characters] for word in words]
        encoded: dict[str, Any] = {"input_ids": self.vocabulary.ids(rows).tolist()}
        if self.speller is not None:
            encoded["character_ids"] = self.speller.encode(words)[0].tolist()
        return encoded

    def _pad(self, encoded_inputs: Any, *args: Any, padding_side: str | None = None, **options: Any) -> dict[str, Any]:
        """Pad what belongs to words."""
        if (padding_side or self.padding_side) != "right":
            raise UsageError("texts of an ELMo are padded on the right: leave padding_side as it is")
        padded: dict[str, Any] = super()._pad(encoded_inputs, *args, padding_side="right", **options)
        width = len(padded["input_ids"])
        for name, filler in (("character_ids", [0] * self._characters), ("offset_mapping", (0, 0))):
            if name in padded:
                padded[name] = [*padded[name], *[filler] * (width - len(padded[name]))]
        return padded

    @property
    def _characters(self) -> int:
        return 0 if self.speller is None else self.speller.max_length

    def save_vocabulary(self, save_directory: str, filename_prefix: str | None = None) -> tuple[str, ...]:
        """Write the vocabulary, and the alphabet and the word list of the splitter where there are any."""
        prefix = "" if filename_prefix is None else f"{filename_prefix}-"
        return tuple(_write_words(Path(save_directory), self.vocabulary, self.alphabet, self.splitter, prefix).values())


def _write_words(
    folder: Path, vocabulary: Vocabulary, alphabet: Sequence[str] | None, splitter: Any, prefix: str = ""
) -> dict[str, str]:
    names = PolysemeTokenizer.vocab_files_names
    contents = {"vocab_file": vocabulary.to_text()}
    if alphabet is not None:
        contents["characters_file"] = "".join(f"{symbol}\n" for symbol in alphabet)
    if isinstance(splitter, UnigramSegmenter):
        contents["words_file"] = Vocabulary(splitter.words).to_text()
    for name, content in contents.items():
        write_text(folder / f"{prefix}{names[name]}", content)
    return {name: str(folder / f"{prefix}{names[name]}") for name in contents}


# ---- models


class PolysemePreTrainedModel(PreTrainedModel):
    """What the models share."""

    config_class = PolysemeConfig
    base_model_prefix = "elmo"
    main_input_name = "input_ids"
    config: PolysemeConfig

    @classmethod
    def from_encoder(cls, encoder: AnyModel, **settings: Any) -> Self:
        """Return a model with the weights of a model of ours; `settings` are values of the config, such as `num_labels`."""
        source = _checked(shared_model(encoder))
        config = PolysemeConfig.from_encoder(source, **settings)
        model = cls(config)
        weights = {name: value for name, value in source.state_dict().items() if not name.startswith("output.")}
        if source.config.start == "warm":
            warm = source.warm_state()
            weights |= {"learned.hidden": warm.hidden, "learned.cell": warm.cell}
        model.base_model.encoder.load_state_dict(weights)
        return model.eval()

    def _init_weights(self, module: nn.Module) -> None:
        """Initialize what a classifier has beside the ELMo, which initializes itself."""
        if isinstance(module, Mix):
            nn.init.zeros_(module.weights)
            nn.init.ones_(module.gamma)
        elif module is getattr(self, "classifier", None):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)


class PolysemeModel(PolysemePreTrainedModel):
    """An ELMo: `last_hidden_state` is the top layer, `hidden_states` are all layers, (batch, words, dim) each."""

    def __init__(self, config: PolysemeConfig) -> None:
        super().__init__(config)
        elmo = config.elmo_config()
        points = elmo.characters is not None and elmo.characters.alphabet != "utf8"
        vocabulary = None if elmo.words is None else Vocabulary([elmo.begin, elmo.end, elmo.unknown])
        self.encoder = Elmo(elmo, vocabulary=vocabulary, alphabet=_SYMBOLS if points else None)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        """The network that turns a word into its own vector."""
        return self.encoder.tokens

    def forward(
        self,
        input_ids: Tensor | None = None,
        character_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Run a batch of words: (batch, words), their characters (batch, words, characters) and mask (batch, words)."""
        states = self.encoder(self._batch(input_ids, character_ids, attention_mask)).states
        wanted = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        output = BaseModelOutput(last_hidden_state=states[-1], hidden_states=tuple(states) if wanted else None)
        return output if return_dict is not False else output.to_tuple()

    def _batch(self, input_ids: Tensor | None, character_ids: Tensor | None, attention_mask: Tensor | None) -> Batch:
        if not isinstance(input_ids, Tensor):
            raise UsageError(
                f"input_ids is {input_ids!r}; give tensors: model(**tokenizer(texts, padding=True, return_tensors='pt'))"
            )
        mask = torch.ones_like(input_ids, dtype=torch.bool) if attention_mask is None else attention_mask.bool()
        lengths = mask.sum(1)
        if not torch.equal(mask, torch.arange(mask.shape[1], device=mask.device) < lengths[:, None]):
            raise UsageError("attention_mask must be 1 for the words of a text and 0 behind them: pad on the right")
        elmo = self.encoder.config
        columns = []
        if elmo.words is not None:
            ends = [self.config.begin["word"], self.config.end["word"]]
            columns.append(torch.cat([input_ids.new_tensor(ends), input_ids[mask]]).unsqueeze(1))
        if elmo.characters is not None:
            if character_ids is None:
                raise UsageError("this model reads characters: give character_ids, which its tokenizer returns")
            ends = [self.config.begin["characters"], self.config.end["characters"]]
            spelled = character_ids.new_tensor(ends)
            columns.append(torch.cat([spelled, character_ids[mask].reshape(-1, spelled.shape[1])]))
        distinct, numbers = torch.unique(torch.cat(columns, dim=1), dim=0, return_inverse=True)  # each word once
        index = torch.zeros(len(mask), mask.shape[1] + 2, dtype=torch.long)
        index[:, 0] = numbers[0]
        index[:, 1:-1][mask.cpu()] = numbers[2:].cpu()
        index[torch.arange(len(mask)), lengths.cpu() + 1] = numbers[1].cpu()
        words = distinct[:, 0] if elmo.words is not None else None
        characters = distinct[:, int(elmo.words is not None) :] if elmo.characters is not None else None
        used = None if characters is None else (characters != self.config.character_padding).sum(1).cpu()
        return Batch(ElmoInputs(WordInputs(characters, used, words), index), mask, lengths)


class _Classifier(PolysemePreTrainedModel):
    """An ELMo, a mix of its layers, dropout and a linear layer."""

    pooled: ClassVar[int] = 1
    """How many vectors, of the size of a word's, the linear layer reads."""
    output_type: ClassVar[Any]

    def __init__(self, config: PolysemeConfig) -> None:
        super().__init__(config)
        self.elmo = PolysemeModel(config)
        self.mix = Mix(config.num_hidden_layers + 1)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(self.pooled * config.hidden_size, config.num_labels)
        self.post_init()

    def forward(
        self,
        input_ids: Tensor | None = None,
        character_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        labels: Tensor | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Return logits, (batch, words, labels) or (batch, labels), and their loss if `labels` are given."""
        layers = self.elmo(input_ids, character_ids, attention_mask, output_hidden_states=True).hidden_states
        mask = layers[0].new_ones(layers[0].shape[:2]).bool() if attention_mask is None else attention_mask.bool()
        logits = self.classifier(self.dropout(self._pool(self.mix(torch.stack(layers), mask), mask)))
        loss = None if labels is None else self._loss(logits, labels)
        wanted = self.config.output_hidden_states if output_hidden_states is None else output_hidden_states
        output = self.output_type(loss=loss, logits=logits, hidden_states=layers if wanted else None)
        return output if return_dict is not False else output.to_tuple()

    def _pool(self, mixed: Tensor, mask: Tensor) -> Tensor:
        """What the linear layer reads of (batch, words, dim): each word."""
        return mixed

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        raise NotImplementedError


class PolysemeForTokenClassification(_Classifier):
    """A label for each word; labels of -100 do not count."""

    output_type = TokenClassifierOutput

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class PolysemeForSequenceClassification(_Classifier):
    """A label, several, or a number for a text, from [last; max; mean] of its words, by `config.problem_type` as usual."""

    pooled = 3
    output_type = SequenceClassifierOutput

    def _pool(self, mixed: Tensor, mask: Tensor) -> Tensor:
        return concat_pool(mixed, mask, final_states(mixed, mask))

    def _loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        kind = self.config.problem_type
        if kind is None:
            single = not labels.is_floating_point()
            kind = "regression" if logits.shape[1] == 1 else "single_label" if single else "multi_label"
        if kind == "regression":
            return F.mse_loss(logits.squeeze(-1), labels.to(logits.dtype).reshape(logits.squeeze(-1).shape))
        if kind.startswith("multi_label"):
            return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
        return F.cross_entropy(logits, labels.reshape(-1))


AutoConfig.register("polyseme", PolysemeConfig, exist_ok=True)
AutoModel.register(PolysemeConfig, PolysemeModel, exist_ok=True)
AutoModelForTokenClassification.register(PolysemeConfig, PolysemeForTokenClassification, exist_ok=True)
AutoModelForSequenceClassification.register(PolysemeConfig, PolysemeForSequenceClassification, exist_ok=True)
AutoTokenizer.register(PolysemeConfig, PolysemeTokenizer, exist_ok=True)
