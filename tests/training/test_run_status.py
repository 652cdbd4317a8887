"""The line of a run fits into 80 columns, and what is left out is the least important part."""

from __future__ import annotations

from polyseme.training.run_status import WIDTH, RunStatus


def status(name: str) -> RunStatus:
    return RunStatus(
        total=400, done=100, score_name=name, epoch=12.25, loss=1234.5, sampled=True, score=0.7, best=0.75, left=4000
    )


def test_the_best_score_is_left_out_where_there_is_no_room() -> None:
    long, short = status("macro_f1").line(), status("f1").line()
    assert short.endswith("dev f1 0.7000 (best 0.7500), 67 min left") and len(short) <= WIDTH
    assert long.endswith("dev macro f1 0.7000, 67 min left") and len(long) <= WIDTH


def test_of_equal_scores_that_of_the_kept_model_is_the_best() -> None:
    run = RunStatus(total=4, done=1, score_name="f1")
    shown = []
    for score, best, is_best in ((0.0, 0.0, True), (0.0, 0.0, False), (0.5, 0.5, True), (0.4, 0.5, False), (0.5, 0.5, True)):
        run.evaluated(score, best, is_best=is_best)
        shown.append(run.line().partition("dev f1 ")[2])
    told = ["0.0000 (best)", "0.0000 (best 0.0000)", "0.5000 (best)", "0.4000 (best 0.5000)", "0.5000 (best)"]
    assert shown == told  # the last one has the less loss


def test_the_last_batch_may_go_beyond_the_last_epoch() -> None:
    assert RunStatus(total=170, done=178, score_name="f1", epoch=2.094).line() == "epoch 2 of 2"
    assert RunStatus(total=200, done=150, score_name="f1", epoch=0.45).line() == "75 % of 0.6 epochs"


def test_the_expected_time_counts_evaluations_that_were_measured() -> None:
    run = RunStatus(total=103, done=0, score_name="f1", evaluations=10.3)
    for step in range(1, 5):
        run.advance(step, 103, float(step))
    assert run.left == 99 + 9.9
    run.evaluated(0.5, 0.5, is_best=True)
    run.advance(5, 103, 9.0)  # from here on the speed has them
    assert run.left == 98 * 8 / 4
