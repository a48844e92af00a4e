"""What a search adds to the report: the advice with its evidence, and the trials that led to it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bayesneg.evaluation.statistics import Estimate
from bayesneg.report.canvas import GREY, svg
from bayesneg.report.figures import figure
from bayesneg.report.markup import Markup, element, fold, section
from bayesneg.report.names import NOTHING, counted, metric_name, number, signed
from bayesneg.report.plots import look
from bayesneg.report.tables import Cell, table
from bayesneg.runs.tuning_result import Advice, Evidence, Trial, TuningResult

STATES = {"complete": "complete", "pruned": "given up early", "failed": "failed"}


def tuning_sections(tuning: TuningResult) -> list[Markup]:
    """To stand before the final comparison, as ``first`` of :func:`~bayesneg.report.html.write_report`."""
    name = metric_name(tuning.advice.key)
    trials = fold("All trials", _trials(tuning.trials, name))
    return [
        section("What to use", element("p", {"class": "finding"}, tuning.advice.text), _evidence(tuning.advice)),
        section("The search on validation data", element("div", {"class": "figures"}, _history(tuning, name)), trials),
    ]


def _evidence(advice: Advice) -> Markup:
    rows = [_rival(each) for each in advice.evidence]
    caption = (
        f"{metric_name(advice.key)} of {advice.favourite}, the best on validation data, minus each rival's, on test "
        "data. A difference is clear if both 95% intervals lie on one side of zero."
    )
    heads = ["Rival", "Difference", "Over users", "Over seeds", "Verdict"]
    return table(caption, heads, rows, name="Evidence") if rows else Markup()


def _rival(each: Evidence) -> list[Cell]:
    found = each.difference
    verdict = ("better" if found.mean > 0 else "worse") if found.is_clear else "not distinguishable"
    return [
        Cell(f"{each.rival}{' (simpler)' if each.is_simpler else ''}", each.rival),
        Cell(signed(found.mean, 4), repr(found.mean)),
        _interval(found.over_users),
        _interval(found.over_seeds),
        Cell(verdict, verdict),
    ]


def _interval(difference: Estimate) -> Cell:
    if math.isnan(difference.low):
        return Cell(NOTHING)
    return Cell(f"{number(difference.low, 4)} to {number(difference.high, 4)}", repr(difference.low))


def _trials(trials: Sequence[Trial], name: str) -> Markup:
    rows = [
        [
            Cell(f"{trial.number}. {trial.label}", f"{trial.number:06d}"),
            Cell(number(trial.value, 4), "" if trial.value is None else repr(trial.value)),
            Cell(str(len(trial.curve)), str(len(trial.curve))),
            Cell(STATES[trial.state] + (f": {trial.why}" if trial.why else ""), trial.state),
        ]
        for trial in trials
    ]
    caption = f"{name} on validation data at the trial's best epoch, one seed."
    return table(caption, ["Trial", name, "Epochs judged", "How it ended"], rows, name="Trials")


def _history(tuning: TuningResult, name: str) -> Markup:
    judged = [trial for trial in tuning.trials if trial.value is not None and trial.state != "failed"]
    families = list(dict.fromkeys(trial.family for trial in judged))

    def draw(axes: Axes) -> None:
        for place, family in enumerate(families):
            style = {key: look(place)[key] for key in ("color", "marker")} | {"linestyle": "none", "markersize": 6}
            own = [trial for trial in judged if trial.family == family]
            ended = [trial for trial in own if trial.state == "complete"]
            given_up = [trial for trial in own if trial.state == "pruned"]
            axes.plot(*_points(ended), label=family, **style)
            axes.plot(*_points(given_up), fillstyle="none", **style)
        numbers, values = _points(judged)
        axes.step(numbers, list(accumulate(values, max)), where="post", color=GREY, linewidth=1.2, zorder=1)
        axes.set_xlabel("trial")
        axes.set_ylabel(f"{name} on validation")
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        axes.legend(frameon=False, loc="lower right")

    best = "; ".join(f"{trial.label} {number(trial.value, 4)}" for trial in tuning.best.values())
    n_pruned = sum(trial.state == "pruned" for trial in tuning.trials)
    caption = (
        f"{counted(len(tuning.trials), 'trial')}, each at its best epoch; hollow: given up early ({n_pruned}), "
        "below the median of those before it. The line is the best so far. Test labels play no role here."
    )
    return figure(svg(draw, "tuning"), "tuning", "What was tried", caption, best)


def _points(judged: Sequence[Trial]) -> tuple[list[int], list[float]]:
    return [trial.number for trial in judged], [trial.value for trial in judged if trial.value is not None]
