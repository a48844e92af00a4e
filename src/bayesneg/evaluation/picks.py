"""What a sampler picks: the popularity of its negatives, their rank in the user's scores, and its calibration.

There are two sources. Popularity cohorts count every negative of training, by its weight. Hardness and calibration need
the scores at the moment of choice, which training has changed by the end of the epoch; so the sampler is asked again
after each epoch for some random training examples, the *probes*. Probes use a separate random stream, and the sampler's
state is restored, so that training is the same with an audit as without. Of several weighted negatives of a probe, one
is picked in proportion to its weight. Where training gives sums only (shared pools), cohorts are those of the probes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesneg.checks import whole
from bayesneg.errors import InputError
from bayesneg.evaluation.calibration import Reliability
from bayesneg.evaluation.cohorts import COHORTS, cohort_of
from bayesneg.interfaces import (
    NO_NEGATIVE,
    Batch,
    Measured,
    Negatives,
    NegativeSampler,
    RuleSampler,
    Sampled,
    Scorer,
    weighted_pairs,
)
from bayesneg.kernels.numba import draws
from bayesneg.kernels.reference.ranks import counted_below, observed_mask
from bayesneg.seeding import seed_from, stream

if TYPE_CHECKING:
    from bayesneg.data.splits import Split

SCORES_AT_ONCE: Final = 1 << 20
CANDIDATES: Final = 5  # uniform items per probe whose unbias is measured beside that of the picks
DECILES: Final = 10
FEWEST: Final = 32  # probes that share a pool, which may be their positives
NOTHING: Final = np.empty(0, dtype=np.int64)
RELIABILITY: Final = {"picked": "reliability", "candidates": "candidates_reliability"}  # keys of an epoch's line
DRILL_DOWN: Final = "drill_down"  # key of the last epoch's line: the picks of some users, one by one


class PickObserver:
    """An :class:`~bayesneg.interfaces.Observer` for :func:`bayesneg.fit`; one per run."""

    def __init__(self, split: Split, *, seed: int, probes: int = 2000) -> None:
        whole("probes", probes)
        self._split, self._seed, self._probes = split, seed, probes
        self._train = replace(split.train, truth=None)  # a sampler never sees the ground truth
        self._cohorts = cohort_of(split.train.popularity)
        self._picked = np.zeros(len(COHORTS))
        self._listed = True  # otherwise training gave sums, and cohorts are those of the probes

    def see(self, sampled: Sampled | Measured) -> None:
        if isinstance(sampled, Measured):
            self._listed = False
            return
        there = sampled.negatives != NO_NEGATIVE
        weights = None if sampled.weights is None else sampled.weights[there]
        self._picked += np.bincount(self._cohorts[sampled.negatives[there]], weights, minlength=len(COHORTS))

    def end_epoch(self, epoch: int, sampler: NegativeSampler, scorer: Scorer) -> dict[str, Any]:
        found = self._probe(epoch, sampler, scorer)
        picked = self._picked
        if not self._listed:
            items = np.concatenate([NOTHING, *found.items])
            picked = np.bincount(self._cohorts[items], minlength=len(COHORTS)).astype(np.float64)
        shares = dict(zip(COHORTS, (picked / (picked.sum() or 1.0)).tolist(), strict=True))
        self._picked[:] = 0
        return {**shares, **found.line()}

    def _probe(self, epoch: int, sampler: NegativeSampler, scorer: Scorer) -> _Found:
        train, rng = self._train, stream(self._seed, "audit", epoch)
        positions = rng.choice(len(train), min(self._probes, len(train)), replace=False)
        memory = {key: value.copy() for key, value in sampler.state_dict().items()}
        found = _Found()
        step = at_once(sampler, train.n_items)
        for start in range(0, len(positions), step):
            part = positions[start : start + step]
            batch = Batch(train.users[part], train.indices[part], part, epoch, train, scorer, rng)
            self._judge(sampler, batch, found)
            sampler.load_state_dict(memory)
        return found

    def _judge(self, sampler: NegativeSampler, batch: Batch, found: _Found) -> None:
        picks = one_each(sampler.sample(batch), batch)
        has_pick = picks != NO_NEGATIVE
        batch = part_of(batch, has_pick)
        if len(batch.users) == 0:
            return
        train, picks = batch.train, picks[has_pick][:, None]  # (B, 1)
        others = draws.uniform_candidates(batch.users, train.observed, CANDIDATES, seed_from(batch.rng))[0]
        found.items.append(picks[:, 0])
        found.hardness.append(hardness(batch, picks[:, 0]))
        found.n_false += int(self._is_false(batch.users, picks[:, 0]).sum())
        for items, reliability in ((picks, found.picked), (others, found.candidates)):
            believed = beliefs(sampler, batch, np.maximum(items, 0))
            if believed is not None:
                users = np.broadcast_to(batch.users[:, None], items.shape)
                there = items != NO_NEGATIVE
                reliability.add(believed[there], ~self._is_false(users[there], items[there]))

    def _is_false(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return is_false(self._split, users, items)


class _Found:
    """Measures of the probes of one epoch so far."""

    def __init__(self) -> None:
        self.items: list[np.ndarray] = []
        self.hardness: list[np.ndarray] = []
        self.n_false = 0
        self.picked, self.candidates = Reliability(), Reliability()

    def line(self) -> dict[str, Any]:
        if not self.hardness:
            return {}
        hard = np.concatenate(self.hardness)
        deciles = np.bincount(np.minimum((hard * DECILES).astype(int), DECILES - 1), minlength=DECILES)
        line: dict[str, Any] = {
            "hardness": float(hard.mean()),
            "deciles": {"share": (deciles / len(hard)).round(6).tolist()},
            "probe_fn": self.n_false / len(hard),
            **self.picked.summary(),
            **{f"candidates_{key}": value for key, value in self.candidates.summary().items()},
        }
        for name, reliability in (("picked", self.picked), ("candidates", self.candidates)):
            if reliability.summary():
                line[RELIABILITY[name]] = reliability.bins()
        return line


def is_false(split: Split, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """By the ground truth if it is known, else by the held-out part, which has only some of the false negatives."""
    return split.held_out.contains(users, items) if split.truth is None else split.truth.likes(users, items)


def at_once(sampler: NegativeSampler, n_items: int) -> int:
    """How many examples a sampler is asked for at a time, so that their scores fit into memory."""
    is_shared = isinstance(sampler, RuleSampler) and sampler.is_shared
    return max(FEWEST if is_shared else 1, SCORES_AT_ONCE // n_items)


def one_each(answer: np.ndarray | Negatives, batch: Batch) -> np.ndarray:
    """One negative (B,) of each example, in proportion to the weights where a sampler gives several."""
    if not isinstance(answer, Negatives):
        return np.asarray(answer)
    items, weights = weighted_pairs(answer, len(batch.users))
    mass = np.cumsum(weights, axis=1)
    at = (mass <= (batch.rng.random(len(mass)) * mass[:, -1])[:, None]).sum(axis=1).clip(max=items.shape[1] - 1)
    return np.where(mass[:, -1] > 0, np.take_along_axis(items, at[:, None], axis=1)[:, 0], NO_NEGATIVE)


def beliefs(sampler: NegativeSampler, batch: Batch, items: np.ndarray) -> np.ndarray | None:
    """The sampler's unbias of ``items`` (B, m), validated: the sampler may be a custom one."""
    return _probabilities(f"{type(sampler).__name__}.unbias", sampler.unbias(batch, items), items.shape)


def priors(sampler: NegativeSampler, batch: Batch, items: np.ndarray) -> np.ndarray | None:
    """The sampler's prior of ``items`` (B, m), validated."""
    said = sampler.prior_probability(batch, items)
    return _probabilities(f"{type(sampler).__name__}.prior_probability", said, items.shape)


def _probabilities(name: str, said: np.ndarray | None, shape: tuple[int, ...]) -> np.ndarray | None:
    if said is None:
        return None
    found = np.asarray(said)
    if found.shape != shape or found.dtype.kind not in "fiub":
        raise InputError(f"{name} must give numbers of shape {shape}, got {found.dtype} of shape {found.shape}")
    wrong = ~((found >= 0) & (found <= 1))  # NaN is wrong as well
    if wrong.any():
        raise InputError(f"{name} must be probabilities between 0 and 1, got {found[wrong].flat[0]}")
    return found.astype(np.float64)


def hardness(batch: Batch, items: np.ndarray) -> np.ndarray:
    """The share (B,) of the user's other unobserved items that score below each of ``items`` (B,); ties count half.

    A uniform pick has 0.5 on average, the highest-scored item 1. It is 0.5 where there are no other items.
    """
    train = batch.train
    observed = observed_mask(batch.users, train.indptr, train.indices, train.n_items)
    below, at_or_below = counted_below(batch.score_all(), items[:, None], observed)
    others = train.n_items - train.counts[batch.users] - 1
    share = (below + at_or_below - 1)[:, 0] / np.maximum(2 * others, 1)
    return np.where(others > 0, share, 0.5)


def part_of(batch: Batch, mask: np.ndarray) -> Batch:
    """The examples of the batch that the mask (B,) keeps."""
    return replace(batch, users=batch.users[mask], positives=batch.positives[mask], positions=batch.positions[mask])
