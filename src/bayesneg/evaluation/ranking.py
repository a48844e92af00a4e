"""Evaluation over the full catalogue: every item that a user has not seen is ranked, none is sampled.

A chunk of scores is ranked while it is in the cache. Its top-k items and the counts behind the AUC are gathered over a
batch of many chunks, and the metrics of a batch are computed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from bayesneg.checks import whole
from bayesneg.data import lookup
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.evaluation._auc import count_ordered_pairs
from bayesneg.evaluation._topk import top_k, warn_of_nan
from bayesneg.evaluation.metrics import auc, average_precision, hit, mrr, ndcg, popularity, precision, recall
from bayesneg.evaluation.results import EvaluationReport
from bayesneg.evaluation.vectors import CatalogueScorer, as_scorer
from bayesneg.interfaces import RanksInParts, RanksOnDevice
from bayesneg.seeding import stream

if TYPE_CHECKING:
    from bayesneg.data.interactions import Interactions


class TopLists(NamedTuple):
    """The top-k items of a batch of users, in column-major order, as metrics sum over ranks."""

    items: np.ndarray  # (B, k), −1 after the last item
    hits: np.ndarray  # (B, k) bool
    n_tests: np.ndarray  # (B,)
    popularity: np.ndarray  # (n_items,) training interactions

    def cut(self, k: int) -> TopLists:
        return self._replace(items=self.items[:, :k], hits=self.hits[:, :k])


LISTED: Final[dict[str, Callable[[TopLists], np.ndarray]]] = {
    "precision": lambda top: precision(top.hits),
    "recall": lambda top: recall(top.hits, top.n_tests),
    "ndcg": lambda top: ndcg(top.hits, top.n_tests),
    "hit": lambda top: hit(top.hits),
    "mrr": lambda top: mrr(top.hits),
    "map": lambda top: average_precision(top.hits, top.n_tests),
    "popularity": lambda top: popularity(top.items, top.popularity),
}
METRICS: Final = (*LISTED, "coverage", "auc")
CACHED_BYTES: Final = 4 * 2**20  # a chunk of scores of this size is still in the cache when it is ranked
LEAST_USERS: Final = 64  # the matrix product of fewer waits for the items to be read from memory
MOST_BYTES: Final = 64 * 2**20  # but no chunk of scores is larger, however many items there are
BATCH_SIZE: Final = 2**18  # ranked items whose metrics are computed at once
MOST_SCORES: Final = 100_000_000_000  # of an evaluation of all users; minutes on two cores


def evaluate(
    scorer: CatalogueScorer | Sequence[Any],
    split: Split,
    *,
    k: int | Iterable[int] = (5, 10, 20),
    part: str = "test",
    metrics: str | Iterable[str] | None = None,
    sample: int | None = None,
    chunk: int | None = None,
) -> EvaluationReport:
    """Rank the full catalogue for every user with an item in ``part``, and average over these users.

    Training items are excluded from a user's ranking and, at test time, validation items too. Items are ranked by
    score, then by item number; NaN ranks last, with a warning. ``coverage`` is the share of the catalogue recommended
    to at least one user; every other metric is one value per user, with its formula in
    :mod:`bayesneg.evaluation.metrics`.

    Args:
        scorer: A trained model, anything else with ``n_users``, ``n_items`` and ``score_all``, or a pair of arrays
            ``(U, V)``: vectors of users (n_users, d) and of items (n_items, d), scored by inner product.
        split: The split that the model was trained on.
        k: Length of the ranking, or several.
        part: ``"test"`` or ``"validation"``.
        metrics: Metrics to compute, of ``precision``, ``recall``, ``ndcg``, ``hit``, ``mrr``, ``map``, ``popularity``,
            ``coverage`` and ``auc``; all by default.
        sample: Number of users to evaluate, drawn at random and always the same; by default all, or as many as
            10¹¹ scores allow.
        chunk: Number of users scored at a time, which does not change the result; by default as many as suit the
            cache, in at most 64 MiB.

    Returns:
        The mean of each metric and its values per user.

    Example:
        >>> import bayesneg as bn
        >>> split = bn.split(bn.synthetic(40, 60, seed=0), seed=0)
        >>> run = bn.fit(bn.baselines.MostPopular(), split, progress=False)
        >>> sorted(evaluate(run.scorer, split, k=5, metrics=("ndcg", "recall")).mean)
        ['ndcg@5', 'recall@5']
    """
    scorer = as_scorer(scorer)
    labels, seen = _parts(split, part)
    wanted = _validate_metrics(metrics)
    cutoffs = () if wanted == ("auc",) else _validate_cutoffs(k, labels.n_items)
    _check_sizes(scorer, labels)
    users = evaluated_users(labels, sample)
    if len(users) == 0:
        raise InputError(f"the {part} part is empty, as after train --final; there is nothing to evaluate on")
    listed = [metric for metric in wanted if metric in LISTED]
    in_parts = scorer if isinstance(scorer, RanksInParts) else None
    own = users if in_parts is None else users[in_parts.own_part(users)]
    values = {key: np.empty(len(own)) for key in _keys(wanted, cutoffs) if not key.startswith("coverage")}
    reached = np.zeros((len(cutoffs), labels.n_items + 1), dtype=bool)  # beyond the shorter list; the last is for −1
    batches = list(_slices(len(own), max(1, BATCH_SIZE // max(cutoffs, default=1))))
    if in_parts is not None:  # all processes take part in each
        batches += [slice(0, 0)] * (in_parts.rounds(len(batches)) - len(batches))
    for batch in batches:
        found = _rank(scorer, own[batch], labels, seen, max(cutoffs, default=0), "auc" in wanted, chunk)
        n_tests = labels.counts[own[batch]]
        if "auc" in wanted:
            values["auc"][batch] = auc(found.ordered, n_tests, found.n_negatives)
        hits = _hits(labels, own[batch], found.items)
        top = TopLists(found.items, hits, n_tests, split.train.popularity)
        for place, n in enumerate(cutoffs):
            cut = top.cut(n)
            reached[place, cut.items[:, cutoffs[place - 1] if place else 0 :]] = True
            for metric in listed:
                values[f"{metric}@{n}"][batch] = LISTED[metric](cut)
    if in_parts is not None:
        values, reached = in_parts.joined(values, reached)
    covered = np.logical_or.accumulate(reached, axis=0)[:, :-1].mean(axis=1)
    coverage = {f"coverage@{n}": float(share) for n, share in zip(cutoffs, covered, strict=True)}
    return EvaluationReport(
        part=part,
        mean={key: _mean(values[key]) if key in values else coverage[key] for key in _keys(wanted, cutoffs)},
        values=values,
        user_ids=labels.user_ids[users],
        n_users_without_training=int((split.train.counts[users] == 0).sum()),
        n_users_not_evaluated=int((labels.counts > 0).sum()) - len(users),
    )


def evaluated_users(labels: Interactions, sample: int | None) -> np.ndarray:
    """The users with an item in ``labels``; of more than ``sample`` some, drawn at random and always the same.

    Args:
        labels: The part to evaluate on.
        sample: The number of users; all unless given, or as many as ``MOST_SCORES`` allow.
    """
    users = np.flatnonzero(labels.counts)
    if sample is None:
        sample = max(1, MOST_SCORES // max(1, labels.n_items))
        if len(users) <= sample:
            return users
    whole("sample", sample)
    return np.sort(stream(0, "evaluated users").permutation(users)[:sample])


def users_at_a_time(n_items: int) -> int:
    """The default number of users scored at a time: see the three constants above."""
    user_bytes = 4 * n_items
    return max(1, CACHED_BYTES // user_bytes, min(LEAST_USERS, MOST_BYTES // user_bytes))


def _score_blocks(scorer: CatalogueScorer, users: np.ndarray, chunk: int | None) -> Iterator[tuple[slice, np.ndarray]]:
    """Slices of ``users`` with their scores (B, n_items), a bounded number at a time."""
    if chunk is not None and chunk < 1:
        raise InputError(f"chunk must be at least 1, got {chunk}")
    for rows in _slices(len(users), chunk or users_at_a_time(scorer.n_items)):
        scores = np.ascontiguousarray(scorer.score_all(users[rows]), dtype=np.float32)
        warn_of_nan(scores)
        yield rows, scores
        del scores  # as the caller does


def _slices(length: int, size: int) -> Iterator[slice]:
    return (slice(start, min(start + size, length)) for start in range(0, length, size))


class Ranked(NamedTuple):
    """What is kept of the scores of a batch of users."""

    items: np.ndarray  # (B, k) int32, column-major
    ordered: np.ndarray  # (B,) pairs of a test item and a negative in the right order
    n_negatives: np.ndarray  # (B,)


def _rank(
    scorer: CatalogueScorer,
    users: np.ndarray,
    labels: Interactions,
    seen: Interactions,
    k: int,
    with_auc: bool,
    chunk: int | None,
) -> Ranked:
    """The top-k items of each user and, only where the AUC is asked for, the counts behind it."""
    items = np.empty((len(users), k), dtype=np.int32, order="F")
    ordered, n_negatives = np.zeros(len(users)), np.zeros(len(users), dtype=np.int64)
    if isinstance(scorer, RanksInParts):
        items[:], ordered, n_negatives = scorer.ranked(users, labels, seen, k, with_auc=with_auc)
        return Ranked(items, ordered, n_negatives)
    if not with_auc and isinstance(scorer, RanksOnDevice):
        items[:] = scorer.top_items(users, seen, k)
        return Ranked(items, ordered, n_negatives)
    for rows, scores in _score_blocks(scorer, users, chunk):
        masked = users[rows], seen.indptr, seen.indices
        if k > 0:
            items[rows] = top_k(scores, *masked, k)
        if with_auc:
            ordered[rows], n_negatives[rows] = count_ordered_pairs(scores, *masked, labels.indptr, labels.indices)
        del scores  # before the next block is computed, so that one block is held and not two
    return Ranked(items, ordered, n_negatives)


def _hits(labels: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """(B, k): True where an item is a test item of its user."""
    found = lookup.contains(labels.indptr, labels.indices, np.tile(users, items.shape[1]), items.ravel(order="F"))
    return found.reshape(items.shape, order="F")


def _keys(wanted: tuple[str, ...], cutoffs: tuple[int, ...]) -> list[str]:
    return [
        key for metric in wanted for key in ((metric,) if metric == "auc" else tuple(f"{metric}@{n}" for n in cutoffs))
    ]


def _mean(values: np.ndarray) -> float:
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def _parts(split: Split, part: str) -> tuple[Interactions, Interactions]:
    """The part to evaluate on, and the items to exclude."""
    if not isinstance(split, Split):
        raise InputError(f"split must be a split, got {type(split).__name__}; bn.split(data) makes one")
    if part == "test":
        return split.test, split.seen
    if part != "validation":
        raise InputError(f"part must be 'test' or 'validation', got {part!r}")
    if split.validation is None:
        raise InputError("part is 'validation' but this split has none; ask for one when splitting")
    return split.validation, split.train


def _validate_cutoffs(k: int | Iterable[int], n_items: int) -> tuple[int, ...]:
    cutoffs = (k,) if isinstance(k, (int, np.integer)) or not isinstance(k, Iterable) else tuple(k)
    if not cutoffs:
        raise InputError("k must name at least one list length, got none")
    for n in cutoffs:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            raise InputError(f"k must be a whole number or several, got {n!r}")
        if n < 1:
            raise InputError(f"k must be at least 1, got {n}")
        if n > n_items:
            raise InputError(f"k must be at most the number of items {n_items}, got {n}")
    return tuple(sorted({int(n) for n in cutoffs}))


def _validate_metrics(metrics: str | Iterable[str] | None) -> tuple[str, ...]:
    if metrics is None:
        return METRICS
    asked = {metrics} if isinstance(metrics, str) else set(metrics)
    unknown = sorted(asked.difference(METRICS))
    if unknown or not asked:
        got = repr(unknown[0]) if unknown else "none"
        raise InputError(f"metrics must be of {', '.join(METRICS)} (list lengths go in k), got {got}")
    return tuple(metric for metric in METRICS if metric in asked)


def _check_sizes(scorer: CatalogueScorer, data: Interactions) -> None:
    if (scorer.n_users, scorer.n_items) != (data.n_users, data.n_items):
        raise InputError(
            f"the model scores {scorer.n_users} users and {scorer.n_items} items, "
            f"the data has {data.n_users} and {data.n_items}; evaluate on the data it was trained on"
        )
