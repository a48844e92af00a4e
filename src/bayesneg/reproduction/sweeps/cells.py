"""A cell of a sweep: one model, one sampler, one loss, one split, one seed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from bayesneg.config.build import build_sampler
from bayesneg.config.registry import PAPER, paper_settings
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.evaluation.score_densities import ScoreDensities
from bayesneg.runs.record import RunRecord
from bayesneg.training import fit

BPR: Final = "bpr"
View = Literal["last", "best"]


@dataclass(frozen=True)
class Cell:
    """Everything that decides the results of one run, in plain values; ``model_settings`` are changes from the paper's.

    Two cells of equal ``key`` give the same results with the same code on a CPU; on a GPU the last digits may differ.
    """

    dataset: str
    fingerprint: str  # of the split
    view: str  # "best": report the best epoch on validation data; otherwise the last one
    model: str
    sampler: str  # its kind; empty for a baseline
    label: str  # its name in tables, which decides no result
    epochs: int
    seed: int
    evaluate_every: int = 1
    model_settings: Mapping[str, Any] = field(default_factory=dict)
    sampler_settings: Mapping[str, Any] = field(default_factory=dict)
    loss: str = BPR  # as on the command line
    densities: tuple[int, ...] = ()  # epochs after which score densities are recorded

    @property
    def key(self) -> str:
        """A short digest of what decides the results."""
        settings = {name: value for name, value in self.to_dict().items() if name != "label"}
        return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]

    def to_dict(self) -> dict[str, Any]:
        """In plain values; BPR is left out, so that keys are those of sweeps that know no other loss."""
        values = {**asdict(self), "densities": list(self.densities)}
        return {name: value for name, value in values.items() if name != "loss" or value != BPR}

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Cell:
        return cls(**{**stored, "densities": tuple(stored["densities"])})

    def __str__(self) -> str:
        return f"{self.dataset}, {self.model}, {self.label}, {self.view}, seed {self.seed}"


def run_cell(cell: Cell, split: Split, *, progress: Callable[[dict[str, Any]], None]) -> RunRecord:
    """Train and evaluate one cell; ``progress`` is called with each epoch's line."""
    if split.fingerprint != cell.fingerprint:
        raise InputError(f"{cell}: the data has changed since the cell was planned; plan the sweep again")
    sampler = (
        build_sampler(cell.sampler, paper_settings(cell.sampler, cell.sampler_settings), split)
        if cell.sampler
        else None
    )
    observed = cell.densities and sampler is not None
    return fit(
        PAPER[cell.model](**cell.model_settings),
        split,
        sampler,
        loss=cell.loss if sampler is not None else None,
        epochs=cell.epochs,
        seed=cell.seed,
        select="best" if cell.view == "best" else "last",
        evaluate_every=cell.evaluate_every,
        label=cell.label,
        progress=progress,
        observer=ScoreDensities(split, cell.densities) if observed else None,
    ).record
