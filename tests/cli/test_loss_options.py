"""``--loss`` on the command line: records, resuming, several losses side by side."""

from __future__ import annotations

import json

import pytest

import bayesneg as bn

HINGE = """
import bayesneg as bn


class Hinge(bn.losses.Loss):
    def evaluate(self, scores):
        gaps = 1 + scores.negatives - scores.positive[:, None]
        slopes = scores.weights * (gaps > 0)
        return bn.losses.LossValues((slopes * gaps).sum(axis=1), -slopes.sum(axis=1), slopes)
"""
SEVERAL = ("--sampler", "rns:negatives=3")


def test_the_record_has_the_loss_with_all_settings(bayesneg, ratings):
    loss = "softmax:temperature=0.2"
    shown = bayesneg("train", ratings, "--loss", loss, *SEVERAL, "--epochs", 2, "--out", "run", "--json").json
    assert shown["loss"] == "Softmax (temperature=0.2)"
    described = {"class": "Softmax", "temperature": 0.2, "negative_weight": 1.0, "include_positive": False}
    assert shown["spec"]["loss"] == described
    run = bn.load_run("run")
    assert (run.record.loss, run.record.spec["loss"]) == (shown["loss"], described)
    assert 0 <= run.record.last("gradient_fn") <= 1
    plain = bayesneg("train", ratings, *SEVERAL, "--epochs", 2, "--json").json
    assert (plain["loss"], plain["spec"]["loss"]) == ("BPR", {"class": "BPR"})
    assert plain["final"] != shown["final"]


def test_a_run_is_not_resumed_with_another_loss(bayesneg, ratings):
    begin = ("train", ratings, *SEVERAL, "--epochs", 1, "--out", "run", "-q")
    assert bayesneg(*begin, "--loss", "softmax").code == 0
    more = (*begin[:-3], "--out", "run", "--resume", "-q")
    assert "loss temperature was 0.1, now it is 0.5" in bayesneg(*more, "--loss", "softmax:temperature=0.5").error
    assert "loss class was Softmax, now it is BPR" in bayesneg(*more).error
    assert bayesneg(*more, "--loss", "softmax:temperature=0.1").code == 0


def test_losses_are_compared_side_by_side_and_resumed(bayesneg, ratings):
    (ratings.parent / "own.py").write_text(HINGE)
    few = ("--baselines", "none", "--seeds", 1, "--epochs", 2, "--out", "runs")
    options = ("compare", ratings, "--samplers", "rns:negatives=3", *few)
    losses = ("--losses", "bpr,softmax:temperature=0.5,own.py:Hinge")
    found = bayesneg(*options, *losses, "--json").json
    assert [(run["label"], run["loss"]) for run in found["runs"]] == [
        ("RNS (negatives=3) + BPR", "BPR"),
        ("RNS (negatives=3) + Softmax (temperature=0.5)", "Softmax (temperature=0.5)"),
        ("RNS (negatives=3) + Hinge", "Hinge"),
    ]
    again = bayesneg(*options, *losses, "--resume", "--json").json
    assert [run["final"] for run in again["runs"]] == [run["final"] for run in found["runs"]]
    page = (ratings.parent / "report.html").read_text()
    assert "losses BPR, Softmax (temperature=0.5) and Hinge" in page
    assert "Gradient on held-out positives" in page


def test_runs_that_differ_in_their_loss_alone_are_two_rows_of_a_report(bayesneg, ratings):
    for loss in ("bpr", "logistic"):
        assert bayesneg("train", ratings, *SEVERAL, "--loss", loss, "--epochs", 1, "--out", loss, "-q").code == 0
    assert bayesneg("report", "bpr", "logistic").code == 0
    page = (ratings.parent / "report.html").read_text()
    assert "RNS (negatives=3) · BPR" in page
    assert "RNS (negatives=3) · Logistic" in page


def test_one_loss_for_all_is_said_once(bayesneg, ratings):
    samplers = "rns:negatives=3,rns:negatives=4"
    done = bayesneg("compare", ratings, "--samplers", samplers, "--loss", "logistic", "--seeds", 1, "--epochs", 1)
    assert "loss Logistic" in done.out
    assert "RNS (negatives=3)" in done.out
    assert "RNS (negatives=3) + " not in done.out


def test_an_audit_measures_the_gradient_of_each_loss(bayesneg, ratings):
    options = ("audit", ratings, "--samplers", "rns:negatives=3", "--seeds", 1, "--epochs", 2, "--out", "a.jsonl")
    few = ("--probes", 50)
    found = bayesneg(*options, *few, "--losses", "bpr,softmax:temperature=0.05", "--json").json
    assert [each["loss"] for each in found["samplers"]] == ["BPR", "Softmax (temperature=0.05)"]
    bpr, softmax = (each["fn_gradient"]["mean"] for each in found["samplers"])
    assert 0 < bpr < 1
    assert bpr != softmax
    page = (ratings.parent / "audit-report.html").read_text()
    assert "Gradient on false negatives over epochs" in page
    assert "Gradient on them" in page
    said = bayesneg(*options, *few, "--losses", "bpr,softmax:temperature=0.05", "--resume", "-q").out
    assert "gradient: the share of the loss's gradient on negatives" in said
    assert len((ratings.parent / "a.jsonl").read_text().splitlines()) == 2, "nothing was trained again"
    bayesneg(*options, *few, "--losses", "bpr,softmax:temperature=0.9", "--resume", "-q")
    lines = [json.loads(line) for line in (ratings.parent / "a.jsonl").read_text().splitlines()]
    assert len({line["key"] for line in lines}) == 3, "another loss is another run"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("train", "--loss", "softmx"), "'softmx' is not a loss; did you mean softmax?"),
        (("compare", "--losses", "bpr,softmx"), "'softmx' is not a loss"),
        (("compare", "--losses", "bpr,bpr"), "loss has BPR twice"),
        (("audit", "--loss", "softmax:tau=1"), "'tau' is not a setting of loss softmax"),
        (("tune", "--loss", "softmax:temperature=-1"), "temperature must be a number above 0"),
        (("train", "--model", "ease", "--loss", "softmax"), "model ease learns from no negatives; drop --loss"),
        (
            ("train", "--set", "negative_weight=2"),
            "negative_weight is a setting of the loss ccl or softmax; write --loss ccl:negative_weight=2",
        ),
        (("train", "--sampler", "in-batch"), "train a torch model, bn.TorchMF() (--model torch-mf)"),
    ],
)
def test_a_wrong_loss_is_one_sentence(bayesneg, ratings, options, said):
    command, *rest = options
    assert said in bayesneg(command, ratings, *rest).error
    assert [path.name for path in ratings.parent.iterdir()] == ["ratings.csv"]


@pytest.mark.parametrize(
    "sampler",
    [
        "bns:candidates=30:shared=true:weighting=posterior:prior=learned:likelihood=mixture",
        "bns:candidates=30:shared=true:weighting=oracle:prior=oracle",
        "in-batch:weighting=posterior",
        "rns:negatives=30:shared=true",
    ],
)
def test_shared_pools_are_written_as_text(bayesneg, ratings, sampler):
    pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")
    model = ("--model", "torch-mf", "--set", "similarity=cosine", "--set", "ranking=inner", "--set", "dim=4")
    options = ("train", ratings, *model, "--sampler", sampler, "--loss", "softmax", "--epochs", 1)
    found = bayesneg(*options, "--json").json
    assert found["model"] == "TorchMF (similarity=cosine, ranking=inner, dim=4)"
    given = dict(part.split("=") for part in sampler.split(":")[1:])
    assert found["spec"]["sampler"].get("weighting", "none") == given.get("weighting", "none")
    assert found["uses_test_labels"] is ("oracle" in sampler)
    assert ("sees test labels" in bayesneg(*options).out) is ("oracle" in sampler)
    if "oracle" in sampler:
        assert found["epochs"][-1]["gradient_fn"] == 0


@pytest.mark.parametrize("loss", ["softmax:temperature=0.1", "softmax-at-k"])
@pytest.mark.parametrize("command", ["train", "compare", "audit", "tune"])
def test_one_negative_with_a_loss_that_needs_several_is_refused_before_training(bayesneg, ratings, command, loss):
    if command == "tune":
        pytest.importorskip("optuna", reason="Optuna is not installed (the extra 'tune')")
    given = {"train": (), "compare": ("--samplers", "rns:negatives=2,dns"), "tune": ("--samplers", "dns")}
    options = given.get(command, ("--samplers", "dns"))
    said = bayesneg(command, ratings, *options, "--loss", loss, "--epochs", 1).error
    assert "with one negative is linear in the scores and has no minimum" in said
    assert "give several, such as rns:negatives=16, or a shared pool of several, set similarity=cosine" in said
    assert "or take softmax:include_positive=true" in said


@pytest.mark.parametrize(
    "options",
    [
        ("--loss", "softmax:include_positive=true"),
        ("--loss", "softmax", "--set", "similarity=cosine"),
        ("--loss", "psl"),
        ("--loss", "softmax", "--sampler", "rns:negatives=2"),
    ],
)
def test_losses_with_a_minimum_are_not_refused(bayesneg, ratings, options):
    assert bayesneg("train", ratings, *options, "--epochs", 1, "-q").code == 0
