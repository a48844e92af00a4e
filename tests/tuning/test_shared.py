"""Searches that several processes share: the same trials as one alone, none twice, none lost."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from dataclasses import replace
from threading import Thread
from types import SimpleNamespace

import pytest

import bayesneg as bn
from bayesneg.errors import InputError, StorageError
from bayesneg.tuning import search, store, studies
from benchmarks.scale.postgres import PASSWORD

pytest.importorskip("optuna", reason="optuna is not installed (the extra 'tune')")

MODEL = bn.MF.paper()
FEW = {"trials": 13, "epochs": 4, "seeds": 1, "baselines": (), "progress": False}
WORLD = "bn.split(bn.synthetic(60, 50, seed=0), test=0.2, validation=0.2, seed=0)"


@pytest.fixture(scope="module")
def split() -> bn.Split:
    return bn.split(bn.synthetic(60, 50, seed=0), test=0.2, validation=0.2, seed=0)


@pytest.fixture(scope="module")
def alone(split):
    return bn.tune(MODEL, split, **FEW)


@pytest.fixture(params=["file", "postgres"])
def storage(request, tmp_path) -> str:
    """A new storage of each kind."""
    if request.param == "file":
        return str(tmp_path / "shared.jsonl")
    return request.getfixturevalue("server").place()


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Seconds in place of minutes."""
    for name, seconds in (("BEAT", 0.1), ("GRACE", 1.5), ("OUTAGE", 20.0)):
        monkeypatch.setattr(store, name, seconds)
    monkeypatch.setattr(search, "POLL", 0.05)


def facts(trials):
    return [replace(trial, seconds=0.0) for trial in trials]


def recorded(storage, name="tune"):
    """Every trial of a study, as Optuna has it."""
    import optuna

    with studies.Shared(storage, name).opened() as opened:
        return optuna.load_study(study_name=name, storage=opened).get_trials()


def fits(monkeypatch, instead=lambda plain, *given, **how: plain(*given, **how)):
    """The labels of the trials that are trained from now on."""
    found, plain = [], search.fit

    def counted(*given, **how):
        found.append(how["label"])
        return instead(plain, *given, **how)

    monkeypatch.setattr(search, "fit", counted)
    return found


def test_a_shared_search_is_the_search_of_one_process_and_a_second_finds_it_done(split, alone, storage, monkeypatch):
    trained = fits(monkeypatch)
    first = bn.tune(MODEL, split, **FEW, storage=storage)
    assert facts(first.trials) == facts(alone.trials)
    assert first.advice == alone.advice
    assert len(trained) == FEW["trials"]
    second = bn.tune(MODEL, split, **FEW, storage=storage)
    assert facts(second.trials) == facts(alone.trials)
    assert second.advice == alone.advice
    assert len(trained) == FEW["trials"], "nothing was trained again"


PROCESS = f"""
import os, signal, sys, time
from pathlib import Path
import bayesneg as bn
from bayesneg.tuning import search, store, tune

store.BEAT, store.GRACE, search.POLL = 0.1, 4.0, 0.1
storage, folder, number = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
plain = search.fit


def wait_for(*names):
    until = time.monotonic() + 200
    while not all((folder / name).exists() for name in names):
        assert time.monotonic() < until, names
        time.sleep(0.01)


def met(*given, **how):
    def after_epoch(line):
        if number == 0 and line["epoch"] == 2:  # in its first trial
            (folder / "dying").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        wait_for("dying" if number else "0")
        how["progress"](line)

    return plain(*given, **dict(how, progress=after_epoch))


search.fit = met
(folder / str(number)).touch()
wait_for("0", "1", "2")
given = dict(trials={FEW["trials"]}, epochs={FEW["epochs"]}, progress=False, storage=storage)
tune.run_trials(bn.MF.paper(), {WORLD}, **given)
"""


def test_of_three_processes_one_is_killed_and_no_trial_is_lost_or_made_twice(split, alone, storage, tmp_path):
    meeting = tmp_path / "meeting"
    meeting.mkdir()
    command = [sys.executable, "-W", "error", "-c", PROCESS, storage, str(meeting)]
    processes = [subprocess.Popen([*command, str(number)]) for number in range(3)]
    try:
        assert [each.wait(300) for each in processes] == [-signal.SIGKILL, 0, 0]
    finally:
        for each in processes:
            each.kill()
            each.wait()
    victim = processes[0]
    found = bn.tune(MODEL, split, **FEW, storage=storage)
    assert facts(found.trials) == facts(alone.trials)
    assert found.advice == alone.advice
    every = recorded(storage)
    ended = [each for each in every if each.state.name in ("COMPLETE", "PRUNED")]
    assert sorted(each.user_attrs["place"] for each in ended) == [*range(FEW["trials"])]
    assert len({each.user_attrs["label"] for each in ended}) == FEW["trials"]
    assert len({each.user_attrs["by"] for each in ended}) >= 2
    of_victim = [each.state.name for each in every if each.user_attrs["by"].endswith(f" {victim.pid}")]
    assert of_victim[-1] == "FAIL", "its trial was taken up by another"


def joined(storage):
    return studies.opened(None, {"samplers": {}}, resume=False, shared=studies.Shared(storage))


def test_of_two_claims_of_one_place_the_first_holds_while_its_process_is_alive(storage, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(store, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=time.sleep))

    def looks(after):
        """The places that are held, seen by the other process so many seconds later."""
        now[0] += after
        other.free_the_dead(other.live())
        return [*other.live()]

    def beats():
        return other.live()[0].user_attrs.get("beat", 0)

    proposal = store.Proposal(0, {}, {}, {"label": "RNS"})
    with joined(storage) as one, joined(storage) as other:
        first, second = one.claimed(proposal), other.claimed(proposal)
        assert first is not None
        assert second is None
        with one.alive(first):
            for _ in range(3):
                before, until = beats(), time.monotonic() + 60
                while beats() == before:
                    assert time.monotonic() < until
                    time.sleep(0.01)
                assert looks(store.GRACE) == [0], "it has shown a sign of life"
        looks(0)
        assert looks(store.GRACE - 0.1) == [0], "it may be alive"
        assert looks(0.2) == [], "it shows no sign of life"
        with pytest.raises(store.LostError):
            one.report(first, 1, 0.5)
        with pytest.raises(store.LostError):
            one.end(first, store.TrialOutcome({1: 0.5}, "COMPLETE", 1.0))
        assert other.claimed(proposal) is not None


def test_of_processes_that_begin_at_once_with_other_plans_one_wins_and_the_others_are_refused(storage):
    def begin(number):
        plan = {"samplers": {}, "epochs": number // 2, "seed": number // 2}
        try:
            with studies.opened(None, plan, resume=False, shared=studies.Shared(storage)) as found:
                begun.append((plan, {key: found.study.user_attrs[key] for key in plan}))
        except InputError as error:
            refused.append(str(error))

    begun, refused = [], []
    threads = [Thread(target=begin, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads)
    assert len(begun) == 2, "those with the plan of the first"
    assert all(asked == kept for asked, kept in begun)
    assert len(refused) == 4
    assert all("holds a search with another epochs" in said for said in refused)


def test_a_trial_that_was_taken_from_a_process_is_made_again(split, alone, storage, monkeypatch):
    def robbed(plain, *given, **how):
        if len(trained) == 3:
            with studies.opened(None, {}, resume=False, shared=studies.Shared(storage)) as other:
                for each in other.live().values():
                    if each.state.name == "RUNNING":
                        other._fail(each)
        return plain(*given, **how)

    trained = fits(monkeypatch, robbed)
    found = bn.tune(MODEL, split, **FEW, storage=storage)
    assert facts(found.trials) == facts(alone.trials)
    assert len(trained) == FEW["trials"] + 1
    assert trained[2] == trained[3]


def test_the_number_of_trials_is_that_of_the_study(split, alone, storage):
    most = bn.tune(MODEL, split, **{**FEW, "trials": 6}, storage=storage)
    assert facts(most.trials) == facts(alone.trials)[:6]
    assert len(bn.tune(MODEL, split, **{**FEW, "trials": 4}, storage=storage).trials) == 6
    assert facts(bn.tune(MODEL, split, **FEW, storage=storage).trials) == facts(alone.trials)


def test_what_differs_between_processes_is_named_and_refused(split, storage):
    least = {**FEW, "trials": 3}
    bn.tune(MODEL, split, **least, storage=storage)
    with pytest.raises(
        InputError, match=r"^the study tune in .* holds a search with another epochs \(4, now 7\); .*--study"
    ):
        bn.tune(MODEL, split, **{**least, "epochs": 7}, storage=storage)
    other = bn.split(bn.synthetic(60, 50, seed=1), test=0.2, validation=0.2, seed=0)
    with pytest.raises(InputError, match="another data"):
        bn.tune(MODEL, other, **least, storage=storage)
    with pytest.raises(InputError, match="another samplers"):
        bn.tune(MODEL, split, "rns,bns:prior=flat,dns", **least, storage=storage)
    assert len(recorded(storage)) == 3
    bn.tune(MODEL, other, **least, storage=storage, study="other data")
    assert len(recorded(storage, "other data")) == 3


def test_a_database_that_goes_away_for_a_moment_changes_nothing(split, alone, server, monkeypatch):
    def restarted(plain, *given, **how):
        if len(trained) == 3:
            server.stop()
            Thread(target=lambda: (time.sleep(1.0), server.start())).start()
        return plain(*given, **how)

    trained = fits(monkeypatch, restarted)
    found = bn.tune(MODEL, split, **FEW, storage=server.place())
    assert facts(found.trials) == facts(alone.trials)
    assert len(trained) == FEW["trials"]


def test_a_trial_that_ended_while_the_database_was_away_is_kept_and_not_made_again(
    split, alone, server, tmp_path, monkeypatch
):
    monkeypatch.setattr(store, "OUTAGE", 0.5)
    url, place = server.place(), {"out": tmp_path / "out"}

    def stopped(plain, *given, **how):
        if len(trained) == 3:
            server.stop()
        return plain(*given, **how)

    with monkeypatch.context() as away:
        trained = fits(away, stopped)
        with pytest.raises(StorageError) as found:
            bn.tune(MODEL, split, **FEW, storage=url, **place)
    server.start()
    said = str(found.value)
    assert "cannot be used: " in said
    assert said.endswith(
        f"those of this process in {tmp_path / 'out'}; when it is back, give the same command and --resume"
    )
    assert PASSWORD not in said
    assert "\n" not in said
    assert found.value.__cause__ is None, "a traceback would show the address"
    again = fits(monkeypatch)
    resumed = bn.tune(MODEL, split, **FEW, storage=url, **place, resume=True)
    assert facts(resumed.trials) == facts(alone.trials)
    assert len(trained) == 3
    assert again == [trial.label for trial in alone.trials[3:]], "the third trial was kept on this machine"


def test_half_a_line_of_a_killed_process_is_no_hindrance(split, alone, tmp_path):
    path = tmp_path / "shared.jsonl"
    bn.tune(MODEL, split, **{**FEW, "trials": 4}, storage=path)
    with path.open("a") as journal:
        journal.write('{"op_code": 4, "wor')
    assert facts(bn.tune(MODEL, split, **FEW, storage=path).trials) == facts(alone.trials)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            "mysql://me:hush@host/db",
            "storage must be postgresql://user@host:5432/database or a file, got an address ",
        ),
        ("postgresql://me:hush@host:port/db", "storage is not a valid address of a database; write postgresql://user@"),
        (
            "postgresql://me:hush@host",
            r"storage postgresql://me:\*\*\*@host names no database; write postgresql://user@",
        ),
        ("", "storage must be postgresql://user@host:5432/database or a file, got ''"),
        ("missing/folder/file", "storage missing/folder/file must be postgresql://.* or a file in an existing folder"),
    ],
)
def test_a_storage_that_cannot_be_meant_is_refused_without_its_password(split, given, expected):
    if "host" in given:
        pytest.importorskip("psycopg", reason="psycopg is not installed (the extra 'postgres')")
    with pytest.raises(InputError, match=f"^{expected}") as found:
        bn.tune(MODEL, split, **FEW, storage=given)
    assert "hush" not in str(found.value)


def test_a_server_that_is_not_there_is_one_sentence_without_the_password(bayesneg_here, server):
    for address, why in (
        ("postgresql://me:hush@127.0.0.1:1/db", "Connection refused"),
        ("postgresql://me@127.0.0.1:1/db?password=hush", "Connection refused"),
        (server.url("nowhere"), 'database "nowhere" does not exist'),
        (server.url(password="hush"), "password authentication failed"),
    ):
        done = bayesneg_here("tune", "synthetic", "--trials", 6, "-q", "--storage", address)
        assert (done.code, done.out) == (1, "")
        assert done.err.startswith("error: postgresql://")
        assert why in done.err
        assert done.err.endswith("; check that it is there and that the address is right\n")
        assert done.err.count("\n") == 1
        assert not {"hush", PASSWORD} & set(done.err.replace(":", " ").replace("@", " ").split())


def test_without_the_driver_the_extra_is_named(split, monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(
        InputError, match=r"needs psycopg, which is not installed; run: pip install 'bayesneg\[postgres\]'"
    ):
        bn.tune(MODEL, split, **FEW, storage="postgresql://me@host/db")


@pytest.mark.parametrize("options", [("--trials-only",), ("--study", "mine")])
def test_options_of_a_shared_search_need_a_storage(bayesneg_here, options):
    assert "give --storage" in bayesneg_here("tune", "synthetic", *options).error


def test_a_process_for_trials_only_leaves_the_advice_to_another(bayesneg_here, tmp_path):
    shared = ("--samplers", "rns", "--epochs", 2, "--trials", 1, "--storage", "shared.jsonl")
    done = bayesneg_here("tune", "synthetic", *shared, "--trials-only", "-q")
    assert (done.code, done.out) == (0, "")
    assert "1 trial is done in the study tune; the same command without --trials-only advises" in done.err
    assert {path.name for path in tmp_path.iterdir()} == {"shared.jsonl"}
    advised = bayesneg_here("tune", "synthetic", *shared, "--baselines", "none", "--seeds", 1, "--json", "-q").json
    assert len(advised["trials"]) == 1
    assert "storage" not in advised["plan"]


def test_ctrl_c_says_that_the_storage_keeps_the_trials(bayesneg_here, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(search.Search, "run", interrupted)
    shared = ("--samplers", "rns", "--trials", 1, "--baselines", "none", "--storage", "shared.jsonl")
    for more, way_out in (((), "same command\n"), (("--out", "tuned"), "same command and --resume\n")):
        done = bayesneg_here("tune", "synthetic", *shared, *more, "-q")
        assert done.code == 130
        assert f"interrupted; --storage keeps the trials that ended; go on with the {way_out}" in done.err
