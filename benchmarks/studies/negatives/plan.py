"""What the study runs, stage by stage, as docs/explanation/study-plan.md registers it before any run.

``pilot`` finds, for plain softmax on the validation part, what all contenders of a model then share; ``search`` tries
six settings of every contender on the same part; ``final`` trains the best of each on the whole training part.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final, NamedTuple

from benchmarks.studies.negatives.contenders import CONTENDERS, Setting
from benchmarks.studies.splits import FIFTH

DATASETS: Final = ("gowalla", "yelp2018", "ml-1m", "ml-100k")
MODELS: Final = ("mf", "lightgcn")
BASELINE: Final = "baseline"  # in place of a model
BLIND: Final[Mapping[str, str]] = {  # the validation part: a fifth of each user's items, or a tenth of all pairs
    "gowalla": FIFTH,
    "yelp2018": FIFTH,
    "ml-1m": "blind",
    "ml-100k": "blind",
}
TEST: Final = "last"
EVERY: Final = 10  # epochs between two evaluations
SEARCHED: Final[Mapping[str, int]] = {"mf": 6, "lightgcn": 3, BASELINE: 6}  # settings of every contender
WIDENED: Final = 2  # times that a contender's settings are widened, where the best lies at their edge
SEEDS: Final = 3  # of the final runs, of the oracles with LightGCN one
EQUAL: Final[Mapping[str, str]] = {  # weights → the contender without them, at whose setting both are compared
    "posterior": "bsl",
    "oracle": "bsl",
    "in-batch posterior": "in-batch",
    "in-batch oracle": "in-batch",
}


SEARCHING: Final = tuple(name for name, one in CONTENDERS.items() if not one.is_oracle)
BASES: Final = tuple(dict.fromkeys(EQUAL.values()))  # searched with every model
MORE: Final = 3  # contenders that are searched with LightGCN as well: the best with MF
PRIORS: Final = ("popularity", "neighbours", "rp3beta", "gfcf", "als")  # tried beside EASE


class Scale(NamedTuple):
    """What belongs to a dataset."""

    pool: int
    epochs: int
    temperatures: tuple[float, float, float]  # of the softmax family
    batch_size: int = 2048
    negative_weights: tuple[float, float] = (1.1, 1.22)  # LightGCN is searched with the first, what MF chose


SCALES: Final[Mapping[tuple[str, str], Scale]] = {
    ("gowalla", "mf"): Scale(2048, 60, (0.07, 0.085, 0.1)),
    ("yelp2018", "mf"): Scale(2048, 60, (0.09, 0.11, 0.13)),
    ("ml-1m", "mf"): Scale(2048, 60, (0.12, 0.16, 0.22)),
    ("ml-100k", "mf"): Scale(1024, 100, (0.15, 0.2, 0.3), 512),
    ("gowalla", "lightgcn"): Scale(2048, 60, (0.09, 0.11, 0.13), 4096, (1.22, 1.1)),
    ("yelp2018", "lightgcn"): Scale(2048, 60, (0.11, 0.13, 0.15), 4096),
    ("ml-1m", "lightgcn"): Scale(2048, 60, (0.12, 0.16, 0.22), 4096),
    ("ml-100k", "lightgcn"): Scale(1024, 100, (0.15, 0.2, 0.3), 512),
}


class Trial(NamedTuple):
    """One training."""

    stage: str
    dataset: str
    model: str
    contender: str
    setting: Setting
    epochs: int
    view: str
    seed: int = 0

    @property
    def key(self) -> str:
        """A short name of all that it is made of."""
        text = json.dumps([*self[1:4], [dict(part) for part in self.setting], *self[5:]], sort_keys=True)
        return f"{self.contender.replace(' ', '-')}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def setting(model: Mapping[str, Any], loss: Mapping[str, Any] = {}, sampler: Mapping[str, Any] = {}) -> Setting:
    return Setting(dict(model), dict(loss), dict(sampler))


# ------------------------------------------------------------------------------------------------------------ pilot


def pilot(dataset: str, model: str) -> list[Trial]:
    """The learning rate of MF; the learning rate, the layers and the score of the ranking of LightGCN."""
    scale = SCALES[dataset, model]
    loss = {"temperature": scale.temperatures[1], "negative_weight": 1.1}
    tried: list[dict[str, Any]] = [{"learning_rate": rate} for rate in (0.002, 0.005, 0.01)]
    if model == "lightgcn":
        tried = [
            *({"learning_rate": 0.005, "layers": layers} for layers in (1, 2, 3)),
            *({"learning_rate": 0.01, "layers": layers} for layers in (1, 3)),
            {"learning_rate": 0.005, "layers": 1, "ranking": "inner"},
        ]
    return [
        Trial(
            "pilot",
            dataset,
            model,
            "bsl",
            setting({"batch_size": scale.batch_size, **one}, loss),
            scale.epochs,
            BLIND[dataset],
        )
        for one in tried
    ]


# ----------------------------------------------------------------------------------------------------------- search


def search(dataset: str, model: str, shared: Mapping[str, Any], names: Sequence[str]) -> list[Trial]:
    """The settings of each contender; ``shared`` is what the pilot found for the model."""
    scale = SCALES[dataset, model]
    base = {"batch_size": scale.batch_size, **shared}
    return [
        Trial("search", dataset, model, name, one, scale.epochs, BLIND[dataset])
        for name in names
        for one in settings_of(name, model, scale, base)
    ]


def settings_of(name: str, model: str, scale: Scale, base: Mapping[str, Any]) -> list[Setting]:
    """The six settings of a contender, with LightGCN every second one of them."""
    six = list(six_settings(name, scale, base))
    return six[:: len(six) // SEARCHED[model]]


def six_settings(name: str, scale: Scale, base: Mapping[str, Any]) -> Iterator[Setting]:
    taus = scale.temperatures
    wide = (0.8 * taus[0], *taus, 1.3 * taus[2], 1.7 * taus[2])  # where the temperature is all there is to choose
    if name == "softmax":
        yield from (setting(base, {"temperature": round(tau, 4)}) for tau in wide)
    elif CONTENDERS[name].loss.__name__ == "Softmax":
        for tau, b in product(taus, scale.negative_weights):
            yield setting(base, {"temperature": tau, "negative_weight": b})
    elif name == "sl@k":
        for tau, spread in product(taus, (0.2, 1.0)):
            yield setting(base, {"temperature": tau, "weight_temperature": spread})
    elif name == "psl":
        for tau, surrogate in product(taus, ("tanh", "relu")):
            yield setting(base, {"temperature": tau, "surrogate": surrogate})
    elif name == "dcl":
        for tau, rate in product(taus, (3e-4, 1e-3)):
            yield setting(base, {"temperature": tau, "positive_rate": rate})
    elif name == "ccl":
        for margin, weight in product((0.4, 0.6, 0.8), (50.0, 150.0)):
            yield setting(base, {"margin": margin, "negative_weight": weight})
    else:
        yield from one_negative(name, base)


def one_negative(name: str, base: Mapping[str, Any]) -> Iterator[Setting]:
    """BPR with one negative: three pairs of learning rate and penalty, two samplers."""
    samplers: Mapping[str, Sequence[Mapping[str, Any]]] = {
        "bpr": ({},),
        "dns": ({"candidates": 8, "top": 1}, {"candidates": 32, "top": 4}),
        "ahns": ({"candidates": 8}, {"candidates": 32}),
        "mixgcf": ({"candidates": 8}, {"candidates": 32}),
        "bns": ({"candidates": 8, "likelihood": "mixture"}, {"candidates": 32, "likelihood": "mixture"}),
    }
    rates = ((0.001, 1e-4), (0.002, 1e-4), (0.005, 1e-4), (0.001, 1e-3), (0.002, 1e-3), (0.005, 1e-3))
    own = {key: value for key, value in base.items() if key not in ("learning_rate", "ranking")}
    chosen = samplers[name]
    for (rate, penalty), sampler in product(rates if len(chosen) == 1 else rates[1::2], chosen):
        yield setting({**own, "learning_rate": rate, "regularization": penalty}, {}, sampler)


def beyond(best: Trial, tried: Sequence[Trial]) -> list[Trial]:
    """Two or three settings more where the best one lies at the edge of what was tried; otherwise none.

    One step further along the temperature, the margin or the learning rate, with every value of what is searched
    beside it.
    """
    part, name, step = ladder_of(best)
    values = sorted({getattr(trial.setting, part)[name] for trial in tried})
    value = getattr(best.setting, part)[name]
    if value not in (values[0], values[-1]):
        return []
    further = round(step(value, up=value == values[-1]), 5)
    found = {}
    for trial in tried:
        if getattr(trial.setting, part)[name] == value:
            changed = {**getattr(trial.setting, part), name: further}
            one = trial._replace(setting=trial.setting._replace(**{part: changed}))
            found[one.key] = one
    return list(found.values())


def ladder_of(trial: Trial) -> tuple[str, str, Callable[..., float]]:
    """Which setting is widened, and its next value."""
    if "temperature" in trial.setting.loss:
        return "loss", "temperature", lambda value, up: value * 1.25 if up else value / 1.25
    if "margin" in trial.setting.loss:
        return "loss", "margin", lambda value, up: value + 0.2 if up else value - 0.2
    if trial.model == BASELINE:
        return "model", "l2" if trial.contender == "ease" else "alpha", lambda value, up: value * 2 if up else value / 2
    return "model", "learning_rate", lambda value, up: value * 2 if up else value / 2


def baselines(dataset: str, names: Iterable[str]) -> list[Trial]:
    """Six settings of each baseline."""
    large = dataset in ("gowalla", "yelp2018")
    penalties = (20.0, 50.0, 100.0, 200.0, 400.0, 800.0) if large else (100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0)
    settings: Mapping[str, Iterable[dict[str, Any]]] = {
        "ease": [
            {"l2": l2, **({"form": "dense"} if large else {})}
            for l2 in penalties
        ],
        "als": [
            {"dim": dim, "regularization": penalty, "alpha": weight}
            for dim, (penalty, weight) in product(
                (256, 512) if large else (64, 128), ((20.0, 10.0), (50.0, 10.0), (50.0, 20.0))
            )
        ],
        "rp3beta": [{"alpha": alpha, "beta": beta} for alpha, beta in product((0.6, 0.8, 1.0), (0.2, 0.5))],
        "gfcf": [{"alpha": alpha, "rank": rank} for alpha, rank in product((0.1, 0.3, 1.0), (128, 256))],
    }  # fmt: skip
    return [
        Trial("search", dataset, BASELINE, name, setting(one), 1, BLIND[dataset])
        for name in names
        for one in settings[name]
    ]


def priors(without: Trial) -> list[Trial]:
    """The posterior with each prior, EASE first, at the setting that is best without weights."""
    weighed = without._replace(stage="priors", contender="posterior")
    others = [weighed._replace(setting=weighed.setting._replace(sampler={"prior": name})) for name in PRIORS]
    return [weighed, *others]


# ------------------------------------------------------------------------------------------------------------ final


def final(chosen: Trial, epoch: int) -> list[Trial]:
    """The setting and epoch that were best on validation, trained on the whole training part."""
    is_ceiling = chosen.model == "lightgcn" and CONTENDERS[chosen.contender].is_oracle
    seeds = 1 if is_ceiling else SEEDS
    return [chosen._replace(stage="final", view=TEST, seed=seed, epochs=epoch) for seed in range(seeds)]
