"""docs/explanation/study.md from small archives, complete and not; numbers are computed again from the arrays."""

from __future__ import annotations

import csv
import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import study_archive
from scipy import stats

from bayesneg.evaluation.statistics import Estimate
from benchmarks.pages.study import figures, page, tables
from benchmarks.pages.study.comparisons import Combination, Comparison, combinations, secondary
from benchmarks.pages.study.findings import GOALS, findings
from benchmarks.pages.study.records import Records, pairs, read
from benchmarks.studies.negatives import plan, store
from benchmarks.studies.negatives.contenders import BASELINES, CONTENDERS

PLAN = Path(__file__).parents[2] / "docs" / "explanation" / "study-plan.md"
BEST_WITH_MF = ["in-batch posterior", "risk", "posterior"]  # by study_archive.level
BONUS = {"bpr": 0.3, "posterior": -0.01}  # on the test part only: there bpr is best, and the gain is small


@pytest.fixture(scope="module")
def complete(tmp_path_factory):
    """One dataset with all its runs, published."""
    folder = tmp_path_factory.mktemp("complete")
    with pytest.MonkeyPatch.context() as patched:
        runs = study_archive.into(folder, patched)
        patched.setattr(plan, "DATASETS", ("ml-100k",))
        study_archive.complete(runs, "ml-100k", bonus=BONUS)
        published(folder, patched)
        yield folder


def published(folder, patched):
    (folder / "docs").mkdir()
    shutil.copy(PLAN, folder / "docs")
    patched.setattr(page, "DOCS", folder / "docs")
    page.publish(check=False)
    page.publish(check=True)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """An empty archive of two datasets."""
    monkeypatch.setattr(plan, "DATASETS", ("gowalla", "ml-100k"))
    return study_archive.into(tmp_path, monkeypatch)


def text_of(found):
    tests = page.tests_of(found)
    return page.page(found, combinations(found), tests, PLAN.read_text(encoding="utf-8"))


def final_of(folder, model, contender, setting=None):
    """NDCG@20 of each user with test items, mean over seeds, straight from the archive; and the setting."""
    runs = json.loads((folder / "archive" / f"ml-100k-{model}.json").read_text(encoding="utf-8"))
    with np.load(folder / "archive" / f"ml-100k-{model}.npz") as stored:
        users = {key: stored[key] for key in stored.files}
    own = [
        (key, run["trial"]["setting"])
        for key, run in runs.items()
        if run["trial"]["view"] == "last" and run["trial"]["contender"] == contender
        if setting is None or run["trial"]["setting"] == setting
    ]
    assert len(own) == (1 if (model, contender.split()[-1]) == ("lightgcn", "oracle") else 3)
    values = np.mean([users[key].astype(float) for key, _ in own], axis=0)
    return values[users[own[0][0]] <= 10_000] / 10_000, own[0][1]


def all_tests(folder):
    text = (folder / "docs" / "tables" / "study-tests.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def holm_by_hand(p_values, n):
    """Of a family of ``n``, those not given being 1."""
    ordered = sorted(p_values)
    return {p: min(1.0, max(q * (n - rank) for rank, q in enumerate(ordered) if q <= p)) for p in ordered}


def by_hand(one, other):
    gap = one - other
    half = stats.t.ppf(0.975, len(gap) - 1) * gap.std(ddof=1) / math.sqrt(len(gap))
    return gap.mean(), gap.mean() - half, gap.mean() + half, stats.ttest_rel(one, other).pvalue


def shown(value):
    return f"{'+' if value > 0 else '−'}{abs(value):.4f}"


# ---------------------------------------------------------------------------------------------------- the complete one


def test_the_gain_at_equal_settings_is_the_paired_difference_over_users(complete):
    text = (complete / "docs" / "study.md").read_text(encoding="utf-8")
    rows = all_tests(complete)
    for kind in ("posterior", "oracle"):
        found = {}
        for model in plan.MODELS:
            for without, prefix in (("bsl", ""), ("in-batch", "in-batch ")):
                base, setting = final_of(complete, model, without)
                found[model, without] = by_hand(final_of(complete, model, f"{prefix}{kind}", setting)[0], base)
        adjusted = holm_by_hand([p for *_, p in found.values()], len(found))
        for (model, without), (mean, low, high, p) in found.items():
            (row,) = [
                row
                for row in rows
                if row["family"] == f"equal setting, {kind}" and (row["model"], row["other"]) == (model, without)
            ]
            got = [float(row[name]) for name in ("difference", "low", "high")]
            np.testing.assert_allclose(got, [mean, low, high], atol=1e-6)
            assert float(row["p_holm"]) == pytest.approx(adjusted[p], rel=1e-2, abs=0)
            title = (
                f"MovieLens-100K, {'MF' if model == 'mf' else 'LightGCN'}, {'uniform' if without == 'bsl' else without}"
            )
            (line,) = re.findall(rf"^\| {title} \| (.*) \|$", text, flags=re.MULTILINE)
            corrected = "p < 0.001" if adjusted[p] < 0.001 else f"p = {adjusted[p]:.3f}"
            assert f"{shown(mean)} ({shown(low)} to {shown(high)}), {corrected}" in line
    assert "raise NDCG@20 in 4 of 4 combinations and lower it in 0" in text
    assert "has failed on 0 of 4: the whole has not failed." in text
    assert "not complete" not in text


def test_contenders_are_compared_at_their_own_best(complete):
    rows = all_tests(complete)
    own = [row for row in rows if row["family"] == "own best setting" and row["model"] == "mf"]
    n_rivals = sum(not one.is_oracle for one in CONTENDERS.values()) - 3
    assert len(own) == 3 * (n_rivals + len(BASELINES))
    (ease,) = [row for row in own if (row["one"], row["other"]) == ("risk", "ease")]
    mean, low, high, _ = by_hand(final_of(complete, "mf", "risk")[0], final_of(complete, "baseline", "ease")[0])
    got = [float(ease[name]) for name in ("difference", "low", "high")]
    np.testing.assert_allclose(got, [mean, low, high], atol=1e-6)
    assert ease["users"] == str(len(final_of(complete, "mf", "risk")[0]))


def test_a_final_row_has_the_interval_over_users_and_the_recall(complete):
    text = (complete / "docs" / "study.md").read_text(encoding="utf-8")
    values, _ = final_of(complete, "mf", "softmax")
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    section = (
        text.split("<summary>Final runs</summary>")[1].split("</details>")[0].split("**MovieLens-100K, LightGCN**")[0]
    )
    (line,) = re.findall(r"^\| `softmax` \| (.*) \|$", section, flags=re.MULTILINE)
    assert f"{values.mean():.4f} ± {half:.4f}" in line
    final = [
        run["final"]["recall@20"]
        for run in store.archived("ml-100k-mf").values()
        if (run["trial"]["view"], run["trial"]["contender"]) == ("last", "softmax")
    ]
    assert f"| {np.mean(final):.4f} |" in line
    assert "**`posterior`**, setting of `bsl`" in section


def test_the_best_contender_is_chosen_on_validation_and_not_on_the_test_part(complete):
    (records, _) = read()[0].models
    best_on_test = max(records.finals, key=lambda name: records.finals[name].value.mean)
    assert best_on_test == "bpr"
    assert records.best.name == "in-batch posterior"  # an oracle is higher
    text = (complete / "docs" / "study.md").read_text(encoding="utf-8")
    _, equal = final_of(complete, "mf", "in-batch")
    own = {**equal, "loss": {**equal["loss"], "negative_weight": 1.22}}  # its best, and not that of in-batch
    assert own != equal
    value = final_of(complete, "mf", "in-batch posterior", own)[0].mean()
    gap = shown(value - GOALS["ml-100k", "mf"])
    assert re.search(
        rf"\| MovieLens-100K, MF \| 0\.455 \| \*\*`in-batch posterior`\*\* \| .* \| {value:.4f} \| no, {gap} ", text
    )
    assert "Goals reached: 0 of 2" in text


def test_a_goal_is_reached_from_its_value_on(complete, monkeypatch):
    value = read()[0].models[0].final("in-batch posterior").value.mean
    for goal, verdict in ((value, "Goals reached: 1 of 2"), (value + 1e-6, "Goals reached: 0 of 2")):
        monkeypatch.setitem(GOALS, ("ml-100k", "mf"), goal)
        assert verdict in text_of(read())


def test_the_figure_names_every_contender_and_baseline(complete):
    picture = (complete / "docs" / "images" / "study" / "ml-100k.svg").read_text(encoding="utf-8")
    written = re.findall(r"<text[^>]*>([^<]*)</text>", picture)
    for name in (*CONTENDERS, "EASE", "ALS", "RP3β", "GF-CF"):
        times = sum(one == name or one.startswith(f"{name} ↑") for one in written)
        with_mf_alone = name in plan.SEARCHING and name not in (*plan.BASES, *BEST_WITH_MF)
        assert times == (2 if with_mf_alone else 4), name  # two panels of each model
    assert "MF, NDCG@20, test" in written
    assert "LightGCN, NDCG@20, test" in written
    assert not any("validation" in one for one in written)
    looks = {(mark.colour, mark.marker) for mark in figures.panels(read()[0])[0].marks}
    assert len(looks) == len(CONTENDERS) + len(BASELINES)


def test_a_page_that_the_archive_does_not_give_is_out_of_date(complete):
    path = complete / "docs" / "study.md"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("Goals reached: 0", "Goals reached: 2"), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"study\.md is out of date"):
        page.publish(check=True)
    path.write_text(text, encoding="utf-8")


# -------------------------------------------------------------------------------------------------- incomplete archives


def test_without_runs_the_page_says_what_is_missing(runs):
    text = text_of(read())
    assert "**no number on this page is a test result.**" in text
    for title in ("Gowalla", "MovieLens-100K"):
        (line,) = re.findall(rf"^\| {title} \| (.*) \|$", text, flags=re.MULTILINE)
        after = "search, final runs"
        mf, lightgcn = (f"pilot (0 of {n} trainings done), {after}" for n in (3, 6))
        baselines = "search (0 of 4 done), final runs (0 of 4 done)"
        assert line == f"{mf} | {lightgcn} | {baselines}"
    assert "![" not in text


def cells_of_tests(text):
    """What stands in the columns whose head names the test part, apart from the goals."""
    found, head = [], []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        if cells and not head:
            head = cells
        elif cells and not cells[0].startswith("---"):
            found += [cell for name, cell in zip(head, cells, strict=True) if "test" in name and "goal" not in name]
        head = head if cells else []
    return found


def test_before_the_final_runs_no_column_of_the_test_part_has_a_number(runs):
    study_archive.complete(runs, "ml-100k", stages=("pilot", "search"))
    trials = plan.pilot("gowalla", "mf")
    study_archive.write(runs, trials)
    study_archive.write(runs, plan.search("gowalla", "mf", {"learning_rate": 0.01}, ["bsl", "posterior"])[:9])
    store.collect(runs)
    found = read()
    text = text_of(found)
    assert set(cells_of_tests(text)) == {"–"}
    assert "final runs (0 of 16 done)" in text
    assert [row.part for row in figures.panels(found[1])] == ["validation", "validation"]
    bsl = found[1].models[0].searches["bsl"]
    value = max(study_archive.level(trial) for trial in bsl.trials)
    assert bsl.best.value == pytest.approx(value)
    other = study_archive.level(bsl.best.trial._replace(contender="posterior"))
    gains = f"| MovieLens-100K, MF, uniform | complete | {value:.4f} | {shown(other - value)} |"
    assert gains in text
    assert "`softmax` | " in text.split("<summary>What did not work</summary>")[1]


def test_lightgcn_is_searched_with_what_is_best_with_mf(runs):
    assert Records.read("ml-100k", "lightgcn").names == list(plan.BASES)
    study_archive.complete(runs, "ml-100k", ["mf"], stages=("pilot", "search"))
    found = Records.read("ml-100k", "lightgcn")
    by_value = sorted(found.with_mf.searches.values(), key=lambda one: -one.best.value)
    assert found.names == [*plan.BASES, *[one.name for one in by_value if one.name not in plan.BASES][: plan.MORE]]
    assert found.names[len(plan.BASES) :] == BEST_WITH_MF
    assert not found.names_follow


def test_an_unfinished_search_chooses_nothing(runs):
    shared = {"learning_rate": 0.002}
    write_pilot(runs)
    (first, *_, last) = trials = plan.search("ml-100k", "mf", shared, ["bsl"])
    study_archive.write(runs, [trial for trial in trials if trial.key != first.key])
    study_archive.write(runs, plan.final(last, 20))
    store.collect(runs)
    records = Records.read("ml-100k", "mf")
    assert records.shared == shared
    assert not records.searches["bsl"].is_complete
    assert records.searches["bsl"].best is not None
    assert records.wanted("bsl") == records.wanted("posterior", equal=True) == []
    assert records.finals == {}
    text = text_of(read())
    assert "does not choose" in text  # the labels were read for a setting that no search chose
    assert "MovieLens-100K, MF, `bsl`: 3 runs" in text
    assert "5 of 6" in text


def write_pilot(runs):
    trials = plan.pilot("ml-100k", "mf")
    study_archive.write(runs, trials)
    store.collect(runs)


def test_a_contender_counts_once_all_its_seeds_are_there(runs):
    study_archive.complete(runs, "ml-100k", ["mf"])
    path = store.ARCHIVE / "ml-100k-mf.json"
    everything = json.loads(path.read_text(encoding="utf-8"))
    assert "bsl" in Records.read("ml-100k", "mf").finals
    lost = next(key for key, run in everything.items() if key.startswith("bsl-") and run["trial"]["seed"] == 2)
    path.write_text(json.dumps({key: run for key, run in everything.items() if key != lost}), encoding="utf-8")
    records = Records.read("ml-100k", "mf")
    assert "bsl" not in records.finals
    assert len(records.finals) == len(plan.SEARCHING) - 1
    assert "final runs (15 of 16 done)" in text_of(read())


def test_a_family_counts_the_tests_that_are_still_to_come(runs):
    study_archive.complete(runs, "ml-100k", ["mf"], bonus={"posterior": -0.01})
    found = read()
    sixteen = combinations(found)
    assert len(sixteen) == 2 * 2 * 2
    measured = [one.posterior for one in sixteen if one.posterior.is_measured]
    assert len(measured) == 2
    adjusted = holm_by_hand([one.difference.p_value for one in measured], len(sixteen))
    for one in measured:
        assert one.holm == pytest.approx(adjusted[one.difference.p_value], rel=1e-9, abs=0)
        assert one.holm >= min(1.0, 7 * one.difference.p_value)
    assert "2 of the 8 combinations" in text_of(found)
    (dataset, records) = list(pairs(found))[2]
    against_ease = [one for one in secondary(dataset, records) if one.other == "ease"]
    assert {one.verdict for one in against_ease} == {"not run"}


def test_the_figure_of_a_model_is_of_one_part(runs):
    study_archive.complete(runs, "ml-100k", ["mf", plan.BASELINE])
    study_archive.complete(runs, "ml-100k", ["lightgcn"], stages=("pilot", "search"))
    (mf, lightgcn) = figures.panels(read()[1])
    assert (mf.part, lightgcn.part) == ("test", "validation")
    tests = {mark.name: mark.value for mark in mf.marks}
    validation = {mark.name: mark.value for mark in lightgcn.marks}
    assert tests["ease"] == read()[1].baselines.final("ease").value.mean
    assert validation["ease"] == read()[1].baselines.searches["ease"].best.value


# ------------------------------------------------------------------------------------------------------------- in words


def combination(posterior, oracle):
    def one(name, low, high):
        found = Estimate((low + high) / 2, low, high, "users", 9, 0.01)
        return Comparison("", "ml-100k", "mf", name, "bsl", found, 0.01)

    return Combination(Records("ml-100k", "mf", {}, {}), "bsl", one("posterior", *posterior), one("oracle", *oracle))


def test_failure_is_what_the_plan_says():
    assert combination((-0.001, 0.002), (0.01, 0.02)).has_failed
    assert combination((-0.002, -0.001), (0.01, 0.02)).has_failed
    assert not combination((0.001, 0.002), (0.01, 0.02)).has_failed
    assert not combination((-0.001, 0.002), (-0.01, 0.02)).has_failed
    assert combination((0.0, 0.002), (0.0, 0.0018)).is_left
    assert not combination((0.0, 0.002), (0.0, 0.0022)).is_left


def test_the_whole_has_failed_where_more_than_half_has(complete, monkeypatch):
    monkeypatch.setattr(Combination, "has_failed", property(lambda own: own.draw == "uniform"))
    sixteen = combinations(read())
    assert "failed on 2 of 4" in (said := "\n".join(findings(read(), sixteen, page.tests_of(read()))))
    assert "the whole has not failed" in said
    monkeypatch.setattr(Combination, "has_failed", property(lambda own: own.title != sixteen[0].title))
    assert "**the whole has failed.**" in "\n".join(findings(read(), sixteen, page.tests_of(read())))


def test_goals_are_those_of_the_registered_plan():
    text = PLAN.read_text(encoding="utf-8")
    (goals,) = re.findall(r"A goal \(NDCG@20 of (.*?)\)", text)
    said = {key: f"{value:.3f}"[1:] for key, value in GOALS.items()}
    both = {name: " and ".join(said[name, model] for model in plan.MODELS) for name in ("gowalla", "yelp2018")}
    one = {name: said[name, "mf"] for name in ("ml-100k", "ml-1m")}
    assert goals == (
        f"{both['gowalla']} on Gowalla with MF and LightGCN, {both['yelp2018']} on Yelp2018, "
        f"{one['ml-100k']} on ML-100K, {one['ml-1m']} on ML-1M"
    )
    assert list(GOALS) == [(name, model) for name in (*both, *one) for model in plan.MODELS]


def test_changes_come_from_the_plan():
    assert tables.changes("# Plan\n\n## Changes\n- one\n  and more\n\n## Later\n- two\n") == ["- one\n  and more"]
    with pytest.raises(SystemExit, match="has no section"):
        tables.changes("# Plan\n")
