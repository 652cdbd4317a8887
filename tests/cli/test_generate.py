"""The generated command line: options from declarations, true defaults in help, checks that name flags, exit codes."""

import dataclasses
import functools
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import typer

from polyseme.api import models, tasks, training
from polyseme.base.config import Config, Setting, setting, setting_of
from polyseme.base.errors import PolysemeError, UsageError
from polyseme.base.options import build, options_of
from polyseme.base.run_config import RunConfig
from polyseme.cli.app import PANELS, command_line, verbs_by_group
from polyseme.cli.generate import Verb
from tests.cli.running import environment, one_sentence

VERBS = {
    (*group.split(), verb.name): verb
    for group, (_, verbs) in verbs_by_group().items()
    for verb in verbs
    if not verb.hidden  # another name of a verb
}
GROUPS = [tuple(group.split()) for group in verbs_by_group()]
CONFIGS = {
    **{path: functools.partial(training.pretraining_configs, path[1]) for path in VERBS if path[0] == "pretrain"},
    **{path: functools.partial(tasks.training_configs, path[1]) for path in VERBS if path[0] == "train"},
}
"""The configs whose settings a verb takes."""
_SHOW_ALL = """
import contextlib, io, json, sys
from polyseme.__main__ import main
pages = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main([*arguments, "--help"])
    pages.append([code, out.getvalue()])
heavy = [name for name in ("torch", "numpy", "h5py", "pyarrow", "transformers") if name in sys.modules]
print(json.dumps({"pages": pages, "heavy": heavy}))
"""


@pytest.fixture(scope="module")
def shown() -> dict[str, Any]:
    """The help pages of all verbs and groups, each option on one line, and the heavy packages that were imported for them."""
    call = [sys.executable, "-c", _SHOW_ALL, json.dumps([*VERBS, *GROUPS])]
    wide = {**environment(), "COLUMNS": "700"}
    return json.loads(subprocess.run(call, capture_output=True, text=True, env=wide, check=True).stdout)


@pytest.fixture(scope="module")
def pages(shown: dict[str, Any]) -> dict[tuple[str, ...], str]:
    return {path: page for path, (_, page) in zip([*VERBS, *GROUPS], shown["pages"], strict=True)}


@functools.cache
def commands() -> dict[tuple[str, ...], Any]:
    """What typer made of each verb and group."""
    found, app = {}, typer.main.get_command(command_line())
    for path in [*VERBS, *GROUPS]:
        command = app
        for name in path:
            command = command.commands[name]
        found[path] = command
    return found


def settings_in(config: Config) -> list[tuple[str, Any, Setting]]:
    """Name, default and declaration of the settings of a config and of those inside it."""
    found = []
    for field in dataclasses.fields(config):
        declared, value = setting_of(field), getattr(config, field.name)
        if isinstance(value, Config) and declared.option is None:
            found += settings_in(value)
        elif declared.option is not False:
            name = declared.option if isinstance(declared.option, str) else field.name
            found.append((name, value, declared))
    return found


def row(page: str, name: str) -> str:
    """The line of an option on a help page."""
    (line,) = [line for line in page.splitlines() if f" --{name.replace('_', '-')} " in line and line.startswith("│")]
    return line


def default_shown(value: Any, declared: Setting) -> str | None:
    if value is None:
        return declared.default_text
    if isinstance(value, bool):
        return "yes" if value else None
    if isinstance(value, tuple):
        return ",".join(":".join(map(str, each)) if isinstance(each, tuple) else str(each) for each in value) or None
    return f"{value:,}" if isinstance(value, int) and value >= 10_000 else str(value)


# ---- help


def test_help_imports_nothing_heavy(shown):
    assert shown["heavy"] == [] and {code for code, _ in shown["pages"]} == {0} and len(shown["pages"]) > 40


@pytest.mark.parametrize("path", CONFIGS, ids=" ".join)
def test_every_setting_is_an_option_with_its_default(pages, path):
    for config in CONFIGS[path]().values():
        for name, value, declared in settings_in(config):
            if name in VERBS[path].fixed or isinstance(value, Config):
                continue
            if isinstance(config, RunConfig) and name not in VERBS[path].options():
                continue  # a method that only counts has no device
            line, expected = row(pages[path], name), default_shown(value, declared)
            assert declared.help and declared.help.split()[0].strip("`") in line
            if name in inspect.signature(VERBS[path].function).parameters:
                continue  # the function's own default holds
            assert (f"default: {expected}]" in line) if expected else ("default:" not in line), (name, line)


def test_every_option_has_a_declaration():
    options = 0
    for path, verb in VERBS.items():
        declared = set(inspect.signature(inspect.unwrap(verb.function)).parameters) | {"json", "help", "input"}
        declared |= set(inspect.signature(models.load).parameters) if verb.loads else set()
        declared |= set(verb.options() if verb.options is not None else {})
        for config in getattr(verb.function, "configs", dict)().values():
            declared |= set(options_of({"": config}))
        for parameter in commands()[path].params:
            assert parameter.name in declared, (path, parameter.name)
            assert (parameter.help and parameter.default is None) or parameter.name == "json"
            options += 1
    assert options > 800


def test_every_word_of_every_help_is_shown(pages):
    """Help is rendered as markdown, which would swallow `<unk>` and the like."""
    lost = []
    for path, command in commands().items():
        texts = [command.help, *(getattr(each, "help", None) for each in command.params)]
        words = [word for text in filter(None, texts) for word in text.replace("`", "").replace("\\", "").split()]
        lost += [(*path, word) for word in words if word not in pages[path]]
    assert not lost
    for name in ("ngram", "nnlm", "ulmfit"):
        assert "<unk>" in pages["pretrain", name]


def test_defaults_of_functions(pages):
    assert "[0 or more; default: 10]" in row(pages["evaluate",], "errors")
    assert "default: en; zh" in row(pages["train", "tagging"], "encoder")
    assert "default: as in training]" in row(pages["predict",], "num_beams")
    for path, verb in VERBS.items():
        for name, parameter in inspect.signature(inspect.unwrap(verb.function)).parameters.items():
            value = parameter.default
            if parameter.kind is parameter.KEYWORD_ONLY and isinstance(value, int | str) and value not in (False, ""):
                assert f"default: {default_shown(value, Setting())}]" in row(pages[path], name), (path, name)


@pytest.mark.parametrize("path", CONFIGS, ids=" ".join)
def test_a_default_can_be_given_as_it_is_shown(path):
    """Lists by commas, pairs by colons."""
    defaults = CONFIGS[path]()
    texts = {
        option.name: default_shown(option.default, option.declared)
        for option in options_of(defaults).values()
        if isinstance(option.default, tuple | float | str) and option.default and len(option.paths) == 1
    }
    assert build(defaults, texts, "it") == defaults


# ---- values


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes(Config):
    """Settings of a verb."""

    filters: tuple[tuple[int, int], ...] = setting(((1, 8),), "Widths and numbers.", min=1)
    betas: tuple[float, float] = setting((0.9, 0.999), "Two numbers.", min=0, below=1)
    positions: tuple[Literal["input", "output"], ...] = setting(("input",), "Names.")
    layers: Literal["mix", "top"] = setting("mix", "One name.", group="Model")
    header: bool | None = setting(None, "Yes, no, or neither.", default_text="detected")
    limit: float | None = setting(1.0, "A number; none: no limit.", above=0, default_text="none")


class Given(dict):
    """What a function was called with, as its result."""

    def to_json(self) -> dict[str, Any]:
        return dict(self)


def verb(
    path: Annotated[Path, Setting(help="A file.", metavar="FILE")],
    *,
    count: Annotated[int, Setting(help="A number.", min=1, max=9, flags=("-n",))] = 5,
    share: Annotated[float | None, Setting(help="A fraction.", above=0)] = None,
    corpus: Annotated[Sequence[str], Setting(help="Files.", metavar="FILE")] = (),
    fast: Annotated[bool, Setting(help="Off by itself.")] = False,
    checked: Annotated[bool, Setting(help="On by itself.")] = True,
    hidden: int = 0,
    **settings: Any,
) -> Given:
    """Show what was given."""
    own = {"count": (count, 5), "share": (share, None), "corpus": (corpus, ())}
    own |= {"fast": (fast, False), "checked": (checked, True)}
    return Given(path=str(path), **settings, **{name: value for name, (value, default) in own.items() if value != default})


@pytest.fixture
def call(run, monkeypatch):
    """The command line with one verb, `verb`."""
    made = Verb(function=verb, name="verb", options=lambda: options_of({"sizes": Sizes()}))
    monkeypatch.setattr("polyseme.cli.app.verbs_by_group", lambda: {"": ("", [made])})
    return lambda *arguments: run("verb", *arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["--count", "7"], {"count": 7}),
        (["-n", "7", "--share", "0.5"], {"count": 7, "share": 0.5}),
        (["--limit", "2.5"], {"limit": 2.5}),
        (["--limit", "none"], {"limit": None}),
        (["--filters", "1:32,2:64"], {"filters": [[1, 32], [2, 64]]}),
        (["--betas", "0.5,0.75"], {"betas": [0.5, 0.75]}),
        (["--positions", "input, output"], {"positions": ["input", "output"]}),
        (["--layers", "top"], {"layers": "top"}),
        (["--corpus", "a,b", "--corpus", "c"], {"corpus": ["a,b", "c"]}),
        (["--fast", "--no-checked"], {"fast": True, "checked": False}),
        (["--header"], {"header": True}),
        (["--no-header"], {"header": False}),
    ],
)
def test_values(call, arguments, expected):
    result = call("a.txt", *arguments, "--json")
    assert result.code == 0 and result.json == [{"path": "a.txt", **expected}]


@pytest.mark.parametrize("path", CONFIGS, ids=" ".join)
def test_none_turns_clipping_off(path):
    defaults = CONFIGS[path]()
    if "clip_norm" in (options := options_of(defaults)):
        made = build(defaults, {"clip_norm": "none"}, "it")
        assert options_of(made)["clip_norm"].default is None and options["clip_norm"].default is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--count", "0"], "--count is 0; allowed: 1 to 9"),
        (["--count", "many"], "--count is 'many'; expected a whole number"),
        (["--share", "half"], "--share is 'half'; expected a number or none"),
        (["--count", "none"], "--count is 'none'; expected a whole number"),
        (["--limit", "off"], "--limit is 'off'; expected a number or none"),
        (["--share", "nan"], "--share is nan; allowed: above 0"),
        (["--share", "0"], "--share is 0.0; allowed: above 0"),
        (["--betas", "0.5,1"], "--betas is 1.0; allowed: 0 or more, below 1"),
        (["--betas", "0.5"], "--betas has 1 entries; expected 2"),
        (["--filters", "1:2,x"], "--filters[1] has 1 entries; expected 2"),
        (["--filters", "1:2,1:x"], "--filters[1][1] is 'x'; expected a whole number"),
        (["--positions", "input,middle"], "--positions is 'middle'; allowed: input, output"),
        (["--layers", "all"], "--layers is 'all'; allowed: mix, top"),
        (["--count", "0", "--share", "-1"], "--count is 0; allowed: 1 to 9; --share is -1.0; allowed: above 0"),
        (["--cuont", "1"], "No such option: --cuont (did you mean --count?)"),
        (["--hidden", "1"], "No such option: --hidden"),
        (["--no-fast"], "No such option: --no-fast"),
    ],
)
def test_values_that_are_refused(call, arguments, message):
    assert message in one_sentence(call("a.txt", *arguments), 2)


def test_help_of_a_verb(call, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    page = call("--help").out
    assert "Show what was given." in page and "FILE" in page and "hidden" not in page
    assert "A number. [1 to 9; default: 5]" in row(page, "count") and "-n" in row(page, "count")
    assert "N:N,..." in row(page, "filters") and "default: 1:8]" in row(page, "filters")
    assert "input|output,..." in row(page, "positions") and "mix|top" in row(page, "layers")
    assert "default: detected]" in row(page, "header") and "--no-header" in row(page, "header")
    assert "default: yes]" in row(page, "checked") and "default" not in row(page, "fast")
    assert page.index("─ Options ─") < page.index("─ Model ─") < page.index("--layers")


def test_settings_of_a_method(run, monkeypatch):
    """Only what was given reaches the function."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(training, "run_pretraining", functools.wraps(training.run_pretraining)(lambda **now: given.update(now)))
    sources = ["--corpus", "a.txt", "--corpus", "b.txt"]
    assert run("pretrain", "elmo", *sources, "--out", "m", "--filters", "1:32,2:64", "--seed", 3).code == 0
    assert given.pop("out") == Path("m")
    assert given == {"method": "elmo", "corpus": ["a.txt", "b.txt"], "filters": [[1, 32], [2, 64]], "seed": 3}


# ---- exit codes


@dataclasses.dataclass
class Ended:
    """A result that says how its run ended."""

    stopped_by: str | None = None
    problem: str | None = None

    def __str__(self) -> str:
        return "result"


@pytest.mark.parametrize(
    ("ending", "code", "message"),
    [
        (Ended(), 0, ""),
        (None, 0, ""),
        (Ended(problem="it differs"), 1, "polyseme: it differs\n"),
        (Ended(stopped_by="SIGINT"), 130, ""),
        (Ended(stopped_by="SIGTERM"), 143, ""),
        (PolysemeError("no file"), 1, "polyseme: no file\n"),
        (UsageError("too many"), 2, "polyseme: too many\n"),
        (KeyboardInterrupt(), 130, "polyseme: stopped\n"),
        (FileNotFoundError(2, "No such file", "a"), 1, "polyseme: a: No such file\n"),
        (
            ValueError("odd"),
            1,
            "polyseme: internal error: ValueError: odd (please report it with the traceback, which POLYSEME_DEBUG=1 shows)\n",
        ),
    ],
)
def test_exit_codes(run, monkeypatch, ending, code, message):
    def function() -> Any:
        """End."""
        if isinstance(ending, BaseException):
            raise ending
        return ending

    monkeypatch.setattr("polyseme.cli.app.verbs_by_group", lambda: {"": ("", [Verb(function=function, name="verb")])})
    result = run("verb")
    assert (result.code, result.err) == (code, message)
    assert result.out == ("result\n" if isinstance(ending, Ended) else "")


def test_called_wrongly(run):
    assert "Missing option '--out'" in one_sentence(run("train", "ner", "--data", "a"), 2)
    assert "give the task before --data: polyseme train TASK --data ...; there are" in one_sentence(
        run("train", "--data", "a"), 2
    )
    assert "No such task 'taging'. Did you mean 'tagging'" in one_sentence(run("train", "taging"), 2)
    assert "polyseme train ner --help" in one_sentence(run("train", "ner", "--data", "a", "--epoch", "1", "--out", "b"), 2)


def test_the_verbs_are_listed_by_use(pages):
    page = pages[()] if () in pages else pages[("",)]
    places = [page.index(f" {title} ") for title in PANELS]
    assert places == sorted(places) and "─ Commands ─" not in page
    found = [line.split()[1] for line in page.splitlines() if re.match(r"│ [a-z]+ ", line)]
    assert found == [name for names in PANELS.values() for name in names]


def test_usage_and_arguments_have_no_braces_or_types_of_python(pages):
    page = pages[("predict",)]
    assert "predict [OPTIONS] TASK [TEXT]..." in page and "<str>" not in page and "<list" not in page
    assert "default: 8000]" in pages[("serve",)]
