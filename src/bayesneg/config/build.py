"""Settings → objects: a class and flat settings give the object.

The settings of a sampler's prior, likelihood and refresh are written beside its own
(``bns:prior=learned:l2=200:cdf=refreshed:moved=0.1``): a key that is no field of the sampler belongs to every chosen
part that has it. Building needs no pydantic: typed settings may come from a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

from bayesneg.config.custom import custom_prior, is_custom, sentences_about
from bayesneg.config.registry import built_in_samplers, likelihoods, name_of, priors, sampler_named
from bayesneg.config.settings import REQUIRED, Setting, Settings, check_known, schedule, settings_of
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, InputError
from bayesneg.interfaces import NegativeSampler, Prior
from bayesneg.samplers.posterior.likelihoods import Likelihood
from bayesneg.samplers.posterior.refresh import Refresh
from bayesneg.samplers.priors import Combined, Exposure, Oracle, Scaled
from bayesneg.samplers.priors.basic import as_prior
from bayesneg.samplers.priors.exposure import matched, passed_over

OF_REJECTED: Final = ("chosen_column", "seen")  # settings that go with rejected
AROUND_PRIORS: Final[Mapping[str, Setting]] = {  # settings that every prior has, from the classes that wrap it
    "strength": settings_of(Scaled)["strength"],
    "rejected": Setting("rejected", str, None, "File of pairs that were shown to the user without an interaction."),
    "chosen_column": Setting(
        "chosen_column",
        str,
        None,
        "Column of the rejected file that is above 0 where the user interacted after all; without it no row has "
        "an interaction.",
    ),
    "seen": settings_of(Exposure)["seen"],
}
ABOVE_0: Final = 5e-324  # the least rating above 0


@dataclass
class Reach:
    """The settings that can be given with the parts chosen, and the parts that there are to choose from."""

    settings: dict[str, Setting] = field(default_factory=dict)
    choices: dict[str, Mapping[str, type[Any]]] = field(default_factory=dict)  # "prior" → name → class

    def ways(self, key: str) -> list[tuple[str, str]]:
        """The choices that have a setting: (``"prior"``, ``"learned"``), …"""
        return [
            (part, name)
            for part, kinds in self.choices.items()
            for name, kind in kinds.items()
            if key in settings_of(kind) and settings_of(kind)[key].is_text
        ]


def reach(kind: type[Any], given: Settings, base: Any = None) -> Reach:
    """Every setting that ``kind`` has, with those of the parts that ``given`` chooses.

    Args:
        kind: Class of a sampler, prior or likelihood.
        given: Flat settings; those that choose a part (prior, likelihood, …) decide what there is.
        base: Object whose parts are used where none is chosen, in place of the defaults.

    Returns:
        The settings by name. A setting of the class hides one of its parts with the same name.
    """
    found = Reach()
    for name, setting in settings_of(kind).items():
        kinds = part_kinds(setting)
        if kinds is None:
            if setting.is_text:
                found.settings[name] = setting
            continue
        if kinds:
            found.settings[name] = replace(setting, annotation=str)
            found.choices[name] = kinds
        for part, now in _chosen(setting, kinds, given, base):
            nested = reach(part, given, now)
            found.settings = {**nested.settings, **found.settings}
            found.choices = {**nested.choices, **found.choices}
        if kinds is priors():
            found.settings = {**AROUND_PRIORS, **found.settings}
    return found


def typed(kind: type[Any], given: Settings, where: str, base: Any = None) -> dict[str, Any]:
    """The given settings with their types, or one sentence about the first that is wrong.

    Args:
        kind: Class of a sampler, model, prior or likelihood.
        given: Flat settings, as text or with their types.
        where: What the sentence calls the object, ``"sampler bns"``.
        base: Object that the settings change.

    Returns:
        The settings in the order given.
    """
    try:
        found = reach(kind, given, base)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    for key in given:
        check_setting(key, found, where)
    return {
        key: str(value) if key in found.choices else found.settings[key].convert(value, where)
        for key, value in given.items()
    }


def canonical(kind: type[Any], given: Settings, where: str, *, base: object | None = None) -> dict[str, Any]:
    """The typed settings that differ from the defaults, in the order of their names: one for each way of writing it.

    With ``base``, an object of the class, those that differ from its settings.

    >>> from bayesneg.samplers.dns import DNS
    >>> canonical(DNS, {"top": "1", "candidates": "5"}, "sampler dns")
    {'candidates': 5}
    """
    settings = reach(kind, given).settings
    found = typed(kind, given, where)
    if base is not None:
        return {key: value for key, value in sorted(found.items()) if value != getattr(base, key)}
    return {key: value for key, value in sorted(found.items()) if value != default_of(settings[key])}


def default_of(setting: Setting) -> Any:
    """The default as :func:`typed` gives a value: a prior or likelihood by its name."""
    default: Any = setting.default
    for names in (priors(), likelihoods()):
        default = name_of(type(default), names) or default
    return default


def check_setting(key: str, found: Reach, where: str) -> None:
    """An error that says which choice has the setting, or which settings there are, unless it is one of them."""
    if key in found.settings:
        return
    if ways := found.ways(key):
        part = ways[0][0]
        names = [name for other, name in ways if other == part]
        raise InputError(f"{where}: {key} is a setting of the {part} {either(names)}; set {part}={names[0]} with it")
    check_known(key, found.settings, f"setting of {where}")


def build(kind: type[Any], given: Settings, split: Split, base: Any = None) -> Any:
    """The object that a class and typed flat settings describe.

    Args:
        kind: Class of a sampler, prior or likelihood.
        given: Typed flat settings, as :func:`typed` returns them.
        split: Data, which gives an oracle its labels and ``rejected`` pairs their numbers.
        base: Object to change; the defaults of the class without one.

    Returns:
        An instance of ``kind``.
    """
    own: dict[str, Any] = {"labels": split.held_out} if kind is Oracle else {}
    parts = {name: kinds for name, setting in settings_of(kind).items() if (kinds := part_kinds(setting)) is not None}
    nested = {key: value for key, value in given.items() if key in parts or key not in settings_of(kind)}
    for name, setting in settings_of(kind).items():
        if name in parts:
            own.update(_part(setting, parts[name], nested, split, base))
        elif name in given and setting.is_text:
            own[name] = schedule(given[name]) if setting.is_schedule else given[name]
    _check_refresh(kind, own, given, base)
    return kind(**own) if base is None else replace(base, **own)


def build_sampler(name: str, given: Settings, split: Split) -> NegativeSampler:
    """The sampler of a name with typed settings on top of those that the name means."""
    named = sampler_named(name)
    with sentences_about(name if is_custom(name) else f"sampler {name}"):
        sampler: NegativeSampler = build(named.kind, {**named.presets, **given}, split)
    return sampler


def build_prior(given: Settings, split: Split) -> Prior:
    """``{"prior": "learned+rate", "strength": 2.0}`` → both combined, with the odds doubled."""
    names = str(given["prior"]).split("+")
    parts = [_named_prior(name, given, split) for name in names]
    return _wrapped(parts[0] if len(parts) == 1 else Combined(parts), given, split)


def part_kinds(setting: Setting) -> Mapping[str, type[Any]] | None:
    """What a field that holds an object may be, by name: empty for one class only, None for a plain value."""
    for leaf in (leaf for leaf in setting.leaves if isinstance(leaf, type)):
        if issubclass(leaf, Prior):
            return priors()
        if issubclass(leaf, Likelihood):
            return likelihoods()
        if issubclass(leaf, NegativeSampler):
            return {name: named.kind for name, named in built_in_samplers().items() if not named.presets}
        if is_dataclass(leaf):
            return {}
    return None


def _chosen(
    setting: Setting, kinds: Mapping[str, type[Any]], given: Settings, base: Any
) -> list[tuple[type[Any], Any]]:
    """The classes of a part, each with the object that it changes."""
    if kinds and setting.name in given:
        names = str(given[setting.name]).split("+") if kinds is priors() else [str(given[setting.name])]
        found = []
        for name in names:
            if kinds is priors() and is_custom(name):
                own = custom_prior(name)
                found += [own] if isinstance(own, type) else []
                continue
            check_known(name, [*kinds, *(["file.py:Class"] if kinds is priors() else [])], setting.name)
            found.append(kinds[name])
        return [(kind, None) for kind in found]
    now = setting.default if base is None else getattr(base, setting.name)
    return [] if now is REQUIRED else [(type(now), now)]


def _part(setting: Setting, kinds: Mapping[str, type[Any]], given: Settings, split: Split, base: Any) -> dict[str, Any]:
    """The part as the settings want it; empty where they leave it as it is."""
    if kinds and setting.name in given:
        found = build_prior(given, split) if kinds is priors() else build(kinds[given[setting.name]], given, split)
        return {setting.name: found}
    now = setting.default if base is None else getattr(base, setting.name)
    if now is REQUIRED:
        return {}
    part = build(type(now), given, split, now) if reach(type(now), given, now).settings.keys() & given.keys() else now
    part = _wrapped(part, given, split) if kinds is priors() else part
    return {} if part is now else {setting.name: part}


def _named_prior(name: str, given: Settings, split: Split) -> Prior:
    if not is_custom(name):
        kind = priors()[name]
        if "column" in settings_of(kind) and not split.train.user_columns:
            raise InputError(f"prior={name} needs a user column (occupation, age, …), and this data has none")
        return as_prior(build(kind, given, split))
    found = custom_prior(name)
    if not isinstance(found, type):
        return as_prior(found)
    with sentences_about(name):
        return as_prior(build(found, given, split))


def _wrapped(prior: Prior, given: Settings, split: Split) -> Prior:
    """The prior with the pairs that were rejected, and with other odds."""
    if (alone := [key for key in OF_REJECTED if key in given]) and "rejected" not in given:
        raise InputError(f"{alone[0]} goes with rejected, the file of pairs that were shown without an interaction")
    if "rejected" in given:
        prior = Exposure(_rejected(given, split), prior, **{key: given[key] for key in ("seen",) if key in given})
    return Scaled(prior, given["strength"]) if "strength" in given else prior


def _rejected(given: Settings, split: Split) -> Interactions:
    """The pairs shown without an interaction: all rows of the file, or those that a column marks.

    Of the latter those are held out that the split would hold out, were they interactions.
    """
    from bayesneg.data.load import load  # reads tables, which a bare machine cannot

    held_out = split.held_out
    origin = split.origin or split.train.origin or {}
    is_the_data = Path(str(origin.get("data"))) == Path(given["rejected"]).resolve()
    shown = load(given["rejected"], time_column=origin.get("time_column") if is_the_data else None)
    if "chosen_column" in given:
        try:
            chosen = load(given["rejected"], rating_column=given["chosen_column"], min_rating=ABOVE_0)
        except BayesnegError as error:
            raise InputError(f"chosen_column={given['chosen_column']}: {error}") from error
        shown = passed_over(shown, chosen, split)
    shown = replace(shown, origin={key: given[key] for key in ("rejected", "chosen_column") if key in given})
    if n_held_out := int(matched(shown, split.train).contains(held_out.users, held_out.indices).sum()):
        raise InputError(
            f"rejected={given['rejected']} holds {n_held_out:,} pairs of the test or validation part, which must not "
            "be seen; leave them out of the file, or name the column that marks interactions with chosen_column"
        )
    return shown


def _check_refresh(kind: type[Any], own: Settings, given: Settings, base: Any) -> None:
    if "refresh" not in own:
        return
    usual = settings_of(kind)["cdf"].default if base is None else base.cdf
    if own.get("cdf", usual) == "exact":
        key = next(key for key in settings_of(Refresh) if key in given)
        raise InputError(f"{key} is a setting of the refreshed score CDF; set cdf=refreshed with it")


def either(names: list[str]) -> str:
    """``a``; ``a or b``; ``a, b or c``."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"
