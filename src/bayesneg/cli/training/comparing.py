"""What ``compare`` and ``tune`` are asked for: samplers, losses, model and baselines, and where the results go."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bayesneg.cli import options as opt
from bayesneg.cli.output import report_file
from bayesneg.cli.training import completions
from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.config.specs import SamplerSpec
    from bayesneg.interfaces import Model
    from bayesneg.tuning.portfolio import Portfolio


def _baselines() -> Any:
    names = "popularity, item-knn, rp3beta, ease, gfcf, als"
    return opt.training_option(
        f"baselines without sampler: {names}; settings after colons; none for none", metavar="NAMES"
    )


@dataclass(frozen=True)
class Comparing:
    """Samplers to compare, with which model and baselines, and where the results go."""

    samplers: Annotated[
        str,
        opt.training_option(
            "samplers, comma-separated, settings after colons: rns,dns:candidates=5; bayesneg train --help-all lists "
            "them all",
            metavar="NAMES",
            autocompletion=completions.samplers,
        ),
    ] = "rns,dns,bns"
    loss: opt.Losses = None
    baselines: Annotated[str, _baselines()] = opt.BESIDE
    seeds: opt.Seeds = 5
    settings: opt.Settings = None
    model: opt.ModelOfSamplers = "mf"
    device: opt.Device = None
    epochs: opt.Epochs = 100
    evaluate_every: opt.EvaluateEvery = 1
    jobs: opt.Jobs = None
    report: opt.Report = None
    force: opt.Force = False
    out: Annotated[Path | None, typer.Option(help="folder for one run folder per sampler and seed")] = None
    resume: Annotated[bool, typer.Option("--resume", help="keep the finished runs in --out and resume the others")] = (
        False
    )

    def prepared(self) -> tuple[Model, list[SamplerSpec]]:
        """The model and the samplers, checked with the other options before any data is read."""
        self.check()
        return contenders(self.samplers, self.model, self.settings, self.device)

    def check(self) -> None:
        """The options that are neither model nor sampler."""
        from bayesneg.experiments.contenders import named_baselines, named_losses

        if self.resume and self.out is None:
            raise InputError("--resume needs --out, the folder of the runs to resume")
        named_baselines(self.baselines)
        named_losses(self.loss)

    @property
    def page(self) -> Path:
        """The report to write, checked before any data is read."""
        return report_file(self.report, "--report", default="report.html", force=self.force)

    @property
    def how(self) -> dict[str, Any]:
        """The arguments that ``compare`` and ``tune`` share."""
        names = ("loss", "baselines", "seeds", "epochs", "evaluate_every", "jobs", "out", "resume")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Tuning(Comparing):
    """Samplers to tune; the final comparison has the options of a comparison."""

    samplers: Annotated[
        str | None,
        opt.training_option(
            "samplers to tune, comma-separated; settings after colons are kept, the others are searched",
            metavar="NAMES",
            default="see above; rns,dns,bns with --model or --loss",
        ),
    ] = None  # type: ignore[assignment]
    loss: Annotated[
        str | None,
        opt.losses_option(
            "losses to tune with every sampler, comma-separated; settings after colons are kept, the others are "
            "searched"
        ),
    ] = None
    model: Annotated[
        str | None,
        opt.training_option(
            "mf, lightgcn or torch-mf (the extra torch)",
            metavar="NAME",
            default="what suits each loss; mf with --samplers or --loss",
            autocompletion=completions.models,
        ),
    ] = None  # type: ignore[assignment]
    baselines: Annotated[str, _baselines()] = "popularity,item-knn,ease"
    seeds: Annotated[int, opt.training_option("runs per sampler in the final comparison")] = 5
    epochs: Annotated[int, opt.training_option("epochs of each trial and each final run")] = 100
    patience: Annotated[
        int | None,
        opt.training_option(
            "evaluations without a better one after which a trial or a final run ends",
            default="10, with --samplers, --loss or --model never",
        ),
    ] = None
    jobs: Annotated[
        int | None, opt.training_option("runs at a time in the final comparison", default="one per core; on a GPU 1")
    ] = None
    out: Annotated[Path | None, typer.Option(help="folder for trials, final runs and recommendation")] = None
    resume: Annotated[bool, typer.Option("--resume", help="resume the search in --out")] = False

    @property
    def how(self) -> dict[str, Any]:
        return {**super().how, "patience": self.patience}

    def searched(self) -> tuple[Model | None, list[SamplerSpec] | Portfolio]:
        """The model and the samplers, or what is searched by default, checked before any data is read."""
        from bayesneg.tuning.portfolio import Portfolio

        if self.samplers is None and self.model is None and self.loss is None:
            self.check()
            return None, Portfolio(tuple(self.settings or ()), self.device)
        return replace(self, samplers=self.samplers or "rns,dns,bns", model=self.model or "mf").prepared()


def contenders(
    samplers: str, model: str, settings: list[str] | None, device: str | None
) -> tuple[Model, list[SamplerSpec]]:
    """The model and the samplers with their settings; each sampler once."""
    from bayesneg.config.registry import BASELINES
    from bayesneg.config.specs import build_model, parse_samplers, sort_settings, with_device

    if model in BASELINES:
        raise InputError(f"model {model} samples no negatives; compare shows it with --baselines {model}")
    for_model, specs = sort_settings(settings or (), model, parse_samplers(samplers))
    labels = [spec.label for spec in specs]
    if twice := {label for label in labels if labels.count(label) > 1}:
        raise InputError(f"--samplers has {min(twice)} twice; give each once, or with other settings")
    return build_model(model, with_device(for_model, model, device)), specs
