"""Matrix factorization with several weighted negatives and any loss: blocks of steps by compiled code.

A built-in loss is evaluated by compiled code, example after example. A custom loss is called in Python for
``sampling_batch`` examples at once: their negatives are selected and scored, the loss gives its derivatives by these
scores, and compiled code takes the steps, example after example, along the embeddings as they are by then.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, Loss, Negatives, NegativeSampler, RuleSampler, Sampled
from bayesneg.interfaces.loss import check_has_minimum
from bayesneg.kernels.reference.choices.base import Draws
from bayesneg.kernels.reference.disentangled import FactorAware
from bayesneg.kernels.reference.losses import Scores
from bayesneg.kernels.reference.selections import TakeAll, select_batch
from bayesneg.models.validate import evaluate_custom, validate_weighted

if TYPE_CHECKING:
    from bayesneg.kernels.numba.scoring import Factors, TileLayout
    from bayesneg.kernels.numba.sgd_several import Outcome, Raw, SeveralConfig

NO_LOG_Q = np.empty(0)


class SeveralSteps(NamedTuple):
    """What the blocks of an epoch share.

    Args:
        loss: The loss.
        config: How a step is taken.
        factors: The embeddings whose inner products are the scores.
        raw: The embeddings that the steps change.
        layout: The order of items in tiles, for rules that sweep the catalogue.
        train: The training interactions.
        thresholds: The users' thresholds (n_users,), empty for a loss without.
        threads: Threads that train without locks.
        at_once: Examples for which a custom loss is called at once.
    """

    loss: Loss
    config: SeveralConfig
    factors: Factors
    raw: Raw
    layout: TileLayout
    train: Interactions
    thresholds: np.ndarray
    threads: int
    at_once: int

    def run(self, sampler: NegativeSampler, batches: Iterator[Batch]) -> Iterator[Sampled]:
        """Train on each batch; yields its negatives."""
        from bayesneg.kernels.numba import scoring
        from bayesneg.kernels.numba.selections import compiled_selection

        with ThreadPoolExecutor(self.threads) as pool:
            for batch in batches:
                work = self._drawn_by(sampler, batch)
                size = compiled_selection(work.rule, work.draws)
                if size.sweeps and self.factors.tiled.values.size == 0:
                    tiled = scoring.tile_items(self.factors.items, self.layout)
                    self = self._replace(factors=self.factors._replace(tiled=tiled))
                outcome = _nothing_yet(len(batch.users), size.negatives)
                if self.loss.form() is None:
                    for start in range(0, len(batch.users), self.at_once):
                        self._step_by_custom_loss(work, outcome, slice(start, start + self.at_once))
                else:
                    list(
                        pool.map(
                            partial(self._step_by_built_in, work, outcome), parts_of(len(batch.users), self.threads)
                        )
                    )
                items, weights, info, gradient = outcome
                yield Sampled(batch.users, items, info, weights, gradient)

    def _drawn_by(self, sampler: NegativeSampler, batch: Batch) -> Work:
        """What a sampler draws for a batch.

        Negatives that depend on no score, of a rule without a compiled execution, or of a custom sampler, are given.
        """
        from bayesneg.kernels.numba.selections import Given

        n = len(batch.users)
        if not isinstance(sampler, RuleSampler):
            given = validate_weighted(sampler.sample(batch), batch)
            if given.is_shared or given.vectors is not None:
                raise InputError(_refusal(sampler, given))
            said = f"{type(sampler).__name__}.sample returned one"
            check_has_minimum(self.loss, given, n, cosine=self.config.cosine, given=said)
            items, weights = np.asarray(given.items, dtype=np.int32), np.asarray(given.weights, dtype=np.float64)
            empty = np.empty((n, 0))
            draws = Draws(np.empty((n, 0), dtype=np.int32), np.ones(n, dtype=np.int32), empty, empty)
            log_q = empty if given.log_q is None else given.log_q
            return Work(Given(items, weights), batch.users, batch.positives, draws, NO_LOG_Q, log_q)
        draws, rule, log_q = sampler.draws(batch), sampler.rule(batch), sampler.log_q(batch)
        if isinstance(rule, TakeAll | FactorAware):
            rule = Given(*select_batch(rule, draws, batch))
        return Work(rule, batch.users, batch.positives, draws, NO_LOG_Q if log_q is None else log_q, np.empty((n, 0)))

    def _step_by_built_in(self, work: Work, outcome: Outcome, part: slice) -> None:
        from bayesneg.kernels.numba import sgd_several
        from bayesneg.kernels.numba.losses import any_loss

        form = self.loss.form()
        assert form is not None
        work = work.part(part)
        sgd_several.train_several(
            any_loss(form), work.rule, work.users, work.positives, work.draws,
            sgd_several.DrawLogs(work.log_q, work.given_log_q), self.thresholds, self.train.indptr,
            self.train.indices, self.factors, self.raw, self.config, sgd_several.Outcome(*(a[part] for a in outcome)),
        )  # fmt: skip

    def _step_by_custom_loss(self, work: Work, outcome: Outcome, part: slice) -> None:
        from bayesneg.kernels.numba import selections, sgd_several

        work, (items, weights, info, gradient) = work.part(part), (array[part] for array in outcome)
        selections.select_block(
            work.rule, work.users, work.positives, work.draws, self.train.indptr, self.train.indices, self.factors,
            items, weights,
        )  # fmt: skip
        block, n_models = (work.users, work.positives, items, weights), self.config.ensemble_size
        positive, negatives = np.empty((n_models, len(items))), np.empty((n_models, *items.shape))
        sgd_several.score_several(*block, self.factors, self.raw, self.config, positive, negatives, info)
        log_q = work.log_q_of(items)
        threshold = self.thresholds[work.users] if len(self.thresholds) else None
        found = [
            evaluate_custom(self.loss, Scores(s, x, weights, log_q, threshold))
            for s, x in zip(positive, negatives, strict=True)
        ]
        by_positive, by_negatives = (np.stack([values[place] for values in found]) for place in (1, 2))
        np.abs(by_negatives).mean(axis=0, out=gradient, dtype=np.float32)
        sgd_several.learn_slopes(*block, by_positive, by_negatives, self.factors, self.raw, self.config)


class Work(NamedTuple):
    """A batch with all that its steps need."""

    rule: Any
    users: np.ndarray  # (B,)
    positives: np.ndarray  # (B,)
    draws: Draws
    log_q: np.ndarray  # (n_items,) by item, or empty
    given_log_q: np.ndarray  # (B, K) by example, or (B, 0)

    def part(self, part: slice) -> Work:
        """Some of the examples."""
        from bayesneg.kernels.numba.selections import Given

        rule = Given(*(array[part] for array in self.rule)) if isinstance(self.rule, Given) else self.rule
        draws = Draws(*(array[part] for array in self.draws))
        return Work(rule, self.users[part], self.positives[part], draws, self.log_q, self.given_log_q[part])

    def log_q_of(self, items: np.ndarray) -> np.ndarray | None:
        """log q (B, K) of the negatives; None where the draw is uniform."""
        if self.given_log_q.shape[1]:
            return self.given_log_q
        return np.where(items >= 0, self.log_q[items], 0.0) if len(self.log_q) else None


def _refusal(sampler: NegativeSampler, given: Negatives) -> str:
    what = "a pool shared by the batch" if given.is_shared else "synthetic vectors"
    return (
        f"{type(sampler).__name__}.sample returned {what}, and MF takes a step for each example by itself; train a "
        "torch model such as bn.TorchMF(), or return items of shape (B, K)"
    )


def check_one_by_one(sampler: NegativeSampler) -> None:
    """Examples that are learned one by one share no pool, and the compiled step has no synthetic negatives."""
    if isinstance(sampler, RuleSampler) and sampler.is_shared:
        raise InputError(
            f"{type(sampler).__name__} shares one pool of negatives among the examples of a mini-batch, and MF takes a "
            "step for each example by itself; train a torch model, bn.TorchMF() (--model torch-mf), or draw negatives "
            "for each example, as bn.RNS(negatives=16) does"
        )
    if isinstance(sampler, RuleSampler) and sampler.makes_vectors:
        raise InputError(
            f"{type(sampler).__name__} makes synthetic vectors as negatives, and MF learns from items; train a torch "
            "model with embeddings, such as bn.TorchMF() or bn.LightGCN()"
        )


def _nothing_yet(n: int, negatives: int) -> Outcome:
    from bayesneg.kernels.numba.sgd_several import Outcome

    shape = (n, negatives)
    return Outcome(np.empty(shape, np.int32), np.empty(shape), np.empty(shape, np.float32), np.empty(shape, np.float32))


def parts_of(n_examples: int, threads: int) -> list[slice]:
    """The examples in equal parts, one for each thread."""
    bounds = np.linspace(0, n_examples, threads + 1).astype(int)
    return [slice(low, high) for low, high in pairwise(bounds)]
