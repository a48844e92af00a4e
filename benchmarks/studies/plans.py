"""The settings that the study tries on each dataset with each model."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from benchmarks.studies.choosing import SearchSpace, Setting

L2: Final = (100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0)

Settings = dict[str, Any]
LEARNED: Final[Settings] = {"prior": "learned", "likelihood": "mixture"}
MIDDLE: Final[Settings] = {**LEARNED, "candidates": 10, "weight": 10.0}


def factorized(dims: Iterable[int], penalties: Iterable[float], weights: Iterable[float]) -> list[Settings]:
    """ALS with every combination."""
    return [
        {"dim": dim, "regularization": penalty, "alpha": weight}
        for dim, penalty, weight in product(dims, penalties, weights)
    ]


class Plan(NamedTuple):
    """What is tried on a dataset with a model, and for how long."""

    epochs: int
    samplers: Sequence[Settings]  # with the model as it is
    models: Sequence[Settings]  # with the middle sampler
    both: Sequence[Setting] = ()  # what was better alone, together
    n_first: int = 1  # tenths that every setting is evaluated on
    n_all: int = 3  # tenths that the finalists and EASE are evaluated on
    of_sampler: Mapping[str, Any] = MappingProxyType({})  # what all have
    of_model: Mapping[str, Any] = MappingProxyType({})
    l2: Sequence[float] = L2  # of EASE
    of_ease: Mapping[str, Any] = MappingProxyType({})  # what it has beside
    als: Sequence[Settings] = tuple(factorized((64, 128, 256), (20.0, 50.0, 100.0, 200.0), (5.0, 10.0, 20.0)))
    beside: Mapping[str, Settings] = MappingProxyType({"the paper's BNS": {}})  # samplers of the final runs
    why: str = ""  # a word on what is tried, for the page
    studied: tuple[Setting, int] | None = None  # what curve and sizes train, and for how long; else what is chosen

    def grid(self) -> list[Setting]:
        """Samplers with the model as it is, the middle one with other settings of the model, then both."""
        alone: list[Setting] = [(dict(one), {}) for one in self.samplers]
        return [*alone, *((dict(MIDDLE), dict(one)) for one in self.models), *self.both]

    def completed(self, setting: Setting) -> Setting:
        """With what all have."""
        return {**self.of_sampler, **setting[0]}, {**self.of_model, **setting[1]}

    def solved(self) -> list[Settings]:
        """EASE as it is held against all others."""
        return [{"l2": value, **self.of_ease} for value in self.l2]

    def space(self) -> SearchSpace:
        settings = [self.completed(one) for one in self.grid()]
        return SearchSpace(settings, self.epochs, self.solved(), self.n_first, self.n_all)


def steep(dims: Iterable[int], penalties: Iterable[float], **other: int) -> list[Settings]:
    """MF that learns twice as fast and forgets more."""
    return [
        {"dim": dim, "learning_rate": 0.02, "regularization": penalty, "init_scale": 0.1, **other}
        for dim, penalty in product(dims, penalties)
    ]


def together(candidates: Iterable[int], models: Iterable[Settings]) -> list[Setting]:
    """The middle sampler with other numbers of candidates, each with every model."""
    return [({**MIDDLE, "candidates": m}, model) for m, model in product(candidates, models)]


FEW: Final = [MIDDLE, {**MIDDLE, "candidates": 20}, {**MIDDLE, "likelihood": "paper"}]
ONE_CHANGED: Final[list[Settings]] = [
    {"hidden": 0.25}, {"strength": 0.5}, {"strength": 2.0}, {"l2": 200.0}, {"l2": 800.0},
    {"likelihood": "empirical"}, {"likelihood": "paper"},
]  # fmt: skip
GRAPH: Final[list[Settings]] = [{"dim": 64}, {"regularization": 5e-6}, {"regularization": 2e-5}]
MORE: Final[list[Settings]] = [
    {"candidates": 20}, {"candidates": 20, "weight": 20.0}, {"candidates": 20, "likelihood": "empirical"},
    {"candidates": 50},
]  # fmt: skip
OF_MANY_ITEMS: Final = Plan(
    60,
    FEW[:2],
    [{"ensemble_size": 4}],
    together((20,), [{"ensemble_size": 4}]),
    n_all=1,
    of_sampler={"cdf": "refreshed"},
    of_model={"dim": 64, "learning_rate": 0.05, "regularization": 0.01, "init_scale": 0.1},
    l2=(20.0, 50.0, 100.0, 200.0),
    of_ease={"form": "dense"},
    als=factorized((256, 512), (20.0, 50.0), (10.0, 20.0, 40.0)),
    beside={"the paper's BNS": {}, "random negatives (m = 1)": {"candidates": 1}},
)  # 40,000 items: the prior is of item neighbours, and users have 30 items to learn from
GRAPH_OF_MANY_ITEMS: Final = OF_MANY_ITEMS._replace(
    of_model={"dim": 64, "layers": 3, "regularization": 1e-6, "decay_every": 30, "batch_size": 2048},
)
OF_YELP: Final = (50.0, 100.0, 200.0, 400.0)
REFRESHED: Final = {"cdf": "refreshed"}  # exact F takes four times as long on many pairs
PLANS: Final[Mapping[tuple[str, str], Plan]] = {
    ("ml-100k", "mf"): Plan(
        100,
        [{**LEARNED, "candidates": m, "weight": w} for m, w in product((5, 10, 20), (5.0, 10.0, 20.0))]
        + [{**MIDDLE, **other} for other in ONE_CHANGED],
        [{"dim": 64}, {"dim": 128}, *steep((64, 128), (0.01, 0.02, 0.03))],
        [
            ({**of_sampler, **REFRESHED}, of_model)
            for of_sampler, of_model in together((10,), [{"ensemble_size": 8}, {"dim": 64, "ensemble_size": 8}])
            + together((10, 20, 50), [{"dim": 64, "ensemble_size": 4}])
            + together((10, 20), steep((64,), (0.02,), ensemble_size=4))
            + together((10,), steep((256,), (0.02, 0.03)))
        ],
        n_all=10,
        studied=((MIDDLE, steep((128,), (0.03,))[0]), 65),
    ),
    ("ml-100k", "lightgcn"): Plan(
        45,
        [*FEW, {**MIDDLE, "candidates": 50}, {**MIDDLE, "weight": 20.0}, {**MIDDLE, "likelihood": "empirical"}],
        GRAPH,
        together((10,), [{"ensemble_size": 8}, {"dim": 64, "ensemble_size": 4}])
        + together((10, 20, 50), [{"ensemble_size": 4}])
        + [({**MIDDLE, "weight": 20.0}, {"ensemble_size": 4})],
        n_first=3,
        n_all=10,
    ),
    ("ml-1m", "mf"): Plan(
        50,
        FEW,
        [{"dim": 128}, *steep((64, 128), (0.01, 0.02, 0.03)), *steep((256,), (0.02,))],
        [({**MIDDLE, **more}, steep((128,), (0.02,))[0]) for more in MORE]
        + together((20, 50), steep((256, 512), (0.02,)))
        + together((20,), steep((64, 128, 256), (0.02,), ensemble_size=4))
        + together((50,), steep((128,), (0.02,), ensemble_size=4)),
        of_sampler=REFRESHED,
    ),
    ("ml-1m", "lightgcn"): Plan(
        45,
        FEW,
        GRAPH,
        together((10, 20), [{"dim": 64, "ensemble_size": 4}, {"dim": 128}]) + together((20,), [{"dim": 64}]),
        of_model={"batch_size": 1024},
    ),
    ("gowalla", "mf"): OF_MANY_ITEMS,
    ("gowalla", "lightgcn"): GRAPH_OF_MANY_ITEMS._replace(
        both=together(
            (20,),
            [{"ensemble_size": 4}]
            + [{"ensemble_size": 4, "learning_rate": 0.003, "regularization": penalty} for penalty in (1e-6, 1e-5)],
        )
    ),
    ("yelp2018", "mf"): OF_MANY_ITEMS._replace(
        samplers=[], models=[], l2=OF_YELP, why="The search has one setting of BNS: the one chosen on Gowalla."
    ),
    ("yelp2018", "lightgcn"): GRAPH_OF_MANY_ITEMS._replace(l2=OF_YELP),
}


def plan_of(dataset: str, model: str) -> Plan:
    """Of a dataset, of a share of it, or with another test part."""
    whole = re.split("[@#]", dataset)[0]
    if (whole, model) not in PLANS:
        known = "; ".join(" ".join(pair) for pair in PLANS)
        raise SystemExit(f"there is no plan for {whole} with {model}, only for: {known}")
    return PLANS[whole, model]
