"""Models of straight quotes read curly ones, and the escapes of the Penn Treebank, as the signs that they learned."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from polyseme.base.errors import UsageError
from polyseme.encoders.elmo import Elmo
from polyseme.text.words import get_splitter
from tests.encoders.small import elmo

CURLY = "“It’s the ‘bank’,” he said (twice)."
STRAIGHT = "\"It's the 'bank',\" he said (twice)."
ESCAPED = ["``", "ca", "n’t", "''", "-LRB-", "the", "-RRB-", "-LSB-", "bank", "-RSB-", "-LCB-", "“", "’s", "-RCB-", "LRB"]
PLAIN = ['"', "ca", "n't", '"', "(", "the", ")", "[", "bank", "]", "{", '"', "'s", "}", "LRB"]


def model(plain: bool) -> Elmo:
    """The same weights, whether it reads plain words or words as they are."""
    made = elmo(output=True)
    made.config, made.splitter = made.config.replace(normalize_quotes=plain), get_splitter("english")
    return made


def test_curly_text_is_read_as_straight_text() -> None:
    plain, usual = model(True), model(False)
    assert plain.words(CURLY) == plain.words(STRAIGHT) == usual.words(STRAIGHT) != usual.words(CURLY)
    np.testing.assert_array_equal(plain.embed([CURLY])[0], usual.embed([STRAIGHT])[0])
    np.testing.assert_array_equal(plain.score([CURLY]), usual.score([STRAIGHT]))
    assert np.abs(usual.embed([CURLY])[0] - usual.embed([STRAIGHT])[0]).max() > 1e-3


def test_lists_lose_the_escapes_too() -> None:
    plain, usual = model(True), model(False)
    assert plain.words(ESCAPED) == plain.words(tuple(ESCAPED)) == plain.words(PLAIN) == PLAIN
    np.testing.assert_array_equal(plain.embed([ESCAPED])[0], usual.embed([PLAIN])[0])
    np.testing.assert_array_equal(plain.score([ESCAPED]), usual.score([PLAIN]))
    batches = plain.prepare([ESCAPED]), usual.prepare([PLAIN])
    np.testing.assert_array_equal(*(made(batch).states.detach() for made, batch in zip((plain, usual), batches, strict=True)))
    assert usual.words(ESCAPED) == ESCAPED
    assert np.abs(usual.embed([ESCAPED])[0] - usual.embed([PLAIN])[0]).max() > 1e-3


def test_what_is_no_sentence_is_still_told() -> None:
    for wrong in (3, ["a", 3]):
        with pytest.raises(UsageError, match="a sentence is a string or a list of words"):
            model(True).words(wrong)  # type: ignore[arg-type]


def test_a_folder_keeps_it_and_an_older_folder_has_it_not(tmp_path: Path) -> None:
    again = Elmo.from_pretrained(model(True).save_pretrained(tmp_path / "plain"))
    assert isinstance(again, Elmo) and again.config.normalize_quotes and again.words(["``"]) == ['"']
    folder = model(False).save_pretrained(tmp_path / "usual")
    config = (folder / "config.json").read_text()
    assert '"normalize_quotes": false,' in config
    (folder / "config.json").write_text(config.replace('"normalize_quotes": false,', ""))
    assert Elmo.from_pretrained(folder).words(["``"]) == ["``"]
