"""BPR with one negative, a part of docs/explanation/study.md: its tables and figures, from the archives in results/beyond/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bayesneg.evaluation.statistics import mean_interval
from bayesneg.report.figures import canvas
from bayesneg.report.figures.plots import look
from bayesneg.reproduction.markdown import short
from bayesneg.reproduction.studies import DATASETS, MODELS
from bayesneg.runs.ledger import Entry
from bayesneg.runs.record import RunRecord
from benchmarks.pages.beyond.study import (
    Against,
    DatasetStudy,
    Part,
    best_published,
    over_users,
    search,
    text_of,
)
from benchmarks.pages.publish import DOCS, keep, keep_pictures
from benchmarks.pages.text import comma_separated, folded, signed, table, with_interval
from benchmarks.studies.beyond import CURVE, RANDOM_SAME_MODEL, SAME_MODEL, final, sizes, studied, written
from benchmarks.studies.choosing import MAIN, UnsettledError, chosen, setting_of
from benchmarks.studies.plans import Plan, plan_of
from benchmarks.studies.splits import FOLDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SHOWN: Final = ("ndcg@5", "ndcg@10", "ndcg@20", "precision@20", "recall@20")


def publish_tables(found: Sequence[DatasetStudy], *, check: bool) -> None:
    """The figures, and the table of all that was tried."""
    keep_pictures(DOCS / "images" / "beyond", partial(draw, found), check=check)
    rows = [row for one in found for row in search(one)]
    keep(DOCS / "tables" / "beyond-search.csv", comma_separated(rows), check=check)


def parts(found: Sequence[DatasetStudy]) -> list[str]:
    """What docs/explanation/study.md says of it."""
    return [
        "BNS with a learned prior and a consistent likelihood, BPR and one negative, on MF and LightGCN with ensembles, against EASE, ALS and "
        "the best row of the paper: the study before this one. Settings and epoch were chosen on random tenths of the "
        "training part. Earlier choices whose final runs exist stay in the tables as *chosen before*; no interval is "
        "corrected for them.",
        *overview(found),
        "LightGCN on Gowalla and Yelp2018 was tuned with other settings than its published recipe and has no final runs; "
        "the sections below hold baselines only. The runs above supersede these two datasets.",
        "Final runs of MovieLens-100K with MF were repeated after a fix of the top bin of the isotonic calibration curve "
        "of the learned prior; the other runs of learned priors predate it. Model settings are changes of `MF.paper()` and "
        "`LightGCN.paper()`; `ensemble_size` models are trained together and score by their mean "
        "([models.md](../reference/models.md)). Everything that was tried on validation is in "
        "[tables/beyond-search.csv](tables/beyond-search.csv). `python -m benchmarks.studies.beyond` runs it.",
        *(folded(title(study), *sections(study)) for study in found),
    ]


def overview(found: Sequence[DatasetStudy]) -> list[str]:
    """What validation chose in every study, beside EASE and the best row of the paper, and what follows."""
    lines, verdicts = [], {"above": [], "below": [], "not distinguishable": []}  # type: ignore[var-annotated]
    for study in found:
        own = [] if study.choice is None else study.of(final(*_of(study), study.choice)[0])
        ease = study.ease(study.dataset)
        if study.choice is None or not own or study.choice.l2 not in ease:
            continue
        solved, papers = ease[study.choice.l2], max(best_published(study.dataset).values())
        against = Against((own, solved))
        values = [papers or None, study.als.final[MAIN] if study.als else None, solved.final[MAIN]]
        numbers = [estimate(own, MAIN), *("" if value is None else f"{value:.4f}" for value in values)]
        *_, gap, verdict = _over_parts(every) if (every := list(chain(*study.deals().values()))) else ("", "")
        others = f"{verdict}, {gap}" if verdict else ""
        verdicts[against.verdict].append(title(study))
        lines.append([title(study), str(len(own)), *numbers, against.gap, against.verdict, others])
    head = ["", "seeds", "BNS, learned prior", "best of the paper", "ALS", "EASE"]
    head += ["difference from EASE", "against EASE", "on other test parts"]
    if not lines:
        return []
    names = {"above": "above EASE", "below": "below EASE", "not distinguishable": "not distinguishable from EASE"}
    said = "; ".join(f"{names[verdict]} on {', '.join(where)}" for verdict, where in verdicts.items() if where)
    return [
        f"NDCG@20 of BNS is {said}. A verdict needs both 95% intervals, over users (shown) and over seeds, on one side of "
        "zero. ALS and EASE have the settings that validation chose.",
        table(head, lines),
    ]


def title(study: DatasetStudy) -> str:
    return f"{DATASETS.get(study.dataset, study.dataset)}, {MODELS[study.model]}"


def sections(study: DatasetStudy) -> list[str]:
    space = study.space
    settings = "All settings" if len(space.settings) > 1 else "One setting"
    splits = f"{settings} on {_splits(space.n_first)}"
    if space.n_all > space.n_first:
        splits += f"; the best four and EASE on {space.n_all}"
    try:
        setting, epoch, l2 = chosen(study.found, space)
        tried_l2 = [one["l2"] for one in space.ease]
        ends = {min(tried_l2): ", the lowest tried", max(tried_l2): ", the highest tried"}
        last = ", the last of the search" if epoch == space.epochs else ""
        said = (
            f"Selected on validation: {text_of(setting)}; epoch {epoch}{last}; EASE with l2 = {l2:g}{ends.get(l2, '')}. "
            f"{splits}. {plan_of(*_of(study)).why}"
        ).rstrip()
    except UnsettledError as reason:
        said = f"Nothing is selected yet, {reason}."
    others = (final_runs, other_test_parts, more_candidates, less_data)
    return [said, *(text for section in others for text in section(study))]


def _splits(n: int) -> str:
    return "one random 10% validation split" if n == 1 else f"{n} random 10% validation splits"


def final_runs(study: DatasetStudy) -> list[str]:
    """Everything that was evaluated on test labels but the curve, the chosen setting first."""
    rows = {} if study.choice is None else {row.label: study.of(row) for row in final(*_of(study), study.choice)}
    shown = {id(record) for records in rows.values() for record in records}
    for entry in study.judged(study.dataset):
        if id(entry.record) not in shown and not entry.cell["label"].startswith(("learned prior", "the paper's prior")):
            rows.setdefault(_name(entry), []).append(entry.record)
    rows = {label: records for label, records in rows.items() if records}
    if not rows:
        return ["There are no final runs on the test split."]
    own = rows.pop(final(*_of(study), study.choice)[0].label, []) if study.choice else []
    ordered = sorted(rows.items(), key=lambda row: -_mean(row[1]))
    head = ["", "seeds", "epochs", *map(short, SHOWN)]
    lines = [
        [label, str(len(records)), str(records[0].epochs[-1]["epoch"]), *(estimate(records, key) for key in SHOWN)]
        for label, records in ([("**chosen on validation**", own)] if own else []) + ordered
    ]
    parts = ["**Final runs**", table(head, lines)]
    if study.choice is None or not own:
        return [*parts, "The selected setting has not been run on the test split."]
    same = (SAME_MODEL, RANDOM_SAME_MODEL)
    beside: dict[str, list[RunRecord]] = {label: rows[label] for label in same if label in rows}
    if study.als:
        beside["ALS"] = [study.als]
    looks = (
        f"{study.n_looks} choices have been evaluated on this test part so far, this one last; no interval is corrected "
        "for that."
    )
    return [
        *parts,
        against_ease(own, study.ease(study.dataset), plan_of(*_of(study)), study.choice.l2),
        *[f"NDCG@20 minus that of {label}: {over_users(own, runs)} over users." for label, runs in beside.items()],
        *([looks] if study.n_looks > 1 else []),
        *against_paper(own, study),
    ]


def _of(study: DatasetStudy) -> tuple[str, str]:
    return study.dataset, study.model


def _name(entry: Entry) -> str:
    """Of a row that is not one of the present final runs."""
    label, settings = str(entry.cell["label"]), entry.cell["model_settings"]
    if entry.cell["model"] == "ease":
        return f"EASE, l2 = {settings['l2']:g}"
    if not entry.cell["sampler"]:
        return f"{label.upper()}, {written(settings)}" if settings else label
    before = "chosen before" if label == "chosen on validation" else f"{label}, before"
    return f"{before}: {text_of(setting_of(entry))}, epoch {entry.cell['epochs']}"


def _mean(records: Sequence[RunRecord]) -> float:
    return float(np.mean([record.final[MAIN] or 0.0 for record in records]))


def estimate(records: Sequence[RunRecord], key: str) -> str:
    return with_interval(np.array([record.final[key] for record in records], dtype=np.float64))


def against_ease(own: Sequence[RunRecord], ease: Mapping[float, RunRecord], plan: Plan, by_validation: float) -> str:
    """Against the EASE that validation chose, and the best there could have been; EASE has no seed."""
    named = {by_validation: "chosen on validation"} if by_validation in ease else {}
    if len(plan.l2) > 1 and set(plan.l2) <= set(ease):
        best = max(ease, key=lambda l2: ease[l2].final[MAIN] or 0.0)
        named[best] = ", and ".join([*([named[best]] if best in named else []), "the best on the test labels"])
    texts = []
    for l2, why in named.items():
        against = Against((own, ease[l2]))
        texts.append(
            f"NDCG@20 minus that of EASE with l2 = {l2:g} ({why}): {against.gap} with its 95% interval over users, "
            f"{signed(against.seeds[0])} to {signed(against.seeds[1])} over seeds: **{against.verdict}**."
        )
    return " ".join(texts) or "EASE is not measured yet: `python -m benchmarks.studies.beyond final`."


def against_paper(own: Sequence[RunRecord], study: DatasetStudy) -> list[str]:
    best = best_published(study.dataset)
    if not all(best.values()):
        return []
    low, _ = mean_interval(np.array([run.final[MAIN] for run in own], dtype=np.float64))
    texts = [
        f"{value:.4f} ({MODELS[model]}): {'above' if low > value else 'not clearly above'}"
        for model, value in best.items()
    ]
    return [
        f"The paper's best NDCG@20 on this data: {'; '.join(texts)} (interval over seeds). Its BNS is trained for "
        f"{study.space.epochs} epochs here; [reproduction.md](reproduction.md) has its rows, trained as it says."
    ]


def other_test_parts(study: DatasetStudy) -> list[str]:
    """Cross-validation: every pair of the dataset is tested once in each repetition."""
    deals = study.deals()
    if study.choice is None or not deals:
        return []
    lines = [[f"repetition {place}", *_over_parts(parts)] for place, parts in deals.items()]
    every = list(chain(*deals.values()))
    if len(lines) > 1:
        lines.append([f"all {len(lines)}", *_over_parts(every)])
    head = ["", "BNS, learned prior", f"EASE, l2 = {study.choice.l2:g}", "difference, over users", "against EASE"]
    return [
        "**Other test parts**",
        f"{FOLDS}-fold cross-validation within users, {len(every[0][0])} seeds: the mean NDCG@20 over the folds of the "
        "setting, epoch and l2 selected above. Most of the pairs tested here were in the training or validation data of "
        "that selection. This shows how much of the difference is due to the one test split; it selects nothing. It is "
        f"not blind and favours BNS, which was the best of {len(study.space.settings)} settings there, EASE of "
        f"{len(study.space.ease)} values of l2.",
        table(head, lines),
    ]


def _over_parts(parts: Sequence[Part]) -> list[str]:
    against = Against(*parts)
    own, ease = ([_mean(runs) for runs, _ in parts], [_mean([record]) for _, record in parts])
    return [*(f"{np.mean(values):.4f}" for values in (own, ease)), against.gap, against.verdict]


def more_candidates(study: DatasetStudy) -> list[str]:
    found = study.curves()
    if not found:
        return []
    lines = [[prior, *(estimate(own[m], MAIN) if m in own else "" for m in CURVE)] for prior, own in found.items()]
    counts = sorted({len(records) for own in found.values() for records in own.values()})
    return [
        "**More candidates**",
        f"NDCG@20 of {trained_with(study)}, and of the paper's prior and likelihood with the same λ and the same model; "
        f"{' or '.join(map(str, counts))} seeds.",
        table(["", *(f"m = {m}" for m in CURVE)], lines),
        f"![NDCG@20 against the number of candidates, for both priors](images/beyond/{study.name}.svg)",
    ]


def trained_with(study: DatasetStudy) -> str:
    """What the curve and the sizes were trained with."""
    plan = plan_of(*_of(study))
    if plan.studied is None:
        return "the chosen setting, at the chosen epoch"
    setting, epochs = plan.studied
    return f"{text_of(plan.completed(setting))}, at epoch {epochs}"


def less_data(study: DatasetStudy) -> list[str]:
    """One setting and EASE with less and less data."""
    own = studied(*_of(study), study.choice)
    if own is None:
        return []
    lines, counts = [], set()
    for percent, one in sizes(*_of(study), *own).items():
        runs, ease = study.of(one), study.ease(one.dataset)
        if not runs or not ease:
            continue
        best = max(ease, key=lambda l2: ease[l2].final[MAIN] or 0.0)
        against = Against((runs, ease[best]))
        solved = f"{ease[best].final[MAIN]:.4f} (l2 = {best:g})"
        values = [estimate(runs, MAIN), solved, against.gap, against.verdict]
        counts.add(len(runs))
        lines.append([f"{percent}%", f"{runs[0].data['n_train']:,}", *values])
    if not lines:
        return []
    n_seeds = " or ".join(map(str, sorted(counts)))
    head = ["training part", "pairs", "BNS, learned prior", "EASE, best l2 on test", "difference, over users", ""]
    return [
        "**Less data**",
        f"NDCG@20 on the whole test part of {trained_with(study)}, after training on a random share of the training part, "
        f"{n_seeds} seeds; the rest of it is not recommended either. Only EASE is fitted to the size: it has the l2 "
        "that is best on the test labels of each row.",
        table(head, lines),
    ]


def draw(found: Sequence[DatasetStudy], folder: Path) -> None:
    """The curves, as SVG."""
    for study in found:
        if rows := study.curves():
            text = canvas.svg(partial(draw_curves, rows), study.name)
            (folder / f"{study.name}.svg").write_text(text + "\n", encoding="utf-8")


def draw_curves(rows: Mapping[str, Mapping[int, Sequence[RunRecord]]], axes: Axes) -> None:
    for place, (prior, own) in enumerate(rows.items()):
        candidates = sorted(own)
        values = [np.array([record.final[MAIN] for record in own[m]], dtype=np.float64) for m in candidates]
        spread = [np.diff(mean_interval(found))[0] / 2 if len(found) > 1 else 0.0 for found in values]
        axes.errorbar(candidates, [found.mean() for found in values], spread, label=prior, capsize=3, **look(place))
    axes.set_xscale("log")
    axes.set_xticks(CURVE, [str(m) for m in CURVE])
    axes.minorticks_off()
    axes.set_xlabel("candidates m")
    axes.set_ylabel("NDCG@20")
    axes.legend(frameon=False)
