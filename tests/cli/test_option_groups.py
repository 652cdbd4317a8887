"""Groups of options: opened for typer, closed again for the function, in the order of panels."""

import dataclasses
import inspect
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from polyseme.cli import option_groups
from polyseme.cli.option_groups import PANELS, command


def option(name, panel=None):
    return typer.Option(name, rich_help_panel=panel)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shared:
    seed: Annotated[int, option("--seed", "Training")] = 3
    field: Annotated[str, option("--field", "Text")] = "text"


@dataclasses.dataclass(frozen=True, kw_only=True)
class More(Shared):
    size: Annotated[int | None, option("--size")] = None


HEARD = []


@command
def sow(source: Annotated[str, typer.Argument()], more: More, json: Annotated[bool, option("--json")] = False) -> None:
    """Sow it."""
    HEARD.append((source, more, json))


def heard(*arguments):
    app = typer.Typer()
    app.command()(sow)
    HEARD.clear()
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return HEARD.pop()


def test_groups_are_opened_in_the_order_of_panels():
    parameters = inspect.signature(sow).parameters
    assert list(parameters) == ["source", "size", "json", "field", "seed"]
    assert PANELS.index(None) < PANELS.index("Text") < PANELS.index("Training")
    assert (parameters["seed"].default, parameters["field"].default, parameters["size"].default) == (3, "text", None)
    assert (sow.__name__, sow.__doc__) == ("sow", "Sow it.")


def test_values_arrive_in_the_group():
    assert heard("corn") == ("corn", More(), False)
    assert heard("corn", "--seed", "5", "--size", "2", "--json") == ("corn", More(seed=5, size=2), True)


def test_two_groups():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Other:
        depth: Annotated[int, option("--depth", "Model")] = 1

    seen = []

    def plant(one, other):
        seen.append((one, other))

    plant.__annotations__ = {"one": Shared, "other": Other}
    made = command(plant)
    assert list(inspect.signature(made).parameters) == ["depth", "field", "seed"]
    made(depth=2, field="a", seed=0)
    assert seen == [(Shared(field="a", seed=0), Other(depth=2))]


def test_a_panel_without_a_place_is_told_with_its_option(monkeypatch):
    monkeypatch.setattr(option_groups, "PANELS", [None, "Text"])
    with pytest.raises(
        ValueError, match=r"option seed is in the panel 'Training', which PANELS in polyseme\.cli\.option_groups"
    ):
        command(_bare)


def _bare(shared: Shared) -> None: ...
