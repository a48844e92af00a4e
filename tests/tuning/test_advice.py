"""Advice from records with known numbers: the simplest way that nothing clearly beats."""

from __future__ import annotations

import numpy as np
import pytest

from bayesneg.runs.record import RunRecord
from bayesneg.tuning.advice import advise

N_USERS = 40


def runs(label: str, test: float, *, validation: float, noise: float = 0.0, seeds: int = 4, best: int = 2):
    """A label's runs: each user has ``test`` and a draw of ``noise``, the seeds differ a little."""
    found = []
    for seed in range(seeds):
        rng = np.random.default_rng([seed, len(label)])
        values = test + noise * rng.standard_normal(N_USERS) + 0.0005 * rng.standard_normal()
        found.append(
            RunRecord(
                label=label,
                seed=seed,
                dataset="toy",
                data={"fingerprint": "abc"},
                epochs=[
                    {"epoch": epoch, "validation_ndcg@20": validation - 0.1 * (epoch != best)} for epoch in (1, 2, 3)
                ],
                final={"ndcg@20": float(values.mean())},
                per_user={"ndcg@20": values},
                reported_epoch=best,
                select="best",
                spec={"sampler": None} if label == "EASE" else {},
            )
        )
    return found


RNS = runs("RNS", 0.40, validation=0.20, noise=0.001)


def one_sentence(text: str) -> bool:
    return ". " not in text and text.endswith(".")


def test_a_tuned_sampler_that_is_clearly_better_is_advised():
    found = advise([*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.001)], {"RNS"})
    assert (found.label, found.favourite, found.key) == ("BNS", "BNS", "ndcg@20")
    assert found.evidence[0].rival == "RNS"
    assert found.evidence[0].difference.over_users.low > 0.04
    assert found.text.startswith(
        "Use BNS: it is the best on validation data, ahead of RNS, and clearly better than RNS in NDCG@20 on test data "
        "(+0.05"
    )


def test_rns_is_advised_where_the_interval_holds_zero():
    for noise, said in (
        (0.02, "it is as good as BNS, the best on validation data, and simpler, in NDCG@20 on test data"),
        (0.2, "it is simpler, and BNS, the best on validation data, is not shown to be better in NDCG@20 on test data"),
    ):
        found = advise([*RNS, *runs("BNS", 0.4, validation=0.25, noise=noise)], {"RNS"})
        assert (found.label, found.favourite) == ("RNS", "BNS")
        assert found.text.startswith(f"Use RNS: {said}"), noise
        assert one_sentence(found.text)


def shifted(records, *shifts):
    """The same runs, each seed's users moved by one number."""
    return [
        RunRecord(
            **{
                **run.__dict__,
                "final": {"ndcg@20": run.final["ndcg@20"] + shift},
                "per_user": {"ndcg@20": run.per_user["ndcg@20"] + shift},
            }
        )
        for run, shift in zip(records, shifts, strict=True)
    ]


def test_what_is_worse_over_users_is_not_advised_as_equal_though_the_seeds_leave_it_open():
    ease = runs("EASE", 0.444, validation=0.24, noise=0.001)  # within 5%
    better = shifted(runs("BNS", 0.45, validation=0.25, noise=0.001), 0.004, -0.004, 0.004, -0.004)
    found = advise([*RNS, *better, *ease], {"RNS", "EASE"})
    over = {each.rival: each.difference for each in found.evidence}["EASE"]
    assert over.over_users.low > 0 > over.over_seeds.low, "a world in which users are clear and seeds are not"
    assert found.label == found.favourite == "BNS"
    assert found.text.startswith(
        "Use BNS: it is the best on validation data, ahead of EASE, and better than EASE in NDCG@20 on test data over "
        "users, though not over seeds (+0.00"
    )
    assert found.notes == ["Simpler, and worse by at most 5% of its score on test data: EASE."]
    far = runs("EASE", 0.40, validation=0.24, noise=0.001)
    assert advise([*RNS, *better, *far], {"RNS", "EASE"}).notes == []


def test_the_favourite_is_chosen_on_validation_though_another_is_better_on_test():
    records = [*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.001), *runs("DNS", 0.47, validation=0.24, noise=0.001)]
    found = advise(records, {"RNS"})
    assert found.label == "BNS"
    assert found.notes == ["Better on test data, but not on validation data, which decides: DNS."]
    assert one_sentence(found.text)


def test_a_baseline_that_is_as_good_is_advised_and_so_is_one_that_is_better():
    records = [*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.001)]
    as_good = advise([*records, *runs("EASE", 0.45, validation=0.24, noise=0.02)], {"RNS", "EASE"})
    assert as_good.text.startswith(
        "Use EASE: this baseline is as good as BNS, the best on validation data, and simpler"
    )
    better = advise([*records, *runs("EASE", 0.50, validation=0.24, noise=0.001)], {"RNS", "EASE"})
    assert better.text.startswith("Use EASE: this baseline is better, and simpler, than BNS, the best on validation")
    assert "(+0.0501, 95% over users +0.0" in better.text, "the baseline minus the sampler"
    best = advise([*records, *runs("EASE", 0.50, validation=0.30, noise=0.001)], {"RNS", "EASE"})
    assert best.label == best.favourite == "EASE"
    assert best.text.startswith(
        "Use EASE: this baseline is the best on validation data, ahead of BNS, and clearly better than BNS in NDCG@20 "
        "on test data (+0.05"
    )
    assert all(map(one_sentence, (as_good.text, better.text, best.text)))


def test_a_simple_favourite_that_clearly_lost_on_test_says_so_with_its_numbers():
    records = [*runs("RNS", 0.40, validation=0.30, noise=0.001), *runs("BNS", 0.45, validation=0.25, noise=0.001)]
    found = advise(records, {"RNS"})
    assert found.label == found.favourite == "RNS"
    assert "ahead of BNS, though clearly worse than BNS in NDCG@20 on test data (−0.05" in found.text
    assert found.notes == ["Better on test data, but not on validation data, which decides: BNS."]
    ease = runs("EASE", 0.47, validation=0.25, noise=0.001)  # simple as well
    assert advise([*records, *ease], {"RNS", "EASE"}).notes[-1].endswith("which decides: BNS; EASE.")


def test_a_simple_favourite_that_won_says_by_how_much_and_against_whom_it_is_not_clear():
    favourite = runs("RNS", 0.45, validation=0.30, noise=0.001)
    beaten = advise([*favourite, *runs("BNS", 0.40, validation=0.25, noise=0.001)], {"RNS"})
    assert "and clearly better than BNS in NDCG@20 on test data (+0.05" in beaten.text
    level = advise([*favourite, *runs("DNS2", 0.45, validation=0.25, noise=0.1)], {"RNS"})
    assert "ahead of DNS2, from which it is not distinguishable in NDCG@20 on test data" in level.text
    assert level.notes == ["Not distinguishable from it on test data: DNS2."]
    assert advise(favourite, {"RNS"}).text == "Use RNS: it is the best on validation data."


def test_a_tuned_rival_that_cannot_be_told_apart_is_named():
    records = [*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.01), *runs("DNS2", 0.45, validation=0.24, noise=0.1)]
    assert advise(records, {"RNS"}).notes == ["Not distinguishable from it on test data: DNS2."]


def test_the_sentence_names_loss_sampler_and_model_and_the_best_of_what_is_simpler():
    records = [
        *RNS,
        *runs("BNS", 0.45, validation=0.25, noise=0.001),
        *runs("EASE", 0.42, validation=0.21, noise=0.001),
    ]
    described = {"BNS": "the loss BPR with the sampler BNS and the model MF"}
    text = advise(records, {"RNS", "EASE"}, described).text
    assert text.startswith(
        "Use the loss BPR with the sampler BNS and the model MF: it is the best on validation data, ahead of EASE, and "
        "clearly better than EASE in NDCG@20 on test data (+0.0299, 95% over users "
    )
    assert text.endswith("), and than everything else that is simpler.")
    tuned = runs("DNS", 0.45, validation=0.24, noise=0.02)
    text = advise([*records, *tuned], {"RNS", "EASE"}, described).text
    assert ": it is the best on validation data, ahead of DNS, from which it is not distinguishable in" in text
    assert (
        "), and clearly better there than every baseline and plain RNS, on validation data the best EASE (+0.02" in text
    )


def test_the_rival_of_a_simple_favourite_is_the_second_best_of_everything_on_validation():
    favourite = runs("EASE", 0.45, validation=0.30, noise=0.001)
    second = runs("KNN", 0.44, validation=0.29, noise=0.001)  # a baseline, better than the tuned one on validation
    tuned = runs("BNS", 0.43, validation=0.28, noise=0.001)
    found = advise([*favourite, *second, *tuned], {"EASE", "KNN"})
    assert "ahead of KNN, and clearly better than KNN in NDCG@20 on test data (+0.0101" in found.text
    assert "BNS" not in found.text


def test_the_sentence_names_the_highest_mean_of_the_table_where_it_is_of_another():
    favourite = runs("EASE", 0.45, validation=0.30, noise=0.001)
    second = runs("BNS", 0.44, validation=0.29, noise=0.001)
    for test, noise, said in (
        (0.455, 0.1, "not distinguishable from this one (+0.0"),
        (0.46, 0.001, "clearly better than this one (+0.0100"),
    ):
        found = advise([*favourite, *second, *runs("DNS2", test, validation=0.28, noise=noise)], {"EASE"})
        assert max(found.test, key=found.test.get) == "DNS2", "a world in which it has the highest mean"
        assert f"; the highest mean on test data, of DNS2, is {said}" in found.text
        assert found.text.endswith("), but validation data decides.")
        assert one_sentence(found.text)


@pytest.mark.parametrize("best", [2, 3])
def test_runs_that_were_best_at_their_last_epoch_are_named(best):
    found = advise([*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.001, best=best)], {"RNS"})
    assert found.text.endswith(
        "Still improving at the last epoch: BNS; more epochs (--epochs) may change the result."
    ) == (best == 3)
    assert one_sentence(found.text) == (best == 2)
    assert found.text.endswith(found.rising)
    several = [runs(label, 0.4, validation=0.2, best=3) for label in ("RNS", "BNS", "DNS", "EASE")]
    assert advise([run for each in several for run in each], {"RNS"}).rising.startswith(
        "Still improving at the last epoch: 3 of the 3 that were trained; more epochs"
    ), "baselines are not trained"


def test_one_seed_is_said_to_be_one():
    records = [*RNS[:1], *runs("BNS", 0.45, validation=0.25, noise=0.001, seeds=1)]
    assert "one seed only" in advise(records, {"RNS"}).text
