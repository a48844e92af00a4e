"""What a hyperparameter search adds to the report: the recommendation, its evidence, and the trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bayesneg.evaluation.metric_names import metric_name
from bayesneg.evaluation.statistics import Estimate
from bayesneg.report.comparison import render
from bayesneg.report.figures.canvas import GREY, HoverPoint, Series, svg
from bayesneg.report.figures.captions import drawing
from bayesneg.report.figures.plots import colour, look
from bayesneg.report.names import NOTHING, counted, number, signed
from bayesneg.report.pages import Drawing, Headline, Section, Table, TableCell, write_page
from bayesneg.runs.tuning_result import Advice, Evidence, Trial, TuningResult
from bayesneg.runs.verdict import standing


def write_tuning_report(tuning: TuningResult, path: str | Path, *, command: str | None = None) -> Path:
    """Write the page of a search: what to use and why, the command, the table, the evidence, the trials.

    Args:
        tuning: What :func:`bayesneg.tune` returned.
        path: The file to write.
        command: The command that trains the recommendation, by default that of the result.

    Returns:
        The path of the file.
    """
    return write_page(render_tuning(tuning, command=command), path)


def render_tuning(tuning: TuningResult, *, command: str | None = None) -> str:
    """The page of :func:`write_tuning_report` as text."""
    advice = tuning.advice
    first = advice.text.removesuffix(advice.rising).rstrip()
    headline = Headline(first, command=command or tuning.command or "", also=[advice.rising], notes=advice.notes)
    return render(tuning.records, recommended=headline, after_table=tuning_sections(tuning))


def tuning_sections(tuning: TuningResult) -> list[Section]:
    """The sections that follow the table of the final comparison.

    Args:
        tuning: What :func:`bayesneg.tune` returned.

    Returns:
        The evidence of the recommendation, and the search with its trials.
    """
    name = metric_name(tuning.advice.key)
    trials = Section("All trials", tables=[_trials(tuning.trials, name)])
    evidence = [Section("Evidence", tables=[_evidence(tuning.advice)])] if tuning.advice.evidence else []
    return [
        *evidence,
        Section("The search on validation data", drawings=[_history(tuning, name)], folds=[trials]),
    ]


def _evidence(advice: Advice) -> Table:
    caption = (
        f"{metric_name(advice.key)} of {advice.favourite}, the best on validation data, minus each rival's, on test "
        "data. Better and worse mean: significant over users and over seeds (p < 0.05)."
    )
    heads = ["Rival", "Difference", "95% interval over users", "95% interval over seeds", "Verdict"]
    return Table("Evidence", caption, heads, [_rival(each) for each in advice.evidence])


def _rival(each: Evidence) -> list[TableCell]:
    found = each.difference
    verdict = standing(found)
    return [
        TableCell(f"{each.rival}{' (simpler)' if each.is_simpler else ''}", each.rival),
        TableCell(signed(found.mean, 4), repr(found.mean)),
        _interval(found.over_users),
        _interval(found.over_seeds),
        TableCell(verdict, verdict),
    ]


def _interval(difference: Estimate) -> TableCell:
    if math.isnan(difference.low):
        return TableCell(NOTHING)
    return TableCell(f"{number(difference.low, 4)} to {number(difference.high, 4)}", repr(difference.low))


def _trials(trials: Sequence[Trial], name: str) -> Table:
    rows = [
        [
            TableCell(f"{trial.number}. {trial.label}", f"{trial.number:06d}"),
            TableCell(number(trial.value, 4), "" if trial.value is None else repr(trial.value)),
            TableCell(str(len(trial.curve)), str(len(trial.curve))),
            TableCell(trial.state + (f": {trial.why}" if trial.why else ""), trial.state),
        ]
        for trial in trials
    ]
    caption = f"{name} on validation data at the trial's best epoch, one seed."
    return Table("Trials", caption, ["Trial", name, "Epochs evaluated", "State"], rows)


def _history(tuning: TuningResult, name: str) -> Drawing:
    judged = [trial for trial in tuning.trials if trial.value is not None and trial.state != "failed"]
    families = list(dict.fromkeys(trial.family for trial in judged))

    def draw(axes: Axes) -> list[Series]:
        series = []
        for place, family in enumerate(families):
            style = {key: look(place)[key] for key in ("color", "marker")} | {"linestyle": "none", "markersize": 6}
            trials = [trial for trial in judged if trial.family == family]
            complete = [trial for trial in trials if trial.state == "complete"]
            pruned = [trial for trial in trials if trial.state == "pruned"]
            drawn = axes.plot(*_points(complete), label=family, **style)
            drawn += axes.plot(*_points(pruned), fillstyle="none", **style)
            told = [HoverPoint(trial.number, trial.value or 0.0, _told(trial, name)) for trial in trials]
            series.append(Series(family, colour(place), told, [*drawn]))
        numbers, values = _points(judged)
        axes.step(numbers, list(accumulate(values, max)), where="post", color=GREY, linewidth=1.2, zorder=1)
        axes.set_xlabel("trial")
        axes.set_ylabel(f"{name} on validation")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        legend = axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=min(3, len(families)), frameon=False)
        for each, text in zip(series, legend.get_texts(), strict=True):
            each.labels.append(text)
        return series

    best = "; ".join(f"{trial.label} {number(trial.value, 4)}" for trial in tuning.best.values())
    n_pruned = sum(trial.state == "pruned" for trial in tuning.trials)
    caption = (
        f"{counted(len(tuning.trials), 'trial')}, each at its best epoch; hollow: pruned ({n_pruned}), "
        "below the median of the trials before it. Line: the best so far. Test labels are not used."
    )
    return drawing(svg(draw, "tuning"), "tuning", "Trials of the search", caption, best)


def _points(judged: Sequence[Trial]) -> tuple[list[int], list[float]]:
    return [trial.number for trial in judged], [trial.value for trial in judged if trial.value is not None]


def _told(trial: Trial, name: str) -> tuple[str, ...]:
    return f"trial {trial.number}: {trial.label}", f"{name} {number(trial.value, 4)} on validation", trial.state
