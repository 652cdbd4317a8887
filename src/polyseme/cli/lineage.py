"""`polyseme lineage`: all methods pre-trained on one text, and compared."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from polyseme.base.errors import PolysemeError, UsageError
from polyseme.cli import show
from polyseme.cli.compare import Device, Jobs, Options, Plot, Seeds, names_in, seeds_in

if TYPE_CHECKING:
    from polyseme.studies.compare import Study
    from polyseme.studies.lineage import Lineage

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
    from polyseme.analysis.plots import check_plot
    from polyseme.studies.lineage import METHODS, Lineage, arguments_of, check_methods
    from polyseme.text.files.sources import Source

    chosen = names_in("--methods", methods) if methods else METHODS
    check_methods(chosen)
    if "-" in corpus:
        raise UsageError(
            "--corpus is -, standard input, but every method reads the text anew; write it to a file and name that"
        )
    Source(corpus)  # a text that is not there is told once, and not by every method
    usual: dict[str, str | None] = {"minutes": f"{minutes:g}", **({} if device is None else {"device": device})}
    arguments = arguments_of(chosen, pretrain or [], _known(chosen), usual)
    line = Lineage(out, tuple(corpus), chosen, arguments, held_out, device)
    idle = {"--encoders": encoders, "--baseline": baseline, "--option": option, "--plot": plot or None}
    if tasks is None and (given := [name for name, value in idle.items() if value is not None]):
        raise UsageError(
            f"{', '.join(given)}: of the comparison, and there is none without --tasks; give sets, or leave it out"
        )
    study = _study(line, tasks, encoders, seeds, option or [], baseline)
    if plot:
        check_plot("table.png")
    troubles: list[str] = []
    try:
        failed = line.run(notify=show.note)
        if failed:
            logs = ", ".join(f"{what} ({log})" for what, log in failed.items())
            troubles.append(f"failed, with their logs: {logs}; the same command tries them again")
        if study is not None:
            study.without(set(study.models) - set(line.models)).run(jobs=jobs, device=device, notify=show.note)
    except PolysemeError as error:  # of experiments, beside what failed before
        troubles.append(str(error))
    finally:
        _report(line, study, baseline, plot)
    if troubles:
        raise PolysemeError("; ".join(troubles))
    if held_out is None and "ngram" in chosen:
        show.note("the n-gram model was taught all the text: give --held-out FILE for its perplexity")


def _study(
    line: Lineage, tasks: str | None, encoders: str | None, seeds: str, options: list[str], baseline: str | None
) -> Study | None:
    """The comparison of all methods, checked before any is trained; None: there is nothing to compare."""
    from polyseme.studies.compare import Study
    from polyseme.studies.lineage import check_rows
    from polyseme.studies.options import parse_option

    every = {method: str(line.folder(method)) for method in line.methods}
    rows = names_in("--encoders", encoders) if encoders else ("none", *every)
    if baseline is not None and baseline not in rows:
        raise UsageError(f"--baseline is {baseline!r}, which is no row; the rows are {', '.join(rows)}")
    check_rows(rows)
    if tasks is None:
        return None
    study = Study(
        line.out,
        names_in("--tasks", tasks),
        rows,
        seeds_in(seeds),
        options=dict(parse_option(each) for each in options),
        models=every,
    )
    study.check()
    study.check_files()
    return study


def _report(line: Lineage, study: Study | None, baseline: str | None, plot: bool) -> None:
    """The tables and pictures of what is done."""
    from polyseme.base.files import write_text
    from polyseme.studies import costs
    from polyseme.studies.report import write_report

    written = ""
    if study is not None:
        study, wanted = study.without(set(study.models) - set(line.models)), baseline or "word2vec"
        baseline = wanted if wanted in study.rows else None
        written = write_report(study, baseline, plot=plot, models=line.costs()) if study.rows else ""
    if not written and (written := costs.as_markdown(line.costs())):
        write_text(line.out / "table.md", written)
    if written:
        show.line(written.rstrip())


def _known(methods: tuple[str, ...]) -> dict[str, set[str]]:
    """The options of each method's command, but for those that this command gives itself."""
    from polyseme.cli.pretrain import app

    group = typer.main.get_group(app)
    own = {"help", "corpus", "out", "shards", "json"}
    return {
        method: {name.removeprefix("--") for parameter in group.commands[method].params for name in parameter.opts} - own
        for method in methods
    }
