"""What docs/explanation/study.md says of its data and of the priors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from bayesneg.reproduction.studies import DATASETS
from benchmarks.machine import read_result
from benchmarks.pages.study.records import Dataset, Records
from benchmarks.pages.study.tables import marked
from benchmarks.pages.text import signed, table
from benchmarks.studies.negatives import plan
from benchmarks.studies.negatives.contenders import PRIOR

TITLES: Final = {
    "popularity": "popularity", "neighbours": "item neighbours", "rp3beta": "RP3β", "gfcf": "GF-CF", "als": "ALS", "ease": "EASE"
}  # fmt: skip
SCALE: Final = 1e4  # Brier scores are of this order


# ------------------------------------------------------------------------------------------------------------- splits


def splits() -> list[str]:
    """Whether the published test parts are random."""
    found = read_result("quality/published_splits")
    if found is None:
        return []
    rows = [
        [DATASETS[name], *(f"{line['variance_ratio']:.2f}" for line in lines)] for name, lines in found["data"].items()
    ]
    bounds = [line["interactions"] for line in next(iter(found["data"].values()))]
    head = [f"{low} to {high - 1} interactions" if high < 1 << 20 else f"{low} and more" for low, high in bounds]
    return [
        "**The published test parts of Gowalla and Yelp2018 are not a random fifth of each user's items.** The variance of "
        "the number of an item's test pairs, divided by that of a random split with as many test items of each user "
        f"(mean of {found['draws']} draws); 1 is random:",
        table(["items with", *head], rows),
        "Items come and go together, as they do where the last interactions of each user are held out. The files hold no "
        "times, so that a validation part like the test part cannot be made of the training part: the validation parts "
        "here are random, and what they choose is chosen for another task than the test part's. Published figures on these files were "
        "mostly chosen on the test part itself. `python -m benchmarks.quality.published_splits`.",
    ]


# --------------------------------------------------------------------------------------------------------------- time


def times() -> list[str]:
    """From data to metrics, on a GPU and on a CPU."""
    parts = "prior", "training", "evaluation"
    rows = []
    for kind in ("gpu", "cpu"):
        for line in (read_result(f"studies/end_to_end_{kind}") or {"methods": {}})["methods"].values():
            on, seconds = line["machine"], line["seconds"]
            where = on["device"] if kind == "gpu" else f"{on['cores']} CPU cores"
            measured = [f"{seconds[part]:.1f}" for part in parts]
            method = f"{DATASETS[line['dataset']]}, {marked(line['method'])}"
            rows.append([method, where, *measured, f"{sum(seconds.values()):.1f}", f"{line['ndcg@20']:.4f}"])
    if not rows:
        return ["Not measured yet."]
    return [
        "Each alone on the machine, at the setting and epoch that validation chose, one seed: seconds of the learned prior, of "
        "training and of the evaluation over the full catalogue. On a GPU EASE in the prior is dense, on a CPU of low rank; "
        "baselines are solved on the CPU, large inverses on the GPU. `python -m benchmarks.studies.negatives.end_to_end`.",
        table(
            ["", "on", "prior, s", "training, s", "evaluation, s", "in all, s", "NDCG@20, test"], rows, text_columns=2
        ),
    ]


# ------------------------------------------------------------------------------------------------------------- priors


def priors(found: Sequence[Dataset]) -> list[str]:
    """Each prior by its Brier score, and by what it brings."""
    measured = read_result("quality/priors")
    if measured is None:
        return ["No prior was measured yet."]
    rows = []
    for dataset in found:
        of_dataset = measured["data"].get(dataset.name, {})
        gains = gains_of(dataset.models[0])
        best = min(of_dataset, key=lambda name: of_dataset[name]["brier"], default=None)
        for name in (*plan.PRIORS, PRIOR):
            if name in of_dataset:
                rows.append(
                    [dataset.title, *_row(name, of_dataset[name], is_best=name == best), gains.get(name, "not run")]
                )
    return [
        "Brier scores (×10⁻⁴, lower is better) over all unobserved pairs of some users against the held-out ones, beside "
        "that of the base rate for every pair; learned priors are calibrated for as many hidden positives as are held "
        "out. *Gain*: NDCG@20 of the posterior with that prior minus that of `bsl`, at the best setting and epoch of "
        "`bsl`, MF, uniform pool, on validation, one seed. Bold is the best of "
        "those measured; EASE on the two large catalogues is not among them yet. `python -m benchmarks.quality.priors` and "
        "`python -m benchmarks.studies.negatives priors`.",
        table(["", "prior", "Brier", "base rate", "seconds of the fit", "gain, validation"], rows, text_columns=2),
    ]


def _row(name: str, line: dict[str, Any], *, is_best: bool) -> list[str]:
    brier = f"{SCALE * line['brier']:.4g}"
    return [
        TITLES[name],
        f"**{brier}**" if is_best else brier,
        f"{SCALE * line['brier_of_base_rate']:.4g}",
        f"{line['seconds_of_fit']:.0f}",
    ]


def gains_of(records: Records) -> dict[str, str]:
    """By prior, as far as they were run."""
    search = records.searches.get("bsl")
    if search is None or not search.is_complete or search.best is None:
        return {}
    trial, epoch, value, _ = search.best
    found = {}
    for one in plan.priors(trial):
        got = records.validated_at(one, epoch)
        if got is not None:
            found[str(one.setting.sampler.get("prior", PRIOR))] = signed(got - value)
    return found
