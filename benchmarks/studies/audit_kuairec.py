"""True false-negative rates of every sampler and prior on KuaiRec, whose small matrix is nearly fully observed.

    BAYESNEG_DATA=… python -m benchmarks.studies.audit_kuairec [--seeds 10] [--epochs 10] [--samplers rns] [--jobs 2]

MF at the paper's settings; of each user's positives 10, 30 or 50% are hidden. Priors that assume a ratio of hidden
to observed positives are shown twice: with their default, 0.25, and with the true one. Finished runs are kept in
runs/audit_kuairec.jsonl and are not repeated when the script is started again, with more seeds or samplers. Writes
results/audit_kuairec.parquet, from which docs/explanation/audit-kuairec.md is made.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import bayesneg as bn
from bayesneg.config.specs import parse_samplers
from bayesneg.data.load import load
from bayesneg.data.splits import Split
from bayesneg.experiments.audit import audit, hide
from bayesneg.experiments.contenders import SamplerLike
from bayesneg.interfaces import NegativeSampler, Prior
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord
from benchmarks import archive
from benchmarks.machine import RESULTS, data_folder

SAMPLERS = ",".join((
    "rns,pns,aobpr,aobpr-factor,dns,dns:candidates=5,srns,bns,bns-1,bns-3,bns:likelihood=mixture",
    "bns:prior=rate:likelihood=mixture,bns:prior=learned+rate:likelihood=mixture",
    "bns:prior=self:likelihood=uninformative,bns:prior=learned,bns:prior=learned:likelihood=mixture",
    "bns:prior=learned:likelihood=empirical,bns:prior=learned:likelihood=mixture:candidates=10:weight=10",
    "posterior,posterior:prior=learned:likelihood=mixture,oracle",
))  # fmt: skip
WITH_RATIO = {"rate": bn.priors.Rate, "learned": bn.priors.Learned}  # priors that take the hidden ratio
HIDDEN = (0.1, 0.3, 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--samplers", default=SAMPLERS)
    parser.add_argument("--jobs", type=int, default=None)
    arguments = parser.parse_args()
    specs = parse_samplers(arguments.samplers)
    splits = hide(load("kuairec", data_dir=data_folder()), HIDDEN)
    samplers: dict[str, SamplerLike] = {spec.label: spec.build for spec in specs}
    if arguments.samplers == SAMPLERS:
        samplers.update(samplers_with_true_ratio())
    kept = Path("runs/audit_kuairec.jsonl")
    kept.parent.mkdir(exist_ok=True)
    records: list[RunRecord] = []
    for seed in range(arguments.seeds):  # seed by seed, so that an early end leaves whole tables
        found = audit(
            bn.MF.paper(),
            splits,
            samplers,
            seeds=[seed],
            epochs=arguments.epochs,
            users=0,
            jobs=arguments.jobs,
            out=kept,
            resume=True,
        )
        records += found.records
        print(f"wrote {write(records)}")


def samplers_with_true_ratio() -> dict[str, Callable[[Split], NegativeSampler]]:
    """BNS with each prior that takes the hidden ratio, at the true one."""

    def sampler(prior: Callable[..., Prior], split: Split) -> NegativeSampler:
        return bn.BNS.paper(prior=prior(hidden=len(split.test) / len(split.train)), likelihood="mixture")

    names = {name: f"BNS (prior={name}, with the true hidden ratio, likelihood=mixture)" for name in WITH_RATIO}
    return {names[name]: partial(sampler, prior) for name, prior in WITH_RATIO.items()}


def write(records: list[RunRecord]) -> Path:
    """Archive the runs, split by split and sampler by sampler."""
    first = list(dict.fromkeys((record.dataset, record.label) for record in records))
    ordered = sorted(records, key=lambda record: (first.index((record.dataset, record.label)), record.seed))
    entries = [Entry("", {}, replace(record, per_user=None)) for record in ordered]
    return archive.write(RESULTS / "audit_kuairec.parquet", entries)


if __name__ == "__main__":
    main()
