"""The table of verbs. Heavy packages are imported by the verbs when they run, so that `--help` is quick."""

from __future__ import annotations

from typing import Annotated

import typer

from polyseme import __version__
from polyseme.cli.adapt import adapt
from polyseme.cli.compare import compare
from polyseme.cli.convert import convert
from polyseme.cli.corpus import corpus
from polyseme.cli.embed import embed
from polyseme.cli.evaluate import evaluate
from polyseme.cli.fill import fill
from polyseme.cli.info import info
from polyseme.cli.lineage import lineage
from polyseme.cli.neighbours import neighbours
from polyseme.cli.perplexity import perplexity
from polyseme.cli.predict import predict
from polyseme.cli.pretrain import app as pretrain
from polyseme.cli.probe import probe
from polyseme.cli.score import score
from polyseme.cli.similar import analogy, similar
from polyseme.cli.substitutes import substitutes
from polyseme.cli.train import app as train
from polyseme.cli.verify import verify

app = typer.Typer(
    name="polyseme",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyseme {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def about(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Words in, vectors out that know their context: ELMo on your own text.

    A model is a folder or file on this machine, in any format that ELMo was published in, a Hugging Face Hub id
    (owner/name), or one of the package's own (en, which is taken where none is named, and zh).
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


for verb in (embed, score, perplexity, substitutes, fill, neighbours, similar, analogy, convert, info, verify):
    app.command()(verb)
app.add_typer(corpus)
app.add_typer(pretrain, name="pretrain")
app.add_typer(probe, name="probe")
app.command()(adapt)
app.add_typer(train, name="train")
app.command()(predict)
app.command()(evaluate)
app.command()(compare)
app.command()(lineage)
