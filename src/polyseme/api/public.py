"""What `import polyseme` offers: names and where they are defined, and the overloads of functions that take settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from polyseme.api.settings import configs_of
from polyseme.base.options import Option, options_of

HOMES = {
    "Corpus": "polyseme.text.corpus:Corpus",
    "Elmo": "polyseme.encoders.elmo:Elmo",
    "ElmoConfig": "polyseme.encoders.elmo_config:ElmoConfig",
    "Encoder": "polyseme.encoders.base:Encoder",
    "Mix": "polyseme.nn.mix:Mix",
    "PolysemeError": "polyseme.base.errors:PolysemeError",
    "Task": "polyseme.tasks.base:Task",
    "adapt": "polyseme.api.training:adapt",
    "analogy": "polyseme.api.words:analogy",
    "compare": "polyseme.api.studies:compare",
    "convert": "polyseme.api.models:convert",
    "embed_dataset": "polyseme.api.embedding:embed_dataset",
    "embed_file": "polyseme.api.embedding:embed_file",
    "evaluate": "polyseme.api.tasks:evaluate",
    "info": "polyseme.api.models:info",
    "lineage": "polyseme.api.studies:lineage",
    "load": "polyseme.api.models:load",
    "load_task": "polyseme.api.tasks:load_task",
    "migrate": "polyseme.compat.migrate:migrate",
    "neighbors": "polyseme.api.words:neighbours",
    "neighbours": "polyseme.api.words:neighbours",
    "perplexity": "polyseme.api.language:perplexity",
    "predict": "polyseme.api.predicting:predict",
    "pretrain": "polyseme.api.training:pretrain",
    "probe": "polyseme.api.probing:probe",
    "score": "polyseme.api.language:score",
    "senses": "polyseme.api.words:senses",
    "similar": "polyseme.api.words:similar",
    "substitutes": "polyseme.api.language:substitutes",
    "train": "polyseme.api.tasks:train",
    "verify": "polyseme.api.models:verify",
}
"""By public name: `module:attribute`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Variant:
    """One signature of a function that takes settings: of one task, or of one method."""

    function: Callable[..., Any]
    options: Mapping[str, Option]
    """Its keyword arguments besides those of the function."""
    returns: str
    """`module:Class` of the result, or a plain type."""
    types: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Types of parameters that differ from those of the function: the names of one task."""
    leading: str | None = None
    """A parameter in front of those of the function."""
    required: tuple[str, ...] = ()
    """Parameters that must be given, and decide for this signature; others may have any name (`**settings`)."""


def overloads() -> dict[str, list[Variant]]:
    """The functions whose signatures the stub spells out."""
    from polyseme.api import embedding, models, predicting, studies, tasks, training, words

    encoder, table = "polyseme.encoders.base:Encoder", "polyseme.studies.report:ComparisonResult"
    shipped = {"model": "Literal['en', 'zh']"}
    neighbours = _own(words.neighbours, "polyseme.analysis.neighbours:Neighbours")
    return {
        "adapt": [Variant(function=training.adapt, options=training.adaptation_options(), returns=encoder)],
        "compare": [Variant(function=studies.compare, options=options_of(studies.compare_configs()), returns=table)],
        "embed_dataset": [_own(embedding.embed_dataset, "polyseme.scale.dataset:EmbeddedDataset")],
        "embed_file": [_own(embedding.embed_file, "polyseme.formats.embed_file:EmbeddedFile")],
        "evaluate": [
            Variant(
                function=tasks.evaluate,
                options=tasks.evaluation_options(),
                returns="polyseme.tasks.error_analysis:ErrorReport",
            )
        ],
        "lineage": [Variant(function=studies.lineage, options=options_of(studies.lineage_configs()), returns=table)],
        "load": [
            Variant(function=models.load, options={}, returns="polyseme.encoders.elmo:Elmo", types=shipped),
            Variant(function=models.load, options={}, returns=encoder, types={"model": "str | Path"}),
        ],
        "neighbors": [neighbours],
        "neighbours": [neighbours],
        "predict": [
            Variant(
                function=predicting.predict,
                options=tasks.decoding_options(),
                returns="Iterator[polyseme.api.predicting:LinePrediction]",
            )
        ],
        "pretrain": _pretrain(),
        "probe": _probe(),
        "train": _train(),
        "senses": [_own(words.senses, "polyseme.analysis.sense_vectors:SenseVectors")],
        "verify": [_own(models.verify, "polyseme.formats.verify:Verification")],
    }


def _own(function: Callable[..., Any], returns: str, leading: str | None = None) -> Variant:
    """A function whose options are the settings of its own configs."""
    return Variant(function=function, options=options_of(configs_of(function)), returns=returns, leading=leading)


def _pretrain() -> list[Variant]:
    from polyseme.api import training
    from polyseme.encoders.registry import ENCODERS
    from polyseme.pretraining.methods import METHODS

    return [
        Variant(
            function=training.pretrain,
            options=options_of(training.pretraining_configs(name)),
            returns=ENCODERS["word2vec" if name == "glove" else name].path,
            types={"method": f"Literal[{name!r}]"},
        )
        for name in METHODS
    ]


def _probe() -> list[Variant]:
    from polyseme.api.probing import PROBES

    results = {"analogies": "polyseme.analysis.analogies:AnalogyScores"}
    table = "polyseme.analysis.probe_result:ProbeResult"
    return [_own(each, results.get(name, table), f"kind: Literal[{name!r}]") for name, each in PROBES.items()]


def _train() -> list[Variant]:
    from polyseme.api import tasks
    from polyseme.tasks.registry import ALIASES, TASKS

    names = {name: [name, *(alias for alias, task in ALIASES.items() if task == name)] for name in TASKS}
    result = "polyseme.studies.folds:CrossValidation"
    folds = Variant(function=tasks.train, options={}, returns=result, types={"folds": "int"}, required=("folds",))
    return [
        *(
            Variant(
                function=tasks.train,
                options=options_of(tasks.training_configs(name)),
                returns=TASKS[name].home,
                types={"task": f"Literal[{', '.join(map(repr, names[name]))}]", "folds": "None"},
            )
            for name in TASKS
        ),
        folds,
    ]
