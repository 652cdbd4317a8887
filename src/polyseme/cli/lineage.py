"""`polyseme lineage`: all methods pre-trained on one text, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli import show
from polyseme.cli.compare import Device, Jobs, Options, Plot, Seeds, configured, divided

CorpusOption = Annotated[
    list[str], typer.Option("--corpus", "-c", metavar="SOURCE", help="A text file, folder or glob (may be given again).")
]
Out = Annotated[
    Path, typer.Option("--out", "-o", metavar="FOLDER", help="Where models and tables go, or a study to go on with.")
]
Minutes = Annotated[
    float,
    typer.Option(
        "--minutes", min=0, help="Of training, for each neural method. n-grams and word vectors go by their usual epochs."
    ),
]
Tasks = Annotated[
    str | None,
    typer.Option("--tasks", metavar="NAME,...", help="Labelled sets, as `polyseme compare` has them. Not given: none."),
]
Methods = Annotated[str | None, typer.Option("--methods", metavar="NAME,...", help="Which ones. Not given: all.")]
EncodersOption = Annotated[
    str | None,
    typer.Option(
        "--encoders",
        metavar="ROW,...",
        help="Rows of the table, as `polyseme compare` has them, such as bert:finetune. Not given: none, and every method.",
    ),
]
Pretrain = Annotated[
    list[str] | None,
    typer.Option(
        "--pretrain",
        metavar="[METHOD:]NAME=VALUE",
        help="An option of `polyseme pretrain METHOD`, such as elmo:size=tiny; without a method, of all that have it "
        "(may be given again).",
    ),
]
HeldOut = Annotated[
    Path | None,
    typer.Option(
        "--held-out",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Text for the perplexities of all language models. Not given: each has that of its own held-out text.",
    ),
]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline", help="The row to compare with. Not given: word2vec where that is a row, else the first but `none`."
    ),
]


def lineage(
    corpus: CorpusOption,
    out: Out,
    minutes: Minutes = 10.0,
    tasks: Tasks = None,
    methods: Methods = None,
    encoders: EncodersOption = None,
    pretrain: Pretrain = None,
    held_out: HeldOut = None,
    seeds: Seeds = "1,2,3",
    baseline: Baseline = None,
    option: Options = None,
    jobs: Jobs = 1,
    device: Device = None,
    plot: Plot = False,
) -> None:
    """Pre-train n-grams, NNLM, word2vec, fastText, GloVe, TagLM, ELMo, ULMFiT, GPT and BERT on one text, and compare them.

    Each method has the same text and budget, and a process of its own, one after another; then every labelled set is trained
    with each of them. Stopped and started again, what is done stays done. A method that fails is told, and stops no other.
    FOLDER gets `models/`, and table.md, table.csv and pictures as from `polyseme compare`, with what each model cost.

    Example:

        polyseme lineage --corpus texts/ --minutes 10 --tasks ner,sst5,nli,pos --out study --plot
    """
    from polyseme.studies.config import METHODS, LineageConfig
    from polyseme.studies.lineage import run_lineage

    chosen = divided(methods) if methods else METHODS
    config = configured(
        LineageConfig,
        minutes=minutes,
        tasks=divided(tasks or ""),
        methods=chosen,
        encoders=divided(encoders or ""),
        pretrain=tuple(pretrain or ()),
        held_out=None if held_out is None else str(held_out),
        seeds=divided(seeds, int),
        baseline=baseline,
        options=tuple(option or ()),
        jobs=jobs,
        device=device,
        plot=plot,
    )
    known = _known(tuple(name for name in chosen if name in METHODS))
    show.line(str(run_lineage(config, corpus, out, known=known, notify=show.note)))


def _known(methods: tuple[str, ...]) -> dict[str, set[str]]:
    """The options of each method's command, but for those that this command gives itself."""
    from polyseme.cli.pretrain import app

    group = typer.main.get_group(app)
    own = {"help", "corpus", "out", "shards", "json"}
    return {
        method: {name.removeprefix("--") for parameter in group.commands[method].params for name in parameter.opts} - own
        for method in methods
    }
