"""Samplers, losses, priors, likelihoods, models and settings in lines for a person, read off the classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bayesneg.config.build import AROUND_PRIORS, default_of, reach
from bayesneg.config.docstrings import plain, summary
from bayesneg.config.registry import MODELS, likelihoods, main_name, priors, sampler_named, sampler_names
from bayesneg.config.settings import REQUIRED, Settings, settings_of
from bayesneg.errors import InputError
from bayesneg.losses import losses

Lines = list[tuple[str, str]]


def sampler_lines() -> Lines:
    """Each sampler by name: what it does, and its settings with their defaults."""
    lines = []
    for name in sampler_names():
        try:
            named = sampler_named(name)
        except InputError as error:  # a plug-in that cannot be loaded
            lines.append((name, str(error)))
            continue
        like = main_name(named.kind) or name
        settings = _assigned(named.presets) if like != name else _defaults(named.kind)
        text = f"as {like}, {settings}" if like != name else settings
        lines.append((name, f"{named.about} ({text})" if text else named.about))
    return lines


def loss_lines() -> Lines:
    """Each loss by name."""
    return _class_lines(losses())


def prior_lines() -> Lines:
    """Each prior by name."""
    return _class_lines(priors())


def likelihood_lines() -> Lines:
    """Each likelihood by name."""
    return _class_lines(likelihoods())


def model_lines() -> Lines:
    """Each model by name."""
    return _class_lines(MODELS)


def setting_lines() -> Lines:
    """Each setting, and what it means; several meanings where several classes have the name."""
    kinds = [*(named.kind for name in sampler_names() if (named := _loadable(name))), *MODELS.values()]
    kinds += [*priors().values(), *likelihoods().values(), *losses().values()]
    meanings: dict[str, dict[str, None]] = {}
    for settings in (*(reach(kind, {}).settings for kind in kinds), AROUND_PRIORS):
        for key, setting in settings.items():
            meanings.setdefault(key, {})[plain(setting.sentence).rstrip(".")] = None
    return [(key, _joined(texts)) for key, texts in sorted(meanings.items())]


def _joined(texts: Iterable[str]) -> str:
    """Several meanings, without those that another one begins with."""
    given = [text for text in texts if text]
    longest = [text for text in given if not any(other != text and other.startswith(text) for other in given)]
    return "; or: ".join(longest) or "–"


def _loadable(name: str) -> Any:
    try:
        return sampler_named(name)
    except InputError:
        return None


def _class_lines(kinds: Mapping[str, type[Any]]) -> Lines:
    lines = []
    for name, kind in kinds.items():
        settings, about = _defaults(kind), summary(kind.__doc__)
        lines.append((name, f"{about} ({settings})" if settings else about))
    return lines


def _defaults(kind: type[Any]) -> str:
    """``candidates=5, prior=popularity``: the settings that text can give."""
    shown = {key: default_of(setting) for key, setting in settings_of(kind).items() if key in reach(kind, {}).settings}
    return _assigned({key: value for key, value in shown.items() if value is not REQUIRED})


def _assigned(values: Settings) -> str:
    return ", ".join(key if value is None else f"{key}={value}" for key, value in values.items())
