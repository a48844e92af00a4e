"""docs/explanation/weighted-pools.md, from the runs of ``benchmarks.studies.weighted_pools``."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from bayesneg.evaluation.statistics import mean_interval
from benchmarks.machine import read_result
from benchmarks.pages.publish import DOCS, keep
from benchmarks.pages.text import MADE, page, signed, table, with_interval

NAMES: Final = {
    "none": "none, ω = 1",
    "posterior": "posterior, learned prior (EASE)",
    "oracle": "oracle, knows the evaluated tenth",
}
METRIC: Final = "ndcg@20"

Runs = dict[str, list[dict[str, Any]]]


def publish(*, check: bool) -> None:
    found = read_result("studies/weighted_pools")
    assert found is not None
    keep(DOCS / "weighted-pools.md", _page(found), check=check)


def _page(found: dict[str, Any]) -> str:
    runs: Runs = {name: [run for run in found["runs"] if run["weighting"] == name] for name in NAMES}
    rates = {run["learning_rate"]: run["epochs"][-1][METRIC] for run in found["rates"]}
    chosen = runs["none"][0]["learning_rate"]
    tried = ", ".join(f"{rate:g} ({value:.4f})" for rate, value in rates.items())
    epochs = [line["epoch"] for line in runs["none"][0]["epochs"] if METRIC in line]
    return page(
        "# What the weights of a shared pool are worth",
        "MF on Gowalla with a softmax over one pool of 2,048 uniform items per batch: cosine, temperature 0.08, negative "
        "weight 1.22, batches of 2,048, 64 dimensions. Nothing but the weights ω of the negatives differs. Nine tenths "
        "of the training part are trained on, the tenth is evaluated; no test label is read. "
        f"{len(runs['none'])} seeds, epoch {epochs[-1]}, mean ± half of the 95% interval over seeds.",
        table(
            ["weights", "NDCG@20", "Recall@20", "difference, paired by seed", "gradient on false negatives"],
            [_row(name, runs) for name in NAMES],
        ),
        _finding(runs),
        "The gradient share is the part of Σ|∂L/∂s_k| over the negatives that falls on pairs of the evaluated tenth, in the "
        "last epoch. Uniform negatives contain "
        f"{1e3 * (1 - runs['none'][0]['epochs'][-1]['tnr_uniform']):.2f} of them per thousand; the softmax puts more "
        "weight on them, since they score high.",
        "## Over the epochs",
        "NDCG@20, mean over the seeds:",
        table(
            ["weights", *map(str, epochs)],
            [[NAMES[name], *(f"{_mean(own, epoch):.4f}" for epoch in epochs)] for name, own in runs.items()],
        ),
        "## How it was run",
        f"The learning rate, {chosen:g}, is the best of three for ω = 1 on the same tenth: {tried}. The prior is EASE on all "
        "items, solved whole on a GPU, cross-fitted and calibrated inside the training part; F is the rank in the pool, "
        "inverted from the mixture. "
        "Run again: `python -m benchmarks.studies.weighted_pools --only rates,none,posterior,oracle --solver dense` (`BAYESNEG_DATA` names the data). "
        f"Measured on {_machines([*found['rates'], *found['runs']])}.",
        MADE,
    )


def _machines(runs: list[dict[str, Any]]) -> str:
    """The machines that the runs recorded, each once."""
    return " and ".join(dict.fromkeys(_machine(run["machine"]) for run in runs))


def _machine(own: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in own["versions"].items() if name != "device")
    return f"one {own['device']} (processor: {own['processor']}, {own['cores']} cores, {own['system']}; {versions})"


def _row(name: str, runs: Runs) -> list[str]:
    own = runs[name]
    values, base = (np.array([run["final"][METRIC] for run in each]) for each in (own, runs["none"]))
    low, high = mean_interval(values - base)
    apart = "–" if name == "none" else f"{signed((values - base).mean())} ({signed(low)} to {signed(high)})"
    share = np.array([run["epochs"][-1]["gradient_fn"] for run in own])
    recall = np.array([run["final"]["recall@20"] for run in own])
    return [NAMES[name], with_interval(values), with_interval(recall), apart, f"{share.mean():.2%}"]


def _finding(runs: Runs) -> str:
    means = {name: np.mean([run["final"][METRIC] for run in own]) for name, own in runs.items()}
    gain, most = (means[name] - means["none"] for name in ("posterior", "oracle"))
    shares = [np.mean([run["epochs"][-1]["gradient_fn"] for run in runs[name]]) for name in ("none", "posterior")]
    return (
        f"The posterior takes {1 - shares[1] / shares[0]:.0%} of the gradient off the false negatives and raises NDCG@20 by "
        f"{gain / means['none']:.1%}. The oracle, an upper bound that no method without the labels can reach, raises it by "
        f"{most / means['none']:.0%}: the posterior reaches {gain / most:.0%} of that gap."
    )


def _mean(runs: list[dict[str, Any]], epoch: int) -> float:
    return float(np.mean([run["epochs"][epoch - 1][METRIC] for run in runs]))
