"""The command line: a table of verbs, each made from a function of `polyseme.api`.

Heavy packages are imported by the functions when they run, so that `--help` is quick.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from polyseme import __version__
from polyseme.api import corpora, embedding, language, models, predicting, probing, studies, tasks, training, words
from polyseme.base.config import Config
from polyseme.base.options import Option, options_of
from polyseme.cli.generate import Verb
from polyseme.compat.migrate import migrate
from polyseme.serve.server import serve
from polyseme.tasks.registry import ALIASES
from polyseme.text.files.lines import lines_of


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"polyseme {__version__}")
        raise typer.Exit


def about(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.", metavar="")
    ] = False,
) -> None:
    """Contextual word vectors: use, train and compare ELMo and its relatives on your own text.

    A model is the name of a shipped one (en, the default, and zh), a folder or file in any format that ELMo was published
    in, or a Hugging Face Hub id (owner/name).
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _help_of_group(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _options(configs: Callable[..., Mapping[str, Config]], *names: str) -> dict[str, Option]:
    return options_of(configs(*names))


SHOWN_LINES = 5
"""Of a file whose vectors are not written; each word of `embed` takes a line of the terminal."""
RIVER = '"The bank of the river ."'
VERBS = (
    Verb(
        function=embedding.embed,
        name="embed",
        loads=True,
        shown=SHOWN_LINES,
        examples=[
            f"polyseme embed {RIVER}",
            "polyseme embed --input corpus.txt --out vectors.hdf5 --layers top",
            "polyseme embed --input 'texts/*.jsonl.gz' --out vectors --layers mean --fp16 --workers 8",
            "polyseme embed --input s3://bucket/texts --out s3://bucket/vectors --engine ray --address auto",
        ],
    ),
    Verb(
        function=embedding.encode,
        name="encode",
        loads=True,
        lines=lines_of,
        shown=SHOWN_LINES,
        examples=[f"polyseme encode {RIVER}", "polyseme encode --input texts.txt --out vectors.npy --pooling sif --normalize"],
    ),
    Verb(
        function=language.score,
        name="score",
        loads=True,
        lines=lines_of,
        examples=[f'polyseme score {RIVER} "river bank the of The ."'],
    ),
    Verb(
        function=language.perplexity,
        name="perplexity",
        loads=True,
        examples=["polyseme perplexity held-out.txt --model my-model"],
    ),
    Verb(
        function=language.substitutes,
        name="substitutes",
        loads=True,
        examples=[f"polyseme substitutes {RIVER} --word bank"],
    ),
    Verb(
        function=language.fill,
        name="fill",
        loads=True,
        examples=['polyseme fill "The [MASK] of the river."', 'polyseme fill "The [MASK] of the river." --model my-bert'],
    ),
    Verb(
        function=words.neighbours,
        name="neighbours",
        loads=True,
        examples=[
            f"polyseme neighbours {RIVER} --word bank",
            f"polyseme neighbours {RIVER} --word bank --corpus news.txt --index my-index",
        ],
    ),
    Verb(
        function=words.senses,
        name="senses",
        loads=True,
        examples=["polyseme senses bank spring --corpus news.txt", "polyseme senses --corpus news.txt --out senses.vec"],
    ),
    Verb(function=words.similar, name="similar", loads=True, examples=["polyseme similar river --model my-vectors"]),
    Verb(
        function=words.analogy,
        name="analogy",
        loads=True,
        examples=["polyseme analogy man king woman --model my-vectors"],
    ),
    Verb(
        function=models.convert,
        name="convert",
        loads=True,
        examples=["polyseme convert elmo_2x4096_512_2048cnn_2xhighway_weights.hdf5 my-model --precision fp16"],
    ),
    Verb(function=models.info, name="info", loads=True, examples=["polyseme info my-model"]),
    Verb(
        function=models.verify,
        name="verify",
        loads=True,
        examples=[
            "polyseme verify my-model",
            "polyseme verify my-model --vectors theirs.hdf5 --input sentences.txt --split-on-spaces",
        ],
    ),
)

CORPUS = (
    Verb(
        function=corpora.check_corpus,
        name="check",
        options=corpora.text_options,
        examples=[
            "polyseme corpus check my-texts/",
            "polyseme corpus check my-texts/ --size small --epochs 5",
            "polyseme corpus check 'dump/*.jsonl.zst' --field body --splitter chinese --sentences chinese",
        ],
    ),
    Verb(
        function=corpora.write_vocabulary,
        name="vocab",
        options=corpora.text_options,
        examples=["polyseme corpus vocab my-texts/ --out vocabulary.txt --size 50000"],
    ),
    Verb(
        function=corpora.filter_corpus,
        name="filter",
        examples=["polyseme corpus filter 'crawl/*.jsonl.zst' --out english --language en --workers 8"],
    ),
    Verb(
        function=corpora.dedupe_corpus,
        name="dedupe",
        examples=["polyseme corpus dedupe english --out unique --workers 8"],
    ),
)

METHODS = {
    "elmo": "Train an ELMo (Peters et al. 2018): two LSTM language models over character-based words.",
    "taglm": "Train a TagLM (Peters et al. 2017): the language models of an ELMo, of which only the top layers are used.",
    "ngram": "Count n-grams: a language model with Kneser-Ney or other smoothing, written as an ARPA-like table.",
    "nnlm": "Train a feed-forward neural language model (Bengio et al. 2003).",
    "word2vec": "Train word2vec vectors (Mikolov et al. 2013) with gensim (extra `vectors`).",
    "fasttext": "Train fastText vectors (Bojanowski et al. 2017) with gensim (extra `vectors`).",
    "glove": "Train GloVe vectors (Pennington et al. 2014) on the co-occurrences of a text.",
    "ulmfit": "Train the AWD-LSTM language model of ULMFiT (Howard and Ruder 2018).",
    "gpt": "Train a small GPT (Radford et al. 2018): a causal Transformer over subwords (extra `transformers`).",
    "bert": "Train a small BERT (Devlin et al. 2019): a Transformer over masked subwords (extra `transformers`).",
}
RESUME = (
    "The folder has the best model so far at any time. After a stop, a crash or a power cut the same command resumes the run."
)

TASKS = {
    "tagging": (
        "Train a tagger: a tag for each word (names, parts of speech, phrases). Also called ner, pos and chunking.\n\n"
        "Reads CoNLL columns, BMES and CoNLL-U. Tags of spans (B-PER, I-PER) are scored by span F1, others by accuracy.",
        "--data train.conll --dev dev.conll --encoder en --out my-tagger",
    ),
    "classification": (
        "Train a classifier: a label for each text (sentiment, topics, kinds of questions).\n\n"
        "Reads TSV, CSV, JSON lines, lines of a label and a text, and sentiment trees.",
        "--data train.tsv --dev dev.tsv --encoder en --out my-classifier",
    ),
    "pairs": (
        "Train on sentence pairs: a label or a score for each (inference, paraphrases, similarity). Also called nli.\n\n"
        "Reads TSV, CSV and JSON lines.",
        "--data train.tsv --dev dev.tsv --encoder en --out my-pairs",
    ),
    "choices": (
        "Train on multiple choice: which of several answers to a question is right.\n\n"
        "Reads JSON lines with question, choices, answer (its position from 0, or its text) and optionally context.",
        "--data train.jsonl --dev dev.jsonl --encoder my-gpt --mode finetune --out my-choices",
    ),
    "roles": (
        "Train semantic role labelling: who did what to whom, for given predicates. Also called srl.\n\n"
        "Reads JSON lines with words and predicates, lines such as `1 Ann left ||| B-A0 B-V`, and the columns of CoNLL-2005 "
        "and CoNLL-2012. Scored by the F1 of arguments, as the CoNLL-2005 scorer counts them.",
        "--data train.jsonl --dev dev.jsonl --encoder en --out my-roles",
    ),
    "reading": (
        "Train extractive question answering: the words of a paragraph that answer a question. Also called squad.\n\n"
        "Reads the JSON of SQuAD, v1.1 and v2. If the data has questions without an answer, the network learns to say so.",
        "--data train.json --dev dev.json --encoder en --positions input,output --out my-reader",
    ),
    "generation": (
        "Train generation: a text from a text (translation, sentence summaries). Needs the extra `generation` (sacrebleu).\n\n"
        "Reads two line-aligned files by the name they share, plain or compressed (train.en.gz and train.de.gz), or a table of "
        "two columns. Scored by BLEU and chrF on detokenized text.",
        "--data train --dev val --source en --target de --encoder en --out my-translator",
    ),
    "coreference": (
        "Train coreference resolution: which mentions in a document mean the same (Ann, she, the girl). Also called coref.\n\n"
        "Reads JSON lines with sentences and clusters, and the columns of CoNLL-2012. Scored by the mean F1 of MUC, B3 and "
        "CEAF, without entities that are mentioned once unless asked for.",
        "--data train.jsonlines --dev dev.jsonlines --encoder en --out my-coreference",
    ),
}

ADAPT = Verb(
    function=training.run_adaptation,
    name="adapt",
    loads=True,
    options=training.adaptation_options,
    examples=["polyseme adapt elmo_2x1024_128_weights.hdf5 --corpus reports/ --out my-domain --splitter english"],
)
PREDICT = Verb(
    function=predicting.run_prediction,
    name="predict",
    lines=partial(lines_of, warn_tables=False),
    options=tasks.decoding_options,
    examples=[
        'polyseme predict my-tagger "Ann lives in Paris."',
        "polyseme predict my-classifier --input reviews.txt --json",
        "polyseme predict my-classifier --input reviews.csv --text review --out predictions.csv",
        'polyseme predict my-reader "Who left?" "Ann saw Bob leave."',
        'polyseme predict my-roles "1,3 Ann saw Bob leave"',
        "polyseme predict my-translator --input sentences.txt --strategy sample --top-p 0.9 --num-return-sequences 3",
    ],
)
EVALUATE = Verb(
    function=tasks.evaluate,
    name="evaluate",
    options=tasks.evaluation_options,
    examples=[
        "polyseme evaluate my-tagger test.conll --errors 5",
        "polyseme evaluate my-classifier test-without-header.tsv --text 0 --label 1",
    ],
)
COMPARE = Verb(
    function=studies.run_compare,
    name="compare",
    options=partial(_options, studies.compare_configs),
    json=False,
    examples=[
        "polyseme compare --tasks ner,nli --vectors en=vectors.bin --out study --jobs 4",
        "polyseme compare --tasks ner --model bert=my-bert --encoders none,bert,bert:finetune --out study --plot",
        "polyseme compare --tasks tagging:train.conll:dev.conll --encoders none,en --out study",
    ],
)
LINEAGE = Verb(
    function=studies.run_lineage,
    name="lineage",
    options=partial(_options, studies.lineage_configs),
    json=False,
    examples=["polyseme lineage --corpus texts/ --minutes 10 --tasks ner,sst5,nli,pos --out study --plot"],
)

SERVE = Verb(
    function=serve,
    name="serve",
    json=False,
    examples=[
        "polyseme serve",
        "polyseme serve en news=models/my-elmo --task my-tagger --corpus my-texts/ --port 9000",
        "polyseme serve --host 0.0.0.0 --allow-host vectors.example.org --log-json",
    ],
)

MIGRATE = Verb(function=migrate, name="migrate", examples=["polyseme migrate train.py", "polyseme migrate train.py --write"])

PROBE_EXAMPLES = {
    "tags": "--train train.conllu --test test.conllu --column upos",
    "senses": '--train "semcor*.jsonl.gz" --test senseval2.jsonl.gz',
    "wic": "--dev dev.data.txt --test test.data.txt",
    "similarity": "pairs.tsv",
    "words": "wordsim353.tsv --model my-vectors",
    "analogies": "questions-words.txt --model my-vectors",
    "samples": "",
}


PANELS = {
    "Use a model": ("embed", "encode", "score", "perplexity", "substitutes", "fill"),
    "Train": ("train", "predict", "evaluate", "pretrain", "adapt", "compare", "lineage"),
    "Look inside": ("neighbours", "senses", "similar", "analogy", "probe"),
    "Tools": ("serve", "info", "convert", "verify", "corpus", "migrate"),
}
"""How the help lists the verbs."""
_PANEL = {name: panel for panel, names in PANELS.items() for name in names}
_ORDER = list(_PANEL)


class _PlainHelpOption:
    """`--help` without a type: it takes no value."""

    def get_help_option(self, ctx: Any) -> Any:
        option = super().get_help_option(ctx)  # type: ignore[misc]
        if option is not None:
            option.metavar = ""
        return option


class _Command(_PlainHelpOption, TyperCommand):
    """Arguments are written as everywhere: TASK [TEXT]..., and not {TASK} [TEXT]... of types <str> and <list[str]>."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [re.sub(r"^\{(.*)\}", r"\1", piece) for piece in super().collect_usage_pieces(ctx)]

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)
        for each in params:
            if isinstance(each, TyperArgument):
                each.display_type_rich = lambda ctx: None  # type: ignore[method-assign]
        return params


class _Group(_PlainHelpOption, TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of `PANELS`, those of a group of commands as they were added."""
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER))


def command_line(arguments: Sequence[str] | None = None) -> typer.Typer:
    """The command line. Given the arguments of a call, only what they name is made: making all takes 0.5 s."""
    app = typer.Typer(
        name="polyseme",
        cls=_Group,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(about)
    groups = {"": app}
    for name, (help, verbs) in verbs_by_group().items():
        if name:
            groups[name] = typer.Typer(name=name, cls=_Group, help=help)
            groups[name].callback(invoke_without_command=True)(_help_of_group)
            app.add_typer(groups[name], help=help, rich_help_panel=_PANEL[name])
        for verb in verbs if arguments is None or name in ("", *arguments) else ():
            called = arguments is None or verb.name in arguments
            panel = None if name else _PANEL.get(verb.name)
            command = groups[name].command(verb.name, cls=_Command, hidden=verb.hidden, rich_help_panel=panel)
            command(verb.command(options=called))
    return app


def verbs_by_group() -> dict[str, tuple[str, list[Verb]]]:
    """The verbs by their group; those without a group stand by themselves."""
    return {
        "": ("", [*VERBS, ADAPT, PREDICT, EVALUATE, COMPARE, LINEAGE, SERVE, MIGRATE]),
        "corpus": ("Check and clean a text before training on it, and make its vocabulary.", list(CORPUS)),
        "pretrain": ("Pre-train a model on your own text.", [_pretrain(name, help) for name, help in METHODS.items()]),
        "probe": ("Measure what each layer of a model knows, on labelled data.", [_probe(name) for name in probing.PROBES]),
        "train": (
            "Train a task on labelled data, on top of encoders.",
            [*(_train(name, name) for name in TASKS), *(_train(task, alias) for alias, task in ALIASES.items())],
        ),
    }


def _pretrain(name: str, help: str) -> Verb:
    return Verb(
        function=training.run_pretraining,
        name=name,
        fixed={"method": name} | ({} if name in ("elmo", "taglm") else {"vectors": None}),
        options=partial(training.pretraining_options, name),
        help=f"{help}\n\n{RESUME}",
        examples=[f"polyseme pretrain {name} --corpus texts/ --out my-{name}"],
    )


def _train(task: str, name: str) -> Verb:
    help, example = TASKS[task]
    return Verb(
        function=tasks.run_training,
        name=name,
        fixed={"task": task},
        options=partial(_options, tasks.training_configs, task),
        help=f"{help}\n\n{RESUME}",
        examples=[f"polyseme train {name} {example}"],
        hidden=name != task,
    )


def _probe(name: str) -> Verb:
    example = f"polyseme probe {name} {PROBE_EXAMPLES[name]}".rstrip()
    return Verb(function=probing.PROBES[name], name=name, loads=True, examples=[example])
