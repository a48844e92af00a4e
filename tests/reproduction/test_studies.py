"""Measured beside published: intervals, marks and verdicts by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from bayesneg.evaluation.score_densities import DENSITIES
from bayesneg.evaluation.statistics import Estimate, estimate, holm
from bayesneg.reproduction import frames, latex, markdown
from bayesneg.reproduction.pairwise import pairwise_tests
from bayesneg.reproduction.published import METRICS, published
from bayesneg.reproduction.reproduce import READINGS, TABLES, recipe_of
from bayesneg.reproduction.studies import Line, PaperStudy, PublishedComparison
from bayesneg.reproduction.sweeps.recipe import RecipeRow
from bayesneg.runs.record import RunRecord
from benchmarks.pages.reproduction import document, findings
from benchmarks.pages.reproduction.readings import explanation, readings_of

INTERVAL = Estimate(0.40, 0.39, 0.41, "seeds", 3)


@pytest.mark.parametrize(
    ("value", "is_off", "is_near"),
    [
        (PublishedComparison(INTERVAL, 0.4199), False, False),
        (PublishedComparison(INTERVAL, 0.4201), True, False),
        (PublishedComparison(INTERVAL, 0.3799), True, False),
        (PublishedComparison(INTERVAL, 0.3901), False, True),
        (PublishedComparison(Estimate(0.40), 0.4099), False, True),  # one seed: the value itself is the interval
        (PublishedComparison(Estimate(0.40), 0.4101), True, False),
        (PublishedComparison(INTERVAL), False, False),  # the paper has no such number
    ],
)
def test_a_number_is_marked_if_it_lies_outside_the_interval_by_more_than_a_hundredth(value, is_off, is_near):
    assert (value.is_off, value.is_near) == (is_off, is_near)


def line(label: str, per_seed: list[np.ndarray], **changes) -> Line:
    runs = tuple(
        RunRecord(
            label=label,
            seed=seed,
            dataset="ml-100k",
            data={"fingerprint": "f"},
            final={key: float(values.mean()) for key in METRICS},
            per_user={"ndcg@20": values},
            spec={"model": {}, "sampler": {"class": label}},
            **changes,
        )
        for seed, values in enumerate(per_seed)
    )
    here = estimate(run.final["ndcg@20"] for run in runs)
    values = {key: PublishedComparison(here, 0.4) for key in METRICS}
    return Line(RecipeRow(label=label, use="rns"), runs, values, f"table2/{label}")


def study(*lines: Line) -> PaperStudy:
    return PaperStudy("ml-100k", "mf", "last", lines)


def values(mean: float, *, seed: int, n_users: int = 200) -> np.ndarray:
    shared = np.random.default_rng(0).normal(0, 0.1, n_users)  # users differ alike under every sampler
    return mean + shared - shared.mean() + np.random.default_rng(seed).normal(0, 0.01, n_users)


def test_a_difference_is_clear_only_if_users_and_seeds_agree():
    same = line("A", [values(0.40, seed=s) for s in range(3)])
    better = line("B", [values(0.42, seed=s + 10) for s in range(3)])
    by_luck = line("C", [values(mean, seed=s + 20) for s, mean in enumerate((0.50, 0.38, 0.40))])
    found = {(pair.one, pair.other): pair for pair in pairwise_tests(study(same, better, by_luck))}
    assert found["A", "B"].verdict == "B is better"
    assert found["A", "B"].difference.over_users.mean == pytest.approx(-0.02, abs=0.002)
    assert found["A", "C"].difference.over_users.p_value < 0.05 < found["A", "C"].difference.over_seeds.p_value
    assert found["A", "C"].verdict == "not shown with 3 seeds"


def test_with_one_seed_the_verdict_says_so():
    found = pairwise_tests(study(line("A", [values(0.40, seed=0)]), line("B", [values(0.42, seed=1)])))
    assert math.isnan(found[0].difference.over_seeds.p_value)
    assert found[0].verdict == "B is better, as far as one seed can tell"


def test_runs_on_other_data_are_no_contest():
    one, other = line("A", [values(0.4, seed=0)]), line("B", [values(0.4, seed=1)])
    moved = tuple(RunRecord(**{**vars(run), "data": {"fingerprint": "g"}}) for run in other.runs)
    assert pairwise_tests(study(one, Line(other.row, moved, other.values, other.beside))) == []


def test_only_readings_of_different_published_rows_are_no_rivals():
    lines = [line(label, [values(0.4, seed=seed)]) for seed, label in enumerate("ABC")]
    beside = [
        replace(each, row=each.row.model_copy(update={"paper": paper}))
        for each, paper in zip(lines, ("table2/BNS", "table2/BNS", "table2/RNS"), strict=True)
    ]
    assert len(pairwise_tests(study(*beside))) == 3
    found = pairwise_tests(replace(study(*beside), readings=True))
    assert [(pair.one, pair.other) for pair in found] == [("A", "B")]
    assert all(recipe_of(name).readings == (name in READINGS) for name in TABLES)


def test_readings_are_corrected_among_those_of_the_same_row_alone():
    lines = [
        line(label, [values(0.4 + seed / 400, seed=10 * seed + s) for s in range(3)])
        for seed, label in enumerate("ABCDE")
    ]
    rows = ("table2/BNS", "table2/BNS", "table2/RNS", "table2/RNS", "table2/RNS")
    beside = [
        replace(each, row=each.row.model_copy(update={"paper": paper})) for each, paper in zip(lines, rows, strict=True)
    ]
    alone = {(pair.one, pair.other): pair for pair in pairwise_tests(study(*beside[:2]))}
    found = {(pair.one, pair.other): pair for pair in pairwise_tests(replace(study(*beside), readings=True))}
    assert found["A", "B"].difference.over_users.p_value == alone["A", "B"].difference.over_users.p_value
    assert (
        found["C", "D"].difference.over_users.p_value
        > pairwise_tests(study(*beside[2:4]))[0].difference.over_users.p_value
    ), "three pairs of that row"


def test_a_reading_with_too_few_seeds_does_not_count():
    def told(n_seeds):
        own = line("BNS", [np.full(5, 0.43)] * 3)
        near = replace(line("near", [np.full(5, 0.405)] * n_seeds), beside=own.beside)
        made = [document.Chapter("table2", recipe_of("table2"), [study(own)])]
        return document._summary(made, readings_of([study(near)]))

    assert "0 more are (0 of 9, 0.0%)" in told(1)[1]
    assert "9 more are (9 of 9, 100.0%)" in told(3)[1]
    assert "| BNS | MovieLens-100K, MF | near | 3 | " in "\n".join(told(3))


def test_figures_are_told_beside_what_the_paper_says():
    def ended(label, tnr, inf):
        one = line(label, [np.full(5, 0.4)])
        return replace(one, runs=tuple(replace(run, epochs=[{"epoch": 1, "tnr": tnr, "inf": inf}]) for run in one.runs))

    def watched(share):
        one = line("RNS", [np.full(5, 0.4)])
        epochs = [{"epoch": 1, DENSITIES: {"share": 0.5}}, {"epoch": 2}, {"epoch": 9, DENSITIES: {"share": share}}]
        return study(replace(one, runs=tuple(replace(run, epochs=epochs) for run in one.runs)))

    assert "above a random true one: 50% (epoch 1), 90% (epoch 9)." in findings.score_densities(watched(0.9))
    assert findings.score_densities(watched(0.9)).endswith("that reproduces.")
    assert findings.score_densities(watched(0.4)).endswith("that does not reproduce.")
    text = findings.sampling_quality(study(ended("RNS", 0.97, 0.1), ended("BNS", 0.91, 0.2)))
    assert "TNR at the last epoch, highest first: RNS 0.9700, BNS 0.9100." in text
    assert "that does not reproduce: BNS ranks second. INF" in text
    assert text.endswith("The paper names BNS as the best after enough epochs; that reproduces.")
    at = [
        line(label, [np.full(5, value)])
        for label, value in (("λ = 1", 0.5), ("λ = 5", 0.4), ("m = 5", 0.4), ("m = 1", 0.3))
    ]
    text = findings.sensitivity(study(*at))
    assert "NDCG@20 over λ: 1: 0.5000, 5: 0.4000. The paper sees the highest at 5; that does not reproduce." in text
    assert text.endswith("The paper sees the highest at 5 or 10; that reproduces.")


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.5]) == pytest.approx([0.04, 0.09, 0.09, 0.5])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    raised = holm([math.nan, 0.04])
    assert math.isnan(raised[0])
    assert raised[1] == 0.04


def test_every_row_of_the_paper_s_tables_is_measured_and_found():
    n_rows = 0
    for name in TABLES[:3]:
        recipe = recipe_of(name)
        for dataset in recipe.datasets:
            for model in recipe.models:
                for row in recipe.samplers:
                    n_rows += 1
                    assert set(published(f"{name}/{row.label}", dataset, model)) == set(METRICS)
    assert n_rows == 36 + 6 + 9
    assert published("table4/m = all", "ml-100k", "mf")["ndcg@20"] == 0.6073
    assert published("table2/BNS", "ml-1m", "lightgcn")["ndcg@5"] == 0.4438


def test_every_reading_stands_beside_a_published_row():
    for name in READINGS:
        recipe = recipe_of(name)
        for row in recipe.samplers:
            assert published(row.paper or "", recipe.datasets[0], recipe.models[0]), row.label


def test_one_reading_of_a_row_explains_the_numbers_that_are_off():
    own, far, near = (line(label, [np.full(5, at)] * 3) for label, at in (("A", 0.43), ("far", 0.42), ("near", 0.405)))
    made = study(own)
    readings = study(*(replace(other, beside=own.beside) for other in (own, far, near)))
    found = explanation(own, made, readings_of([readings]))
    assert found.best is not None
    assert (found.best.label, found.n_explained) == ("near", 9)
    assert found.sentence.endswith("far 0 of 9; near 9 of 9. With near, 9 more are within 0.01.")
    assert "A 0 of 9" not in found.sentence  # a row does not explain itself
    nothing = explanation(own, made, readings_of([study(replace(far, beside=own.beside))]))
    assert (nothing.best, nothing.n_explained) == (None, 0)
    assert explanation(own, made, {}).sentence == "No other reading was measured."
    assert explanation(near, study(near), {("table2/near", "ml-100k", "mf"): [far]}).sentence == ""  # nothing is off


def test_the_same_numbers_in_markdown_latex_and_csv():
    at = [np.full(5, mean) for mean in (0.429, 0.430, 0.431)]  # ± 4.3027 · 0.001/√3
    made = [study(line("A", at), line("B_1", [np.full(5, 0.4)]))]
    text = markdown.markdown("Title", made)
    assert "| **A** | here, n = 3 | 0.4300 ± 0.0025 |" in text
    assert "|  | difference | **+0.0300** ✗ |" in text
    assert "|  | difference | 0.0000 |" in text
    assert "9 of 18 numbers within 0.01" in text
    tex = latex.latex("Title", made)
    assert r"\textbf{B\_1}" in tex
    assert r"$\times$" in tex
    assert "✗" not in tex
    rows = frames.csv_text(frames.results_frame(made)).splitlines()
    assert rows[0].startswith("dataset,model,view,sampler,metric,seeds,mean")
    assert len(rows) == 1 + 2 * 9
    assert rows[1].startswith("ml-100k,mf,last,A,precision@5,3,0.430000,0.427516,0.432484,0.400000,0.030000,1")
    assert rows[-1].endswith(",0")


def test_the_paired_tests_in_csv_and_latex():
    made = [
        study(line("A", [values(0.40, seed=s) for s in range(3)]), line("B", [values(0.42, seed=s) for s in range(3)]))
    ]
    rows = [row.split(",") for row in frames.csv_text(frames.tests_frame(made)).splitlines()]
    found = dict(zip(rows[0], rows[1], strict=True))
    assert len(rows) == 2
    assert (found["one"], found["other"], found["seeds"], found["verdict"]) == ("A", "B", "3", "B is better")
    assert float(found["difference"]) == pytest.approx(-0.02, abs=1e-6)
    assert float(found["p_users"]) < 0.05
    assert r"A $-$ B & $-$0.0200 & " in latex.latex("Title", made)
    alone = [study(line("A", [values(0.4, seed=0)]))]
    assert len(frames.csv_text(frames.tests_frame(alone)).splitlines()) == 1
    assert latex.latex("Title", alone).count(r"\begin{tabular}") == 1


def test_letters_with_a_meaning_of_their_own_are_escaped():
    made = [study(line(r"a|b α√τ \ {x} $5^2$ ~1", [np.full(5, 0.4)]))]
    escaped = r"a\textbar{}b $\alpha$$\surd$$\tau$ \textbackslash{} \{x\} \$5\textasciicircum{}2\$ \textasciitilde{}1"
    assert rf"\textbf{{{escaped}}} & here" in latex.latex("Two\nlines", made)
    assert latex.latex("Two\nlines", made).startswith("% Two lines; ")
    row = next(text for text in markdown.table(made[0]).splitlines() if "here" in text)
    assert r"**a\|b α" in row
    assert row.replace(r"\|", "").count("|") == 2 + 1 + len(METRICS)


def test_a_sampler_that_sees_test_labels_is_named():
    made = study(line("m = 1", [values(0.4, seed=0)], uses_test_labels=True))
    assert "sees the test labels" in markdown.about(made)
