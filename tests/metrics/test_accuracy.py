import pytest

from polyseme.base.errors import UsageError
from polyseme.metrics.accuracy import accuracy


def test_accuracy():
    assert accuracy(["a", "b", "c"], ["a", "c", "c"]) == pytest.approx(2 / 3)


@pytest.mark.parametrize(("gold", "predicted"), [([], []), (["a"], ["a", "b"])])
def test_nothing_to_compare(gold, predicted):
    with pytest.raises(UsageError):
        accuracy(gold, predicted)
