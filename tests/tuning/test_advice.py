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
            )
        )
    return found


RNS = runs("RNS", 0.40, validation=0.20, noise=0.001)


def test_a_tuned_sampler_that_is_clearly_better_is_advised():
    found = advise([*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.001)], {"RNS"})
    assert (found.label, found.favourite, found.key) == ("BNS", "BNS", "ndcg@20")
    assert found.evidence[0].rival == "RNS"
    assert found.evidence[0].difference.over_users.low > 0.04
    assert "clearly better in NDCG@20 on test data than RNS (+0.05" in found.text


def test_rns_is_advised_where_the_interval_holds_zero():
    for noise, said in ((0.02, "it is as good, and simpler."), (0.2, "it is simpler, and nothing was shown to be bet")):
        found = advise([*RNS, *runs("BNS", 0.4, validation=0.25, noise=noise)], {"RNS"})
        assert (found.label, found.favourite) == ("RNS", "BNS")
        assert found.text.startswith(f"Use RNS: {said}"), noise


def test_clear_over_users_but_not_over_seeds_is_not_clear():
    better = runs("BNS", 0.402, validation=0.25)
    uneven = [
        RunRecord(**{**run.__dict__, "final": {"ndcg@20": value}})
        for run, value in zip(better, (0.5, 0.3, 0.5, 0.3), strict=True)
    ]
    assert advise([*RNS, *better], {"RNS"}).label == "BNS"
    assert advise([*RNS, *uneven], {"RNS"}).label == "RNS"


def test_the_favourite_is_chosen_on_validation_though_another_is_better_on_test():
    records = [*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.001), *runs("DNS", 0.47, validation=0.24, noise=0.001)]
    found = advise(records, {"RNS"})
    assert found.label == "BNS"
    assert found.text.endswith("Better on test data, but not on validation data, which decides: DNS.")


def test_a_baseline_that_is_as_good_is_advised_and_so_is_one_that_is_better():
    records = [*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.001)]
    as_good = advise([*records, *runs("EASE", 0.45, validation=0.24, noise=0.02)], {"RNS", "EASE"})
    assert as_good.text.startswith("Use EASE: it is as good, and simpler.")
    better = advise([*records, *runs("EASE", 0.50, validation=0.24, noise=0.001)], {"RNS", "EASE"})
    assert better.text.startswith("Use EASE: it is better, and simpler.")
    best = advise([*records, *runs("EASE", 0.50, validation=0.30, noise=0.001)], {"RNS", "EASE"})
    assert best.label == best.favourite == "EASE"


def test_a_simple_favourite_that_clearly_lost_on_test_says_so_with_its_numbers():
    records = [*runs("RNS", 0.40, validation=0.30, noise=0.001), *runs("BNS", 0.45, validation=0.25, noise=0.001)]
    found = advise(records, {"RNS"})
    assert found.label == found.favourite == "RNS"
    assert "Its differences in NDCG@20 on test data: to BNS (-0.05" in found.text
    assert found.text.endswith("Better on test data, but not on validation data, which decides: BNS.")
    ease = runs("EASE", 0.47, validation=0.25, noise=0.001)  # simple as well
    assert advise([*records, *ease], {"RNS", "EASE"}).text.endswith("which decides: BNS; EASE.")


def test_a_simple_favourite_that_won_says_by_how_much_and_against_whom_it_is_not_clear():
    favourite = runs("RNS", 0.45, validation=0.30, noise=0.001)
    beaten = advise([*favourite, *runs("BNS", 0.40, validation=0.25, noise=0.001)], {"RNS"})
    assert "on test data: to BNS (+0.05" in beaten.text
    assert "though not" not in beaten.text
    level = advise([*favourite, *runs("DNS2", 0.45, validation=0.25, noise=0.1)], {"RNS"})
    assert level.text.endswith("Not distinguishable from it on test data: DNS2.")
    alone = advise(favourite, {"RNS"}).text
    assert alone == "Use RNS: it needs no tuned sampler, and no tuned sampler is better on validation data."


def test_a_tuned_rival_that_cannot_be_told_apart_is_named():
    records = [*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.01), *runs("DNS2", 0.45, validation=0.24, noise=0.1)]
    assert advise(records, {"RNS"}).text.endswith("Not distinguishable from it on test data: DNS2.")


@pytest.mark.parametrize("best", [2, 3])
def test_runs_that_were_best_at_their_last_epoch_are_named(best):
    found = advise([*RNS, *runs("BNS", 0.45, validation=0.25, noise=0.001, best=best)], {"RNS"})
    assert ("Still improving at the last epoch: BNS." in found.text) == (best == 3)


def test_one_seed_is_said_to_be_one():
    records = [*RNS[:1], *runs("BNS", 0.45, validation=0.25, noise=0.001, seeds=1)]
    assert "one seed only" in advise(records, {"RNS"}).text
