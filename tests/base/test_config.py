from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import pytest

from polyseme.base.config import Config, ConfigError


@dataclass(frozen=True, kw_only=True)
class Inner(Config):
    width: int
    rate: float = 0.5


@dataclass(frozen=True, kw_only=True)
class Outer(Config):
    name: str
    kind: Literal["a", "b"] = "a"
    inner: Inner | None = None
    pairs: tuple[tuple[int, int], ...] = ()
    on: bool = True
    default: Inner = field(default_factory=lambda: Inner(width=1))

    def __post_init__(self) -> None:
        if self.name == "bad":
            raise ConfigError("name is 'bad'; take another")


def test_round_trip() -> None:
    config = Outer(name="x", inner=Inner(width=3), pairs=((1, 2), (3, 4)))
    again = Outer.from_dict(config.to_dict())
    assert again == config
    assert again.pairs == ((1, 2), (3, 4))
    assert again.inner == Inner(width=3, rate=0.5)


def test_whole_numbers_are_floats_too() -> None:
    assert Inner.from_dict({"width": 1, "rate": 2}).rate == 2.0


def test_all_mistakes_at_once() -> None:
    values = {"nam": "x", "kind": "c", "inner": {"width": "wide", "rat": 1}, "pairs": [[1, 2, 3]], "on": 1}
    with pytest.raises(ConfigError) as caught:
        Outer.from_dict(values, where="options.json")
    text = str(caught.value)
    assert "unknown field 'nam' (did you mean 'name'?)" in text
    assert "lacks the field 'name'" in text
    assert "options.json.kind is 'c'; allowed: a, b" in text
    assert "options.json.inner.width is 'wide'; expected a whole number" in text
    assert "unknown field 'rat' (did you mean 'rate'?)" in text
    assert "options.json.pairs[0] has 3 entries; expected 2" in text
    assert "options.json.on is 1; expected true or false" in text


def test_true_is_no_number() -> None:
    with pytest.raises(ConfigError, match="width is True; expected a whole number"):
        Inner.from_dict({"width": True})


def test_checks_across_fields_are_told_with_their_place() -> None:
    with pytest.raises(ConfigError, match="config: name is 'bad'; take another"):
        Outer.from_dict({"name": "bad"})


def test_not_an_object() -> None:
    with pytest.raises(ConfigError, match="expected an object"):
        Outer.from_dict({"name": "x", "inner": [1]})
