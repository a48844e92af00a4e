"""The help of the commands that train: short with --help, and with --help-all every option, sampler and setting."""

from __future__ import annotations

import textwrap
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

WIDTH: Final = 78
RARE: Final = {  # options that --help leaves to --help-all
    "ranks_timeout",
    "user_column", "item_column", "rating_column", "time_column", "user_columns", "separator", "header", "min_rating",
    "format", "data_dir", "split_seed", "user_file", "device", "evaluate_every", "jobs", "label", "fingerprint",
    "allow_code", "force", "evaluate_users", "start",
}  # fmt: skip


def _show_all(ctx: typer.Context, asked: bool) -> None:
    if asked and isinstance(ctx.command, BriefHelp):
        ctx.command.is_brief = False
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        callback=_show_all,
        is_eager=True,
        help="Show every option, sampler, loss, prior, model and setting, and exit.",
    ),
]


class BriefHelp(TyperCommand):
    """A command whose --help leaves out rarely used options and ends with names only.

    The lists are made when they are asked for, so that nothing is imported before.
    """

    is_brief = True

    def get_help(self, ctx: Any) -> str:
        self.epilog = brief_help(str(ctx.command_path)) if self.is_brief else sampler_help()
        rare = [param for param in self.params if self.is_brief and param.name in RARE]
        for param in rare:
            param.hidden = True  # type: ignore[attr-defined]
        try:
            return super().get_help(ctx)
        finally:
            for param in rare:
                param.hidden = False  # type: ignore[attr-defined]


def brief_help(command: str) -> str:
    """The names of what there is to choose from."""
    from bayesneg.config.listing import loss_lines, model_lines, prior_lines, sampler_lines

    lists = {"Samplers": sampler_lines(), "Losses": loss_lines(), "Priors": prior_lines(), "Models": model_lines()}
    names = [(title, ", ".join(name for name, _ in lines)) for title, lines in lists.items()]
    return "\n\n".join(
        [
            _block("Names:", names),
            f"What they mean, their settings, and options for reading the data: {command} --help-all",
        ]
    )


def sampler_help() -> str:
    """Every sampler, loss, prior, likelihood and model with its settings, and what the settings mean."""
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
