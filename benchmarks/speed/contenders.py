"""One epoch of BPR by us and by other libraries, as functions that return seconds.

d = 32, learning rate 0.01, regularization 0.01, one thread unless said.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from scipy import sparse

import bayesneg as bn
from bayesneg.interfaces import NegativeSampler
from bayesneg.seeding import stream

DIM, RATE, DECAY = 32, 0.01, 0.01

Epoch = Callable[[], float]


def our_epoch(
    train: bn.Interactions, sampler: NegativeSampler, *, dim: int = DIM, threads: int = 1, warm: bool = True
) -> Epoch:
    """The next epoch with all that belongs to it, draws and refreshes too; the first one warms up, if wanted."""
    learner = bn.MF.paper(dim=dim, threads=threads).start(train, rng=stream(0, "init"))
    ready = sampler.prepare(train, rng=stream(0, "sampler"))
    order = stream(0, "order").permutation(len(train))
    epochs = iter(range(1, 10_000))

    def run() -> float:
        epoch = next(epochs)
        started = time.perf_counter()
        for _ in learner.train_epoch(ready, epoch=epoch, order=order, rng=stream(0, "sampler", epoch)):
            pass
        return time.perf_counter() - started

    if warm:
        run()
    return run


def whole_training(train: bn.Interactions, sampler: NegativeSampler, epochs: int) -> Epoch:
    """The mean epoch of a whole training: exact BNS is slower at first, when scores say little, than later."""

    our_epoch(train, sampler)  # compiles

    def run() -> float:
        one = our_epoch(train, sampler, warm=False)
        return sum(one() for _ in range(epochs)) / epochs

    return run


def implicit_epoch(train: bn.Interactions) -> Epoch:
    """implicit's BPR."""
    from implicit.cpu.bpr import BayesianPersonalizedRanking

    parts = (np.ones(len(train), np.float32), train.indices.copy(), train.indptr.copy())  # it wants to write to them
    matrix = sparse.csr_matrix(parts, (train.n_users, train.n_items))

    def fit(iterations: int) -> float:
        model = BayesianPersonalizedRanking(
            factors=DIM - 1,  # and one for the bias it adds: vectors of 32 numbers, as ours
            learning_rate=RATE,
            regularization=DECAY,
            iterations=iterations,
            num_threads=1,
            random_state=0,
        )
        started = time.perf_counter()
        model.fit(matrix, show_progress=False)
        return time.perf_counter() - started

    return _without_set_up(fit)


def cornac_epoch(train: bn.Interactions) -> Epoch:
    """Cornac's BPR, whose item bias is switched off."""
    from cornac.data import Dataset
    from cornac.models import BPR

    triples = zip(train.users.tolist(), train.indices.tolist(), np.ones(len(train)).tolist(), strict=True)
    data = Dataset.from_uir(list(triples), seed=0)

    def fit(iterations: int) -> float:
        model = BPR(
            k=DIM,
            learning_rate=RATE,
            lambda_reg=DECAY,
            max_iter=iterations,
            num_threads=1,
            use_bias=False,
            verbose=False,
            seed=0,
        )
        started = time.perf_counter()
        model.fit(data)
        return time.perf_counter() - started

    return _without_set_up(fit)


def _without_set_up(fit: Callable[[int], float]) -> Epoch:
    """The difference of a long and a short fit."""
    return lambda: (fit(30) - fit(10)) / 20


def medians(contenders: dict[str, Epoch], repeats: int) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Medians and all seconds. Each repeat times every contender once, so that a busy machine slows all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, run in contenders.items():
            seconds[name].append(run())
    return {name: float(np.median(values)) for name, values in seconds.items()}, seconds
