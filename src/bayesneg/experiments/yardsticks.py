"""A run beside popularity and EASE, which take seconds: whether its training was worth it."""

from __future__ import annotations

from collections.abc import Sequence

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.experiments.contenders import named_baselines
from bayesneg.runs.pairing import paired
from bayesneg.runs.record import RunRecord, describe
from bayesneg.runs.run import Run
from bayesneg.training import fit


def beside(run: Run, baselines: str) -> list[RunRecord]:
    """Baselines on the data of a run.

    Args:
        run: A finished run with a test part.
        baselines: Baselines as on the command line; empty for none.

    Returns:
        Their records; none for a run that is the baseline itself.
    """
    built = named_baselines(baselines) if baselines and len(run.split.test) else {}
    return [
        fit(baseline, run.split, seed=run.record.seed, label=label, select="last", progress=False).record
        for label, baseline in built.items()
        if describe(baseline) != run.record.spec["model"]
    ]


def verdict(record: RunRecord, others: Sequence[RunRecord]) -> str:
    """Whether a baseline is better than the run, and whether the run had stopped improving, in words.

    Args:
        record: The run.
        others: Baselines on the same data.

    Returns:
        One to three sentences.
    """
    key = next((key for key in reversed(list(record.final)) if key.startswith("ndcg@")), None)
    if key is None:
        return ""
    values = ", ".join(f"{one.label} {one.final[key]:.4f}" for one in (record, *others))
    said = [f"{metric_name(key)} on test data: {values}."] if others else []
    gaps = {one.label: paired([record], [one], key) for one in others}
    better = {name: gap for name, gap in gaps.items() if gap is not None and gap.over_users.high < 0}
    if better:
        best = min(better, key=lambda name: better[name].over_users.mean)
        found, model = better[best].over_users, best.split()[0].lower()
        said.append(
            f"{best} is better than this run by {-found.mean:.4f} (95% over users {-found.high:.4f} to "
            f"{-found.low:.4f}): train it with --model {model}, or search better settings with bayesneg tune."
        )
    elif others and all(gap is not None and gap.over_users.low > 0 for gap in gaps.values()):
        said.append("This run is better than each of them (95% intervals over users).")
    elif others:
        said.append("This run is not clearly better than the best of them.")
    evaluated = [line for line in record.epochs if any(name.startswith("validation_") for name in line)]
    if record.select == "best" and len(evaluated) > 1 and record.reported_epoch == record.epochs[-1]["epoch"]:
        said.append("It was still improving at its last epoch: more --epochs may help.")
    return " ".join(said)
