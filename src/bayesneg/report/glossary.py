"""The terms of a report, explained to a reader who has not read the paper."""

from __future__ import annotations

from collections.abc import Sequence

from bayesneg.report.names import base_of
from bayesneg.runs.record import RunRecord

_ALWAYS = {
    "± and intervals": (
        "With two or more seeds, the 95% Student-t interval of the mean over seeds: the variance of training on this "
        "data. With one seed, the interval over users, which does not include the variance between seeds."
    ),
    "Difference": (
        "Paired by seed, or by user where one seed is shared, which is sharper than comparing two intervals. If its "
        "interval includes zero, the difference is not significant."
    ),
    "Curves": (
        "A line is the mean over seeds; the band spans from the lowest seed to the highest. Where the first epochs "
        "lie far off, the axis shows the later ones."
    ),
}
_MEANINGS = {  # by key of the records, without the cut-off
    "ndcg": ("NDCG@k", "Normalized discounted cumulative gain of the top k: hits count more at higher ranks."),
    "precision": ("Precision@k", "The share of the top k that are test items of the user."),
    "recall": ("Recall@k", "The share of the user's test items that are among the top k."),
    "hit": ("Hit rate@k", "The share of users with at least one test item among the top k."),
    "mrr": ("MRR@k", "The reciprocal rank of the first test item, averaged over users."),
    "map": ("MAP@k", "The precision at the rank of each test item, averaged over items and users."),
    "auc": ("AUC", "The probability that a test item is scored above an item the user did not interact with."),
    "coverage": ("Coverage@k", "The share of the catalogue that is recommended to any user; descriptive only."),
    "popularity": ("Popularity@k", "Mean training interactions of the recommended items; descriptive only."),
    "tnr": (
        "TNR",
        "True negative rate: the share of the sampled negatives that are not held-out positives. Dotted: the "
        "expectation of uniform sampling. Hard negatives resemble positives, so a sampler that leads to better "
        "recommendations may lie below it.",
    ),
    "tnr_true": (
        "True TNR and false negatives",
        "The same by the ground truth; one minus it is the false-negative rate. Held-out labels cover only a part of "
        "the positives, so TNR overestimates it for every sampler.",
    ),
    "inf": (
        "INF",
        "Informativeness: the mean gradient magnitude, that of BPR, of the sampled negatives, with a negative sign for "
        "false negatives. Several negatives count by their weights, here and in TNR.",
    ),
    "gradient_fn": (
        "Gradient on held-out positives",
        "The share of the loss's gradient on negatives, Σ|∂L/∂s|, that falls on held-out positives: how much of what "
        "is learned from negatives is wrong. It differs from their share of the negatives where a loss weighs hard "
        "negatives more.",
    ),
    "gradient_fn_true": (
        "Gradient on false negatives",
        "The same by the ground truth.",
    ),
}


def glossary(runs: Sequence[RunRecord]) -> dict[str, str]:
    """Term → explanation, for the terms that this report uses."""
    used = {base_of(key) for run in runs for key in run.final}
    used |= {key for run in runs for line in run.epochs for key in line}
    return {**_ALWAYS, **dict(meaning for key, meaning in _MEANINGS.items() if key in used)}
