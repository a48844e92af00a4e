"""How long a search takes, estimated from its first trials, and the end of one that has a budget of minutes.

The estimate is the mean time of each sampler's trials, times the trials that it has left. A sampler that was not tried
is taken to be as slow as the slowest.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Final

from bayesneg.runs.tuning_result import Trial

SLOWER: Final = 2.0  # how much slower than all before it a trial is for its estimate to be said while it runs
Clock = Callable[[], float]


@dataclass
class Pace:
    """The time of a search: what it has used, what it will use, what it may use."""

    families: Sequence[str]
    seeds: int  # runs of each finalist in the final comparison
    at_once: int = 1  # of these runs
    minutes: float | None = None  # for the trials and the final comparison; None for no limit
    clock: Clock = time.monotonic
    began: float = field(default_factory=time.monotonic)
    _said: set[str] = field(default_factory=set)

    def is_over(self, done: Sequence[Trial]) -> bool:
        """Whether the final comparison needs the time that is left; never before a trial is done."""
        if self.minutes is None or not _measured(done):
            return False
        return self.clock() - self.began + self._final(done, {each.family for each in done}) >= 60.0 * self.minutes

    def estimate(self, done: Sequence[Trial], to_come: Sequence[str]) -> str:
        """How long the rest takes and how to shorten it; empty where there is nothing to say.

        Args:
            done: The trials that ended.
            to_come: The sampler of each further trial.
        """
        if not to_come or not _measured(done):
            return ""
        of_family = _seconds(done)
        slowest = max(of_family.values())
        trials = sum(of_family.get(name, slowest) for name in to_come)
        final = self._final(done, self.families)
        unknown = sum(name not in of_family for name in self.families)
        said = f"{'at least' if unknown else 'about'} {_text(trials + final)} to go"
        timed = f" ({unknown} of {len(self.families)} contenders are not timed yet)" if unknown else ""
        if self.minutes is not None:
            left = 60.0 * self.minutes - (self.clock() - self.began)
            if trials + final <= left:
                return f"{said}, within the {self.minutes:g} minutes of this search{timed}"
            return (
                f"{said} at this pace, and {_text(max(left, 0.0))} left{timed}: the search will end early, before all "
                f"{len(done) + len(to_come)} trials, and advise from what is finished"
            )
        return (
            f"{said} at this pace{timed}: {_text(trials)} for {len(to_come)} trial{'' if len(to_come) == 1 else 's'}, "
            f"{_text(final)} for the final comparison; shorter with fewer --trials, --epochs or --seeds, or with "
            "--minutes, after which the search ends with advice from what is finished"
        )

    def is_time_to_say(self, done: Sequence[Trial]) -> bool:
        """After the first trial, and once more when every sampler was tried."""
        moment = f"{len(done)} trials"
        if len(done) not in {1, len(self.families)} or moment in self._said:
            return False
        self._said.add(moment)
        return True

    def while_running(self, done: Sequence[Trial], family: str, per_epoch: float, epochs: int) -> str:
        """That a trial is far slower than all before it, once for its sampler; else empty.

        Args:
            done: The trials that ended.
            family: The sampler of the trial.
            per_epoch: Seconds of an epoch so far.
            epochs: Epochs that a trial has, at most.
        """
        known = _seconds(done)
        expected = per_epoch * min(epochs, fmean([max(each.curve, default=epochs) for each in done] or [epochs]))
        if family in known or family in self._said or not known or expected < SLOWER * max(max(known.values()), 30.0):
            return ""
        self._said.add(family)
        return (
            f"{family} is slow here: {_text(per_epoch)} an epoch, about {_text(expected)} a trial; shorter with fewer "
            "--epochs or with --minutes"
        )

    def _final(self, done: Sequence[Trial], families: Collection[str]) -> float:
        of_family = _seconds(done)
        slowest = max(of_family.values())
        return self.seeds * sum(of_family.get(name, slowest) for name in families) / self.at_once


def _measured(done: Sequence[Trial]) -> bool:
    return any(trial.state != "failed" for trial in done)


def _seconds(done: Sequence[Trial]) -> dict[str, float]:
    """The mean time of a trial, by sampler."""
    found: dict[str, list[float]] = {}
    for trial in done:
        if trial.state != "failed":
            found.setdefault(trial.family, []).append(trial.seconds)
    return {name: fmean(values) for name, values in found.items()}


def _text(seconds: float) -> str:
    """``40 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    return f"{round(seconds / 60)} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
