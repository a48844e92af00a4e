"""Progress on stderr: bars on a terminal, now and then a line in a log."""

from __future__ import annotations

import io
import sys

import numba
import pytest

from bayesneg.progress import Log, bars, epoch_bar, metrics_text, run_bars

LINE = {"epoch": 1, "ndcg@20": 0.25, "validation_ndcg@20": 0.2, "tnr": 0.9}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("on_terminal", [False, True], ids=["log", "terminal"])
def test_that_kernels_are_compiled_is_said_once(capsys, monkeypatch, on_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    with bars(True, {"RNS": 3}):
        assert numba.njit(lambda number: number + 1)(1) == 2
        assert numba.njit(lambda number: number + 2)(1) == 3
    assert capsys.readouterr().err.count("compiling kernels: the first run on a machine") == 1


def test_without_progress_nothing_is_said_of_compiling(capsys):
    with bars(False, {"RNS": 3}):
        assert numba.njit(lambda number: number + 1)(1) == 2
    assert capsys.readouterr().err == ""


def test_a_log_gets_one_line_when_a_sampler_is_done(capsys):
    with run_bars(True, ["RNS", "BNS", "RNS"], [2, 3, 1]) as show:
        for run, epoch in ((0, 1), (1, 1), (0, 2), (2, 1)):
            show(run, {**LINE, "epoch": epoch})
    assert capsys.readouterr().err == "RNS: 3 of 3 epochs  ndcg@20 0.2500  tnr 0.9000\n"


def test_a_short_fit_leaves_no_line_in_a_log(capsys):
    with epoch_bar(True, "BNS", 2) as show:
        show({**LINE, "epoch": 1})
        show({**LINE, "epoch": 2})
    assert capsys.readouterr().err == ""


def test_a_long_fit_leaves_a_line_now_and_then(capsys):
    log = Log({"BNS": 9}, every=0.0)
    log.update("BNS", 5, metrics_text(LINE))
    log.update("BNS", 6, "")
    assert capsys.readouterr().err.splitlines() == [
        "BNS: 5 of 9 epochs  ndcg@20 0.2500  tnr 0.9000",
        "BNS: 6 of 9 epochs",
    ]


def test_quiet_is_quiet(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with epoch_bar(False, "BNS", 1) as show:
        show(LINE)
    with run_bars(False, ["BNS"], [1]) as show_run:
        show_run(0, LINE)
    assert sys.stderr.getvalue() == ""


@pytest.mark.parametrize("label", ["BNS", "[red]"])
def test_a_terminal_gets_a_bar_with_the_numbers(monkeypatch, label):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with epoch_bar(True, label, 1) as show:
        show(LINE)
    assert label in sys.stderr.getvalue()
    assert "1/1" in sys.stderr.getvalue()
    assert "ndcg@20 0.2500" in sys.stderr.getvalue()


def test_ones_own_function_gets_every_line():
    lines: list[dict] = []
    with epoch_bar(lines.append, "BNS", 1) as show:
        show(LINE)
    assert lines == [LINE]


def test_the_numbers_watched_are_test_ndcg_and_tnr():
    assert metrics_text(LINE) == "ndcg@20 0.2500  tnr 0.9000"
    assert metrics_text({"epoch": 1}) == ""
