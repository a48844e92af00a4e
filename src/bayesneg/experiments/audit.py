"""Which negatives each sampler picks: samplers × losses × seeds on one or several splits, measured after every epoch.

Training is ``fit`` with an observer; a finished run is a record, kept as a line of the ledger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bayesneg.checks import number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.data.splits import split as split_data
from bayesneg.errors import InputError
from bayesneg.evaluation.calibration import EDGES
from bayesneg.evaluation.picks import RELIABILITY
from bayesneg.evaluation.statistics import estimate
from bayesneg.experiments.contenders import (
    Losses,
    Samplers,
    check_order,
    contenders,
    named_losses,
    named_models,
    named_samplers,
)
from bayesneg.experiments.drill_down import USERS, DrillDownObserver, picks_frame
from bayesneg.experiments.runner import chosen_seeds, naming, run_all, runs_at_once
from bayesneg.interfaces import BPR_LOSS, Loss, Model, NegativeSampler
from bayesneg.notebooks import html_table, with_half_width
from bayesneg.progress import ShowEpoch, run_bars
from bayesneg.runs import ledger
from bayesneg.runs.record import RunRecord, describe, jsonable
from bayesneg.training import fit
from bayesneg.training.arguments import model_first

if TYPE_CHECKING:
    import polars as pl


def hide(data: Interactions, shares: Iterable[float], *, seed: int = 0) -> dict[str, Split]:
    """Hide a share of each user's interactions from training: known false negatives.

    Args:
        data: The observed interactions.
        shares: Shares of each user's interactions, between 0 and 1; one split for each.
        seed: Seed of the choice of hidden interactions.

    Returns:
        Name → split, whose test part is what is hidden; the name says how much.

    >>> from bayesneg.data.synthetic import synthetic
    >>> parts = hide(synthetic(40, 60, seed=0), [0.1, 0.5])
    >>> list(parts), len(parts["synthetic, 10% hidden"].train) > len(parts["synthetic, 50% hidden"].train)
    (['synthetic, 10% hidden', 'synthetic, 50% hidden'], True)
    """
    if not isinstance(data, Interactions):
        raise InputError(
            f"data must be interactions, as bn.load(…) gives them, got {type(data).__name__}; a split needs no hiding"
        )
    if not isinstance(shares, Iterable):
        raise InputError(f"shares must be a list such as [0.1, 0.3], got {shares!r}")
    found: dict[str, Split] = {}
    for share in shares:
        number("shares", share, above=0)
        name = f"{data.name}, {100 * share:g}% hidden"
        if name in found:
            raise InputError(f"shares must differ by more than a millionth part, got two of {100 * share:g}%")
        try:
            found[name] = split_data(data, test=share, by="user", seed=seed)
        except InputError as error:
            raise InputError(f"a share of {share:g} cannot be hidden ({error}); hide another one (--hide)") from error
    return found


@dataclass(frozen=True)
class Audit:
    """The result of :func:`bayesneg.audit`.

    Args:
        records: One per split, sampler, loss and seed; their epochs hold every measure.
    """

    records: Sequence[RunRecord]

    def _repr_html_(self) -> str:
        groups: dict[tuple[str, ...], list[RunRecord]] = {}
        for record in self.records:
            groups.setdefault((record.dataset, record.label, record.loss), []).append(record)
        rows = []
        for names, runs in groups.items():
            found = [estimate(run.last(key) for run in runs) for key in ("fn", "fn_gradient", "fn_uniform")]
            rows.append((*names, *(with_half_width(each.mean, each.half_width, percent=True) for each in found)))
        heads = ("data", "sampler", "loss", "false negatives", "of the gradient", "uniform sampling")
        seeds = len({record.seed for record in self.records})
        notes = ["false negatives: their share of the last epoch's picks, and of the gradient"]
        return html_table(f"last epoch, mean ± 95% over {seeds} seeds", heads, rows, notes=notes, n_text=3)

    @property
    def frame(self) -> pl.DataFrame:
        """One row per split, sampler, loss, seed and epoch; one column per measure."""
        import polars as pl

        rows = [
            {
                "dataset": record.dataset,
                "sampler": record.label,
                "loss": record.loss,
                "seed": record.seed,
                **{key: value for key, value in line.items() if not isinstance(value, Mapping)},
            }
            for record in self.records
            for line in record.epochs
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def reliability(self) -> pl.DataFrame:
        """The reliability diagram: one row per split, sampler, seed, epoch, population and non-empty bin of unbias.

        The population is ``picked``, the sampled negatives, or ``candidates``, uniform draws.
        """
        import polars as pl

        rows = [
            {
                "dataset": record.dataset,
                "sampler": record.label,
                "seed": record.seed,
                "epoch": line["epoch"],
                "population": population,
                **row,
            }
            for record in self.records
            for line in record.epochs
            for population, key in RELIABILITY.items()
            for row in (_bins(line[key]) if key in line else ())
        ]
        return pl.DataFrame(rows, infer_schema_length=None)

    @property
    def picks(self) -> pl.DataFrame:
        """The drill-down: one row per split, sampler, loss, seed and pick of the recorded users after the last epoch.

        Columns: ``user``, ``positive`` and the ``negative`` picked for it (identifiers as text), ``score``,
        ``positive_score``, ``hardness``, ``false``, ``held_out``, and ``prior`` and ``unbias``, null for a sampler
        without them.
        """
        return picks_frame(self.records)


def _bins(table: Mapping[str, Sequence[float]]) -> Iterator[dict[str, float]]:
    """The non-empty bins, each between two values of unbias."""
    for position, (n, mean, true) in enumerate(zip(table["n"], table["mean_predicted"], table["true"], strict=True)):
        if n:
            low, high = 1.0 - EDGES[position + 1], 1.0 - EDGES[position]
            yield {"from": low, "to": high, "n": n, "mean_predicted": mean, "observed_rate": true / n}


@model_first("give a model: bn.audit(bn.MF(), split, 'rns,bns')")
def audit(
    model: str | Model,
    split: Split | Mapping[str, Split],
    samplers: Samplers = "rns,dns,bns",
    *,
    loss: Losses | None = None,
    seeds: int | Iterable[int] = 3,
    epochs: int = 30,
    probes: int = 2000,
    users: int = USERS,
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Audit:
    """Train with each sampler, loss and seed, and measure what is sampled and learned from, epoch by epoch.

    Args:
        model: Such as ``MF()``, or text as on the command line.
        split: One split, or several by name, as :func:`hide` returns them.
        samplers: A mapping label → sampler, a list of samplers, or text, as in :func:`bayesneg.compare`; by default
            RNS, DNS and BNS. A function of a split that returns a sampler is called for each split (an oracle needs the
            labels of its split).
        loss: One loss, by default BPR, or several, as in :func:`bayesneg.compare`.
        seeds: How many (0, 1, …), or which.
        epochs: Passes over the training interactions.
        probes: Training examples for which the sampler is called again after each epoch, for hardness and calibration.
        users: Users whose picks are recorded one by one after the last epoch, 20 picks of each at most; the same users
            for every sampler and seed. 0 records none.
        jobs: Runs at a time; one per core unless given, and one on a GPU. Results do not depend on it.
        out: A file that gets a line for each finished run, as soon as it is finished.
        resume: Keep the finished runs in ``out`` and train the others.
        progress: Show a progress bar for each sampler on stderr.

    Returns:
        The records, split by split, sampler by sampler, seed by seed, and their measures as data frames.

    >>> from bayesneg.data.synthetic import synthetic
    >>> from bayesneg.models.mf import MF
    >>> splits = hide(synthetic(60, 50, seed=0), [0.2])
    >>> found = audit(MF(dim=4), splits, "rns,bns", seeds=1, epochs=1, probes=50, progress=False)
    >>> found.frame.select("sampler", "seed", "epoch").rows()
    [('RNS', 0, 1), ('BNS', 0, 1)]
    """
    check_order("audit", model)
    _check_splits(split)
    made, losses = named_samplers(samplers), named_losses(loss)
    models = named_models(model)
    if len(models) > 1:
        raise InputError(f"model must be one model, got {len(models)}; audit each by itself")
    (built,) = models.values()
    for name, count in (("epochs", epochs), ("probes", probes), ("jobs", 1 if jobs is None else jobs)):
        whole(name, count)
    whole("users", users, least=0)
    seeds, at_once = chosen_seeds(seeds), runs_at_once([built], jobs)
    splits = {split.train.name: split} if isinstance(split, Split) else dict(split)
    path = None if out is None else Path(out)
    kept = {} if path is None else _kept(path, resume)
    runs = [
        _AuditRun(name, part, label, each.sampler, each.loss, seed)
        for name, part in splits.items()
        for label, each in contenders(models, made, losses, {}, part).items()
        if each.sampler is not None and each.loss is not None
        for seed in seeds
    ]
    settings = _AuditSettings(epochs, probes, users)
    keys = _keys(runs, built, settings)

    def one(run: _AuditRun, show: ShowEpoch) -> RunRecord:
        key = keys[run]
        if key in kept:
            show(dict(kept[key].record.epochs[-1]))
            return replace(kept[key].record, dataset=run.name)
        record = run.train(built, settings, show)
        return record if writer is None else writer.add(ledger.Entry(key, run.facts(), record)).record

    with ExitStack() as stack:
        writer = None if path is None else stack.enter_context(ledger.Writer(path))
        show = stack.enter_context(run_bars(progress, [run.label for run in runs], [epochs] * len(runs)))
        return Audit(run_all([partial(one, run) for run in runs], jobs=at_once, show=show))


def _check_splits(split: object) -> None:
    """An error that says what to give, where something else was given."""
    parts = split if isinstance(split, Mapping) else {"": split}
    if not parts:
        raise InputError("split must hold at least one split, got none; bn.hide(data, [0.2]) makes them")
    for name, part in parts.items():
        if isinstance(part, Split) and len(part.held_out) == 0:
            raise InputError("split holds nothing out, so no negative is known to be false; audit before split.whole()")
        if not isinstance(name, str):
            raise InputError(f"split: a name must be text, got {name!r}; write {str(name)!r}")
        if not isinstance(part, Split):
            raise InputError(
                f"split must be a split, or several by name, got {type(part).__name__}; bn.hide(data, [0.2]) makes them"
            )


def _kept(path: Path, resume: bool) -> dict[str, ledger.Entry]:
    """The finished runs in the file; a file of something else is not written to."""
    if path.exists() and not resume:
        raise InputError(f"{path} exists; choose another out, or resume (--resume) to keep the finished runs in it")
    kept = ledger.read(path)
    if not kept and path.exists() and path.stat().st_size:
        raise InputError(f"{path} holds no finished run of an audit; choose another out, or remove the file")
    return kept


def _keys(runs: Sequence[_AuditRun], model: Model, settings: _AuditSettings) -> dict[_AuditRun, str]:
    """The key of each run; two that the file could not distinguish are refused."""
    keys = {run: run.key(model, settings) for run in runs}
    of_key: dict[str, _AuditRun] = {}
    for run, key in keys.items():
        other = of_key.setdefault(key, run)
        if other is not run:
            raise InputError(f"the splits {other.name!r} and {run.name!r} are the same; give each once")
    return keys


class _AuditSettings(NamedTuple):
    epochs: int
    probes: int
    users: int


@dataclass(frozen=True, eq=False)
class _AuditRun:
    """One sampler and one loss with one seed on one split."""

    name: str
    split: Split
    label: str
    sampler: NegativeSampler
    loss: Loss
    seed: int

    def facts(self) -> dict[str, Any]:
        return {"dataset": self.name, "sampler": self.label, "seed": self.seed}

    def key(self, model: Model, how: _AuditSettings) -> str:
        """A digest of all that decides the results, and of the label: two functions may have the same name."""
        sampler = describe(self.sampler.resolved(self.split.train))
        settings = [self.split.fingerprint, describe(model), self.label, sampler, how.epochs, self.seed, how.probes]
        settings += [] if self.loss == BPR_LOSS else [describe(self.loss)]
        settings += [] if how.users == USERS else [{"users": how.users}]
        return hashlib.sha256(json.dumps(jsonable(settings), sort_keys=True).encode()).hexdigest()[:16]

    def train(self, model: Model, how: _AuditSettings, show: ShowEpoch) -> RunRecord:
        observer = DrillDownObserver(self.split, seed=self.seed, probes=how.probes, users=how.users, epochs=how.epochs)
        with naming(self.label, self.seed):
            record = fit(
                model,
                self.split,
                self.sampler,
                loss=self.loss,
                epochs=how.epochs,
                seed=self.seed,
                select="last",
                evaluate_every=how.epochs,
                label=self.label,
                progress=show,
                observer=observer,
            ).record
        n_users = int((self.split.test.counts > 0).sum())
        facts = {**record.data, "n_users_with_hidden": n_users, "probes": how.probes}
        return replace(record, dataset=self.name, data=facts, epochs=[self._with_rates(line) for line in record.epochs])

    def _with_rates(self, line: Mapping[str, Any]) -> dict[str, Any]:
        """The line with shares: false negatives among the picks and in the gradient, by the ground truth if it is
        known, and skips.
        """
        known = "_true" if "tnr_true" in line else ""
        return {
            **line,
            "fn": 1.0 - line[f"tnr{known}"],
            "fn_gradient": line[f"gradient_fn{known}"],
            "fn_uniform": 1.0 - line[f"tnr_uniform{known}"],
            "skipped_share": line["skipped"] / len(self.split.train),
        }
