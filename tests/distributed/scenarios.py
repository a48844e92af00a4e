"""What is trained in one process by the tests, and in several by ``worker.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

import bayesneg as bn
from bayesneg.models.torch import negatives as torch_negatives

DIM, BATCH = 8, 32
STILL = 1e-30  # a learning rate that moves nothing: every choice is made with the same vectors


def world() -> bn.Split:
    return bn.split(bn.synthetic(60, 150, seed=3), test=0.2, validation=0.1, seed=0)


def mf(**changes: Any) -> bn.TorchMF:
    return bn.TorchMF(**{"dim": DIM, "batch_size": BATCH, "device": "cpu", **changes})


SAMPLERS = {
    "rns": bn.RNS(),
    "pns": bn.samplers.PNS(),
    "dns": bn.DNS(candidates=4, top=2),
    "sir": bn.samplers.SIR(proposal="popularity"),
    "ahns": bn.samplers.AHNS(),
    "bns": bn.BNS(cdf="exact"),
    "bns, all items": bn.BNS(cdf="exact", cdf_over="all"),
    "posterior": bn.samplers.Posterior(),
    "warm start": bn.samplers.WarmStart(first="rns", then=bn.BNS(cdf="exact"), warmup=1),
    "several": bn.BNS(cdf="exact", candidates=6, negatives=3),
}
POOLS = {
    "pool": bn.RNS(negatives=40, shared=True),
    "popular pool": bn.samplers.PNS(negatives=40, shared=True),
    "in-batch": bn.samplers.InBatch(weighting="posterior"),
    "posterior pool": bn.BNS(candidates=40, shared=True, weighting="posterior", cdf="pool"),
    "counted pool": bn.BNS(candidates=10, shared=True, weighting="risk", cdf="exact"),
}
KEYED = {"bns": SAMPLERS["bns"], "several": SAMPLERS["several"], "in-batch": POOLS["in-batch"]}
TRAINED = {
    "bns": (mf(), bn.BNS(cdf="exact"), "bpr"),
    "refreshed": (mf(), bn.BNS(cdf="refreshed"), "bpr"),
    "empirical": (mf(), bn.BNS(cdf="exact", likelihood="empirical"), "bpr"),
    "ensemble": (mf(ensemble_size=2, penalty="batch", regularization=1e-2), bn.RNS(), "bpr"),
    "touched rows": (mf(adam_rows="touched"), bn.DNS(), "bpr"),
    "cosine softmax": (mf(similarity="cosine"), POOLS["posterior pool"], "softmax:temperature=0.2"),
    "softmax at k": (mf(), bn.RNS(negatives=6), "softmax-at-k"),
    "in-batch": (mf(), POOLS["in-batch"], "softmax"),
    "lightgcn": (
        bn.LightGCN(
            dim=DIM, layers=2, batch_size=BATCH, device="cpu", penalty="first_layer", regularization=1e-2
        ),
        bn.BNS(cdf="exact"),
        "bpr",
    ),
}  # fmt: skip


class Recorded:
    """The negatives of every example, by its position, as ``BatchNegatives`` gives them."""

    def __init__(self) -> None:
        self.found: dict[int, list[list[float]]] = {}
        before = torch_negatives.BatchNegatives.of

        def of(inner: Any, sampler: Any, batch: Any, *rest: Any) -> Any:
            answer = before(inner, sampler, batch, *rest)
            items = answer.items.expand(len(batch.positions), -1) if answer.is_shared else answer.items
            for position, chosen, weights in zip(
                batch.positions.tolist(), items.tolist(), answer.weights.tolist(), strict=True
            ):
                self.found.setdefault(position, []).append([*chosen, *weights])
            return answer

        torch_negatives.BatchNegatives.of = of  # type: ignore[method-assign]
        self.undo = lambda: setattr(torch_negatives.BatchNegatives, "of", before)

    def table(self) -> np.ndarray:
        """Rows of position, then items and weights of each epoch, ascending."""
        rows = [[position, *(x for epoch in epochs for x in epoch)] for position, epochs in sorted(self.found.items())]
        width = max(map(len, rows), default=0)  # the last batch has a smaller pool of positives
        return np.array([row + [-2] * (width - len(row)) for row in rows])


def refusals(split: bn.Split) -> dict[str, Any]:
    """Fits that several processes refuse, by a word of the error."""

    class Custom(bn.NegativeSampler):
        def sample(self, batch: bn.Batch) -> np.ndarray:
            return np.zeros(len(batch.users), dtype=np.int32)

    return {
        "MF trains in one process": (bn.MF(), split, bn.RNS()),
        "SRNS keeps": (mf(), split, bn.samplers.SRNS()),
        "AOBPR reads": (mf(), split, bn.samplers.AOBPR()),
        "custom sampler": (mf(), split, Custom()),
        "MixGCF mixes": (mf(), split, bn.samplers.MixGCF()),
        "refreshed": (
            mf(), split, bn.BNS(candidates=40, shared=True, weighting="posterior", cdf="refreshed"),
        ),
    }  # fmt: skip


def few_items() -> bn.Split:
    """Fewer items than four processes."""
    data = bn.Interactions.from_pairs([1, 1, 2, 2, 3, 4, 5], ["a", "b", "a", "c", "b", "c", "a"])
    return bn.split(data, test=0.3, seed=0)
