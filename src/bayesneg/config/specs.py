"""What the command line takes: samplers, priors, baselines and models as text, with their settings.

A sampler is written ``name`` or ``name:key=value:key=value``, a custom one ``file.py:Class``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from bayesneg.config.build import build, build_sampler, check_setting, either, reach, typed
from bayesneg.config.custom import is_custom
from bayesneg.config.registry import BASELINES, MODELS, NamedSampler, main_name, sampler_named, sampler_names
from bayesneg.config.settings import Setting, Settings, assignments, changed, check_known, settings_of
from bayesneg.config.writing import as_text
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import Model, NegativeSampler
from bayesneg.losses import losses
from bayesneg.models.baseline import Baseline
from bayesneg.models.torch.settings import TorchSettings, require_torch
from bayesneg.samplers.bns import BNS

DEVICES: Final = ("auto", "cpu", "cuda")
Value = TypeVar("Value")


@dataclass(frozen=True)
class SamplerSpec:
    """A sampler by name, or an object under a label, with settings on top of it."""

    name: str
    settings: Settings
    base: NegativeSampler | None = None

    @classmethod
    def parse(cls, text: str) -> SamplerSpec:
        """``bns:candidates=10`` → SamplerSpec("bns", {"candidates": "10"}).

        >>> SamplerSpec.parse("DNS:candidates=5")
        SamplerSpec(name='dns', settings={'candidates': '5'}, base=None)
        >>> SamplerSpec.parse("bns:prior=my.py:Wary:candidates=8").settings
        {'prior': 'my.py:Wary', 'candidates': '8'}
        """
        name, *rest = pieces(text)
        if is_custom(name):
            return cls(name if ":" in name else f"{name}:", assignments(rest, name))
        check_known(name.lower(), sampler_names(), "sampler")
        return cls(name.lower(), assignments(rest, f"sampler {name}"))

    @property
    def named(self) -> NamedSampler:
        """The class, and the settings that the name means."""
        return sampler_named(self.name) if self.base is None else NamedSampler(type(self.base), "")

    def build(self, split: Split) -> NegativeSampler:
        """The sampler; the split gives an oracle its labels and rejected pairs their numbers."""
        if self.base is None:
            return build_sampler(self.name, self.checked(), split)
        found: NegativeSampler = (
            build(self.named.kind, self.checked(), split, self.base) if self.settings else self.base
        )
        return found

    def checked(self) -> dict[str, Any]:
        """The settings with their types, those that the name means included."""
        named = self.named
        where = self.name if is_custom(self.name) else f"sampler {self.name}"
        return typed(named.kind, {**named.presets, **self.settings}, where, self.base)

    def known(self, settings: Settings | None = None) -> dict[str, Setting]:
        """The settings it has with the parts chosen now, or with those that ``settings`` choose."""
        named = self.named
        return reach(named.kind, {**named.presets, **(settings or {}), **self.settings}, self.base).settings

    def choices(self, key: str) -> list[Any]:
        """The values that a setting names: priors, likelihoods, or those of its type."""
        named = self.named
        found = reach(named.kind, {**named.presets, **self.settings}, self.base)
        return [*found.choices.get(key, found.settings[key].choices)]

    @property
    def is_custom(self) -> bool:
        """Whether it is none of the built-in samplers."""
        return is_custom(self.name) if self.base is None else main_name(type(self.base)) is None

    @property
    def label(self) -> str:
        name = self.name.partition(":")[2] if is_custom(self.name) else self.name.upper()
        return labelled(self.name if self.base else name, self.settings)

    @property
    def written(self) -> str:
        """As :meth:`parse` takes it.

        >>> SamplerSpec("dns", {"candidates": "5"}).written
        'dns:candidates=5'
        """
        return ":".join((self.name, *(f"{key}={value}" for key, value in self.settings.items())))

    def text(self, split: Split) -> str | None:
        """As :meth:`parse` takes it, also where it is an object; None where no text gives the object."""
        return self.written if self.base is None else as_text(self.build(split), split)

    @property
    def fixed(self) -> set[str]:
        """What was given with the sampler, or is what its name means."""
        return {*self.settings, *self.named.presets, *({} if self.base is None else changed(self.base))}

    def with_settings(self, settings: Settings) -> SamplerSpec:
        return SamplerSpec(self.name, {**settings, **self.settings}, self.base)


def labelled(name: str, settings: Settings) -> str:
    """``DNS (candidates=5)``.

    >>> labelled("BNS (prior=Flat)", {"candidates": "5"})
    'BNS (prior=Flat, candidates=5)'
    """
    given = ", ".join(f"{key}={value}" for key, value in settings.items())
    if not given:
        return name
    return f"{name[:-1]}, {given})" if name.endswith(")") else f"{name} ({given})"


def parse_samplers(text: str) -> list[SamplerSpec]:
    """``rns, dns:candidates=5`` → two specs; commas within brackets belong to a setting."""
    parts = re.split(r",(?![^(\[]*[)\]])", text)
    specs = [SamplerSpec.parse(part) for part in parts if part.strip()]
    if not specs:
        raise InputError("no sampler is named; give for example rns,dns,bns")
    return specs


def parse_priors(text: str) -> dict[str, Settings]:
    """``popularity,learned:hidden=0.25`` → label → typed settings, for :func:`~bayesneg.config.build.build_prior`.

    >>> parse_priors("learned:hidden=0.25")
    {'learned (hidden=0.25)': {'prior': 'learned', 'hidden': 0.25}}
    """
    found: dict[str, Settings] = {}
    own = {"candidates", "likelihood", *settings_of(BNS)} - {"prior"}
    for kind, settings in _named_parts(text, "prior"):
        if "prior" in settings:
            raise InputError(f"prior {kind}: the prior is named before the colon; drop prior={settings['prior']}")
        if of_sampler := own & settings.keys():
            check_known(min(of_sampler), set(reach(BNS, {"prior": kind}).settings) - own, f"setting of prior {kind}")
        _once(found, labelled(kind, settings), typed(BNS, {"prior": kind, **settings}, f"prior {kind}"), "--priors")
    if not found:
        raise InputError("no prior is named; give for example popularity,rate,learned")
    return found


def build_model(name: str, settings: Settings) -> Model:
    """The model of a name with settings as text or with their types."""
    check_known(name, MODELS, "model")
    model = MODELS[name](**typed(MODELS[name], settings, f"model {name}"))
    if isinstance(model, TorchSettings):
        require_torch(f"model {name}")  # before any data is read
    return model


def baseline_specs(text: str) -> dict[str, tuple[str, Settings]]:
    """``popularity,ease:l2=200`` → label → name and settings.

    >>> baseline_specs("ease:l2=200")
    {'EASE (l2=200)': ('ease', {'l2': '200'})}
    """
    found: dict[str, tuple[str, Settings]] = {}
    for name, settings in _named_parts(text, "baseline"):
        check_known(name.lower(), BASELINES, "baseline")
        _once(found, labelled(name.upper(), settings), (name.lower(), settings), "--baselines")
    return found


def build_baselines(specs: Mapping[str, tuple[str, Settings]]) -> dict[str, Baseline]:
    """What :func:`baseline_specs` found, built."""
    built = {label: build_model(name, settings) for label, (name, settings) in specs.items()}
    return {label: model for label, model in built.items() if isinstance(model, Baseline)}


def with_device(settings: Settings, model: str, device: str | None) -> Settings:
    """The model's settings with ``--device``, where it is given."""
    if device is None:
        return settings
    if device not in DEVICES:
        raise InputError(f"--device must be {', '.join(DEVICES[:-1])} or {DEVICES[-1]}, got {device!r}")
    if "device" in settings:
        raise InputError("the device is given twice, by --device and by --set device=…; drop one")
    if "device" in settings_of(MODELS[model]):
        return {**settings, "device": device}
    if device == "cuda":
        raise InputError(f"model {model} runs on the CPU only; drop --device, or use --model lightgcn or torch-mf")
    return settings


def sort_settings(
    sets: Iterable[str], model: str, samplers: Iterable[SamplerSpec]
) -> tuple[Settings, list[SamplerSpec]]:
    """``--set key=value`` goes to the model if it has the setting, otherwise to every sampler that has it.

    A setting written with a sampler (``dns:candidates=5``) wins. Among several samplers, one whose name means a
    setting (``bns-3`` is the flat prior) keeps that too.

    Args:
        sets: Settings as ``key=value``.
        model: Name of the model.
        samplers: Samplers that take the other settings.

    Returns:
        The settings of the model, and the samplers with theirs, all checked.
    """
    specs = list(samplers)
    check_known(model, MODELS, "model")
    given = assignments(sets, "--set")
    of_model = {key for key, setting in settings_of(MODELS[model]).items() if setting.is_text}
    shared = {key: value for key, value in given.items() if key not in of_model}
    complete = []
    for spec in specs:
        kept = spec.fixed if len(specs) > 1 else set(spec.settings)
        free = {key: value for key, value in shared.items() if key not in kept}
        known = spec.known(free)
        complete.append(spec.with_settings({key: value for key, value in free.items() if key in known}))
    taken = {key for spec in complete for key in spec.settings}
    names = " or ".join(dict.fromkeys([*(spec.name for spec in specs), model]))
    for key in shared.keys() - taken:
        _refuse(key, shared[key], names, of_model, specs)
    for spec in complete:
        spec.checked()  # before any data is read
    return {key: value for key, value in given.items() if key in of_model}, complete


def _refuse(key: str, value: str, names: str, of_model: set[str], specs: Iterable[SamplerSpec]) -> None:
    """The error about a setting that neither the model nor any sampler takes."""
    found = [reach(spec.named.kind, {**spec.named.presets, **spec.settings}, spec.base) for spec in specs]
    for each in found:
        if each.ways(key) and key not in each.settings:
            check_setting(key, each, "--set")
    valid = of_model.union(*(each.settings for each in found))
    if of_losses := [name for name, kind in losses().items() if key in settings_of(kind) and key not in valid]:
        raise InputError(
            f"{key} is a setting of the loss {either(of_losses)}; write --loss {of_losses[0]}:{key}={value}"
        )
    check_known(key, valid - {key}, f"setting of {names}")


def pieces(text: str) -> list[str]:
    """The parts between colons; file.py:Class stays one part."""
    return [part.strip() for part in re.split(r"(?<!\.py):", text)]


def _named_parts(text: str, noun: str) -> Iterable[tuple[str, dict[str, str]]]:
    """``a,b:key=value`` → names with their settings."""
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, *rest = pieces(part)
        yield name, assignments(rest, f"{noun} {name}")


def _once(found: dict[str, Value], label: str, value: Value, option: str) -> None:
    if label in found:
        raise InputError(f"{option} has {label} twice; give each once, or with other settings")
    found[label] = value
