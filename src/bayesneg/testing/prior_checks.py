"""What every prior promises, one check each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from bayesneg.interfaces import Prior
from bayesneg.models.mf import MF
from bayesneg.samplers.bns import BNS
from bayesneg.testing.sampler_checks import gives_probabilities_of_negatives
from bayesneg.testing.worlds import World, global_random_state, name_of, parts_of, require, run_fit

HOOKS: Final = ("without_held_out", "end_epoch", "state_dict", "load_state_dict")


def gives_probabilities(prior: Prior, worlds: list[World]) -> None:
    name = name_of(prior)
    for world in worlds:
        found = everywhere(prior.fit(world.train), world)
        shape = world.train.n_users, world.train.n_items
        require(
            np.shape(found) == shape,
            f"{name}.probability returned shape {np.shape(found)} for users and items of shape {shape}; return "
            "one probability per pair",
        )
        inside = (np.asarray(found) >= 0.0) & (np.asarray(found) <= 1.0)
        require(
            bool(inside.all()),
            f"{name}.probability returned {np.asarray(found)[~inside][:1]}; probabilities are between 0 and 1",
        )


def broadcasts_users_and_items(prior: Prior, worlds: list[World]) -> None:
    name, world, users, items = name_of(prior), worlds[0], np.array([[2], [0], [2]]), np.array([[1, 2], [3, 0], [3, 3]])
    fitted = prior.fit(world.train)
    found = fitted.probability(users, items)
    require(
        np.shape(found) == items.shape and np.array_equal(found, np.asarray(everywhere(fitted, world))[users, items]),
        f"{name}.probability must broadcast users (B, 1) against items (B, m) and give the same number for a "
        "pair in any shape; index with users and items together, as table[users, items] does",
    )


def is_fitted_deterministically(prior: Prior, worlds: list[World]) -> None:
    name, world = name_of(prior), worlds[0]
    before = world.train.indices.copy()
    with global_random_state(name):
        one, fitted = everywhere(prior.fit(world.train), world), prior.fit(world.train)
    backwards = np.arange(world.train.n_users)[::-1, None]
    two = np.asarray(fitted.probability(backwards, np.arange(world.train.n_items)[None]))
    require(
        np.array_equal(one, np.broadcast_to(two, np.shape(one))[::-1]),
        f"{name} gave different probabilities for the same training data; seed its randomness and let no call "
        "change the next",
    )
    require(np.array_equal(before, world.train.indices), f"{name}.fit changed the training data; copy it")
    require(
        np.array_equal(one, everywhere(prior.fit(world.train).fit(world.train), world)),
        f"{name}: fitting a fitted prior to the same data changed it; return the same prior from fit",
    )


def declares_that_it_follows_training(prior: Prior, worlds: list[World]) -> None:
    world, name = worlds[0], name_of(prior)
    fitted = prior.fit(world.train)
    hooks = [hook for hook in HOOKS if getattr(type(fitted), hook) is not getattr(Prior, hook)]
    require(
        fitted.follows_training or not hooks,
        f"{name} overrides {', '.join(hooks)}, but follows_training is False; declare follows_training = True",
    )
    if not fitted.follows_training:
        return
    fitted.end_epoch(world.scorer)
    resumed = prior.fit(world.train)
    resumed.load_state_dict({key: value.copy() for key, value in fitted.state_dict().items()})
    require(
        np.array_equal(everywhere(fitted, world), everywhere(resumed, world)),
        f"{name} gives other probabilities after a checkpoint; return all state from state_dict and restore it in "
        "load_state_dict",
    )


def works_in_bns(prior: Prior, worlds: list[World]) -> None:
    sampler = BNS(prior=prior, likelihood="uninformative" if prior.uses_scores else "paper")
    gives_probabilities_of_negatives(sampler, worlds)
    run_fit(MF(dim=4), parts_of(worlds[-1].train), sampler, f"BNS with {name_of(prior)}", epochs=2)


def everywhere(prior: Prior, world: World) -> np.ndarray:
    """The probabilities (n_users, n_items) of all pairs."""
    users, items = np.indices((world.train.n_users, world.train.n_items))
    return prior.probability(users, items)


PRIOR_CHECKS: Final[tuple[Callable[[Prior, list[World]], None], ...]] = (
    gives_probabilities,
    broadcasts_users_and_items,
    is_fitted_deterministically,
    declares_that_it_follows_training,
    works_in_bns,
)
