"""Whether two checkouts train to the same bytes: every sampler with one negative and BPR, on three models.

    python -m benchmarks.bytes OLD_CHECKOUT

Both checkouts train the same runs on a small synthetic dataset on the CPU, in processes of their own; a run is its
digest of the final embeddings and of the measures of every epoch. Exit code 1 if a digest differs. Bytes depend on the
processor and the libraries, so that digests are compared and not kept.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import bayesneg as bn
from benchmarks.machine import ROOT

MEASURES: Final = ("tnr", "inf", "tnr_true", "inf_true", "skipped", "ndcg@20", "validation_ndcg@20")
EPOCHS: Final = 3


def samplers(split: bn.Split) -> dict[str, bn.NegativeSampler]:
    """Every built-in sampler that answers with one negative, in its variants."""
    return {
        "RNS": bn.RNS(),
        "PNS": bn.PNS(),
        "AOBPR": bn.AOBPR(),
        "AOBPR by factor": bn.AOBPR(rank="factor"),
        "DNS": bn.DNS(),
        "DNS(3, 6)": bn.DNS(candidates=6, top=3),
        "SRNS": bn.SRNS(),
        "BNS.paper()": bn.BNS.paper(),
        "BNS": bn.BNS(),
        "BNS, refreshed": bn.BNS(cdf="refreshed"),
        "BNS-1": bn.BNS(weight=bn.samplers.LinearDecay()),
        "BNS-2": bn.WarmStart(bn.RNS(), bn.BNS(), warmup=1),
        "BNS-3": bn.BNS(prior="flat"),
        "BNS-4": bn.BNS(prior="group"),
        "BNS, learned": bn.BNS(prior="learned"),
        "BNS, self-estimated": bn.BNS(prior="self", likelihood="uninformative"),
        "BNS, mixture": bn.BNS(likelihood="mixture"),
        "BNS, empirical": bn.BNS(likelihood="empirical"),
        "BNS over all": bn.BNS(cdf_over="all"),
        "oracle": bn.BNS(prior=bn.priors.Oracle(split.held_out)),
        "optimal": bn.BNS(candidates="all"),
        "posterior": bn.Posterior(),
    }


def models() -> dict[str, Any]:
    return {
        "MF.paper()": bn.MF.paper(dim=16),
        "MF": bn.MF(dim=16, update="simultaneous"),
        "MF, ensemble": bn.MF(dim=8, ensemble_size=3),
        "LightGCN.paper()": bn.LightGCN.paper(dim=16, device="cpu", batch_size=512),
        "TorchMF": bn.TorchMF(dim=16, device="cpu", batch_size=512),
    }


def digests() -> Iterator[tuple[str, str]]:
    split = bn.split(bn.synthetic(300, 200, seed=0), test=0.2, validation=0.1, seed=0)
    for model_name, model in models().items():
        for sampler_name, sampler in samplers(split).items():
            run = bn.fit(model, split, sampler, epochs=EPOCHS, seed=0, progress=False)
            found = hashlib.sha256()
            for part in run.scorer.embeddings():
                found.update(part.tobytes())
            lines = [[line.get(name) for name in MEASURES] for line in run.record.epochs]
            found.update(json.dumps(lines).encode())
            yield f"{model_name}, {sampler_name}", found.hexdigest()[:16]


# The runs of this file with the package of another checkout, which may not have this file.
RUN: Final = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("digests_of", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
json.dump(dict(module.digests()), sys.stdout)
"""


def digests_of(checkout: Path) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(checkout / "src"), str(ROOT)])}
    command = [sys.executable, "-c", RUN, __file__]
    return subprocess.Popen(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, help="another checkout of this repository")
    checkouts = parser.parse_args().old.resolve(), ROOT
    running = [digests_of(checkout) for checkout in checkouts]
    outputs = [process.communicate()[0] for process in running]
    if any(process.returncode for process in running):
        raise SystemExit("a checkout could not train the runs; its error is above")
    old, new = (json.loads(output) for output in outputs)
    differing = [name for name in old if old[name] != new[name]]
    for name in differing:
        print(f"differs: {name}")
    print(f"{len(old) - len(differing)} of {len(old)} runs are equal to the byte")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
