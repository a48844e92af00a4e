"""What the shell completes after --sampler, --loss and --model; imported when a person presses Tab."""

from __future__ import annotations


def samplers(incomplete: str) -> list[str]:
    """Names of samplers; the last of several."""
    from bayesneg.config.registry import sampler_names

    return _last_of(incomplete, sampler_names())


def losses(incomplete: str) -> list[str]:
    """Names of losses; the last of several."""
    from bayesneg.config.listing import loss_lines

    return _last_of(incomplete, [name for name, _ in loss_lines()])


def models(incomplete: str) -> list[str]:
    """Names of models."""
    from bayesneg.config.registry import MODELS

    return _last_of(incomplete, list(MODELS))


def _last_of(incomplete: str, names: list[str]) -> list[str]:
    """``rns,b`` → ``rns,bns``, …"""
    before, comma, begun = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(begun)]
