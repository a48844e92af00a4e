"""How to read a report, for a person who would rather look than read."""

from __future__ import annotations

from collections.abc import Sequence

from bayesneg.report.markup import Markup, element
from bayesneg.report.names import base_of
from bayesneg.runs.record import RunRecord

_ALWAYS = {
    "± and intervals": (
        "With two or more seeds, the 95% interval of the mean over seeds: how much training again would "
        "change the number on this data. With one seed, the interval over users, which does not cover the "
        "luck of the seed."
    ),
    "Difference": (
        "Compared run by run with the same seed, or user by user, which is sharper than comparing two "
        "intervals. Where its interval includes zero, the data does not tell which is better."
    ),
    "Curves": (
        "A line is the mean over seeds; the band reaches from the lowest seed to the highest. Where the "
        "first epochs lie far off, the frame shows the later ones."
    ),
}
_MEANINGS = {  # by key of the records, without the cut-off
    "ndcg": (
        "NDCG@k",
        "How well the k recommended items hit what the user chose, early places counting more.",
    ),
    "precision": ("Precision@k", "The share of the k recommended items that the user chose."),
    "recall": ("Recall@k", "The share of what the user chose that is among the k recommended."),
    "hit": ("Hit rate@k", "The share of users with at least one chosen item among the k."),
    "mrr": ("MRR@k", "One over the place of the first chosen item, averaged over users."),
    "map": ("MAP@k", "The precision at the place of each chosen item, averaged."),
    "auc": ("AUC", "How often a chosen item is scored above one that was not chosen."),
    "coverage": (
        "Coverage@k",
        "The share of the catalogue that anyone is recommended; no verdict by itself.",
    ),
    "popularity": (
        "Popularity@k",
        "Mean training interactions of the recommended items; no verdict by itself.",
    ),
    "tnr": (
        "TNR",
        "True negative rate: of the items sampled as negatives, the share that the held-out part does "
        "not call positive. Dotted: what uniform sampling is expected to have. Hard negatives resemble what "
        "users like, so a sampler that recommends better may well lie below it.",
    ),
    "tnr_true": (
        "True TNR",
        "The same, judged by the full truth. Held-out labels miss much of what users like, so TNR flatters "
        "every sampler.",
    ),
    "inf": (
        "INF",
        "How much a sampled negative teaches: the mean size of its gradient, counted below zero where the "
        "item was a false negative.",
    ),
}


def glossary(runs: Sequence[RunRecord]) -> Markup:
    """The words this report uses, and no others."""
    used = {base_of(key) for run in runs for key in run.final}
    used |= {key for run in runs for line in run.epochs for key in line}
    entries = [*_ALWAYS.items(), *(meaning for key, meaning in _MEANINGS.items() if key in used)]
    items = [part for name, text in entries for part in (element("dt", {}, name), element("dd", {}, text))]
    return element("section", {}, element("h2", {}, "How to read this"), element("dl", {}, *items))
