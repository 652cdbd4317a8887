"""The names of format 1: what model, task and run folders called things before format 2.

Readers of `polyseme_format: 1` translate keys and values through these tables, and nothing else in the project knows the
old names. Format 2 has the names of the config classes as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ELMO = {"layout": "batching", "steps": "bptt", "parts": "overrides", "trunk": "architecture", "vocabulary": "vocabulary_size"}
_ULMFIT = {
    "activation": "activation_regularization",
    "activation_change": "temporal_regularization",
    "rows": "batch_size",
    "steps": "bptt",
}
_SUBWORDS = {"pieces": "vocabulary_size", "length": "max_length", "batch_pieces": "batch_subwords"}

KEYS: dict[str, dict[str, str]] = {
    # ---- nn
    "CharactersConfig": {"highways": "highway_layers"},
    "LstmConfig": {"dim": "cell_size", "projection": "projection_size"},
    "TransformerConfig": {"inner": "feedforward_size"},
    # Checkpoints of runs.
    "Checkpoint": {"plan": "budget", "ranks": "processes", "log": "log_bytes"},
    "RunSettings": {"ranks": "world_size", "judged": "dev", "rows": "vocabulary"},
    "Progress": {"waited": "wait_count"},
    "IntervalMetrics": {"in_a_row": "consecutive_skips"},
    "TrainConfig": {"accumulate": "gradient_accumulation_steps"},
    # Positions of batches in the checkpoints of runs.
    "PackedPosition": {"lanes": "rows"},
    "PackedRows": {"place": "position"},
    "BpttPosition": {"place": "position", "rows": "batch_size"},
    "ElmoConfig": {"plain_words": "normalize_quotes"},
    "WordTableConfig": {"cut": "max_characters"},
    "NnlmConfig": {"hidden": "hidden_size", "direct": "direct_connections"},
    "UlmfitConfig": {"hidden": "hidden_size"},
    "FastTextConfig": {"shortest": "min_n", "longest": "max_n"},
    "SubwordConfig": {"pieces": "subword_pooling"},
    # ---- tasks
    "FeaturesConfig": {"covering": "word_features", "encoder_rate": "encoder_lr_multiplier", "thaw": "unfreeze"},
    "TaskWordConfig": {"own": "enabled", "tune": "freeze_word_vectors", "unknown": "unknown_words", "hidden": "word_dropout"},
    "TaggingConfig": {"hidden": "hidden_size"},
    "RolesConfig": {"hidden": "hidden_size"},
    "ClassificationConfig": {"hidden": "hidden_size", "main": "metric", "kind": "format", "direct": "linear_head"},
    "PairsConfig": {
        "hidden": "hidden_size",
        "main": "metric",
        "kind": "format",
        "direct": "linear_head",
        "positive": "positive_label",
        "low": "min_score",
        "high": "max_score",
    },
    "ChoicesConfig": {"hidden": "hidden_size", "direct": "linear_head"},
    "ReadingConfig": {
        "hidden": "hidden_size",
        "longest": "max_answer_length",
        "longest_paragraph": "max_paragraph_length",
        "no_answer": "allow_no_answer",
    },
    "CoreferenceConfig": {
        "hidden": "hidden_size",
        "scorer": "scorer_size",
        "longest": "max_span_width",
        "kept": "spans_per_word",
        "antecedents": "max_antecedents",
        "window": "max_training_sentences",
        "windows": "truncation",
        "taught": "mention_loss",
        "sentences": "sentence_splitter",
    },
    "GenerationConfig": {"hidden": "hidden_size", "most_words": "max_vocabulary", "bleu_words": "bleu_tokenizer"},
    "DecodingConfig": {
        "way": "strategy",
        "beam": "num_beams",
        "longest": "max_length",
        "answers": "num_return_sequences",
        "draw": "sampling_seed",
    },
    # ---- studies: options of experiments (cell.json)
    "ExperimentOptions": {"own_words": "task_embeddings", "tune_words": "freeze_word_vectors", "hidden_words": "word_dropout"},
    "FitConfig": {"batch": "batch_size", "least_steps": "min_steps", "share": "train_fraction"},
    # Pre-training: settings of interrupted runs.
    "ElmoPretraining": _ELMO,
    "TagLmPretraining": _ELMO,
    "ElmoAdaptation": {"layout": "batching", "steps": "bptt", "vocabulary": "vocabulary_size"},
    "ArchitectureOverrides": {"cell": "cell_size", "projection": "projection_size", "highways": "highway_layers"},
    "NgramPretraining": {"vocabulary": "vocabulary_size"},
    "GlovePretraining": {"vocabulary": "vocabulary_size"},
    "Word2VecPretraining": {"hierarchical": "hierarchical_softmax"},
    "FastTextPretraining": {"hierarchical": "hierarchical_softmax", "shortest": "min_n", "longest": "max_n"},
    "NnlmPretraining": {"vocabulary": "vocabulary_size", "hidden": "hidden_size", "direct": "direct_connections"},
    "UlmfitPretraining": {**_ULMFIT, "vocabulary": "vocabulary_size", "hidden": "hidden_size"},
    "UlmfitAdaptation": _ULMFIT,
    "BertPretraining": {**_SUBWORDS, "lowercase": "cased"},
    "GptPretraining": _SUBWORDS,
    "MaskingConfig": {
        "share": "mlm_probability",
        "masked": "mask_replace_prob",
        "random": "random_replace_prob",
        "whole_words": "whole_word_mask",
        "kind": "static_masking",
    },
}
"""By config class: old key -> new key."""

VALUES: dict[str, dict[str, dict[Any, Any]]] = {
    "ExperimentOptions": {"freeze_word_vectors": {True: False, False: True}},
    # ---- tasks
    "TaskWordConfig": {"freeze_word_vectors": {True: False, False: True}, "unknown_words": {"vector": "shared"}},
    "ClassificationConfig": {"network": {"direct": "linear"}},
    "PairsConfig": {"network": {"direct": "linear"}},
    "ReadingConfig": {"network": {"direct": "linear"}},
    # ---- pre-training
    "ElmoPretraining": {"batching": {"lanes": "packed"}},
    "TagLmPretraining": {"batching": {"lanes": "packed"}},
    "ElmoAdaptation": {"batching": {"lanes": "packed"}},
    "BertPretraining": {"cased": {True: False, False: True}},
    "MaskingConfig": {"static_masking": {"static": True, "dynamic": False}},
}
"""By config class and new key: old value -> new value. Applies after the keys."""

SPLITTERS: dict[str, str] = {"likeliest": "unigram"}
"""Old name of a splitter -> new name."""

ENCODERS: dict[str, str] = {"covering": "word_features"}
"""Old name of a kind of encoder -> new name."""


EXAMPLES: dict[str, str] = {
    "TaggedSentence(": "Tagged(",
    "CoreferenceDocument(": "Document(",
    "ReadingQuestion(": "Question(",
    "AnswerSpan(": "Span(",
    "], predicate=": "], place=",
}
"""What the `repr` of labelled examples has, and what it had: fingerprints of training data hash it."""


def old_repr(example: object) -> str:
    """Return the `repr` of a labelled example as format 1 hashed it, so that old fingerprints still match."""
    text = repr(example)
    for new, old in EXAMPLES.items():
        text = text.replace(new, old)
    return text


def translate(config: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a config of format 1 under their names of format 2.

    >>> translate("NoSuchConfig", {"dim": 3})
    {'dim': 3}
    """
    keys, changes = KEYS.get(config, {}), VALUES.get(config, {})
    renamed = {keys.get(key, key): value for key, value in values.items()}
    return {key: _changed(value, changes.get(key)) for key, value in renamed.items()}


LATER: dict[str, dict[str, Any]] = {"UlmfitConfig": {"backward": False}}
"""Fields that format 1 does not have, and the values that stand for their absence."""


def restore(config: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a config of format 2 under their names of format 1: for hashes, which must not change with names.

    >>> restore("UlmfitConfig", {"hidden_size": 3, "backward": False})
    {'hidden': 3}
    """
    later = LATER.get(config, {})
    values = {key: value for key, value in values.items() if key not in later or value != later[key]}
    keys = {new: old for old, new in KEYS.get(config, {}).items()}
    changes = {key: {new: old for old, new in each.items()} for key, each in VALUES.get(config, {}).items()}
    return {keys.get(key, key): _changed(value, changes.get(key)) for key, value in values.items()}


def old_name(names: Mapping[str, str], name: str) -> str:
    """The name of format 1 for a name of format 2, by one of the tables above: fingerprints hash the old names.

    >>> old_name(SPLITTERS, "unigram"), old_name(ENCODERS, "elmo")
    ('likeliest', 'elmo')
    """
    return next((old for old, new in names.items() if new == name), name)


def new_words(word: str) -> set[str]:
    """What a word of a command line of format 1, a flag or a value, may be called now.

    >>> new_words("--least-steps"), new_words("likeliest")
    ({'--min-steps'}, {'unigram'})
    """
    if word.startswith("--"):
        key = word[2:].replace("-", "_")
        return {f"--{keys[key]}".replace("_", "-") for keys in KEYS.values() if key in keys}
    values = [changes for table in VALUES.values() for changes in table.values()]
    return {str(changes[word]) for changes in (*values, SPLITTERS, ENCODERS) if word in changes}


def _changed(value: Any, changes: Mapping[Any, Any] | None) -> Any:
    if changes is None:
        return value
    if isinstance(value, list):
        return [_changed(each, changes) for each in value]
    return changes.get(value, value) if isinstance(value, str | int | float | bool | None) else value
