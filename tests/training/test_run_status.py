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


def test_a_score_that_equals_the_best_is_no_new_best() -> None:
    run = RunStatus(total=4, done=1, score_name="f1")
    shown = []
    for score, best in ((0.0, 0.0), (0.0, 0.0), (0.5, 0.5), (0.4, 0.5)):
        run.evaluated(score, best)
        shown.append(run.line().partition("dev f1 ")[2])
    assert shown == ["0.0000 (best)", "0.0000 (best 0.0000)", "0.5000 (best)", "0.4000 (best 0.5000)"]
