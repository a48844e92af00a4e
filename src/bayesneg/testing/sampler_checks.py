"""What every sampler promises, one check each."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

from bayesneg.errors import InputError
from bayesneg.interfaces import NO_NEGATIVE, Model, Negatives, NegativeSampler, RuleSampler, weighted_pairs
from bayesneg.models.mf import MF
from bayesneg.models.torch.lightgcn import TorchMF
from bayesneg.models.validate import validate_weighted
from bayesneg.seeding import stream
from bayesneg.testing.worlds import World, global_random_state, name_of, parts_of, require, run_fit


def answers_one_item_per_pair(sampler: NegativeSampler, worlds: list[World]) -> None:
    batch, name = worlds[0].batch(), name_of(sampler)
    answer = bound(sampler, worlds[0]).sample(batch)
    require(
        isinstance(answer, np.ndarray | Negatives),
        f"{name}.sample must return a NumPy array, or Negatives, got {type(answer)}",
    )
    require(
        isinstance(answer, Negatives) == sampler.gives_weights,
        f"{name}.sample returned {type(answer).__name__}, and gives_weights is {sampler.gives_weights}; return a NumPy "
        "array of one item per pair, or Negatives and let gives_weights return True",
    )
    if isinstance(answer, Negatives):
        try:
            validate_weighted(answer, batch)
        except InputError as error:
            require(False, f"{name}.sample: {error}")
        negatives = weighted_pairs(answer, len(batch.users))[0]
    else:
        negatives = np.asarray(answer)
        require(
            negatives.shape == batch.users.shape,
            f"{name}.sample returned shape {negatives.shape} for {len(batch.users)} pairs; return one item per pair, "
            f"shape {batch.users.shape}",
        )
        require(
            np.issubdtype(negatives.dtype, np.integer),
            f"{name}.sample returned {negatives.dtype}; return item numbers of an integer type",
        )
    wrong = negatives[((negatives < 0) & (negatives != NO_NEGATIVE)) | (negatives >= batch.train.n_items)]
    require(
        not len(wrong),
        f"{name}.sample returned the item {wrong[:1]}; items go from 0 to {batch.train.n_items - 1}, and NO_NEGATIVE "
        f"({NO_NEGATIVE}) skips a pair",
    )
    require(
        bool((negatives != NO_NEGATIVE).any()),
        f"{name}.sample skipped every pair; return a negative where the user has an unobserved item",
    )


def never_returns_a_training_item(sampler: NegativeSampler, worlds: list[World]) -> None:
    for world in worlds:
        prepared = bound(sampler, world)
        for epoch in (1, 2, 3):
            batch = world.batch(epoch=epoch)
            negatives, weights = weighted_pairs(prepared.sample(batch), len(batch.users))
            users = np.broadcast_to(batch.users[:, None], negatives.shape)
            wrong = world.train.contains(users[weights > 0], negatives[weights > 0])
            require(
                not wrong.any(),
                f"{name_of(sampler)}.sample returned {wrong.sum()} training items in epoch {epoch}; exclude "
                "batch.train.row(user), and return NO_NEGATIVE for a user without an unobserved item",
            )
            prepared.end_epoch(epoch, world.scorer)


def is_deterministic_by_seed(sampler: NegativeSampler, worlds: list[World]) -> None:
    batches = [worlds[0].batch() for _ in range(2)]
    one, two = (weighted_pairs(bound(sampler, worlds[0]).sample(batch), len(batch.users)) for batch in batches)
    require(
        all(map(np.array_equal, one, two)),
        f"{name_of(sampler)} gave other negatives for the same seed; draw from batch.rng and the rng of prepare only",
    )


def leaves_everything_else_untouched(sampler: NegativeSampler, worlds: list[World]) -> None:
    world = worlds[0]
    batch, (users, items) = world.batch(), (array.copy() for array in world.scorer.embeddings())
    before = batch.users.copy(), batch.positives.copy(), world.train.indices.copy()
    with global_random_state(name_of(sampler)):
        prepared = bound(sampler, world)
        prepared.sample(batch)
        prepared.end_epoch(1, world.scorer)
    same = all(map(np.array_equal, before, (batch.users, batch.positives, world.train.indices)))
    require(same, f"{name_of(sampler)} changed the arrays of the batch; copy what you write to")
    same = np.array_equal(users, world.scorer.users) and np.array_equal(items, world.scorer.items)
    require(same, f"{name_of(sampler)} changed the embeddings of the model; copy what you write to")


def shares_no_state_between_fits(sampler: NegativeSampler, worlds: list[World]) -> None:
    world = worlds[0]
    n = len(world.train)
    fresh = weighted_pairs(bound(sampler, world).sample(world.batch(2)), n)
    used = bound(sampler, world)
    used.sample(world.batch(1))
    used.end_epoch(1, world.scorer)
    require(
        all(map(np.array_equal, fresh, weighted_pairs(bound(sampler, world).sample(world.batch(2)), n))),
        f"{name_of(sampler)} remembers a fit in the next one; put state into the object that prepare returns, not into "
        "self",
    )


def restores_its_state(sampler: NegativeSampler, worlds: list[World]) -> None:
    world, name = worlds[0], name_of(sampler)
    begun = bound(sampler, world)
    begun.sample(world.batch(1))
    begun.end_epoch(1, world.scorer)
    state = begun.state_dict()
    wrong = [key for key, value in state.items() if not (isinstance(key, str) and isinstance(value, np.ndarray))]
    require(not wrong, f"{name}.state_dict must map names to NumPy arrays; {wrong[:1]} is something else")
    resumed = bound(sampler, world, seed=9)
    resumed.load_state_dict({key: value.copy() for key, value in state.items()})
    batches = [world.batch(2, epoch=2) for _ in range(2)]
    one, two = (
        weighted_pairs(each.sample(batch), len(batch.users))
        for each, batch in zip((begun, resumed), batches, strict=True)
    )
    require(
        all(map(np.array_equal, one, two)),
        f"{name} samples differently after a checkpoint; return all state from state_dict and restore it in "
        "load_state_dict",
    )


def gives_probabilities_of_negatives(sampler: NegativeSampler, worlds: list[World]) -> None:
    world, name = worlds[-1], name_of(sampler)
    prepared, batch = bound(sampler, world), world.batch()
    unobserved = [np.setdiff1d(np.arange(world.train.n_items), world.train.row(user)) for user in batch.users]
    items = np.array([row[[0, -1]] if len(row) else [0, 0] for row in unobserved])  # (B, 2)
    said = {
        ("unbias", "true"): prepared.unbias(batch, items),
        ("prior_probability", "false"): prepared.prior_probability(batch, items),
    }
    for (method, kind), values in said.items():
        if values is None:
            continue
        shape = np.shape(values)
        require(
            shape == items.shape,
            f"{name}.{method} returned shape {shape}, and items have shape {items.shape}; return one value each",
        )
        require(
            bool(np.all((np.asarray(values) >= 0.0) & (np.asarray(values) <= 1.0))),
            f"{name}.{method} returned values outside [0, 1]; return probabilities of {kind} negatives",
        )


def works_in_fit(sampler: NegativeSampler, worlds: list[World]) -> None:
    parts = parts_of(worlds[-1].train)
    for_torch = isinstance(sampler, RuleSampler) and (sampler.is_shared or sampler.makes_vectors)
    models: list[Model] = [] if for_torch else [MF(dim=4)]  # MF has no batches that share a pool, and learns from items
    if find_spec("torch") is not None:
        models.append(TorchMF(dim=4, device="cpu"))
    for model in models:
        where = f"{name_of(sampler)} in fit with {type(model).__name__}"
        straight = run_fit(model, parts, sampler, where, epochs=2)
        with TemporaryDirectory() as folder:
            out = Path(folder) / "run"
            run_fit(model, parts, sampler, where, epochs=1, out=out)
            resumed = run_fit(model, parts, sampler, where, epochs=2, out=out, resume=True)
        require(
            all(map(np.array_equal, straight.scorer.embeddings(), resumed.scorer.embeddings())),
            f"{where}: a resumed run differs from an uninterrupted one; return all state from state_dict",
        )


def bound(sampler: NegativeSampler, world: World, seed: int = 0) -> NegativeSampler:
    return sampler.prepare(world.train, rng=stream(seed, "memory"))


SAMPLER_CHECKS: Final[tuple[Callable[[NegativeSampler, list[World]], None], ...]] = (
    answers_one_item_per_pair,
    leaves_everything_else_untouched,
    never_returns_a_training_item,
    is_deterministic_by_seed,
    shares_no_state_between_fits,
    restores_its_state,
    gives_probabilities_of_negatives,
    works_in_fit,
)
