"""The drill-down of an audit: for a few users, which negatives a sampler picks, and what it thought of each.

After the last epoch the sampler is asked once more for training examples of these users, as probes do: score, rank,
prior and posterior of a pick then belong to the model it was picked with. The users are the same for every sampler and
seed of a split, so that picks can be compared. What is recorded is bounded by the number of users.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bayesneg.evaluation.picks import (
    DRILL_DOWN,
    PickObserver,
    at_once,
    beliefs,
    hardness,
    is_false,
    one_each,
    part_of,
    priors,
)
from bayesneg.interfaces import NO_NEGATIVE, Batch, Measured, NegativeSampler, Sampled, Scorer
from bayesneg.seeding import stream

if TYPE_CHECKING:
    import polars as pl

    from bayesneg.data.splits import Split
    from bayesneg.runs.record import RunRecord

USERS: Final = 20  # unless given
MOST_PICKS: Final = 20  # of a user
DIGITS: Final = 5  # significant ones of a score, a rank or a probability


class DrillDownObserver:
    """What :class:`~bayesneg.evaluation.picks.PickObserver` measures, and after the last epoch the picks of some users.

    Args:
        split: The split that is trained on.
        seed: Seed of the run.
        probes: Training examples probed after each epoch.
        users: How many users; 0 records no picks.
        epochs: The last epoch.
    """

    def __init__(self, split: Split, *, seed: int, probes: int, users: int, epochs: int) -> None:
        self._split, self._seed, self._users, self._last = split, seed, users, epochs
        self._probes = PickObserver(split, seed=seed, probes=probes)

    def see(self, sampled: Sampled | Measured) -> None:
        self._probes.see(sampled)

    def end_epoch(self, epoch: int, sampler: NegativeSampler, scorer: Scorer) -> dict[str, Any]:
        line = self._probes.end_epoch(epoch, sampler, scorer)
        if epoch < self._last or self._users == 0:
            return line
        return {
            **line,
            DRILL_DOWN: user_picks(self._split, sampler, scorer, epoch=epoch, n_users=self._users, seed=self._seed),
        }


def chosen_users(split: Split, n_users: int) -> np.ndarray:
    """Random users with training and held-out interactions, the same ones for every sampler and seed, ascending."""
    known = np.flatnonzero((split.train.counts > 0) & (split.held_out.counts > 0))
    order = stream(0, "users of the drill-down").permutation(len(known))
    return np.sort(known[order[:n_users]])


def user_picks(
    split: Split, sampler: NegativeSampler, scorer: Scorer, *, epoch: int, n_users: int, seed: int
) -> dict[str, Any]:
    """Users and picks as plain columns, for the record of a run.

    Args:
        split: The split that was trained on; its held-out part, or its ground truth, says which picks are false.
        sampler: The sampler after the epoch; its state is restored.
        scorer: The model after the epoch.
        epoch: The epoch, counted from 1.
        n_users: How many users.
        seed: Seed of the run.

    Returns:
        Columns of the users (``id``, ``n_train``, ``n_held_out``) and of the picks: the place of the user, the
        identifiers of the positive and of the negative picked for it, their scores, the normalized rank of the
        negative (``hardness``), whether it is false, whether it is held out, and its prior and unbias; these two are
        left out for a sampler without them.
    """
    train, rng = replace(split.train, truth=None), stream(seed, "drill-down", epoch)
    users = chosen_users(split, n_users)
    positions = _positions(split, users, rng)
    memory = {key: value.copy() for key, value in sampler.state_dict().items()}
    parts: list[dict[str, np.ndarray]] = []
    step = at_once(sampler, train.n_items)
    for start in range(0, len(positions), step):
        own = positions[start : start + step]
        batch = Batch(train.users[own], train.indices[own], own, epoch, train, scorer, rng)
        parts += _judged(split, sampler, batch)
        sampler.load_state_dict(memory)
    columns = {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}
    return {
        "users": {
            "id": [str(train.user_ids[user]) for user in users],
            "n_train": train.counts[users].tolist(),
            "n_held_out": split.held_out.counts[users].tolist(),
        },
        "picks": _plain(split, users, columns),
    }


def _positions(split: Split, users: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Positions of training pairs of the users, all of a user or a random part of them."""
    found = []
    for user in users:
        start, end = split.train.indptr[user], split.train.indptr[user + 1]
        chosen = rng.permutation(end - start)[:MOST_PICKS]
        found.append(np.sort(start + chosen))
    return np.concatenate([np.empty(0, dtype=np.int64), *found])


def _judged(split: Split, sampler: NegativeSampler, batch: Batch) -> list[dict[str, np.ndarray]]:
    """The picks of a batch with all that is known of them; nothing where no example has a negative."""
    picks = one_each(sampler.sample(batch), batch)
    there = picks != NO_NEGATIVE
    batch, picks = part_of(batch, there), picks[there]
    if len(picks) == 0:
        return []
    columns = picks[:, None]
    found = {
        "user": batch.users,
        "positive": batch.positives,
        "negative": picks,
        "score": batch.score(columns)[:, 0],
        "positive_score": batch.score_positives(),
        "hardness": hardness(batch, picks),
        "false": is_false(split, batch.users, picks),
        "held_out": split.held_out.contains(batch.users, picks),
    }
    for name, said in (("prior", priors(sampler, batch, columns)), ("unbias", beliefs(sampler, batch, columns))):
        if said is not None:
            found[name] = said[:, 0]
    return [found]


def _plain(split: Split, users: np.ndarray, columns: Mapping[str, np.ndarray]) -> dict[str, list[Any]]:
    """Lists of plain values: users by their place, items by their identifiers, numbers rounded."""
    plain: dict[str, list[Any]] = {}
    for name, values in columns.items():
        if name == "user":
            plain[name] = np.searchsorted(users, values).tolist()
        elif name in ("positive", "negative"):
            plain[name] = [str(split.train.item_ids[item]) for item in values]
        elif values.dtype == bool:
            plain[name] = values.tolist()
        else:
            plain[name] = [float(f"{value:.{DIGITS}g}") for value in values.tolist()]
    return plain


def picks_frame(records: Sequence[RunRecord]) -> pl.DataFrame:
    """One row per run and recorded pick, as :attr:`bayesneg.experiments.audit.Audit.picks` describes it."""
    import polars as pl

    numbers = ("score", "positive_score", "hardness", "prior", "unbias")
    types: dict[str, Any] = {
        **dict.fromkeys(("user", "positive", "negative"), pl.String),
        **dict.fromkeys(numbers, pl.Float64),
        **dict.fromkeys(("false", "held_out"), pl.Boolean),
    }
    parts = [
        pl.DataFrame(schema={"dataset": pl.String, "sampler": pl.String, "loss": pl.String, "seed": pl.Int64} | types)
    ]
    for record in records:
        found = record.epochs[-1].get(DRILL_DOWN) if record.epochs else None
        if found is None or not found["picks"]:
            continue
        ids, picks = found["users"]["id"], found["picks"]
        columns = {**picks, "user": [ids[place] for place in picks["user"]]}
        frame = pl.DataFrame({name: columns.get(name, [None] * len(columns["user"])) for name in types}, schema=types)
        names = {"dataset": record.dataset, "sampler": record.label, "loss": record.loss, "seed": record.seed}
        parts.append(
            frame.select(
                *(
                    pl.lit(value, pl.Int64 if name == "seed" else pl.String).alias(name)
                    for name, value in names.items()
                ),
                *types,
            )
        )
    return pl.concat(parts)
