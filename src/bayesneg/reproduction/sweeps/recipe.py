"""A sweep as a short TOML file: which samplers, models and datasets, how long and how often.

title = "Table 3: what each part of BNS contributes"
datasets = ["ml-100k"]
models = ["mf"]
views = ["last"]              # the last epoch; "best": the best on validation data
seeds = 10
epochs = 100

[[samplers]]
label = "BNS"
use = "bns"                   # as in bayesneg compare --samplers
loss = "bpr"                  # as in bayesneg compare --losses; BPR unless given

[[where]]                     # overrides for some cells
dataset = "ml-1m"
seeds = 3

Models have the settings of the BNS paper (``MF.paper()``, ``LightGCN.paper()``) where the recipe gives no others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from bayesneg.config.build import canonical
from bayesneg.config.custom import named_code
from bayesneg.config.loss_specs import as_loss, loss_text
from bayesneg.config.registry import BASELINES, MODELS, PAPER, main_name
from bayesneg.config.settings import check_known
from bayesneg.config.specs import SamplerSpec, pieces
from bayesneg.config.toml_files import read_toml
from bayesneg.errors import InputError
from bayesneg.reproduction.sweeps.cells import BPR, Cell, View

TRAINED: Final = tuple(name for name in MODELS if name not in BASELINES)  # the models that need a sampler

Name = TypeVar("Name", bound=str)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RecipeRow(_Strict):
    """One sampler of a sweep."""

    label: str = Field(min_length=1)
    use: str = Field(description="name:key=value, as in bayesneg compare --samplers")
    loss: str = Field(default=BPR, description="name:key=value, as in bayesneg compare --losses")
    settings: dict[str, Any] = Field(default_factory=dict, description="settings of the model for this row alone")
    paper: str | None = Field(default=None, description="the published row it is compared with: table2/BNS")
    note: str = Field(default="", description="what a reader of the table must know of this row")


class Where(_Strict):
    """Overrides for the cells of one dataset, one model, or both."""

    dataset: str | None = None
    model: str | None = None
    seeds: int | None = Field(default=None, ge=1)
    epochs: int | None = Field(default=None, ge=1)
    evaluate_every: int | None = Field(default=None, ge=1)
    settings: dict[str, Any] = Field(default_factory=dict, description="settings of the model")

    def holds(self, dataset: str, model: str) -> bool:
        return self.dataset in (None, dataset) and self.model in (None, model)


class Recipe(_Strict):
    """A sweep: every sampler with every model on every dataset, in every view."""

    title: str
    about: str = Field(default="", description="what a reader of the whole table must know")
    as_stated: bool = Field(default=True, description="false where the rows follow another reading than the text's")
    samplers: tuple[RecipeRow, ...] = Field(min_length=1)
    datasets: tuple[str, ...] = Field(min_length=1)
    models: tuple[str, ...] = Field(default=("mf",), min_length=1)
    views: tuple[Literal["last", "best"], ...] = Field(default=("last",), min_length=1)
    seeds: int = Field(default=1, ge=1)
    epochs: int = Field(default=100, ge=1)
    evaluate_every: int = Field(default=5, ge=1)
    densities: tuple[int, ...] = ()
    where: tuple[Where, ...] = ()
    readings: bool = Field(default=False, description="rows are rivals only of those beside the same published row")

    @field_validator("datasets", "models", "views")
    @classmethod
    def _once(cls, names: tuple[Name, ...]) -> tuple[Name, ...]:
        """A name given twice must not count its runs twice."""
        return _unique(names)

    @classmethod
    def read(cls, path: Path, *, allow_code: bool = False) -> Recipe:
        """Read a file; an error names the file and the place. Python files that it names are run only if allowed."""
        file = read_toml(path)
        try:
            for key in file.values:
                check_known(key, cls.model_fields, "key of a recipe")
            recipe = cls.model_validate(file.values)
            if not allow_code:
                recipe._check_no_code()
            recipe._check_names()
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(str(part) for part in first["loc"])
            keys = [] if any(isinstance(part, int) for part in first["loc"]) else [str(part) for part in first["loc"]]
            raise file.error(f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}", *keys) from None
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return recipe

    def _check_no_code(self) -> None:
        for row in self.samplers:
            texts = [part.partition("=")[2] or part for text in (row.use, row.loss) for part in pieces(text)]
            if code := named_code(texts):
                raise InputError(
                    f"row {row.label!r} names {code}, whose code would be run; read it, then allow it (--allow-code)"
                )

    def _check_names(self) -> None:
        """Every name is known, and every label is used once."""
        for model in self.models:
            check_known(model, TRAINED, "model with a sampler")
        for where in self.where:
            for given, valid, noun in (
                (where.dataset, self.datasets, "dataset of this recipe"),
                (where.model, self.models, "model of this recipe"),
            ):
                if given is not None:
                    check_known(given, valid, noun)
        labels: dict[str, str] = {}
        for row in self.samplers:
            SamplerSpec.parse(row.use).checked()
            as_loss(row.loss)
            if row.label.lower() in labels:
                twice = f"{labels[row.label.lower()]!r} and {row.label!r}"
                raise InputError(f"two rows have the same label, {twice}; give each another")
            labels[row.label.lower()] = row.label

    def narrowed(
        self,
        *,
        datasets: Sequence[str] = (),
        models: Sequence[str] = (),
        samplers: Sequence[str] = (),
        views: Sequence[View] = (),
        seeds: int | None = None,
        epochs: int | None = None,
    ) -> Recipe:
        """The recipe with these values instead; samplers are chosen among its rows by label."""
        rows = {row.label.lower(): row for row in self.samplers}
        chosen = _unique([name.lower() for name in samplers])
        for name in chosen:
            check_known(name, rows, "row of this experiment")
        for model in models:
            check_known(model, TRAINED, "model with a sampler")
        always = Where(seeds=seeds, epochs=epochs)
        return self.model_copy(
            update={
                "datasets": _unique(datasets) or self.datasets,
                "models": _unique(models) or self.models,
                "views": _unique(views) or self.views,
                "samplers": tuple(rows[name] for name in chosen) or self.samplers,
                "where": (*self.where, always),  # the last override wins
            }
        )

    def cells(self, fingerprint_of: Callable[[str, View], str]) -> list[Cell]:
        """The cells, seed by seed, so that an unfinished sweep has about as many of each.

        ``fingerprint_of`` gives the fingerprint of a dataset in a view.
        """
        found = [
            cell
            for study in product(self.datasets, self.models, self.views)
            for cell in self._study(fingerprint_of, *study)
        ]
        return sorted(found, key=lambda cell: cell.seed)

    def _study(
        self, fingerprint_of: Callable[[str, View], str], dataset: str, model: str, view: View
    ) -> Iterator[Cell]:
        overrides = [where for where in self.where if where.holds(dataset, model)]
        settings = {key: value for where in overrides for key, value in where.settings.items()}
        n_seeds = _last([where.seeds for where in overrides], self.seeds)
        for row, seed in product(self.samplers, range(n_seeds)):
            spec = SamplerSpec.parse(row.use)
            kind, presets = spec.named.kind, spec.named.presets
            yield Cell(
                dataset=dataset,
                fingerprint=fingerprint_of(dataset, view),
                view=view,
                model=model,
                model_settings=canonical(
                    MODELS[model], {**settings, **row.settings}, f"model {model}", base=PAPER[model]()
                ),
                sampler=main_name(kind) or spec.name,
                sampler_settings=canonical(kind, {**presets, **spec.settings}, f"sampler {spec.name}"),
                loss=loss_text(as_loss(row.loss)) or row.loss,
                label=row.label,
                epochs=_last([where.epochs for where in overrides], self.epochs),
                evaluate_every=_last([where.evaluate_every for where in overrides], self.evaluate_every),
                seed=seed,
                densities=self.densities,
            )


def _unique(names: Sequence[Name]) -> tuple[Name, ...]:
    """Each once, in the order given."""
    return tuple(dict.fromkeys(names))


def _last(given: Sequence[int | None], otherwise: int) -> int:
    return next((value for value in reversed(given) if value is not None), otherwise)
