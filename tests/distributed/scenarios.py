"""What is trained in one process by the tests, and in several by ``worker.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

import bayesneg as bn
from bayesneg.models.torch import negatives as torch_negatives

DIM, BATCH = 8, 32
ONE_LEFT = 34  # of 409 pairs: the last mini-batch has one example, of one process
STILL = 1e-30  # a learning rate that moves nothing: every choice is made with the same vectors


def world() -> bn.Split:
    return bn.split(bn.synthetic(60, 150, seed=3), test=0.2, validation=0.1, seed=0)


def mf(**changes: Any) -> bn.TorchMF:
    return bn.TorchMF(**{"dim": DIM, "batch_size": BATCH, "device": "cpu", **changes})


SRNS = bn.samplers.SRNS(memory=4, fresh=8, warmup=1)
FACTORS = bn.samplers.AOBPR(scale=0.5, rank="factor")  # the highest of a list, often observed: many rejections
OWN_PRIOR = {"prior": bn.priors.SelfEstimated(held_out=0.1), "likelihood": "uninformative"}
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
    "aobpr": bn.samplers.AOBPR(scale=20),
    "aobpr, factor": FACTORS,
    "srns": SRNS,
    "dens": bn.samplers.DENS(warmup=0, gate_learning_rate=0.05),
    "mixgcf": bn.samplers.MixGCF(candidates=4, negatives=2),
    "self-estimated": bn.BNS(cdf="exact", **OWN_PRIOR),
}
KEPT = ("aobpr", "aobpr, factor", "srns")  # what they keep, or look up, is in parts
POOLS = {
    "pool": bn.RNS(negatives=40, shared=True),
    "popular pool": bn.samplers.PNS(negatives=40, shared=True),
    "in-batch": bn.samplers.InBatch(weighting="posterior"),
    "posterior pool": bn.BNS(candidates=40, shared=True, weighting="posterior", cdf="pool"),
    "counted pool": bn.BNS(candidates=10, shared=True, weighting="risk", cdf="exact"),
    "self-estimated pool": bn.BNS(candidates=40, shared=True, weighting="posterior", cdf="pool", **OWN_PRIOR),
    "refreshed pool": bn.BNS(candidates=40, shared=True, weighting="posterior", cdf="refreshed"),
}
EPOCHS = {"warm start": 2, "srns": 3, "self-estimated": 2, "self-estimated pool": 2}  # 1 for all others
SUMMARISED = ("refreshed", "refreshed pool")  # in host memory in bins, by torch by sorting: F is equal to some digits
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
    "aobpr": (mf(similarity="cosine"), bn.samplers.AOBPR(fraction=0.2), "softmax"),
    "aobpr, factor": (mf(), bn.samplers.AOBPR(scale=20, rank="factor"), "bpr"),
    "srns": (mf(), SRNS, "bpr"),
    "mixgcf": (mf(similarity="cosine"), SAMPLERS["mixgcf"], "softmax:temperature=0.2"),
    "self-estimated pool": (mf(batch_size=ONE_LEFT), POOLS["self-estimated pool"], "softmax"),
    "refreshed pool": (mf(), POOLS["refreshed pool"], "softmax"),
    "lightgcn": (
        bn.LightGCN(
            dim=DIM, layers=2, batch_size=BATCH, device="cpu", penalty="first_layer", regularization=1e-2
        ),
        bn.BNS(cdf="exact"),
        "bpr",
    ),
}  # fmt: skip


RESUMED = {  # the others have state in both samplers, which the epochs after each checkpoint need
    "best": (mf(), bn.BNS(cdf="exact"), "best"),
    "states": (mf(), bn.samplers.WarmStart(first=FACTORS, then=SRNS, warmup=5), "last"),
    "learned": (
        mf(batch_size=ONE_LEFT),
        bn.samplers.WarmStart(first=SAMPLERS["dens"], then=SAMPLERS["self-estimated"], warmup=5),
        "best",
    ),
}


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


def tied() -> tuple[bn.Interactions, np.ndarray, np.ndarray, np.ndarray]:
    """Dense training pairs, embeddings of users and items with few different scores, and a rank for each user."""
    rng, data = np.random.default_rng(5), bn.synthetic(24, 40, seed=2)
    w, h = (rng.integers(-1, 2, (n, 3)).astype(np.float32) for n in (data.n_users, data.n_items))
    ranks = (rng.random(data.n_users) * (data.n_items - data.counts)).astype(np.int64)
    return data, w, h, ranks


def earlier() -> bn.Split:
    """Older data, of fewer users and items."""
    return bn.split(bn.synthetic(50, 140, seed=4), test=0.2, seed=0)


def grown() -> bn.Split:
    """Newer data: some users have no training pair now, of whom the last is new."""
    split = world()
    train, kept = split.train, ~np.isin(split.train.users, (3, 40, 55))
    ids = {"user_ids": train.user_ids, "item_ids": train.item_ids}
    return bn.Split(bn.Interactions.from_numbers(train.users[kept], train.indices[kept], **ids), split.test)


def refusals(split: bn.Split) -> dict[str, Any]:
    """Fits that several processes refuse, by a word of the error."""

    class Custom(bn.NegativeSampler):
        def sample(self, batch: bn.Batch) -> np.ndarray:
            return np.zeros(len(batch.users), dtype=np.int32)

    class Following(bn.Prior):
        uses_scores = True

        def probability(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
            return np.zeros(np.broadcast_shapes(users.shape, items.shape))

    return {
        "MF trains in one process": (bn.MF(), split, bn.RNS()),
        "custom sampler": (mf(), split, Custom()),
        "MixGCF mixes": (bn.LightGCN(dim=DIM, device="cpu"), split, bn.samplers.MixGCF()),
        "custom prior": (mf(), split, bn.BNS(prior=Following(), likelihood="uninformative")),
    }


def few_items() -> bn.Split:
    """Fewer items than four processes."""
    data = bn.Interactions.from_pairs([1, 1, 2, 2, 3, 4, 5], ["a", "b", "a", "c", "b", "c", "a"])
    return bn.split(data, test=0.3, seed=0)
