"""The end of ``bayesneg train --help``: every sampler and setting, from the names the commands know."""

from __future__ import annotations

import textwrap

from typer.core import TyperCommand

WIDTH = 78


class WithSamplers(TyperCommand):
    """A command whose help ends with the samplers; made when asked for, so that nothing is imported before."""

    def get_help(self, ctx: object) -> str:
        self.epilog = sampler_help()
        return super().get_help(ctx)  # type: ignore[arg-type]


def sampler_help() -> str:
    from bayesneg.config.listing import (
        likelihood_lines,
        loss_lines,
        model_lines,
        prior_lines,
        sampler_lines,
        setting_lines,
    )

    custom = ("file.py:Class", "a custom sampler, a subclass of bayesneg.NegativeSampler; its arguments are settings")
    custom_losses = [
        ("file.py:Class", "a custom loss, a subclass of bayesneg.losses.Loss; its arguments are settings"),
        ("file.py:function", "a custom loss, a torch function of the scores"),
    ]
    return "\n\n".join(
        [
            _block("Samplers, with their settings and defaults:", [*sampler_lines(), custom]),
            _block("Losses, with their settings and defaults:", [*loss_lines(), *custom_losses]),
            _block("Priors (bns:prior=NAME, several joined by +, or prior=file.py:Class):", prior_lines()),
            _block("Likelihoods (bns:likelihood=NAME):", likelihood_lines()),
            _block("Models:", model_lines()),
            _block("Settings:", setting_lines()),
        ]
    )


def _block(title: str, lines: list[tuple[str, str]]) -> str:
    indent = " " * 18
    return "\n".join(
        [
            title,
            *(
                textwrap.fill(text, WIDTH, initial_indent=f"  {name:<15} ", subsequent_indent=indent)
                for name, text in lines
            ),
        ]
    )
