"""The reports of the gallery, made anew by the package for each build: what is shown is what it writes today."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

import bayesneg as bn
from bayesneg.report.tuning import write_tuning_report


def make(folder: Path) -> None:
    """A comparison, an audit and a search, all small, and the page of each."""
    folder.mkdir(parents=True, exist_ok=True)
    data = bn.synthetic(300, 400, seed=0)
    split = bn.split(data, test=0.2, validation=0.1, seed=0)
    model = bn.MF(dim=16, learning_rate=0.05)
    samplers = {"RNS": bn.RNS(), "DNS": bn.DNS(), "BNS": bn.BNS(), "BNS, learned prior": bn.BNS(prior="learned")}
    compared = bn.compare(model, split, samplers, seeds=3, epochs=12, progress=False)
    bn.write_report(compared, folder / "compare.html")
    audited = bn.audit(model, bn.hide(data, [0.2]), samplers, seeds=2, epochs=8, probes=500, progress=False)
    bn.write_audit(audited.records, folder / "audit.html")
    little = {"baselines": "popularity", "trials": 4, "seeds": 2, "epochs": 5, "jobs": 1, "progress": False}
    chosen = bn.tune(model, split, [bn.RNS(), bn.BNS()], **little)
    write_tuning_report(chosen, folder / "tune.html")


def setup(app: Sphinx) -> dict[str, bool]:
    def run(app: Sphinx) -> None:
        if app.builder.format == "html":
            make(Path(app.outdir) / "reports")

    app.connect("builder-inited", run)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
