"""The time left of a sweep, by hand."""

from __future__ import annotations

from bayesneg.progress import SweepBar, sweep_bar


def test_the_time_left_counts_what_an_epoch_of_each_kind_takes():
    bar = SweepBar({"fast": 10, "slow": 10, "unseen": 4}, jobs=2, n_cells=3)
    bar.advance("fast", 1.0, "")
    bar.advance("slow", 5.0, "")
    assert bar.seconds_left() == (9 * 1.0 + 9 * 5.0 + 4 * 3.0) / 2
    bar.advance("slow", 3.0, "")  # 4 on average
    assert bar.seconds_left() == (9 * 1.0 + 8 * 4.0 + 4 * 2.5) / 2


def test_lost_epochs_are_ahead_again_and_finished_cells_are_counted():
    said = []
    bar = SweepBar({"a": 5}, jobs=1, n_cells=2, show=lambda done, text: said.append((done, text)))
    bar.advance("a", 2.0, "ndcg@20 0.4")
    assert said[-1] == (1, "0 of 2 cells  about 8 s left  ndcg@20 0.4")
    bar.take_back("a", 1)
    bar.finish(failed=True)
    assert said[-1] == (0, "1 of 2 cells, 1 failed  about 10 s left")


def test_nothing_is_said_where_no_progress_is_wanted(capsys):
    with sweep_bar(False, {"a": 1}, jobs=1, n_cells=1) as bar:
        bar.advance("a", 100.0, "")
    assert capsys.readouterr() == ("", "")
