"""What is searched unless something else is asked for: the winners of the study of negatives, and BPR beside them.

docs/explanation/study.md, as far as it is run: a softmax with a negative weight, over a uniform pool that the batch
shares or over in-batch negatives, is the best on validation data on all four datasets, on some with posterior weights
and on some without. The temperature matters most, and is lower with weights. Models, pool, batch size and ranges follow
the study.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from bayesneg.config.build import typed
from bayesneg.config.loss_specs import LossSpec
from bayesneg.config.registry import MODELS, name_of
from bayesneg.config.settings import Settings, assignments, check_known, settings_of
from bayesneg.config.specs import SamplerSpec
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Model
from bayesneg.models.mf import MF
from bayesneg.models.torch.lightgcn import TorchMF
from bayesneg.models.torch.settings import TorchSettings, require_torch
from bayesneg.samplers.bns import BNS
from bayesneg.samplers.in_batch import InBatch
from bayesneg.samplers.priors.learned import Learned
from bayesneg.samplers.static import RNS
from bayesneg.tuning.space import OF_LOSS, SPACE, Between, Combination, Range, Searched

POOL: Final = 2048  # negatives that a batch shares,
SHARE: Final = 0.6  # and at most this share of the items
LARGE: Final = 250_000  # training interactions from which batches are larger
BATCHES: Final = (512, 2048)
EQUAL: Final = Between(0.06, 0.4)  # the temperature without weights
POSTERIOR: Final = Between(0.05, 0.3)  # and with them
NEGATIVE_WEIGHT: Final = Between(1.0, 1.3)
FIRST_NEGATIVE_WEIGHT: Final = 1.1
BPR, SOFTMAX = LossSpec("bpr", {}), LossSpec("softmax", {})


@dataclass(frozen=True)
class Portfolio:
    """The losses, samplers and models that are searched by default.

    Args:
        settings: Settings as ``key=value``, for every model and sampler that has them.
        device: Device of the torch models, ``"auto"``, ``"cpu"`` or ``"cuda"``.
    """

    settings: tuple[str, ...] = ()
    device: str | None = None

    def __post_init__(self) -> None:
        given = self._given()
        taken = {key for each in _winners(POOL, LARGE) for part in _sorted(each.given, given) for key in part}
        for key in given.keys() - taken:
            valid = {key for each in _winners(POOL, LARGE) for key in _settings_of(each.given.model)}
            check_known(key, valid, "setting of what is searched by default")
        for each in _winners(POOL, LARGE):
            _with_settings(each, given)  # before any data is read

    def searched(self, train: Interactions) -> tuple[list[Searched], list[str]]:
        """What is searched, plain RNS with BPR first.

        Args:
            train: Training data, whose size decides on the pool and the batches.

        Returns:
            The combinations with their ranges, and sentences on what was left out.
        """
        every = [_with_settings(each, self._given()) for each in _winners(train.n_items, len(train))]
        try:
            require_torch("the softmax over a shared pool or in-batch negatives")
        except InputError as error:
            needing = [each for each in every if isinstance(each.given.model, TorchSettings)]
            left_out = "; ".join(each.given.label for each in needing)
            return [each for each in every if each not in needing], [f"Left out of the search: {left_out}: {error}."]
        from bayesneg.models.torch.device import pick_device

        for each in every:
            if isinstance(each.given.model, TorchSettings):
                pick_device(each.given.model.device)  # a device that is not there is no finding of a trial
        return every, []

    def _given(self) -> dict[str, Any]:
        given = assignments(self.settings, "--set")
        if self.device is None:
            return given
        if "device" in given:
            raise InputError("the device is given twice, by --device and by --set device=…; drop one")
        return {**given, "device": self.device}


def _winners(n_items: int, n_train: int) -> list[Searched]:
    """The combinations with their ranges, for data of a size."""
    pool = max(2, min(POOL, math.ceil(SHARE * n_items)))
    one = MF.recommended()
    many = TorchMF(
        dim=64, learning_rate=0.01, regularization=0.0, batch_size=BATCHES[n_train >= LARGE], similarity="cosine"
    )
    weighed: dict[str, Any] = {"weighting": "posterior", "prior": Learned(), "likelihood": "mixture"}
    uniform = RNS(negatives=pool, shared=True)
    judged = BNS(candidates=pool, shared=True, cdf="pool", **weighed)
    of_batch = InBatch(**weighed)
    return [
        _searched(one, SamplerSpec("rns", {}), BPR),
        _searched(one, SamplerSpec("BNS (recommended)", {}, BNS.recommended()), BPR, {"weight": SPACE["weight"]}),
        _searched(many, SamplerSpec("RNS (shared pool)", {}, uniform), SOFTMAX, *_softmax(EQUAL, 0.15)),
        _searched(many, SamplerSpec("BNS (shared pool, posterior)", {}, judged), SOFTMAX, *_softmax(POSTERIOR, 0.11)),
        _searched(many, SamplerSpec("InBatch", {}, InBatch()), SOFTMAX, *_softmax(EQUAL, 0.18)),
        _searched(many, SamplerSpec("InBatch (posterior)", {}, of_batch), SOFTMAX, *_softmax(POSTERIOR, 0.13)),
    ]


def _searched(
    model: Model,
    sampler: SamplerSpec,
    loss: LossSpec,
    ranges: Mapping[str, Any] = {},
    first: Mapping[str, Any] = {},
) -> Searched:
    return Searched(Combination(model, sampler, loss, names_loss=True, names_model=True), ranges, first)


def _softmax(temperature: Between, first: float) -> tuple[dict[str, Range], dict[str, float]]:
    """The ranges of the softmax, and its first trial."""
    keys = f"{OF_LOSS}temperature", f"{OF_LOSS}negative_weight"
    return (
        dict(zip(keys, (temperature, NEGATIVE_WEIGHT), strict=True)),
        dict(zip(keys, (first, FIRST_NEGATIVE_WEIGHT), strict=True)),
    )


def _with_settings(searched: Searched, given: Settings) -> Searched:
    """The combination with the settings that its model and its sampler have."""
    combination = searched.given
    of_model, of_sampler = _sorted(combination, given)
    model, sampler = combination.model, combination.sampler.with_settings(of_sampler)
    named = f"model {name_of(type(model), MODELS)}"
    built: Any = replace(model, **typed(type(model), of_model, named))  # type: ignore[type-var]
    sampler.checked()
    return searched._replace(given=combination._replace(model=built, sampler=sampler))


def _sorted(combination: Combination, given: Settings) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings of the model, and of the sampler."""
    own = set(_settings_of(combination.model))
    rest = {key: value for key, value in given.items() if key not in own}
    known = combination.sampler.known(rest)
    of_sampler = {key: value for key, value in rest.items() if key in known}
    return {key: value for key, value in given.items() if key in own}, of_sampler


def _settings_of(model: Model) -> Iterable[str]:
    return [key for key, setting in settings_of(type(model)).items() if setting.is_text]
