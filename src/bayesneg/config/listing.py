"""Samplers, models and settings in lines for a person, from the same tables that build them."""

from __future__ import annotations

from bayesneg.config.names import MODELS, SAMPLERS
from bayesneg.config.settings import Options, Settings


def sampler_lines() -> list[tuple[str, str]]:
    """Each sampler by name, what it does, and its settings as they are unless given."""
    first: dict[type[Options], str] = {}
    lines = []
    for name, named in SAMPLERS.items():
        like = first.setdefault(named.options, name)
        settings = _settings(named.options) if like == name else f"as {like}, {_assigned(named.presets)}"
        lines.append((name, f"{named.about} ({settings})" if settings else named.about))
    return lines


def model_lines() -> list[tuple[str, str]]:
    return [(name, f"{about} ({_settings(options)})") for name, (_, options, about) in MODELS.items()]


def setting_lines() -> list[tuple[str, str]]:
    """Each setting of a sampler or model, and what it means."""
    kinds = [*(named.options for named in SAMPLERS.values()), *(options for _, options, _ in MODELS.values())]
    meanings: dict[str, list[str]] = {}
    for kind in kinds:
        for key, field_ in kind.model_fields.items():
            known = meanings.setdefault(key, [])
            if field_.description and field_.description not in known:
                known.append(field_.description)
    return [(key, "; or: ".join(texts)) for key, texts in meanings.items()]


def _settings(options: type[Options]) -> str:
    return _assigned({key: item.default for key, item in options.model_fields.items()})


def _assigned(values: Settings) -> str:
    return ", ".join(key if value is None else f"{key}={value}" for key, value in values.items())
