"""The time of a search, from trials with known seconds."""

from __future__ import annotations

from bayesneg.runs.tuning_result import Trial
from bayesneg.tuning.pace import Pace


def trial(family: str, seconds: float, state: str = "complete") -> Trial:
    return Trial(1, None, family, family, state, {1: 0.5}, seconds=seconds)


def pace(now: float, **more) -> Pace:
    return Pace(["RNS", "BNS", "DNS"], **{"seeds": 2, "clock": lambda: now, "began": 0.0, **more})


def test_a_sampler_that_was_not_tried_is_as_slow_as_the_slowest():
    done = [trial("RNS", 10.0), trial("BNS", 200.0), trial("BNS", 100.0)]
    said = pace(310.0).estimate(done, ["BNS", "DNS", "DNS", "RNS"])  # 3 · 150 + 10, and 2 · (10 + 150 + 150)
    assert said.startswith(
        "at least 18 min to go at this pace (1 of 3 contenders are not timed yet): 8 min for 4 trials, "
    )
    assert ", 10 min for the final comparison; shorter with fewer --trials" in said
    beside = pace(310.0, at_once=2).estimate(done, ["BNS", "DNS", "DNS", "RNS"])
    assert ", 5 min for the final comparison; " in beside
    every = pace(310.0).estimate([*done, trial("DNS", 10.0)], ["DNS"])
    assert every.startswith("about 6 min to go at this pace: 10 s for 1 trial, ")


def test_a_trial_that_is_far_slower_than_those_before_it_is_named_while_it_runs():
    timed = pace(310.0)
    done = [trial("RNS", 10.0)]
    assert timed.while_running(done, "BNS", 1.0, 20) == "", "a trial has one epoch here"
    assert timed.while_running(done, "BNS", 90.0, 20).startswith(
        "BNS is slow here: 2 min an epoch, about 2 min a trial;"
    )
    assert timed.while_running(done, "BNS", 95.0, 20) == "", "said once"
    assert timed.while_running(done, "RNS", 95.0, 20) == "", "which was timed"


def test_the_estimate_is_said_after_the_first_trial_and_when_every_sampler_was_tried():
    timed, done = pace(310.0), []
    said = []
    for family in ("RNS", "BNS", "DNS", "DNS"):
        done.append(trial(family, 10.0))
        said += [timed.is_time_to_say(done), timed.is_time_to_say(done)]
    assert said == [True, False, False, False, True, False, False, False]


def test_a_failed_trial_says_nothing_of_the_time():
    assert pace(5.0).estimate([trial("RNS", 0.1, "failed")], ["BNS"]) == ""
    said = pace(5.0).estimate([trial("RNS", 0.1, "failed"), trial("BNS", 3600.0)], ["BNS"])
    assert said.startswith("at least 7.0 h to go")
    assert pace(5.0).estimate([trial("RNS", 1.0)], []) == ""


def test_the_search_ends_when_the_final_comparison_needs_the_time_that_is_left():
    done = [trial("RNS", 60.0), trial("BNS", 120.0)]  # the final comparison of both: 6 minutes
    assert not pace(200.0, minutes=10.0).is_over(done)
    assert pace(240.0, minutes=10.0).is_over(done)
    assert not pace(1e9, minutes=10.0).is_over([]), "the first trial is always made"
    assert not pace(1e9).is_over(done)


def test_a_budget_is_compared_with_the_estimate():
    done = [trial("RNS", 60.0)]
    assert pace(60.0, minutes=20.0).estimate(done, ["BNS"]).startswith("at least 7 min to go, within the 20 minutes")
    late = pace(60.0, minutes=6.0).estimate(done, ["BNS"])
    assert late.startswith("at least 7 min to go at this pace, and 5 min left (2 of 3 contenders are not timed yet): ")
    assert "the search will end early, before all 2 trials" in late
