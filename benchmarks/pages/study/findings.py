"""The first screen of docs/explanation/study.md: what the runs say so far, and what is still to be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from bayesneg.reproduction.studies import MODELS as TITLES_OF_MODELS
from benchmarks.pages.study.comparisons import DRAWS, LEFT, Combination, Comparison, p_text, weighted, with_interval
from benchmarks.pages.study.records import Dataset, Records, named, pairs
from benchmarks.pages.text import folded, signed, table
from benchmarks.studies.negatives import plan
from benchmarks.studies.negatives.contenders import BASELINES
from benchmarks.studies.negatives.plan import MODELS, SEEDS

GOALS: Final = {  # NDCG@20 on the test part, from docs/explanation/study-plan.md
    ("gowalla", "mf"): 0.157,
    ("gowalla", "lightgcn"): 0.158,
    ("yelp2018", "mf"): 0.060,
    ("yelp2018", "lightgcn"): 0.061,
    **{("ml-100k", model): 0.455 for model in MODELS},
    **{("ml-1m", model): 0.425 for model in MODELS},
}
KINDS: Final = ("posterior", "oracle")  # of weights
COMPLETE, REACHED, NOT_RUN = "complete", "yes", "not run"
Tests = dict[tuple[str, str], list[Comparison]]  # dataset and model → the tests at each one's own best setting


def findings(found: Sequence[Dataset], sixteen: Sequence[Combination], tests: Tests) -> list[str]:
    return [
        *progress(found, sixteen),
        "## What the posterior is worth",
        *worth(sixteen),
        *own_best(found, tests),
        *on_validation(found, sixteen),
        "## The best of each dataset and model",
        *reached(found, tests),
    ]


# --------------------------------------------------------------------------------------------------- what is missing


def progress(found: Sequence[Dataset], sixteen: Sequence[Combination]) -> list[str]:
    """Which stage is missing where; nothing once the study is complete."""
    rows = [[dataset.title, *map(missing, dataset.all)] for dataset in found]
    n_measured = sum(one.posterior.is_measured and one.oracle.is_measured for one in sixteen)
    if all(cell == COMPLETE for row in rows for cell in row[1:]) and n_measured == len(sixteen):
        return []
    anything = any(records.finals for dataset in found for records in dataset.all)
    said = (
        f"{'All' if n_measured == len(sixteen) else f'{n_measured} of the'} {len(sixteen)} combinations of dataset, model and draw are compared on the test part."
        if anything
        else "No final run is there: **no number on this page is a test result.**"
    )
    return [
        f"**The study is not complete.** {said} What is missing, stage by stage:",
        table(["", *(TITLES_OF_MODELS[model] for model in MODELS), "baselines"], rows, text_columns=len(MODELS) + 2),
    ]


def missing(records: Records) -> str:
    """The stages of a dataset and model that are unfinished, in words."""
    n_names = len(records.names)
    if records.n_piloted < len(records.pilot):
        return f"pilot ({records.n_piloted} of {len(records.pilot)} trainings done), search, final runs"
    n_searched = sum(one.is_complete for one in records.searches.values())
    n_begun = sum(bool(one.runs) for one in records.searches.values())
    texts = []
    if n_searched < n_names:
        begun = f", {n_begun - n_searched} begun" if n_begun > n_searched else ""
        texts.append(f"search ({n_searched} of {n_names} done{begun})")
    equal = records.weighted_names
    n_equal = sum(records.final(name, equal=True) is not None for name in equal)
    if len(records.finals) < n_names:
        texts.append(f"final runs ({len(records.finals)} of {n_names} done)")
    if n_equal < len(equal) and records.finals:
        texts.append(f"final runs at equal settings ({n_equal} of {len(equal)} done)")
    if records.names_follow:
        texts.append(f"the {plan.MORE} best with MF")
    return ", ".join(texts) or COMPLETE


# ---------------------------------------------------------------------------------------- the weights, all else equal


def worth(sixteen: Sequence[Combination]) -> list[str]:
    """The gain of the posterior and the ceiling, on the test part."""
    measured = [one for one in sixteen if one.posterior.is_measured]
    if not measured:
        return ["Not measured on the test part yet: it needs the final runs."]
    return [
        " ".join([*_gains(measured, len(sixteen)), *_ceiling(measured), *_failures(measured, len(sixteen))]),
        table(
            ["gain in NDCG@20, test", *(f"{draw}, {kind}" for draw in DRAWS.values() for kind in KINDS)],
            _by_draw(measured),
        ),
        f"Mean of {SEEDS} seeds, of the oracle with LightGCN one, ± half of the 95% interval over users, p with Holm's correction over the {len(sixteen)}; the "
        "oracle sees the test labels: it is the ceiling.",
        folded("Every combination", table(EVERY_HEAD, [_row(one) for one in measured])),
    ]


def own_best(found: Sequence[Dataset], tests: Tests) -> list[str]:
    """The posterior against no weights, each at the setting and epoch that validation chose for it."""
    rows, lower = [], list[bool]()
    for _, records in pairs(found):
        own = {(one.one, one.other): one for one in tests[records.dataset, records.model]}
        pairs_of_draws = [own.get((weighted(without, "posterior"), without)) for without in DRAWS]
        if any(one is not None and one.is_measured for one in pairs_of_draws):
            rows.append([records.title, *("–" if one is None else one.text for one in pairs_of_draws)])
        lower += [
            _temperature(records, one.one) < _temperature(records, one.other)
            for one in pairs_of_draws
            if one is not None and one.is_measured
        ]
    if not rows:
        return []
    return [
        "Each with the temperature, negative weight and epoch that validation chose **for itself**, the question of "
        f"someone who tunes both. The temperature is lower with weights than without in {sum(lower)} of {len(lower)}.",
        table(["posterior minus no weights, NDCG@20, test", *DRAWS.values()], rows),
        "p with Holm's correction over all tests of a dataset and model.",
    ]


def _temperature(records: Records, name: str) -> float:
    best = records.searches[name].best
    assert best is not None
    return float(best.trial.setting.loss["temperature"])


EVERY_HEAD: Final = (
    "", "NDCG@20 without weights, test", "posterior, gain", "oracle, gain", "of the ceiling", "outcome"
)  # fmt: skip


def _row(one: Combination) -> list[str]:
    return [one.title, f"{_base(one):.4f}", one.posterior.text, one.oracle.text, _reached(one), _outcome(one)]


def _by_draw(measured: Sequence[Combination]) -> list[list[str]]:
    """A row for each dataset and model."""
    rows: dict[str, dict[str, Combination]] = {}
    for one in measured:
        rows.setdefault(one.records.title, {})[one.draw] = one
    return [
        [title, *(_short(own.get(draw), kind) for draw in DRAWS.values() for kind in KINDS)]
        for title, own in rows.items()
    ]


def _short(one: Combination | None, kind: str) -> str:
    found = None if one is None else one.posterior if kind == "posterior" else one.oracle
    if found is None or not found.is_measured:
        return "–"
    return f"{signed(found.difference.mean)} ± {found.difference.half_width:.4f}, {p_text(found.holm)}"


def _base(one: Combination) -> float:
    runs = one.records.final(one.without)
    assert runs is not None
    return runs.value.mean


def _reached(one: Combination) -> str:
    if not one.oracle.is_measured or not one.oracle.difference.low > 0:
        return "–"
    return f"{one.posterior.difference.mean / one.oracle.difference.mean:.0%}"


def _outcome(one: Combination) -> str:
    if one.is_left:
        return f"ceiling below {LEFT:g}: left"
    if one.has_failed:
        return "failed"
    return {"above": "gain", "below": "loss", "not shown": "not shown"}[one.posterior.verdict]


def _gains(measured: Sequence[Combination], n_all: int) -> list[str]:
    by = {kind: [one for one in measured if one.posterior.verdict == kind] for kind in ("above", "below", "not shown")}
    of = f"{len(measured)} combinations" if len(measured) == n_all else f"the {len(measured)} combinations run so far"
    said = [
        f"At equal model, loss, temperature, negative weight and epoch, posterior weights raise NDCG@20 in "
        f"{len(by['above'])} of {of} and lower it in {len(by['below'])}; in {len(by['not shown'])} no difference is "
        "shown."
    ]
    ordered = sorted(measured, key=lambda one: one.posterior.difference.mean)
    ends = {id(one): one for one in (ordered[-1], ordered[0])}.values()
    names = ("The largest gain is", "the smallest") if len(ends) > 1 else ("It is",)
    texts = [f"{name} {one.posterior.text} ({one.title})" for name, one in zip(names, ends, strict=True)]
    return [*said, f"{', '.join(texts)}."]


def _ceiling(measured: Sequence[Combination]) -> list[str]:
    known = [one.oracle.difference.mean for one in measured if one.oracle.is_measured]
    if not known:
        return []
    share = [
        one.posterior.difference.mean / one.oracle.difference.mean
        for one in measured
        if one.oracle.is_measured and one.oracle.difference.low > 0
    ]
    reached = f"; the posterior reaches {np.median(share):.0%} of that in the median" if share else ""
    return [
        f"A perfect prior, which no method without the labels can have, would bring {signed(min(known))} to "
        f"{signed(max(known))}{reached}."
        if len(known) > 1
        else f"A perfect prior, which no method without the labels can have, would bring {signed(known[0])}{reached}."
    ]


def _failures(measured: Sequence[Combination], n_all: int) -> list[str]:
    failed = [one.title for one in measured if one.has_failed]
    where = f" ({'; '.join(failed)})" if 0 < len(failed) < n_all else ""
    how_many = f"all {n_all}" if len(failed) == n_all else f"{len(failed)} of {len(measured)}"
    said = (
        "By the plan's measure (its interval not above 0 while the oracle's is) the posterior has failed on "
        f"{how_many}{where}"
    )
    if len(failed) > n_all / 2:
        return [f"{said}: **the whole has failed.**"]
    return [f"{said}: the whole has not failed." if len(measured) == n_all else f"{said}."]


def on_validation(found: Sequence[Dataset], sixteen: Sequence[Combination]) -> list[str]:
    """The same comparison on the validation part, where the test part is not measured yet."""
    rows = []
    for one in sixteen:
        search = one.records.searches.get(one.without)
        if one.posterior.is_measured or search is None or search.best is None:
            continue
        trial, epoch, value, _ = search.best
        gains = []
        for kind in KINDS:
            other = one.records.validated_at(trial._replace(contender=weighted(one.without, kind)), epoch)
            gains.append("not run" if other is None else signed(other - value))
        state = "complete" if search.is_complete else f"{len(search.runs)} of {len(search.trials)} trainings"
        rows.append([one.title, state, f"{value:.4f}", *gains])
    if not rows:
        return []
    return [
        "On **validation**, one seed, without an interval: gains at the best setting and epoch of the contender without "
        f"weights ({' and '.join(f'`{name}`' for name in DRAWS)}), as far as it is searched. No finding; it shows where the study is.",
        table(
            ["", "search without weights", "without weights, validation", "posterior, gain", "oracle, gain"],
            rows,
            text_columns=2,
        ),
    ]


# ---------------------------------------------------------------------------------------------------- goals, baselines


def reached(found: Sequence[Dataset], tests: Tests) -> list[str]:
    """The contender that is best on validation: its goal, and its difference from each baseline."""
    rows, said = [], dict[str, list[str]]()
    for _, records in pairs(found):
        best, goal = records.best, GOALS[records.dataset, records.model]
        runs = None if best is None else records.final(best.name)
        start = [records.title, f"{goal:.3f}", *_best(records)]
        if best is None or runs is None:
            rows.append([*start, "–", NOT_RUN, *("–" for _ in BASELINES)])
            continue
        value = runs.value.mean
        own = {one.other: one for one in tests[records.dataset, records.model] if one.one == best.name}
        gaps = [own[name] for name in BASELINES]
        verdict = REACHED if value >= goal else f"no, {signed(value - goal)}"
        rows.append([*start, f"{value:.4f}", verdict, *map(_gap, gaps)])
        said.setdefault(_against_baselines(best.name, gaps), []).append(records.title)
    verdicts = [row[5] for row in rows]
    n_run = len(verdicts) - verdicts.count(NOT_RUN)
    head = ["", "goal, test", "best contender", "NDCG@20, validation", "NDCG@20, test", "goal reached"]
    how = (
        "The best contender is chosen on validation, oracles apart; the test part selects nothing. Validation and test "
        "are different parts: their values do not compare, and the goals are for the test part."
    )
    corrected = (
        " Differences from baselines are over users on the test part, p with Holm's correction within a dataset and "
        "model; their intervals and all other tests are in [tables/study-tests.csv](tables/study-tests.csv)."
    )
    return [
        *([f"Goals reached: {verdicts.count(REACHED)} of {n_run} that were run. " + _said(said)] if n_run else []),
        table([*head, *(f"minus {named(name)}" for name in BASELINES)], rows),
        how + (corrected if n_run else ""),
    ]


def _best(records: Records) -> list[str]:
    """The best contender so far, and its value on validation."""
    if records.best is None or records.best.best is None:
        return ["–", "–"]
    searches, more = records.searches.values(), plan.MORE if records.names_follow else 0
    done, n = sum(one.is_complete for one in searches), len(searches) + more
    so_far = "" if done == n else f", so far ({done} of {n} searched)"
    return [f"{named(records.best.name)}{so_far}", f"{records.best.best.value:.4f}"]


def _gap(one: Comparison) -> str:
    return f"{signed(one.difference.mean)}, {p_text(one.holm)}" if one.is_measured else "–"


def _said(grouped: Mapping[str, Sequence[str]]) -> str:
    """The same words for several datasets and models once."""
    return " ".join(f"{'; '.join(titles)}: {words}." for words, titles in grouped.items())


def _against_baselines(name: str, gaps: Sequence[Comparison]) -> str:
    """Which baselines a contender is above, and which not, by how much."""
    above = [named(one.other) for one in gaps if one.verdict == "above"]
    others = [
        f"{named(one.other)} {with_interval(one.difference)}" for one in gaps if one.verdict in ("below", "not shown")
    ]
    missing = [named(one.other) for one in gaps if not one.is_measured]
    texts = [
        f"above {', '.join(above)}" if above else "",
        f"not above {', '.join(others)}" if others else "",
        f"{', '.join(missing)} not run" if missing else "",
    ]
    return f"{named(name)} is {', '.join(text for text in texts if text)}"
