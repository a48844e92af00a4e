"""The time left of a sweep, by hand."""

from __future__ import annotations

from bayesneg.progress import SweepProgress


def test_the_time_left_counts_what_an_epoch_of_each_kind_takes():
    state = SweepProgress(["fast", "slow", "unseen"], [10, 10, 4], jobs=2)
    state.advance(0, 1, 1.0)
    state.advance(1, 1, 5.0)
    assert state.seconds_left() == (9 * 1.0 + 9 * 5.0 + 4 * 3.0) / 2
    state.advance(1, 2, 3.0)  # 4 on average
    assert state.seconds_left() == (9 * 1.0 + 8 * 4.0 + 4 * 2.5) / 2


def test_lost_epochs_count_again_and_failed_cells_are_counted():
    shown = []
    state = SweepProgress(["a", "a"], [5, 5], jobs=1, update=lambda *what: shown.append(what))
    state.advance(0, 2, 2.0, "ndcg@20 0.4")
    assert shown[-1] == ("sweep", 2, "0 of 2 cells  about 16 s left  ndcg@20 0.4")
    state.advance(0, 1, 2.0)  # its worker died, and it began again
    assert shown[-1] == ("sweep", 1, "0 of 2 cells  about 18 s left")
    state.finish(0, failed=True)
    assert shown[-1] == ("sweep", 5, "1 of 2 cells, 1 failed  about 10 s left")
