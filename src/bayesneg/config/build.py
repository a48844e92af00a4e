"""From a kind and settings of the right types to the object: needs no reader of text and none of its libraries.

:mod:`~bayesneg.config.names` turns what a person writes into a kind and checked settings; a cell of a sweep keeps
those, so that it can be trained on a machine that has NumPy, numba and torch and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from bayesneg.config.build_priors import with_prior
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import Model, NegativeSampler
from bayesneg.models.baselines import ALS, EASE, ItemKNN, MostPopular
from bayesneg.models.mf import MF
from bayesneg.models.torch.lightgcn import LightGCN, TorchMF
from bayesneg.samplers.aobpr import AOBPR
from bayesneg.samplers.bns import BNS, Posterior
from bayesneg.samplers.dns import DNS
from bayesneg.samplers.refresh import Refresh
from bayesneg.samplers.schedules import LinearDecay, Schedule, WarmStart
from bayesneg.samplers.srns import SRNS
from bayesneg.samplers.static import PNS, RNS

Typed = Mapping[str, Any]  # settings that are already of their types
Build = Callable[[dict[str, Any], Split], NegativeSampler]


def build_sampler(kind: str, settings: Typed, split: Split) -> NegativeSampler:
    """The sampler; the split gives an oracle its labels and a group prior its column."""
    return _SAMPLERS[kind](dict(settings), split)


def schedule(weight: float | str) -> float | Schedule:
    """A number, ``linear`` (the paper's BNS-1) or ``linear/START/RATE/FLOOR``."""
    try:
        return float(weight)
    except ValueError:
        kind, *numbers = str(weight).split("/")
    try:
        if kind == "linear" and len(numbers) in (0, 3):
            return LinearDecay(*(float(number) for number in numbers))
    except ValueError:
        pass
    raise InputError(f"weight must be a number, linear, or linear/START/RATE/FLOOR, got {weight!r}")


def _plain(kind: Callable[..., NegativeSampler]) -> Build:
    return lambda settings, split: kind(**settings)


def _posterior(settings: dict[str, Any], split: Split) -> NegativeSampler:
    return Posterior(**with_prior(settings, split))


def _bns(settings: dict[str, Any], split: Split) -> BNS:
    weight = settings.pop("weight", None)
    refresh = {key: settings.pop(key) for key in ("moved", "pool") if settings.get(key) is not None}
    if refresh and settings.get("cdf") == "exact":
        raise InputError(f"{next(iter(refresh))} is for a refreshed F; set cdf=refreshed with it")
    if refresh:
        settings = {**settings, "refresh": Refresh(**refresh)}
    own = with_prior(settings, split)
    return BNS(**own) if weight is None else BNS(**own, weight=schedule(weight))


def _warm_start(settings: dict[str, Any], split: Split) -> NegativeSampler:
    warmup = settings.pop("warmup", None)
    then = _bns(settings, split)
    return WarmStart(RNS(), then) if warmup is None else WarmStart(RNS(), then, warmup=warmup)


_SAMPLERS: Final[dict[str, Build]] = {
    "rns": _plain(RNS),
    "pns": _plain(PNS),
    "aobpr": _plain(AOBPR),
    "dns": _plain(DNS),
    "srns": _plain(SRNS),
    "bns": _bns,
    "posterior": _posterior,
    "warm-start": _warm_start,
}
MODEL_KINDS: Final[dict[str, Callable[..., Model]]] = {
    "mf": MF,
    "lightgcn": LightGCN,
    "torch-mf": TorchMF,
    "popularity": MostPopular,
    "item-knn": ItemKNN,
    "ease": EASE,
    "als": ALS,
}
