"""What help texts say is seen: they are rendered as markdown, which swallows `<unk>` and the like where it stands bare."""

import typer

from polyseme.cli.app import app


def commands(command, *path):
    """All commands under one, each with the words that call it."""
    yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from commands(each, *path, name)


def test_every_word_of_every_help_is_seen(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "240")  # so that no word is cut
    lost, helps = [], 0
    for path, command in commands(typer.main.get_command(app)):
        shown = run(*path, "--help").out
        texts = filter(None, [command.help, *(getattr(each, "help", None) for each in command.params)])
        for text in texts:
            helps += 1
            lost += [(*path, word) for word in text.replace("`", "").split() if word not in shown]
    assert not lost and helps > 300


def test_unknown_words_are_named(run):
    for name in ("ngram", "nnlm", "ulmfit"):
        assert run("pretrain", name, "--help").out.count("<unk>") == 2
