"""A run beside popularity and EASE, which take seconds: whether its training was worth it."""

from __future__ import annotations

from bayesneg.experiments.contenders import named_baselines
from bayesneg.runs.record import RunRecord, describe
from bayesneg.runs.run import Run
from bayesneg.training import fit


def beside(run: Run, baselines: str) -> list[RunRecord]:
    """Baselines on the data of a run.

    Args:
        run: A finished run with a test part.
        baselines: Baselines as on the command line; ``none`` for none.

    Returns:
        Their records; none for a run that is the baseline itself.
    """
    built = named_baselines(baselines) if len(run.split.test) else {}
    return [
        fit(baseline, run.split, seed=run.record.seed, label=label, select="last", progress=False).record
        for label, baseline in built.items()
        if describe(baseline) != run.record.spec["model"]
    ]
