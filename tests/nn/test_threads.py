"""Tasks on threads of their own."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from polyseme.nn import threads
from polyseme.nn.char_cnn import CharCnn
from polyseme.nn.config import CharactersConfig
from polyseme.nn.stacked_bilstm import StackedBiLstm
from polyseme.nn.threads import CancelledTask, SerialKernels, check_cancelled, intra_op_threads, run_parallel


@pytest.fixture(autouse=True)
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_tasks_run_at_the_same_time_with_a_share_of_the_threads() -> None:
    meeting = threading.Barrier(2, timeout=20)

    def task() -> tuple[int, int]:
        meeting.wait()
        return torch.get_num_threads(), threading.get_ident()

    (first, here), (second, there) = run_parallel([task, task])
    assert (first, second) == (1, 1) and here != there
    assert torch.get_num_threads() == 2


def test_one_thread_runs_one_after_another() -> None:
    torch.set_num_threads(1)
    assert run_parallel([threading.get_ident] * 3) == [threading.get_ident()] * 3
    assert run_parallel([]) == []


def test_within_a_task_there_is_one_thread() -> None:
    found = run_parallel([lambda: run_parallel([threading.get_ident, threading.get_ident])] * 2)
    assert all(len(set(each)) == 1 for each in found)


@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_comes_out_when_all_have_ended(failing: int) -> None:
    ended = threading.Event()

    def task(number: int) -> None:
        if number == failing:
            raise ValueError("broken")
        ended.wait(0.05)
        ended.set()

    with pytest.raises(ValueError, match="broken"):
        run_parallel([lambda: task(0), lambda: task(1)])
    assert ended.is_set() and torch.get_num_threads() == 2


@pytest.fixture
def openmp() -> Any:
    library = threads._openmp()
    if library is None:
        pytest.skip("PyTorch has no OpenMP here")
    return library


@pytest.mark.parametrize("first_to_leave", ["here", "other"])
@pytest.mark.parametrize("first_to_enter", ["here", "other"])
def test_openmp_is_left_as_it_was_by_threads_that_overlap(openmp: Any, first_to_enter: str, first_to_leave: str) -> None:
    """Whether the limit is that of the process or of a thread: in the end both threads have what they had before."""
    levels, serial = openmp.omp_get_max_active_levels(), SerialKernels()
    assert levels > 0
    entered, may_enter, may_leave = threading.Event(), threading.Event(), threading.Event()
    found: list[int] = []

    def other() -> None:
        may_enter.wait(20)
        with serial, serial:  # a block within a block
            entered.set()
            may_leave.wait(20)
        found.append(openmp.omp_get_max_active_levels())

    thread = threading.Thread(target=other)
    thread.start()
    if first_to_enter == "other":
        may_enter.set()
        entered.wait(20)
    with serial:
        assert openmp.omp_get_max_active_levels() == 0
        may_enter.set()
        entered.wait(20)
        if first_to_leave == "other":
            may_leave.set()
            thread.join()
    may_leave.set()
    thread.join()
    assert openmp.omp_get_max_active_levels() == levels and found == [levels]


def test_an_lstm_after_parallel_tasks(openmp: Any) -> None:
    """oneDNN's LSTM, which needs all threads that it asks for, gives PyTorch's numbers after and beside other tasks."""
    torch.manual_seed(0)
    network, vectors = StackedBiLstm(24, 40, layers=2), torch.randn(2, 5, 24)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with torch.backends.mkldnn.flags(enabled=False):
        expected = network(vectors, mask)
    levels = openmp.omp_get_max_active_levels()
    for _ in range(20):
        run_parallel([lambda: torch.randn(30, 30) @ torch.randn(30, 30)] * 2)
        torch.testing.assert_close(network(vectors, mask), expected)
    with intra_op_threads(1):
        torch.testing.assert_close(network(vectors, mask), expected)
    assert openmp.omp_get_max_active_levels() == levels


def test_blocks_of_words_on_two_threads_give_the_same_numbers() -> None:
    network = CharCnn(CharactersConfig(dim=4, filters=((1, 5), (3, 9)))).eval()
    ids = torch.randint(262, (300, 50))
    lengths = torch.randint(3, 40, (300,))
    with torch.no_grad():
        two = network(ids, lengths)
        torch.set_num_threads(1)
        assert torch.equal(network(ids, lengths), two)
    assert torch.equal(network(ids, lengths), two)


def test_a_task_ends_when_another_has_failed() -> None:
    """As after Ctrl-C, which only the main thread gets."""
    running, ends = threading.Event(), list[BaseException]()

    def endless() -> None:
        running.set()
        try:
            while True:
                check_cancelled()
        except CancelledTask as error:
            ends.append(error)
            raise

    def failing() -> None:
        running.wait()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_parallel([failing, endless])
    assert len(ends) == 1
    check_cancelled()  # nothing is left of it
