"""Options of `polyseme train`: one dataclass for each task, over one that they share."""

from __future__ import annotations

import dataclasses
from enum import Enum, StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from polyseme.cli.options import Json, Splitter
from polyseme.cli.task_choices import (
    Attention,
    Goal,
    Head,
    Kind,
    LayerNorm,
    Layers,
    Mode,
    PairNetwork,
    Phrases,
    RateDecay,
    ReadingNetwork,
    Rules,
    TargetSplitter,
    TextNetwork,
    Thaw,
    Unknown,
)
from polyseme.cli.text_options import WordList
from polyseme.cli.training_options import AcceptChanges, Device, PrecisionOption, Seed


def _option(*names: str, panel: str | None = None, help: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=panel, show_default=False, **more)


_DATA, _ENCODERS, _WORDS, _TRAINING = "Data", "Encoders", "Text", "Training"
_FILES = "plain, gzip or xz"
ELSEWHERE = {
    *("data", "dev", "test", "out", "encoder", "splitter", "word_list", "cache", "seed", "device", "precision"),
    *("accept_changes", "json", "freeze_word_vectors", "positions"),
}
"""Fields that are no options of a config, or not under their own name."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainOptions:
    """What all tasks have."""

    data: Annotated[Path, _option("--data", "-d", metavar="FILE", help=f"Labelled data to learn from, {_FILES}.")]
    dev: Annotated[
        Path | None,
        _option("--dev", metavar="FILE", help="Data to choose the best network by; not given: the last tenth of --data."),
    ] = None
    test: Annotated[Path | None, _option("--test", metavar="FILE", help="Data to score the best network on.")] = None
    encoder: Annotated[
        str,
        typer.Option(
            "--encoder",
            "-e",
            metavar="MODEL",
            help="none, or models joined by +: en, zh, folders, hub ids, files of word vectors (vectors.bin+en).",
        ),
    ] = "en"
    mode: Annotated[
        Mode, typer.Option("--mode", help="frozen: encoders give features and stay. finetune: they learn the task too.")
    ] = Mode.frozen
    out: Annotated[Path, _option("--out", "-o", metavar="RUN", help="Folder for the trained task, or of a run to go on with.")]
    json: Json = False
    positions: Annotated[
        str | None,
        _option(
            "--positions",
            panel=_ENCODERS,
            metavar="P,...",
            help="Where their vectors stand: input, output, or both joined by a comma; in taggers also between. Not given: "
            "input.",
        ),
    ] = None
    layers: Annotated[
        Layers | None,
        _option("--layers", panel=_ENCODERS, help="A learned mix of all layers, the top one alone, or all side by side."),
    ] = None
    norm: Annotated[
        LayerNorm | None,
        _option(
            "--norm",
            panel=_ENCODERS,
            help="Scale layers before they are mixed: each word for itself, all words of a batch as published, or not at all. "
            "Not given: words.",
        ),
    ] = None
    l2: Annotated[
        float | None,
        _option("--l2", panel=_ENCODERS, min=0, help="Pull of the mix's weights towards equal ones; not given: 0.001."),
    ] = None
    encoder_lr_multiplier: Annotated[
        float | None,
        _option("--encoder-rate", panel=_ENCODERS, help="Rate of a fine-tuned encoder, times the task's; not given: 0.1."),
    ] = None
    layer_decay: Annotated[
        float | None,
        _option(
            "--layer-decay",
            panel=_ENCODERS,
            min=1,
            help="Each part moves so many times slower than the one above; not given: 1.",
        ),
    ] = None
    unfreeze: Annotated[
        Thaw | None,
        _option(
            "--unfreeze", panel=_ENCODERS, help="Fine-tune all parts, the top one alone, or one after another from the top."
        ),
    ] = None
    cache: Annotated[
        Path | None,
        _option("--cache", panel=_ENCODERS, metavar="FOLDER", help="Keep frozen layers here; several runs can share them."),
    ] = None
    splitter: Annotated[
        Splitter | None,
        _option(
            "--splitter",
            panel=_WORDS,
            help="How raw text is split, at prediction too. Not given: as the first encoder does; english without one.",
        ),
    ] = None
    word_list: WordList = None
    word_dim: Annotated[
        int | None,
        _option("--word-dim", panel=_WORDS, min=0, help="Size of the task's own word vectors; not given: 100. 0: none."),
    ] = None
    task_embeddings: Annotated[
        bool | None,
        _option(
            "--task-embeddings/--no-task-embeddings",
            panel=_WORDS,
            help="Without them (no table, no characters) encoders read alone.",
        ),
    ] = None
    freeze_word_vectors: Annotated[
        bool, _option("--freeze-word-vectors", panel=_WORDS, help="Word vectors from a file do not go on learning.")
    ] = False
    unknown_words: Annotated[
        Unknown | None,
        _option(
            "--unknown-words", panel=_WORDS, help="What unknown words get: one vector for all, or a random one of their own."
        ),
    ] = None
    hidden_size: Annotated[
        int | None, _option("--hidden-size", panel=_TRAINING, min=1, help="Units of the network's layers.")
    ] = None
    dropout: Annotated[float | None, _option("--dropout", panel=_TRAINING, help="Share of numbers dropped in training.")] = None
    epochs: Annotated[
        int | None, _option("--epochs", panel=_TRAINING, min=1, help="Passes over the data, at most; not given: 50.")
    ] = None
    patience: Annotated[
        int | None,
        _option("--patience", panel=_TRAINING, min=1, help="Stop after so many epochs without a gain on dev; not given: 10."),
    ] = None
    batch_size: Annotated[
        int | None, _option("--batch-size", panel=_TRAINING, min=1, help="Examples of a batch; not given: 32.")
    ] = None
    learning_rate: Annotated[
        float | None, _option("--learning-rate", panel=_TRAINING, help="Highest learning rate; not given: 0.003.")
    ] = None
    warmup: Annotated[
        float | None,
        _option("--warmup", panel=_TRAINING, help="Share of the run in which the rate climbs; not given: 0."),
    ] = None
    decay: Annotated[
        RateDecay | None,
        _option("--decay", panel=_TRAINING, help="How the rate falls then; slanted: as in ULMFiT, with --warmup 0.1."),
    ] = None
    train_fraction: Annotated[
        float | None,
        _option(
            "--train-fraction", panel=_TRAINING, help="Share of the training data to use, drawn by the seed; not given: 1."
        ),
    ] = None
    seed: Seed = 0
    device: Device = None
    precision: PrecisionOption = None
    accept_changes: AcceptChanges = False

    def chosen(self) -> dict[str, Any]:
        """The options that were given, under the names that `polyseme.train` has for them."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name not in ELSEWHERE}
        if self.freeze_word_vectors:
            values["freeze_word_vectors"] = True
        if self.positions is not None:
            values["positions"] = [name.strip() for name in self.positions.split(",")]
        given = {name: value for name, value in values.items() if value is not None}
        return {name: value.value if isinstance(value, Enum) else value for name, value in given.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class TaggingOptions(TrainOptions):
    """Of taggers."""

    column: Annotated[
        str | None,
        _option(
            "--column",
            panel=_DATA,
            metavar="COLUMN",
            help="Where the tags stand: a number from 0 (-1 is the last), in CoNLL-U also a name. "
            "Not given: upos, or the last.",
        ),
    ] = None
    network_layers: Annotated[
        int | None,
        _option("--network-layers", panel=_TRAINING, min=0, help="LSTM layers; 0: none at all. Not given: 2."),
    ] = None
    crf: Annotated[
        bool | None, _option("--crf/--no-crf", panel=_TRAINING, help="Score a sentence's tags as a whole, or each for itself.")
    ] = None
    word_features: Annotated[
        bool | None,
        _option(
            "--word-features",
            panel=_ENCODERS,
            help="For data by single characters: frozen encoders and word vectors read the words that hold them, as they cut "
            "the text.",
        ),
    ] = None
    document_context: Annotated[
        bool | None,
        _option("--document-context", panel=_ENCODERS, help="Frozen encoders read sentences in their document, not alone."),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class TableOptions(TrainOptions):
    """Of tasks whose data are tables."""

    text: Annotated[
        str | None,
        _option(
            "--text", panel=_DATA, metavar="COLUMN", help="Column of the text, by name or number from 0, where not obvious."
        ),
    ] = None
    label: Annotated[str | None, _option("--label", panel=_DATA, metavar="COLUMN", help="Column of the label, likewise.")] = (
        None
    )
    header: Annotated[
        bool | None, _option("--header/--no-header", panel=_DATA, help="Whether the first row names the columns.")
    ] = None
    format: Annotated[Kind | None, _option("--format", panel=_DATA, help="The kind of table, where content does not tell.")] = (
        None
    )
    strict: Annotated[
        bool | None,
        _option("--strict/--no-strict", panel=_DATA, help="Whether rows without a text, or with more columns, are errors."),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeadOptions(TrainOptions):
    """Of tasks that can be an encoder and a head."""

    head: Annotated[
        Head | None,
        _option("--head", panel=_TRAINING, help="Of linear: one layer, one behind a tanh layer (BERT), two (ULMFiT)."),
    ] = None
    encoder_dropout: Annotated[
        float | None,
        _option(
            "--encoder-dropout",
            panel=_TRAINING,
            min=0,
            help="Of linear: shares of a ulmfit's dropout times this, while it is fine-tuned; not given: 0.5.",
        ),
    ] = None
    lm_weight: Annotated[
        float | None,
        _option("--lm-weight", panel=_TRAINING, min=0, help="Of linear: weight of a gpt's or ulmfit's own loss (GPT: 0.5)."),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ClassificationOptions(HeadOptions, TableOptions):
    """Of classifiers."""

    classes: Annotated[
        int | None, _option("--classes", panel=_DATA, metavar="2|5", help="Of trees: 5 classes, or 2 without what is neutral.")
    ] = None
    phrases: Annotated[
        Phrases | None,
        _option("--phrases", panel=_DATA, help="Of trees: learn from sentences, from each distinct phrase, or from all."),
    ] = None
    sentence_copies: Annotated[
        int | None,
        _option("--sentence-copies", panel=_DATA, min=1, help="Of trees: learn whole sentences so often; not given: 1."),
    ] = None
    phrase_context: Annotated[
        bool | None,
        _option("--phrase-context", panel=_ENCODERS, help="Of trees: frozen encoders read phrases in their sentence."),
    ] = None
    network: Annotated[
        TextNetwork | None,
        _option("--network", panel=_TRAINING, help="bcn: biattentive; pooled: light; linear: the encoder and a head."),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class PairsOptions(HeadOptions, TableOptions):
    """Of pairs."""

    second: Annotated[
        str | None, _option("--second", panel=_DATA, metavar="COLUMN", help="Column of the second text, together with --text.")
    ] = None
    goal: Annotated[Goal | None, _option("--goal", panel=_DATA, help="A label for each pair, or a score: a number.")] = None
    network: Annotated[
        PairNetwork | None, _option("--network", panel=_TRAINING, help="esim; siamese: light; linear: the encoder and a head.")
    ] = None
    both_orders: Annotated[
        bool | None, _option("--both-orders", panel=_TRAINING, help="Of linear: read pairs in both orders, as GPT does.")
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ChoicesOptions(HeadOptions):
    """Of choices."""

    batch_size: Annotated[
        int | None, _option("--batch-size", panel=_TRAINING, min=1, help="Questions of a batch; not given: 8.")
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RolesOptions(TrainOptions):
    """Of roles."""

    network_layers: Annotated[
        int | None,
        _option("--network-layers", panel=_TRAINING, min=1, help="LSTM layers, in turn forward and backward; not given: 8."),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class ReadingOptions(TrainOptions):
    """Of readers."""

    network: Annotated[
        ReadingNetwork | None, _option("--network", panel=_TRAINING, help="bidaf, or linear: spans straight from a bert.")
    ] = None
    rules: Annotated[
        Rules | None,
        _option("--rules", panel=_DATA, help="How answers are compared: as SQuAD v1.1 or v2 do, or CMRC for Chinese."),
    ] = None
    allow_no_answer: Annotated[
        bool | None,
        _option(
            "--allow-no-answer/--no-allow-no-answer",
            panel=_DATA,
            help="Whether it may say that there is none; by the data, where not given.",
        ),
    ] = None
    max_answer_length: Annotated[
        int | None,
        _option("--max-answer-length", panel=_DATA, min=1, metavar="WORDS", help="Words of an answer, at most; not given: 30."),
    ] = None
    max_paragraph_length: Annotated[
        int | None,
        _option(
            "--max-paragraph-length",
            panel=_TRAINING,
            min=1,
            metavar="WORDS",
            help="Longer paragraphs are cut around the answer in training; not given: 400.",
        ),
    ] = None


class BleuWords(StrEnum):
    """How BLEU cuts texts, as sacrebleu calls it."""

    usual = "13a"
    international = "intl"
    chinese = "zh"
    characters = "char"
    blanks = "none"


@dataclasses.dataclass(frozen=True, kw_only=True)
class GenerationOptions(TrainOptions):
    """Of generators."""

    source: Annotated[
        str | None,
        _option(
            "--source",
            panel=_DATA,
            metavar="NAME",
            help="Ending of the source files (en), or column of a table, by name or number from 0. Not given: a column with a "
            "well-known name (source, src, input, document ...), else the first.",
        ),
    ] = None
    target: Annotated[
        str | None,
        _option(
            "--target",
            panel=_DATA,
            metavar="NAME",
            help="Ending of the target files (de), or column. Not given: the name that belongs to it, else the second.",
        ),
    ] = None
    header: Annotated[
        bool | None, _option("--header/--no-header", panel=_DATA, help="Whether the first row of a table names the columns.")
    ] = None
    bleu_tokenizer: Annotated[
        BleuWords | None,
        _option(
            "--bleu-tokenizer",
            panel=_DATA,
            help="How sacrebleu cuts words for BLEU; not given: zh for Chinese, char for Japanese and other texts split into "
            "characters, else 13a.",
        ),
    ] = None
    target_splitter: Annotated[
        TargetSplitter | None,
        _option("--target-splitter", panel=_WORDS, help="How raw targets become words; not given: by their script."),
    ] = None
    min_count: Annotated[
        int | None,
        _option("--min-count", panel=_WORDS, min=1, metavar="N", help="Rarer target words are unknown; not given: 2."),
    ] = None
    target_encoder: Annotated[
        str | None,
        _option(
            "--target-encoder",
            panel=_ENCODERS,
            metavar="MODEL",
            help="Target words start from this model of their language: a folder with word vectors, or an ELMo.",
        ),
    ] = None
    network_layers: Annotated[
        int | None, _option("--network-layers", panel=_TRAINING, min=1, help="LSTM layers that read; not given: 1.")
    ] = None
    decoder_layers: Annotated[
        int | None, _option("--decoder-layers", panel=_TRAINING, min=1, help="LSTM layers that write; not given: 1.")
    ] = None
    target_dim: Annotated[
        int | None, _option("--target-dim", panel=_TRAINING, min=1, help="Size of a target word's vector; not given: 256.")
    ] = None
    attention: Annotated[
        Attention | None, _option("--attention", panel=_TRAINING, help="By a product (Luong), or a hidden layer (Bahdanau).")
    ] = None
    input_feeding: Annotated[
        bool | None,
        _option("--input-feeding", panel=_TRAINING, help="Give each step what the last one looked at; slower to train."),
    ] = None
    tied: Annotated[
        bool | None, _option("--tied", panel=_TRAINING, help="Score target words by the vectors that they are read by.")
    ] = None
    label_smoothing: Annotated[
        float | None,
        _option("--label-smoothing", panel=_TRAINING, help="Share of the probability that all words have; not given: 0."),
    ] = None
    num_beams: Annotated[
        int | None, _option("--num-beams", panel=_TRAINING, min=1, help="Answers followed at a time; 1: greedy. Not given: 5.")
    ] = None
    max_length: Annotated[
        int | None,
        _option("--max-length", panel=_TRAINING, min=1, metavar="WORDS", help="Words of an answer, at most; not given: 200."),
    ] = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class CoreferenceOptions(TrainOptions):
    """Of coreference."""

    singletons: Annotated[
        bool | None,
        _option("--singletons", panel=_DATA, help="What is mentioned once is learned, given and counted, too."),
    ] = None
    max_span_width: Annotated[
        int | None,
        _option("--max-span-width", panel=_DATA, min=1, metavar="WORDS", help="Words of a mention, at most; not given: 20."),
    ] = None
    mention_loss: Annotated[
        bool | None,
        _option("--mention-loss", panel=_TRAINING, help="Tell which spans are mentions; helps where data is tiny."),
    ] = None
    network_layers: Annotated[
        int | None, _option("--network-layers", panel=_TRAINING, min=1, help="LSTM layers; not given: 1.")
    ] = None
    spans_per_word: Annotated[
        float | None,
        _option(
            "--spans-per-word", panel=_TRAINING, metavar="SHARE", help="Spans that are compared, times words; not given: 0.4."
        ),
    ] = None
    max_antecedents: Annotated[
        int | None,
        _option(
            "--max-antecedents", panel=_TRAINING, min=1, metavar="N", help="Each with so many earlier ones; not given: 50."
        ),
    ] = None
    max_training_sentences: Annotated[
        int | None,
        _option(
            "--max-training-sentences",
            panel=_TRAINING,
            min=1,
            metavar="SENTENCES",
            help="Of a longer document, so many are trained on at a time; not given: 50.",
        ),
    ] = None
    batch_size: Annotated[
        int | None, _option("--batch-size", panel=_TRAINING, min=1, help="Documents of a batch; not given: 1.")
    ] = None
