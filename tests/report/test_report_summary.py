"""The arithmetic of rows and the honesty of the first sentence."""

from __future__ import annotations

import doctest
import math
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from report_runs import DATA, holes, run, three_samplers

from bayesneg.errors import InputError
from bayesneg.evaluation import metric_names
from bayesneg.report import groups, names, summary
from bayesneg.report.false_negatives import ONE_SEED
from bayesneg.report.finding import false_negative_finding, finding, quality_finding
from bayesneg.report.notes import notes
from bayesneg.report.summary import final_keys, summarise
from bayesneg.runs.record import RunRecord

KEY = "ndcg@20"


def seeds(label: str, values: list[float], **changes: object) -> list[RunRecord]:
    return [run(label, seed, value, **changes) for seed, value in enumerate(values)]


def test_a_row_is_the_mean_over_seeds_with_a_student_t_interval() -> None:
    (row,) = summarise(seeds("RNS", [0.1, 0.2, 0.3]), [KEY])
    value = row.values[KEY]
    assert (value.over, value.n, row.n_seeds) == ("seeds", 3, 3)
    assert value.mean == pytest.approx(0.2)
    assert value.half_width == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)  # t with 2 degrees


def test_one_seed_gives_the_interval_over_users() -> None:
    (row,) = summarise([run("RNS")], [KEY])
    assert (row.values[KEY].over, row.values[KEY].low) == ("users", pytest.approx(0.38))


def test_a_difference_is_paired_by_seed() -> None:
    first, second = seeds("RNS", [0.1, 0.2, 0.3]), seeds("BNS", [0.12, 0.22, 0.32])
    row = summarise([*first, *reversed(second)], [KEY])[1]
    gap = row.differences[KEY]
    assert (gap.over, gap.mean) == ("seeds", pytest.approx(0.02))
    assert gap.half_width == pytest.approx(0, abs=1e-12)  # the seeds' own spread cancels
    assert gap.excludes_zero


def test_with_one_shared_seed_a_difference_is_paired_by_user() -> None:
    users = np.array([0.1, 0.5, 0.9, math.nan])
    pair = [
        run("RNS", per_user={KEY: users}),
        run("BNS", ndcg=0.5, per_user={KEY: users + 0.1}),
    ]
    gap = summarise(pair, [KEY])[1].differences[KEY]
    assert (gap.over, gap.n, gap.mean) == ("users", 3, pytest.approx(0.1))


def test_runs_on_different_data_are_not_subtracted() -> None:
    pair = [*seeds("RNS", [0.1, 0.2]), *seeds("BNS", [0.2, 0.3], data={**DATA, "fingerprint": "other"})]
    assert math.isnan(summarise(pair, [KEY])[1].differences[KEY].mean)
    assert any("different data" in note for note in notes(pair))


def test_the_first_row_is_the_reference_and_has_no_difference() -> None:
    assert [len(row.differences) for row in summarise(three_samplers(), [KEY])] == [0, 1, 1]


def test_only_measures_of_accuracy_have_a_best_row() -> None:
    final = {KEY: 0.4, "popularity@20": 10.0}
    rows = summarise([run("A", final=final), run("B", final={KEY: 0.5, "popularity@20": 20.0})], list(final))
    assert [set(row.best) for row in rows] == [set(), {KEY}]


def test_no_row_is_best_where_all_are_equal() -> None:
    assert not any(row.best for row in summarise([run("A"), run("B")], [KEY]))


def test_a_run_given_twice_counts_once_and_another_of_the_same_seed_stands_apart() -> None:
    rows = summarise([run("RNS", 0, 0.4), run("RNS", 0, 0.4), run("RNS", 0, 0.5)], [KEY])
    assert [(row.label, row.n_seeds) for row in rows] == [("RNS", 1), ("RNS [2]", 1)]


def test_two_models_are_two_rows() -> None:
    rows = summarise([run("RNS"), run("RNS", model="LightGCN")], [KEY])
    assert [row.label for row in rows] == ["RNS · MF (dim=32)", "RNS · LightGCN"]


def test_datasets_do_not_mix() -> None:
    with pytest.raises(InputError, match="several datasets"):
        summarise([run("RNS"), run("RNS", dataset="other")], [KEY])


def test_what_was_not_measured_is_nan() -> None:
    (row,) = summarise([holes()], [KEY, "precision@20", "recall@20", "unheard of"])
    assert [math.isnan(value.mean) for value in row.values.values()] == [True, True, False, True]
    assert final_keys([holes()]) == ["recall@20"]


def test_metrics_are_listed_largest_cutoff_first() -> None:
    assert final_keys(three_samplers()) == ["ndcg@20", "precision@20", "recall@20", "ndcg@5", "auc"]


def test_a_clear_winner_is_named_with_its_lead() -> None:
    said = finding(three_samplers(), KEY)
    assert said.startswith("BNS recommends best: NDCG@20 0.420 ± ")
    assert "over 3 seeds, 0.020 above RNS (95% interval " in said


def test_no_winner_is_named_where_the_interval_includes_zero() -> None:
    said = finding([*seeds("RNS", [0.40, 0.42, 0.41]), *seeds("BNS", [0.41, 0.41, 0.42])], KEY)
    assert said.startswith("No clear winner between BNS and RNS.")
    assert "which includes zero" in said


def test_equal_means_are_called_equal() -> None:
    said = finding([*seeds("RNS", [0.40, 0.42, 0.41]), *seeds("BNS", [0.40, 0.42, 0.41])], KEY)
    assert "RNS and BNS have the same mean, NDCG@20 0.410" in said
    assert "above" not in said


def test_no_winner_is_named_where_a_stricter_test_could_not_tell_two_apart() -> None:
    said = quality_finding(three_samplers(), KEY, {frozenset(("BNS", "DNS"))})
    assert said.startswith("No clear winner between BNS and DNS.")
    assert "not clear once all pairs are tested" in said
    assert quality_finding(three_samplers(), KEY, {frozenset(("RNS", "DNS"))}).startswith("BNS recommends best")


def test_one_seed_is_said_to_be_one_seed() -> None:
    assert "One seed only" in finding([run("RNS")], KEY)
    said = finding([run("RNS"), run("BNS", ndcg=0.9)], KEY)
    assert "recommends best" not in said
    assert "too few runs" in said
    assert "another seed may change the order" in said


def test_a_lead_over_users_alone_is_not_called_best() -> None:
    users = np.linspace(0.1, 0.9, 40)
    said = finding([run("RNS", per_user={KEY: users}), run("BNS", ndcg=0.5, per_user={KEY: users + 0.1})], KEY)
    assert said.startswith("BNS scores highest: ")
    assert "another seed may change the order" in said


def test_an_oracle_does_not_compete() -> None:
    oracle = seeds("ORACLE", [0.6, 0.61, 0.62], uses_test_labels=True)
    assert finding([*oracle, *three_samplers()], KEY).startswith("BNS recommends best")
    assert "none is a fair result" in finding(oracle, KEY)


def test_without_metrics_nothing_is_ranked() -> None:
    assert "nothing to rank" in finding([run("RNS", final={})], None)


def picking(label: str, ndcg: list[float], rate: float, **changes: object) -> list[RunRecord]:
    """Runs of a sampler with a known share of false negatives among its picks."""
    epochs = [{"epoch": 1, "tnr": 0.99, "tnr_true": 1 - rate, "tnr_uniform": 0.99, "tnr_uniform_true": 0.9}]
    return seeds(label, ndcg, epochs=epochs, **changes)


def test_a_row_has_the_true_rate_of_false_negatives_and_a_baseline_has_none() -> None:
    ease = run("EASE", ndcg=0.5, epochs=[{"epoch": 1, "ndcg@20": 0.5}], spec={"sampler": None})
    clean, solved = summarise([*picking("BNS", [0.41, 0.42], 0.05), ease], [KEY])
    assert clean.false_negatives.mean == pytest.approx(0.05)
    assert (clean.false_negatives.n, clean.truth_known) == (2, True)
    assert math.isnan(solved.false_negatives.mean)
    (unknown,) = summarise([run("RNS")], [KEY])
    assert unknown.false_negatives.mean == pytest.approx(1 - run("RNS").last("tnr")), "by the held-out labels"
    assert not unknown.truth_known


def test_one_sentence_tells_quality_and_false_negatives() -> None:
    ease = run("EASE", ndcg=0.5, epochs=[{"epoch": 1}], spec={"sampler": None})
    hard, clean = picking("DNS", [0.42, 0.42], 0.2), picking("RNS", [0.40, 0.40], 0.1)
    assert false_negative_finding([*clean, *hard, ease], KEY) == (
        "DNS has the highest mean NDCG@20 of the samplers; RNS picks the fewest false negatives, 10.0% ± 0.0% of its "
        "picks; DNS picks the most false negatives, 20.0% ± 0.0% of its picks; uniform sampling is expected to pick "
        "10.0%; EASE (NDCG@20 0.500) needs no negatives."
    )
    between = false_negative_finding([*clean, *hard, *picking("BNS", [0.45, 0.45], 0.15)], KEY)
    assert between.startswith(
        "BNS has the highest mean NDCG@20 of the samplers, and 15.0% ± 0.0% of its picks are false negatives; RNS picks"
    )
    equal = false_negative_finding([*clean, *picking("BNS", [0.40, 0.40], 0.1)], KEY)
    assert equal.startswith(
        "RNS and BNS have the highest mean NDCG@20 of the samplers; BNS and RNS pick equally many false negatives, 10.0"
    )
    assert finding([*clean, *hard], KEY).endswith(false_negative_finding([*clean, *hard], KEY))


def test_an_oracle_a_single_sampler_and_held_out_labels_are_told_as_they_are() -> None:
    oracle = picking("ORACLE", [0.6, 0.6], 0.0, uses_test_labels=True)
    assert false_negative_finding([*picking("RNS", [0.4], 0.1), *oracle], KEY) == ""
    assert "known false negatives" in false_negative_finding(three_samplers(), KEY)


def rated(label: str, rates: list[float]) -> list[RunRecord]:
    """Runs of a sampler with another share of false negatives in each seed."""
    lines = [{"epoch": 1, "tnr_true": 1 - rate} for rate in rates]
    return [run(label, seed, 0.4, epochs=[line]) for seed, line in enumerate(lines)]


def test_the_fewest_false_negatives_are_named_only_where_the_paired_difference_excludes_zero() -> None:
    near, wide, far = rated("A", [0.100, 0.102]), rated("B", [0.120, 0.095]), rated("C", [0.500, 0.502])
    said = false_negative_finding([*near, *wide, *far], KEY)
    assert "A has the lowest mean rate of false negatives, 10.1% ± 1.3% of its picks, not disting" in said
    assert "not distinguishable from B; C picks the most false negatives, 50.1% ± " in said
    alike = false_negative_finding([*near, *wide], KEY)
    assert "A and B are not distinguishable in their rates of false negatives: 10.1% ± 1.3% (A) to 10.7%" in alike
    assert "fewest" not in said + alike


def test_rates_that_move_together_over_seeds_are_distinguishable_though_their_intervals_overlap() -> None:
    pair = [*rated("A", [0.10, 0.20, 0.15]), *rated("B", [0.11, 0.212, 0.161])]
    assert "A picks the fewest false negatives" in false_negative_finding(pair, KEY)


def test_one_seed_names_no_fewest_and_says_why() -> None:
    said = false_negative_finding([*rated("A", [0.1]), *rated("B", [0.2])], KEY)
    assert "A has the lowest rate of false negatives, 10.0% of its picks, and B the highest, 20.0%." in said
    assert said.endswith(ONE_SEED)
    assert "fewest" not in said


def test_skipped_examples_and_cold_users_and_items_are_told() -> None:
    skipping = run(
        "RNS", epochs=[{"epoch": 1, "skipped": 3}], data={**DATA, "n_test_only_items": 1, "n_test_only_users": 2}
    )
    told = " ".join(notes([skipping]))
    assert "3 training examples" in told
    assert "2 test users have no training interaction, and are ranked by popularity." in told
    assert "1 test item has no training interaction, so nothing was learned about it." in told
    started = [replace(skipping, spec={**skipping.spec, "start": {}})]
    assert "by the vector that the start has learned, or by popularity" in " ".join(notes(started))
    assert notes(three_samplers()) == []


def test_a_final_model_is_told_with_what_was_measured_before() -> None:
    final = replace(run("BNS"), final={}, intervals={}, before_final={"final": {"ndcg@10": 0.3, "ndcg@20": 0.25}})
    told = (
        "BNS was trained on all data, so that nothing is left to measure it with; NDCG@20 was 0.2500 before the final"
    )
    assert told in " ".join(notes([final]))


def test_a_baseline_without_randomness_has_no_interval_over_seeds() -> None:
    runs = [*seeds("RNS", [0.30, 0.31, 0.32]), *seeds("EASE", [0.4, 0.4, 0.4], loss="")]
    assert quality_finding(runs, KEY).startswith("EASE recommends best: NDCG@20 0.4000 with every seed, 0.090 ")


def test_a_run_that_no_mean_includes_is_told() -> None:
    runs = three_samplers()
    for place in (7, 8):
        runs[place] = replace(runs[place], final=dict.fromkeys(runs[place].final, math.nan))
    (told,) = notes(runs)
    assert told == "BNS has no NDCG@20 with seeds 1 and 2: the ranking and its means leave this out."
    assert notes(runs[7:]) == []  # measured in none of them: the first sentence says so


@pytest.mark.parametrize("module", [groups, metric_names, names, summary])
def test_the_examples_in_docstrings_hold(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_run_needs_a_label() -> None:
    with pytest.raises(InputError, match="label must name the sampler"):
        run(" ")
