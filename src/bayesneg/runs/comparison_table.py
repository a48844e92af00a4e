"""The records of a comparison, which a notebook shows as one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from bayesneg.evaluation.statistics import Estimate, estimate
from bayesneg.notebooks import html_table, with_half_width
from bayesneg.runs.pairing import paired
from bayesneg.runs.record import RunRecord
from bayesneg.runs.verdict import comparison_verdict

SHOWN: Final = ("ndcg", "recall")  # at the longest list; a report has every metric


class Comparison(list[RunRecord]):
    """The records of :func:`bayesneg.compare`: a list, one record per run, that a notebook shows as a table.

    >>> runs = [RunRecord(label=name, seed=seed, dataset="toy", final={"ndcg@20": 0.4 + seed / 100})
    ...         for name in ("RNS", "BNS") for seed in (0, 1)]
    >>> "2 seeds" in Comparison(runs)._repr_html_()
    True
    """

    @property
    def verdict(self) -> str:
        """Whether a baseline is better than every sampler, and which runs were still improving; empty if neither."""
        return comparison_verdict(self)

    def _repr_html_(self) -> str:
        return comparison_html(self, notes=[self.verdict] if self.verdict else [])


def comparison_html(
    records: Sequence[RunRecord], *, title: str = "", above: Sequence[str] = (), notes: Sequence[str] = ()
) -> str:
    """A row per label: means over the seeds with 95% intervals, and the paired difference to the first label.

    Args:
        records: Runs on one dataset.
        title: The caption; the dataset and the number of seeds unless given.
        above: Lines above the table.
        notes: Lines below the table.
    """
    groups: dict[str, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(record.label, []).append(record)
    keys = _keys(records)
    first = next(iter(groups.values()), [])
    rows = []
    for label, runs in groups.items():
        difference = paired(runs, first, keys[0]) if keys and runs is not first else None
        name = f"{label} (sees test labels)" if any(run.uses_test_labels for run in runs) else label
        against = "" if difference is None else _text(difference.estimate)
        rows.append((name, *(_mean(runs, key) for key in keys), against))
    n_seeds = len({record.seed for record in records})
    over = "users" if n_seeds == 1 else f"{n_seeds} seeds"
    said = f"{first[0].dataset if first else 'no runs'}: mean ± 95% over {over}"
    heads = ("", *keys, f"{keys[0]} − {first[0].label}" if keys else "")
    return html_table(title or said, heads, rows, above=above, notes=notes)


def _keys(records: Sequence[RunRecord]) -> list[str]:
    lengths = [int(key.partition("@")[2]) for record in records for key in record.final if key.startswith("ndcg@")]
    wanted = [f"{name}@{max(lengths)}" for name in SHOWN] if lengths else []
    return [key for key in wanted if any(key in record.final for record in records)]


def _mean(runs: Sequence[RunRecord], key: str) -> str:
    """Over seeds; of one run alone, over users."""
    values = [value for run in runs if (value := run.final.get(key)) is not None]
    low, high = (runs[0].intervals.get(key) if len(runs) == 1 else None) or (None, None)
    if low is None or high is None:
        return _text(estimate(values))
    return with_half_width(values[0], (high - low) / 2)


def _text(found: Estimate) -> str:
    return with_half_width(found.mean, found.half_width)
