"""`polyseme train`: from labelled data to a trained task."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from polyseme.cli import show
from polyseme.cli.option_groups import command
from polyseme.cli.options import Splitter
from polyseme.cli.task_options import (
    ChoicesOptions,
    ClassificationOptions,
    CoreferenceOptions,
    GenerationOptions,
    PairsOptions,
    ReadingOptions,
    RolesOptions,
    TaggingOptions,
    TrainOptions,
)
from polyseme.cli.text_options import named
from polyseme.cli.training_options import large_pages, leave

if TYPE_CHECKING:
    from polyseme.tasks.fit import FitResult
    from polyseme.text.words import Splitter as Way

app = typer.Typer(help="Put encoders to a task, on labelled data.", no_args_is_help=True)


@app.callback()
def about() -> None:
    """Put encoders to a task, on labelled data.

    The folder RUN holds the best network so far at any moment, and the same command goes on after a stop. `polyseme predict`
    and `polyseme evaluate` use it.
    """


@app.command()
@command
def tagging(options: TaggingOptions) -> None:
    """A tag for each word: names, parts of speech, phrases. Also called ner, pos and chunking.

    Reads CoNLL columns, BMES and CoNLL-U. Tags of spans (B-PER, I-PER) are scored by the F1 of whole spans, others by
    accuracy.

    Example:

        polyseme train tagging --data train.conll --dev dev.conll --encoder en --out my-tagger
    """
    _train("tagging", options)


@app.command()
@command
def classification(options: ClassificationOptions) -> None:
    """A label for each text: sentiment, topics, kinds of questions.

    Reads TSV, CSV, JSON lines, lines of a label and a text, and sentiment trees.

    Example:

        polyseme train classification --data train.tsv --dev dev.tsv --encoder en --out my-classifier
    """
    _train("classification", options)


@app.command()
@command
def pairs(options: PairsOptions) -> None:
    """A label or a score for each pair of texts: inference, paraphrases, similarity. Also called nli.

    Reads TSV, CSV and JSON lines.

    Example:

        polyseme train pairs --data train.tsv --dev dev.tsv --encoder en --out my-judge
    """
    _train("pairs", options)


@app.command()
@command
def choices(options: ChoicesOptions) -> None:
    """Which of several answers to a question is right; an encoder reads the question with each, and a head scores them.

    Reads JSON lines with question, choices, answer (its place from 0, or its text) and, where there is one, context.

    Example:

        polyseme train choices --data train.jsonl --dev dev.jsonl --encoder my-gpt --mode finetune --out my-chooser
    """
    _train("choices", options)


@app.command()
@command
def roles(options: RolesOptions) -> None:
    """The roles of words for a given predicate: who did what to whom. Also called srl.

    Reads JSON lines with words and predicates, lines such as `1 Ann left ||| B-A0 B-V`, and the columns of CoNLL-2005 and
    CoNLL-2012. Scored by the F1 of whole arguments, as the CoNLL-2005 scorer counts them.

    Example:

        polyseme train roles --data train.jsonl --dev dev.jsonl --encoder en --out my-roles
    """
    _train("roles", options)


@app.command()
@command
def reading(options: ReadingOptions) -> None:
    """The words of a paragraph that answer a question. Also called squad.

    Reads the JSON of SQuAD, v1.1 and v2; where the data has questions without an answer, the network learns to say so.

    Example:

        polyseme train reading --data train.json --dev dev.json --encoder en --positions input,output --out my-reader
    """
    _train("reading", options)


@app.command()
@command
def generation(options: GenerationOptions) -> None:
    """A text made of a text: translation, summaries of sentences. Needs the extra `generation` (sacrebleu).

    Reads two files of as many lines by the name that they share, each plain or packed (train.en.gz and train.de.gz), or a
    table of two columns. Scored by BLEU and chrF on running text.

    Example:

        polyseme train generation --data train --dev val --source en --target de --encoder en --out my-translator
    """
    _train("generation", options)


@app.command()
@command
def coreference(options: CoreferenceOptions) -> None:
    """What means the same in a document: Ann, she, the girl. Also called coref.

    Reads JSON lines with sentences and clusters, and the columns of CoNLL-2012. Scored by the mean F1 of MUC, B3 and CEAF,
    without what is mentioned once unless --singletons are asked for.

    Example:

        polyseme train coreference --data train.jsonlines --dev dev.jsonlines --encoder en --out my-coreference
    """
    _train("coreference", options)


for _name in ("ner", "pos", "chunking"):
    app.command(_name, hidden=True)(tagging)
app.command("nli", hidden=True)(pairs)
app.command("squad", hidden=True)(reading)
app.command("srl", hidden=True)(roles)
app.command("coref", hidden=True)(coreference)


def _train(task: str, given: TrainOptions) -> None:
    large_pages()
    from polyseme.base.run import Run
    from polyseme.studies.train import Files, Job, task_named

    logging.basicConfig(format="polyseme: %(message)s")
    run = Run.from_environment(
        seed=given.seed, device=given.device, precision=given.precision.value if given.precision else None
    )
    job = Job(
        task_named(task),
        Files(given.data, given.dev, given.test),
        given.out,
        given.encoder,
        cut=_cut(given.splitter, given.word_list),
        cache=given.cache,
        options=given.chosen(),
    )
    outcome = job.train(run, accept_changes=given.accept_changes, tell=show.note)
    if not run.is_main_process:
        return  # under torchrun one process speaks
    if given.json:
        show.as_json(_values(outcome, given.out))
    else:
        _print(outcome, given.out)
    leave(outcome.result)


def _cut(splitter: Splitter | None, word_list: Path | None) -> Way | None:
    if splitter is None and word_list is not None:
        splitter = Splitter.unigram
    return None if splitter is None else named(splitter, word_list)


def _values(outcome: FitResult, out: Path) -> dict[str, object]:
    result = outcome.result
    return {
        "out": str(out),
        "task": outcome.task.kind,
        "main": outcome.task.main_metric,
        "scores": outcome.scores,
        "steps": result.steps,
        "best_step": result.best_step,
        "seconds": round(result.seconds, 1),
        "ended": result.ended,
    }


def _print(outcome: FitResult, out: Path) -> None:
    result = outcome.result
    stopped = ", stopped" if result.ended is None else ""
    show.line(f"{out}: {outcome.task.kind}, {show.count(result.steps, 'step')}, {result.seconds:,.0f} s{stopped}")
    if outcome.scores:
        print_scores(outcome.scores)


def print_scores(rows: Mapping[str, Mapping[str, float]]) -> None:
    """Scores of several sets of data, in columns."""
    measures = list(dict.fromkeys(measure for row in rows.values() for measure in row))
    width = max((len(name) for name in rows), default=0)
    wide = {measure: max(len(measure), 6) + 2 for measure in measures}
    show.line(" " * width + "".join(f"{measure:>{wide[measure]}}" for measure in measures))
    for name, row in rows.items():
        values = {measure: row.get(measure, math.nan) for measure in measures}
        cells = (f"{'' if math.isnan(value) else f'{value:.4f}':>{wide[measure]}}" for measure, value in values.items())
        show.line(f"{name:{width}}" + "".join(cells).rstrip())
