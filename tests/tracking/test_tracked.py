"""What a tracker is told, in which order, and that a tracker never costs a run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

import bayesneg as bn
from bayesneg.errors import BayesnegError, DivergedError, InputError
from fits import fit


@dataclass
class Notebook(bn.tracking.Tracker):
    """Keeps what it is told; fails where it is asked to."""

    name: str = "notebook"
    fails: str = ""
    calls: list = field(default_factory=list)

    @property
    def store(self) -> str:
        return f"notes:{self.name}"

    def _note(self, call, *what):
        self.calls.append((call, *what))
        if self.fails in (call, f"{call} {what[0] if what else ''}"):
            raise OSError("the shelf broke\nand more")

    def check(self):
        self._note("check")

    def start(self, run):
        self._note("start", run)
        return run.continued or f"{self.name}-1"

    def log(self, epoch, metrics):
        self._note("log", epoch, dict(metrics))

    def finish(self, status, metrics):
        self._note("finish", status, dict(metrics))

    def steps(self):
        return [what[0] for call, *what in self.calls if call == "log"]


class Counter:
    """An observer."""

    def __init__(self):
        self.n = 0

    def see(self, sampled):
        self.n += len(sampled.users)

    def end_epoch(self, epoch, sampler, scorer):
        return {"seen_so_far": self.n}


@pytest.fixture(scope="module")
def split():
    return bn.split(bn.synthetic(60, 80, seed=3), test=0.2, validation=0.2, seed=0)


def test_a_tracker_is_told_parameters_epochs_and_final_metrics(split):
    notes = Notebook()
    run = fit(split, bn.BNS(candidates=3), epochs=3, seed=4, observer=notes, label="three")
    assert [call for call, *_ in notes.calls] == ["check", "start", "log", "log", "log", "finish"]
    told = notes.calls[1][1]
    assert (told.name, told.continued, told.epochs_done) == ("three", None, 0)
    assert {
        "epochs": 3,
        "seed": 4,
        "model": "mf",
        "model.dim": 4,
        "sampler": "bns",
        "sampler.candidates": 3,
    }.items() <= (told.parameters.items())
    assert told.tags["dataset"] == "synthetic"
    assert told.tags["fingerprint"] == split.fingerprint
    for line, (_, epoch, metrics) in zip(run.record.epochs, notes.calls[2:5], strict=True):
        assert (line["epoch"], line["validation_ndcg@20"]) == (epoch, metrics["validation_ndcg@20"])
        assert "epoch" not in metrics
    assert notes.calls[-1][1:] == ("finished", dict(run.record.final))


def test_several_observers_and_trackers_work_together(split):
    one, other, counter = Notebook("one"), Notebook("other"), Counter()
    run = fit(split, epochs=2, observer=[one, counter, other, Counter()])
    assert one.steps() == other.steps() == [1, 2]
    assert one.calls[3][2]["seen_so_far"] == run.record.epochs[1]["seen_so_far"] == 2 * len(split.train)


def test_a_tracked_run_has_the_bytes_of_any_other(split, tmp_path):
    fit(split, epochs=2, out=tmp_path / "plain")
    fit(split, epochs=2, out=tmp_path / "tracked", observer=Notebook())
    for name in ("weights.safetensors", "metrics.json", "checkpoint.safetensors", "run.toml"):
        same = (tmp_path / "plain" / name).read_bytes() == (tmp_path / "tracked" / name).read_bytes()
        assert same or name == "checkpoint.safetensors", name  # which holds seconds


def test_a_baseline_is_tracked_too(split):
    notes = Notebook()
    bn.fit(bn.baselines.EASE(), split, observer=notes, progress=False)
    assert notes.steps() == [1]
    assert notes.calls[-1][1] == "finished"
    with pytest.raises(InputError, match="call fit without an observer"):
        bn.fit(bn.baselines.EASE(), split, observer=Counter(), progress=False)


@pytest.mark.parametrize("fails", ["check", "start"])
def test_a_store_that_is_not_there_is_one_sentence_and_leaves_no_folder(split, tmp_path, fails):
    with pytest.raises(BayesnegError) as caught:
        fit(split, observer=[Notebook("good"), Notebook("bad", fails=fails)], out=tmp_path / "run")
    assert str(caught.value) == "notes:bad cannot be used: OSError: the shelf broke"
    assert not (tmp_path / "run").exists()


def test_where_one_store_cannot_be_started_the_others_are_told_that_it_failed(split):
    good = Notebook("good")
    with pytest.raises(BayesnegError):
        fit(split, observer=[good, Notebook("bad", fails="start")])
    assert good.calls[-1] == ("finish", "failed", {})


@pytest.mark.parametrize(("fails", "when"), [("log 2", "epoch 2"), ("finish", "the end")])
def test_a_tracker_that_fails_later_is_dropped_and_the_run_goes_on(split, tmp_path, fails, when):
    bad, good = Notebook("bad", fails=fails), Notebook("good")
    with pytest.warns(UserWarning, match=f"notes:bad failed in {when} and is not used any more; training goes on"):
        run = fit(split, epochs=3, observer=[bad, good], out=tmp_path / "run")
    assert len(run.record.epochs) == 3
    assert bn.load_run(tmp_path / "run").record.final == run.record.final
    assert good.steps() == [1, 2, 3]
    assert good.calls[-1][1] == "finished"
    assert bad.calls[-1][0] == fails.split()[0], "it is not called again"


def test_resuming_continues_the_same_tracked_run(split, tmp_path):
    first, second, new = Notebook(), Notebook(), Notebook("new")
    fit(split, epochs=2, out=tmp_path / "run", observer=first)
    assert json.loads((tmp_path / "run" / "tracking.json").read_text()) == {"notes:notebook": "notebook-1"}
    fit(split, epochs=4, out=tmp_path / "run", resume=True, observer=[second, new])
    told = second.calls[1][1]
    assert (told.continued, told.epochs_done) == ("notebook-1", 2)
    assert second.steps() == [3, 4]
    assert new.calls[1][1].continued is None
    assert new.steps() == [1, 2, 3, 4], "a new store is told of all epochs"


@pytest.mark.parametrize(
    ("error", "raised", "status"),
    [(KeyboardInterrupt(), KeyboardInterrupt, "interrupted"), (ValueError("x"), ValueError, "failed")],
)
def test_a_run_that_is_cut_short_is_ended_in_the_store(split, error, raised, status):
    def stop(line):
        if line["epoch"] == 2:
            raise error

    notes = Notebook()
    with pytest.raises(raised):
        fit(split, epochs=4, observer=notes, progress=stop)
    assert notes.steps() == [1, 2]
    assert notes.calls[-1] == ("finish", status, {})


def test_a_diverged_run_has_failed(split):
    notes = Notebook()
    with pytest.raises(DivergedError):
        fit(split, model=bn.MF(dim=4, learning_rate=1000.0), observer=notes)
    assert notes.calls[-1] == ("finish", "failed", {})


@pytest.mark.parametrize("given", [3, [Notebook], Notebook, "tensorboard:logs"])
def test_what_is_no_observer_and_no_tracker_is_refused(split, given):
    with pytest.raises(InputError, match="observer must be an object"):
        fit(split, observer=given)


def test_a_store_is_given_once(split):
    with pytest.raises(InputError, match="notes:notebook is given twice"):
        fit(split, observer=[Notebook(), Notebook()])


def test_checking_stores_makes_none_of_them(split, tmp_path):
    with pytest.raises(BayesnegError, match="the shelf broke"):
        fit(split, observer=[bn.tracking.TensorBoard(tmp_path / "logs"), Notebook(fails="check")])
    assert not (tmp_path / "logs").exists()
