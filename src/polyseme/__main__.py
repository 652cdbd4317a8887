"""`polyseme` and `python -m polyseme`: run a verb, and report a failure in one sentence on stderr.

Exit codes: 0 done, 1 failed, 2 called wrongly, 130 stopped by Ctrl-C, 143 by a kill. `POLYSEME_DEBUG=1` shows tracebacks.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import traceback
from collections.abc import Iterator, Sequence
from typing import Any


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; gives the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a word that the terminal cannot show is no failure
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        from polyseme.base.errors import flags_in_messages
        from polyseme.base.interrupts import prompt_interrupts
        from polyseme.cli.app import command_line
        from polyseme.cli.dashes import check_dashes, has_other_dashes

        if has_other_dashes(arguments):
            check_dashes(arguments, _options_of_verb(arguments))
        with flags_in_messages(), _notes_on_stderr(), prompt_interrupts():
            code = command_line(arguments)(args=arguments, prog_name="polyseme", standalone_mode=False)
        sys.stdout.flush()
    except (BrokenPipeError, SystemExit):  # whoever reads our output has seen enough; typer exits then
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt as error:
        return _fail(str(error) or "stopped", 130)
    except Exception as error:
        if os.environ.get("POLYSEME_DEBUG"):
            traceback.print_exc()
        return _fail(*_explain(error, arguments))
    if code == 130 and type(code) is int:  # a `ReportedCode` was explained already
        return _fail("stopped", 130)
    return code if isinstance(code, int) else 0


class _Stderr(logging.StreamHandler[Any]):
    """Writes to what stderr is now: a progress bar replaces it, to keep its own line below all others."""

    def __init__(self, level: int, form: str) -> None:
        super().__init__(sys.stderr)
        self.setLevel(level)
        self.setFormatter(logging.Formatter(form))

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


@contextlib.contextmanager
def _notes_on_stderr() -> Iterator[None]:
    """Print our warnings as one line each, and reports of progress, whatever logging the program around us has set up."""
    from polyseme.base.progress import REPORTS

    notes, reports, level = (
        _Stderr(logging.WARNING, "polyseme: %(message)s"),
        _Stderr(logging.INFO, "%(message)s"),
        REPORTS.level,
    )
    logger = logging.getLogger("polyseme")
    logger.addHandler(notes)
    REPORTS.addHandler(reports)
    REPORTS.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(notes)
        REPORTS.removeHandler(reports)
        REPORTS.setLevel(level)


def _explain(error: Exception, arguments: Sequence[str] = ()) -> tuple[str, int]:
    """One sentence for a person, and the exit code; `arguments`: what the command line was called with."""
    from polyseme.base.errors import InterruptedRun, PolysemeError, UsageError

    if isinstance(error, PolysemeError):
        code = 130 if isinstance(error, InterruptedRun) else 2 if isinstance(error, UsageError) else 1
        return _with_known_options(str(error), arguments), code
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):  # typer's own errors about the call
        context = getattr(error, "ctx", None)
        help_call = f"{context.command_path if context else 'polyseme'} --help"
        told = _option_meant(error, context) or _verb_meant(error, context) or error.format_message().rstrip(".")
        return f"{told}{_all_arguments(error, context)} (see {help_call})", error.exit_code
    if _out_of_memory(error):
        smaller = [f"a smaller {name}" for name in _batch_options(arguments)]
        return f"not enough memory: give {' or '.join([*smaller, 'shorter texts'])}, or take a smaller model", 1
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror, 1
    advice = "please report it with the traceback, which POLYSEME_DEBUG=1 shows"
    return f"internal error: {type(error).__name__}: {error} ({advice})", 1


def _with_known_options(sentence: str, arguments: Sequence[str]) -> str:
    """A message with the option that skips bad lines, if the verb has it; else without this advice."""
    from polyseme.text.files.reader import SKIP_ADVICE

    if not sentence.endswith(SKIP_ADVICE):
        return sentence
    option = "--skip-bad-lines"
    return sentence.removesuffix(SKIP_ADVICE) + (f", or give {option}" if option in _options_of_verb(arguments) else "")


def _option_meant(error: Exception, context: Any) -> str:
    """The message for an unknown option, if one can tell which one is meant."""
    from polyseme.base.errors import nearest_name

    given = getattr(error, "option_name", None)
    if type(error).__name__ != "NoSuchOption" or context is None or not isinstance(given, str):
        return ""
    if hasattr(context.command, "list_commands") and context.parent is not None:
        first, known = _noun(context), ", ".join(context.command.list_commands(context))
        return f"give the {first} before {given}: {context.command_path} {first.upper()} {given} ...; there are {known}"
    names = {name.removeprefix("--").replace("-", "_"): name for each in context.command.params for name in each.opts}
    if given == "--out" and names.get("out") == "out":
        return "No such option: --out; OUT is an argument, so write it without --out"
    if given == "--out" and "json" in names:  # the verb prints a result
        return "No such option: --out; the output goes to standard output, so redirect it: > FILE"
    best = nearest_name(given.removeprefix("--").replace("-", "_"), sorted(names))
    return "" if best is None else f"No such option: {given} (did you mean {names[best]}?)"


def _verb_meant(error: Exception, context: Any) -> str:
    """The message for what may not follow a verb with commands of its own: an unknown task of `train`, for example."""
    message = str(error).rstrip(".")
    if context is None or context.parent is None or not message.startswith("No such command"):
        return ""
    noun = _noun(context)
    known = "" if "Did you mean" in message else f"; there are {', '.join(context.command.list_commands(context))}"
    return message.replace("command", noun, 1) + known


def _noun(context: Any) -> str:
    """What the commands of a verb are called."""
    return {"train": "task", "pretrain": "method", "probe": "probe"}.get(context.command.name, "command")


def _all_arguments(error: Exception, context: Any) -> str:
    """What a verb takes, where one of its arguments is missing, or one too many is given."""
    extra = str(error).startswith("Got unexpected extra argument")
    if context is None or not (extra or type(error).__name__ == "MissingParameter"):
        return ""
    names = [each.metavar or each.name for each in context.command.params if each.param_type_name == "argument"]
    return f"; it takes {' '.join(names)}" if len(names) > 1 or (extra and names) else ""


def _batch_options(arguments: Sequence[str]) -> list[str]:
    """The options of the called verb that say how much is computed at once."""
    return [name for name in _options_of_verb(arguments) if name in ("--batch-words", "--batch-size")]


def _options_of_verb(arguments: Sequence[str]) -> list[str]:
    """The names of all options of the called verb."""
    from typer.main import get_command

    from polyseme.cli.app import command_line

    verb = get_command(command_line(arguments))
    for word in arguments:
        inner = getattr(verb, "commands", {}).get(word)
        if inner is None:
            break
        verb = inner
    return ["--help", *(name for each in verb.params for name in (*each.opts, *each.secondary_opts))]


def _out_of_memory(error: Exception) -> bool:
    text = str(error)
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError) and "can't allocate memory" in text)
    )


def _fail(sentence: str, code: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"polyseme: {' '.join(sentence.split())}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
