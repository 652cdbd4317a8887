"""The generated part of the reference: a page for each command with every option and its default, and one for Python.

Written to `reference/generated/` of each language before the site is built, from what the command line and `import polyseme`
are made of: nothing is described twice. It stays in English; its titles in the sidebar are translated.
"""

from __future__ import annotations

import importlib
import inspect
import itertools
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from polyseme.api.public import HOMES
from polyseme.base.config import Config, Setting, choices_of, hints_of, setting_of
from polyseme.base.options import options_of
from polyseme.cli.app import verbs_by_group
from polyseme.cli.generate import JSON, PANELS, Parameter, Verb

METHODS = {
    "Corpus": ["check", "fingerprint"],
    "Elmo": [],
    "Encoder": [
        *("embed", "embed_documents", "encode", "prepare", "forward", "freeze", "unfreeze", "fit_pooling"),
        *("from_pretrained", "save_pretrained", "push_to_hub", "info"),
    ],
    "Mix": ["forward"],
    "Task": ["predict", "evaluate", "save"],
}
"""The methods for users, by class; the rest is for those who add a system."""
SAME = (
    *(
        "adapt",
        "analogy",
        "compare",
        "convert",
        "evaluate",
        "info",
        "lineage",
        "migrate",
        "neighbours",
        "perplexity",
        "predict",
    ),
    *("pretrain", "probe", "score", "senses", "similar", "substitutes", "train", "verify"),
)
COMMANDS = {**{name: name for name in SAME}, "embed_file": "embed", "embed_dataset": "embed", "neighbors": "neighbours"}
"""The command whose options are the keyword arguments of a function."""
TITLES = {"en": ("Command line", "Python functions and classes"), "zh_CN": ("命令行", "Python 函数与类")}
LEADS = {
    "en": (
        "Every command with all its options and their defaults. `polyseme COMMAND --help` shows the same.",
        "Everything that `import polyseme` offers, from the docstrings.",
    ),
    "zh_CN": (
        "每个命令的全部选项和默认值，与 `polyseme 命令 --help` 显示的相同（英文）。",
        "`import polyseme` 提供的全部函数和类，取自代码中的文档字符串（英文）。",
    ),
}
"""What stands above the English text, of the commands and of Python, by language."""


def pages(language: str = "en") -> Iterator[tuple[str, str]]:
    """Names and texts of all pages."""
    (commands_title, python_title), (commands_lead, python_lead) = TITLES[language], LEADS[language]
    commands = [(name, help, verbs) for name, (help, verbs) in verbs_by_group().items()]
    single = [(verb.name, "", [verb]) for verb in commands[0][2] if not verb.hidden]
    every = sorted([*single, *commands[1:]])
    for name, help, verbs in every:
        shown = [verb for verb in verbs if not verb.hidden]
        sections = [_command(verb, name, alone=not help) for verb in shown]
        yield f"commands/{name}", "\n\n".join([f"# polyseme {name}", *([help] if help else []), *sections]) + "\n"
    listed = "\n".join(name for name, _, _ in every)
    yield "commands/index", f"# {commands_title}\n\n{commands_lead}\n\n```{{toctree}}\n{listed}\n```\n"
    yield "api", _api(f"# {python_title}", python_lead)


def _command(verb: Verb, group: str, *, alone: bool) -> str:
    """The section of one command, or its page."""
    level = "##" if alone else "###"
    title = [] if alone else [f"## polyseme {group} {verb.name}"]
    text = verb.description().partition("\n\nExample")[0]
    examples = "\n".join(verb.examples)
    parts = [*title, _linked(text), f"```sh\n{examples}\n```" if examples else ""]
    parameters = list(verb.parameters())
    if arguments := [each for each in parameters if each.argument]:
        parts += [f"{level} Arguments", *map(_entry, arguments)]
    options = sorted((each for each in parameters if not each.argument), key=lambda each: PANELS.index(each.declared.group))
    groups = itertools.groupby(options, key=lambda each: each.declared.group)
    panels: dict[str | None, list[str]] = {panel: [*map(_entry, members)] for panel, members in groups}
    if verb.json:
        panels = {None: [f"`--json`\n: {JSON.annotation.__metadata__[0].help}", *panels.pop(None, [])], **panels}
    for panel, entries in panels.items():
        parts += [f"{level} {panel or 'Options'}", *entries]
    return "\n\n".join(filter(None, parts))


def _entry(parameter: Parameter) -> str:
    """An option: its flag, values, help, range and default."""
    typed = parameter.typed()
    info = typed.annotation.__metadata__[0]
    named = [] if parameter.argument else [info.default, *info.param_decls]  # typer keeps the first flag there
    flags = " ".join([*map(str, named), info.metavar or ""]).strip()
    required = " *Required.*" if parameter.required else ""
    return f"`{flags}`\n: {parameter.description() or 'See above.'}{required}"


def _api(title: str, lead: str) -> str:
    parts = [title, lead]
    for name in sorted(HOMES, key=str.lower):
        module, _, attribute = HOMES[name].partition(":")
        parts += [f"## {name}", _object(name, getattr(importlib.import_module(module), attribute))]
    return "\n\n".join(parts) + "\n"


def _object(name: str, thing: Any) -> str:
    if not inspect.isclass(thing):
        command = COMMANDS.get(name)
        link = f"Settings and their defaults: [polyseme {command}](commands/{command}.md)." if command else ""
        return _directive("function", f"polyseme.{name}{_signature(thing)}", [_doc(thing), link])
    fields = _fields(thing) if issubclass(thing, Config) else []
    signature = "" if issubclass(thing, Exception | Config) else _signature(thing)
    methods = [_method(thing, each) for each in METHODS.get(name, ())]
    return _directive("class", f"polyseme.{name}{signature}", [_doc(thing), *fields, *methods], fence="``````")


def _method(owner: type, name: str) -> str:
    method = inspect.getattr_static(owner, name)
    bound = isinstance(method, classmethod | staticmethod)
    function = method.__func__ if bound else method
    head = _signature(function, skip_first=not isinstance(method, staticmethod))
    return _directive("method", f"{name}{head}", [":classmethod:" if bound else "", _doc(function)], fence="`````")


def _directive(kind: str, head: str, parts: Iterable[str], fence: str = "`````") -> str:
    body = "\n\n".join(filter(None, parts))
    return f"{fence}{{py:{kind}}} {head}\n{body}\n{fence}"


def _fields(config: type[Config]) -> list[str]:
    """The settings of a config, as the options are listed."""
    hints, entries = hints_of(config), list[str]()
    for option in options_of({"config": config()}).values():
        field = next((f for f in config.__dataclass_fields__.values() if f.name == option.paths[0].rpartition(".")[2]), None)
        if field is not None and field.name in hints:
            declared: Setting = setting_of(field)
            allowed = ", ".join(map(str, choices_of(option.hint)))
            notes = "; ".join(filter(None, [declared.range(), allowed, f"default: `{option.default}`"]))
            entries.append(f"`{option.name}`\n: {declared.help or 'See the source.'} [{notes}]")
    return entries


def _signature(function: Any, *, skip_first: bool = False) -> str:
    """Names and defaults; types would fill a screen, and editors show them."""
    try:
        found = list(inspect.signature(function).parameters.values())[1 if skip_first else 0 :]
    except (TypeError, ValueError):
        return ""
    plain = [each.replace(annotation=inspect.Parameter.empty) for each in found if each.name not in ("config", "dataset")]
    plain = [each if isinstance(each.default, _PLAIN) else each.replace(default=_Dots()) for each in plain]
    return str(inspect.Signature(plain))


_PLAIN = (str, int, float, bool, type(None), tuple, type)


class _Dots:
    def __repr__(self) -> str:
        return "..."


def _doc(thing: Any) -> str:
    """A docstring as Markdown: examples become code blocks."""
    text = inspect.getdoc(thing) or ""
    prose, mark, examples = text.partition("\n\n>>> ")
    if not mark and text.startswith(">>> "):
        prose, examples = "", text[4:]
    examples = re.sub(r" *# doctest: \+SKIP", "", f">>> {examples}") if examples else ""
    return "\n\n".join(filter(None, [_linked(prose), f"```pycon\n{examples.rstrip()}\n```" if examples else ""]))


def _linked(text: str) -> str:
    """Pages of the site that a docstring names become links."""
    return re.sub(r"docs/en/([\w/-]+)\.md", r"[\1](/\1.md)", text)


def write(app: Any) -> None:
    folder = Path(app.srcdir) / "reference" / "generated"
    wanted = {folder / f"{name}.md": text for name, text in pages(app.config.language)}
    for old in set(folder.rglob("*.md")) - set(wanted):
        old.unlink()
    for path, text in wanted.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:  # else Sphinx would read it again
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
