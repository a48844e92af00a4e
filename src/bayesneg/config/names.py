"""Names and settings as text ↔ objects: the one place that knows samplers and models by name.

A sampler is written ``name`` or ``name:key=value:key=value``, or ``file.py:Class`` for one of your own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from bayesneg.config.build import MODEL_KINDS, build_sampler
from bayesneg.config.custom import is_own, own_sampler, own_settings
from bayesneg.config.settings import (
    ALSOptions,
    AOBPROptions,
    BNSOptions,
    DNSOptions,
    EASEOptions,
    ItemKNNOptions,
    LightGCNOptions,
    MFOptions,
    NoOptions,
    Options,
    PNSOptions,
    PosteriorOptions,
    PriorOptions,
    Settings,
    SRNSOptions,
    TorchOptions,
    WarmStartOptions,
    assignments,
    check_known,
    checked,
)
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import Model, NegativeSampler
from bayesneg.models.baseline import Baseline
from bayesneg.models.baselines import ALS, require_implicit
from bayesneg.models.torch.settings import TorchSettings, require_torch


@dataclass(frozen=True)
class Named:
    """A name on the command line: which kind it builds, from which options, on top of which presets."""

    kind: str  # of those that building.py makes
    options: type[Options]
    about: str
    presets: Settings = field(default_factory=dict)


SAMPLERS: dict[str, Named] = {
    "rns": Named("rns", NoOptions, "uniform over the unobserved items"),
    "pns": Named("pns", PNSOptions, "popular items more often"),
    "aobpr": Named("aobpr", AOBPROptions, "high ranks of the user's score list, exponentially preferred"),
    "aobpr-factor": Named("aobpr", AOBPROptions, "the original's fast reading: one factor's list", {"rank": "factor"}),
    "dns": Named("dns", DNSOptions, "the highest-scored of a few"),
    "srns": Named("srns", SRNSOptions, "a memory per user, high score and high variance"),
    "bns": Named("bns", BNSOptions, "least sampling risk of a few"),
    "posterior": Named("posterior", PosteriorOptions, "most probably a true negative of a few"),
    "bns-1": Named("bns", BNSOptions, "BNS with λ falling over the epochs", {"weight": "linear"}),
    "bns-2": Named("warm-start", WarmStartOptions, "some epochs of RNS, then BNS"),
    "bns-3": Named("bns", BNSOptions, "BNS with the flat prior", {"prior": "flat"}),
    "bns-4": Named("bns", BNSOptions, "BNS with the group prior", {"prior": "group"}),
    "bns-learned": Named("bns", BNSOptions, "BNS with a prior learned from the training data", {"prior": "learned"}),
    "oracle": Named(
        "bns", BNSOptions, "BNS with a prior that sees the test labels: an upper bound", {"prior": "oracle"}
    ),
    "optimal": Named("bns", BNSOptions, "h*, BNS over every unobserved item", {"candidates": "all"}),
}
MODELS: dict[str, tuple[Callable[..., Model], type[Options], str]] = {
    "mf": (MODEL_KINDS["mf"], MFOptions, "matrix factorization, per-example SGD, compiled, on the CPU"),
    "lightgcn": (
        MODEL_KINDS["lightgcn"],
        LightGCNOptions,
        "vectors smoothed over the graph of who chose what; torch, CPU or GPU",
    ),
    "torch-mf": (MODEL_KINDS["torch-mf"], TorchOptions, "matrix factorization in mini-batches; torch, CPU or GPU"),
    "popularity": (MODEL_KINDS["popularity"], NoOptions, "a baseline without negatives: the most chosen items"),
    "item-knn": (MODEL_KINDS["item-knn"], ItemKNNOptions, "a baseline: items similar to those chosen"),
    "ease": (MODEL_KINDS["ease"], EASEOptions, "a baseline: the linear item model of least squares"),
    "als": (MODEL_KINDS["als"], ALSOptions, "a baseline: weighted factorization, through implicit (the extra als)"),
}
BASELINES = ("popularity", "item-knn", "ease", "als")  # models that need no sampler
BESIDE = "popularity,item-knn,ease"  # what a search is held against, unless other baselines are given
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class SamplerSpec:
    """A sampler by name with the settings given for it."""

    name: str
    settings: Settings

    @classmethod
    def parse(cls, text: str) -> SamplerSpec:
        """``bns:candidates=10`` → SamplerSpec("bns", {"candidates": "10"}).

        >>> SamplerSpec.parse("DNS:candidates=5")
        SamplerSpec(name='dns', settings={'candidates': '5'})
        >>> SamplerSpec.parse("bns:prior=my.py:Wary:candidates=8").settings
        {'prior': 'my.py:Wary', 'candidates': '8'}
        """
        name, *rest = _pieces(text)
        if is_own(name):
            return cls(name if ":" in name else f"{name}:", assignments(rest, name))
        check_known(name.lower(), SAMPLERS, "sampler")
        return cls(name.lower(), assignments(rest, f"sampler {name}"))

    def build(self, split: Split) -> NegativeSampler:
        if is_own(self.name):
            return own_sampler(self.name, self.settings)
        return build_sampler(SAMPLERS[self.name].kind, self.checked(), split)

    def checked(self) -> dict[str, Any]:
        """The settings with their types; those of one's own sampler are checked when it is built."""
        if is_own(self.name):
            return dict(self.settings)
        named = SAMPLERS[self.name]
        return checked(named.options, {**named.presets, **self.settings}, f"sampler {self.name}")

    @property
    def known(self) -> list[str]:
        """The settings it has."""
        return own_settings(self.name) if is_own(self.name) else list(SAMPLERS[self.name].options.model_fields)

    @property
    def label(self) -> str:
        name = self.name.partition(":")[2] if is_own(self.name) else self.name.upper()
        return labelled(name, self.settings)

    @property
    def written(self) -> str:
        """As :meth:`parse` takes it.

        >>> SamplerSpec("dns", {"candidates": "5"}).written
        'dns:candidates=5'
        """
        return ":".join((self.name, *(f"{key}={value}" for key, value in self.settings.items())))

    @property
    def fixed(self) -> set[str]:
        """What was given with the sampler, or is what its name means."""
        return {*self.settings, *(() if is_own(self.name) else SAMPLERS[self.name].presets)}

    def with_settings(self, settings: Settings) -> SamplerSpec:
        return SamplerSpec(self.name, {**settings, **self.settings})


def labelled(name: str, settings: Settings) -> str:
    """``DNS (candidates=5)``."""
    given = ", ".join(f"{key}={value}" for key, value in settings.items())
    return f"{name} ({given})" if given else name


def _pieces(text: str) -> list[str]:
    """What stands between colons; file.py:Class stays one."""
    return [part.strip() for part in re.split(r"(?<!\.py):", text)]


def parse_samplers(text: str) -> list[SamplerSpec]:
    """``rns, dns:candidates=5`` → two specs; commas within brackets belong to a setting."""
    parts = re.split(r",(?![^(\[]*[)\]])", text)
    specs = [SamplerSpec.parse(part) for part in parts if part.strip()]
    if not specs:
        raise InputError("no sampler is named; give for example rns,dns,bns")
    return specs


def parse_priors(text: str) -> dict[str, Settings]:
    """``popularity,learned:hidden=0.25`` → label → checked settings, for :func:`built_prior`.

    >>> parse_priors("learned:hidden=0.25")
    {'learned (hidden=0.25)': {'prior': 'learned', 'hidden': 0.25}}
    """
    found: dict[str, Settings] = {}
    for part in (part.strip() for part in text.split(",")):
        kind, *rest = _pieces(part)
        if not kind:
            continue
        settings = assignments(rest, f"prior {kind}")
        if "prior" in settings:
            raise InputError(f"prior {kind}: the prior stands before the colon; drop prior={settings['prior']}")
        label = labelled(kind, settings)
        if label in found:
            raise InputError(f"--priors has {label} twice; give each once, or with other settings")
        found[label] = checked(PriorOptions, {"prior": kind, **settings}, f"prior {kind}")
    if not found:
        raise InputError("no prior is named; give for example popularity,rate,learned")
    return found


def build_model(name: str, settings: Settings) -> Model:
    check_known(name, MODELS, "model")
    build, options, _ = MODELS[name]
    model = build(**checked(options, settings, f"model {name}"))
    if isinstance(model, TorchSettings):
        require_torch(f"model {name}")  # before any data is read
    if isinstance(model, ALS):
        require_implicit(f"model {name}")
    return model


def baseline_specs(text: str) -> dict[str, tuple[str, Settings]]:
    """``popularity,ease:l2=200`` → label → name and settings.

    >>> baseline_specs("ease:l2=200")
    {'EASE (l2=200)': ('ease', {'l2': '200'})}
    """
    found: dict[str, tuple[str, Settings]] = {}
    for part in (part.strip() for part in text.split(",")):
        name, *rest = (piece.strip() for piece in part.split(":"))
        if not name:
            continue
        check_known(name.lower(), BASELINES, "baseline")
        settings = assignments(rest, f"baseline {name}")
        label = labelled(name.upper(), settings)
        if label in found:
            raise InputError(f"--baselines has {label} twice; give each once, or with other settings")
        found[label] = name.lower(), settings
    return found


def build_baselines(specs: Mapping[str, tuple[str, Settings]]) -> dict[str, Baseline]:
    """What :func:`baseline_specs` found, built."""
    built = {label: build_model(name, settings) for label, (name, settings) in specs.items()}
    return {label: model for label, model in built.items() if isinstance(model, Baseline)}


def unusual(model: Model) -> dict[str, Any]:
    """Those settings of a model that differ from their defaults.

    >>> unusual(build_model("ease", {"l2": "200"}))
    {'l2': 200.0}
    """
    own = {item.name: (getattr(model, item.name), item.default) for item in fields(model)}  # type: ignore[arg-type]
    return {name: value for name, (value, usual) in own.items() if value != usual}


def with_device(settings: Settings, model: str, device: str | None) -> Settings:
    """The model's settings with ``--device``, where it is given."""
    if device is None:
        return settings
    if device not in DEVICES:
        raise InputError(f"--device must be {', '.join(DEVICES[:-1])} or {DEVICES[-1]}, got {device!r}")
    if "device" in settings:
        raise InputError("the device is given twice, by --device and by --set device=…; drop one")
    if "device" in MODELS[model][1].model_fields:
        return {**settings, "device": device}
    if device == "cuda":
        raise InputError(f"model {model} takes no device; drop --device, or use --model lightgcn or torch-mf")
    return settings


def sort_settings(
    sets: Iterable[str], model: str, samplers: Iterable[SamplerSpec]
) -> tuple[Settings, list[SamplerSpec]]:
    """``--set key=value`` goes to the model if it knows the key, otherwise to every sampler that does.

    A setting written with a sampler (``dns:candidates=5``) wins. Among several samplers, one whose name means a
    setting (``bns-3`` is the flat prior) keeps that too.
    """
    specs = list(samplers)
    check_known(model, MODELS, "model")
    given = assignments(sets, "--set")
    model_keys = set(MODELS[model][1].model_fields)
    open_to = [set(spec.known) - (spec.fixed if len(specs) > 1 else set(spec.settings)) for spec in specs]
    names = " or ".join(dict.fromkeys([*(spec.name for spec in specs), model]))
    for key in given:
        check_known(key, model_keys.union(*open_to), f"setting of {names}")
    for_model = {key: value for key, value in given.items() if key in model_keys}
    shared = {key: value for key, value in given.items() if key not in model_keys}
    own = [{key: value for key, value in shared.items() if key in keys} for keys in open_to]
    complete = [spec.with_settings(settings) for spec, settings in zip(specs, own, strict=True)]
    for spec in complete:
        spec.checked()  # before any data is read
    return for_model, complete
