"""From the settings that concern the prior to the prior: one kind or several, with other odds, with what was shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bayesneg.config.custom import is_own, own_prior
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, InputError
from bayesneg.interfaces import Prior
from bayesneg.samplers.priors.basic import Flat, Group, Oracle, Popularity, as_prior
from bayesneg.samplers.priors.combined import Combined, Scaled
from bayesneg.samplers.priors.exposure import Exposure, matched, passed_over
from bayesneg.samplers.priors.learned import Learned
from bayesneg.samplers.priors.rates import Rate, SmoothedGroup
from bayesneg.samplers.priors.self_estimated import SelfEstimated

Build = Callable[[Mapping[str, Any], Split], Prior]
OWN: Final = {  # settings that only some kinds have
    "column": ("group", "smoothed"),
    "hidden": ("rate", "smoothed", "learned", "self"),
    "item_model": ("learned",),
    "l2": ("learned",),
}
OF_SHOWN: Final = ("chosen_column", "seen")  # settings that go with rejected
WRAPPING: Final = ("strength", "rejected", *OF_SHOWN)  # settings that go with every kind

ABOVE_0: Final = 5e-324  # the least rating above 0


def with_prior(settings: Mapping[str, Any], split: Split) -> dict[str, Any]:
    """The settings of a sampler with its prior as an object, where any of them concerns it."""
    about = {key: settings[key] for key in (*OWN, *WRAPPING, "prior") if key in settings}
    rest = {key: value for key, value in settings.items() if key not in about}
    return {**rest, "prior": built_prior(about, split)} if about else rest


def built_prior(settings: Mapping[str, Any], split: Split) -> Prior:
    """``{"prior": "learned+rate", "strength": 2}`` → the two together, with twice the odds."""
    kinds = str(settings.get("prior", "popularity")).split("+")
    for key, having in OWN.items():
        if key in settings and not set(kinds) & set(having):
            raise InputError(f"{key} is for the prior {' or '.join(having)}; set prior={having[0]} with it")
    if "self" in kinds and (len(kinds) > 1 or set(WRAPPING) & set(settings)):
        raise InputError("prior=self follows the model as it trains and stands alone; leave out what goes with it")
    if (alone := [key for key in OF_SHOWN if key in settings]) and "rejected" not in settings:
        raise InputError(f"{alone[0]} goes with rejected, the file of pairs that were shown and not chosen")
    parts = [as_prior(own_prior(kind)) if is_own(kind) else PRIORS[kind](settings, split) for kind in kinds]
    prior = parts[0] if len(parts) == 1 else Combined(parts)
    if "rejected" in settings:
        prior = _with_rejected(prior, settings, split)
    return Scaled(prior, settings["strength"]) if "strength" in settings else prior


def _with_rejected(prior: Prior, settings: Mapping[str, Any], split: Split) -> Prior:
    kept_back = split.held_out
    shown = _passed_over(settings, len(kept_back) / (len(kept_back) + len(split.train)))
    if n_chosen := int(matched(shown, split.train).contains(kept_back.users, kept_back.indices).sum()):
        raise InputError(
            f"rejected={settings['rejected']} holds {n_chosen:,} pairs of the test or validation part: they were "
            "chosen, and must not be seen; leave them out of the file, or name the column that tells them with "
            "chosen_column"
        )
    own = {"seen": settings["seen"]} if "seen" in settings else {}
    return Exposure(shown, base=prior, **own)


def _passed_over(settings: Mapping[str, Any], held_out: float) -> Interactions:
    """What was shown and not chosen: all of the file, or what a column says, and of that as much as of the chosen."""
    from bayesneg.data.load import load  # reads tables, which a bare machine cannot

    shown = load(settings["rejected"])
    if "chosen_column" not in settings:
        return shown
    try:
        chosen = load(settings["rejected"], rating_column=settings["chosen_column"], min_rating=ABOVE_0)
    except BayesnegError as error:
        raise InputError(f"chosen_column={settings['chosen_column']}: {error}") from error
    return passed_over(shown, chosen, held_out=held_out)


def _learned(settings: Mapping[str, Any], split: Split) -> Prior:
    names = {"item_model": "item_model", "l2": "l2", "hidden": "hidden"}
    return Learned(**{name: settings[key] for key, name in names.items() if key in settings})


def _rated(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {"hidden": settings["hidden"]} if "hidden" in settings else {}


def _column(settings: Mapping[str, Any], split: Split) -> str:
    columns = list(split.train.user_columns)
    if "column" in settings and settings["column"] is not None:
        return str(settings["column"])
    if not columns:
        raise InputError("the group prior needs a user column (occupation, age, …), and this data has none")
    return "occupation" if "occupation" in columns else columns[0]


PRIORS: Final[dict[str, Build]] = {
    "popularity": lambda settings, split: Popularity(),
    "flat": lambda settings, split: Flat(),
    "group": lambda settings, split: Group(_column(settings, split)),
    "oracle": lambda settings, split: Oracle(split.held_out),
    "rate": lambda settings, split: Rate(**_rated(settings)),
    "smoothed": lambda settings, split: SmoothedGroup(_column(settings, split), **_rated(settings)),
    "learned": _learned,
    "self": lambda settings, split: SelfEstimated(**_rated(settings)),
}
