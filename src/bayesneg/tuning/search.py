"""The search: trials on validation data, proposed by Optuna and recorded in its study.

A trial depends on the seed and on the trials at least ``BEHIND`` places before it, and on nothing else: neither on an
interruption nor on how many processes take part. Test labels are not used: a trial is trained on a split whose test
part *is* the validation part.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, StorageError
from bayesneg.interfaces import NegativeSampler, Prior
from bayesneg.progress import Update
from bayesneg.runs.tuning_result import State, Trial
from bayesneg.samplers.posterior.sampler import PosteriorSampler
from bayesneg.samplers.priors.learned import Learned
from bayesneg.seeding import stream
from bayesneg.training import fit
from bayesneg.tuning.pace import Pace
from bayesneg.tuning.space import Among, Combination, Family, WholeBetween
from bayesneg.tuning.store import LostError, Proposal, Store, TrialOutcome

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

BAR: Final = "search"  # the label of the progress bar
BEHIND: Final = (
    8  # places between a trial and the latest that it depends on, and a quarter of its place if that is more
)
RANDOM: Final = 8  # trials before Optuna's model of what is good proposes any
UNPRUNED: Final = 4  # trials before any is pruned, and the first of each family
ATTEMPTS: Final = 40  # to find a setting that was not tried, the last of them at random
POLL: Final = 1.0  # seconds between two looks at the trials of other processes
Say = Callable[[str], None]


class _PrunedError(Exception):
    """The trial lies below the median of those before it."""


class _ConvergedError(Exception):
    """The trial has not improved for as many evaluations as ``patience``."""


class _TimeUpError(Exception):
    """The minutes of the search are used, but for those of the final comparison."""


@dataclass
class Search:
    """What is searched, on which data, and the study that records it."""

    families: Sequence[Family]
    split: Split  # a blind one
    epochs: int
    evaluate_every: int
    patience: int | None  # evaluations without a better one after which a trial ends; None: never
    seed: int
    store: Store
    pace: Pace
    learned: dict[Prior, Prior] = field(default_factory=dict)  # shared by trials with the same settings
    shown: tuple[int, str] = (0, "")  # on the progress bar: trials done, and the best

    def run(self, n_trials: int, bar: Update, say: Say) -> list[Trial]:
        """Runs trials until there are ``n_trials``, those of other processes included, nothing new is left to try, or
        time is up. ``say`` takes the estimate of how long it will take, and what is waited for.
        """
        self.store.begin(n_trials)
        n_new, left, waits = 0, math.inf, False
        while True:
            live = self.store.live()
            done = _ended(live)
            self._show(done, bar)
            n_places = min(self.store.budget(n_trials), left)
            if self.pace.is_over(done):
                break
            if n_new and self.pace.is_time_to_say(done):
                to_come = [one.name for place in range(len(done), int(n_places)) for one in self._in_turn(place)[:1]]
                say(self.pace.estimate(done, to_come))
            place = self._next(live, n_places)
            if place is None:
                if len(done) >= n_places or not any(each.state.name == "RUNNING" for each in live.values()):
                    break
                if not waits:
                    say("waiting for trials of other processes")
                waits = True
                self.store.free_the_dead(live)
                time.sleep(POLL)
                continue
            self.store.free_the_dead(live)
            proposal = self._proposed(place, live)
            if proposal is None:
                left = place  # nor is there anything new for a later one
                continue
            waits = False
            ended = self._tried(*proposal, live, bar, say)
            if ended is None:
                break
            n_new += ended
        return done

    def _next(self, live: Mapping[int, FrozenTrial], n_places: float) -> int | None:
        """The first free place, if everything is known that its trial depends on."""
        place = next((place for place in range(len(live) + 1) if place not in live), 0)
        if place >= n_places:
            return None
        needed = range(seen_from(place) if self._depends(place) else 0)
        return place if all(live[each].state.name != "RUNNING" for each in needed) else None

    def _depends(self, place: int) -> bool:
        """Whether a trial depends on others at all: the first ones are defaults, or drawn at random, and not pruned."""
        return seen_from(place) >= min(RANDOM, self._unpruned)

    @property
    def _unpruned(self) -> int:
        return max(UNPRUNED, len(self.families))

    def _proposed(self, place: int, live: Mapping[int, FrozenTrial]) -> tuple[Proposal, Combination] | None:
        """A setting that was not tried: the default of every sampler first, then what Optuna proposes."""
        from optuna import create_study

        known = {live[each].user_attrs["label"] for each in range(place)}
        study = create_study(direction="maximize")
        study.add_trials([live[each] for each in range(seen_from(place))] if self._depends(place) else [])
        for family in self._in_turn(place):
            for attempt in range(ATTEMPTS):
                asked = self._asked(study, family, place, attempt)
                tried = family.suggested(partial(_suggested, asked, family), self.split)
                if tried.label not in known:
                    facts = {
                        "label": tried.label,
                        "family": family.name,
                        "settings": dict(tried.sampler.settings),
                        "sampler": tried.sampler.text(self.split),
                        "loss_settings": dict(tried.loss.settings),
                        "loss": tried.loss.text(),
                    }
                    return Proposal(place, asked.params, asked.distributions, facts), tried
        return None

    def _in_turn(self, place: int) -> list[Family]:
        """The sampler whose turn it is, and the next ones if it has nothing new: each sampler once, then each as often
        as it has settings to search.
        """
        if place < len(self.families):
            return [self.families[place]]
        turns = [each for each in self.families for _ in each.ranges]
        first = (place - len(self.families)) % max(1, len(turns))
        return list({each.name: each for each in (*turns[first:], *turns[:first])}.values())

    def _asked(self, study: optuna.Study, family: Family, place: int, attempt: int) -> optuna.Trial:
        from optuna.samplers import RandomSampler, TPESampler

        seed = int(stream(self.seed, "search", place, attempt).integers(2**31))
        modelled = attempt < ATTEMPTS // 4  # the best settings may all be tried: then any other
        study.sampler = TPESampler(seed=seed, n_startup_trials=RANDOM) if modelled else RandomSampler(seed)
        if place < len(self.families) and attempt == 0:
            study.enqueue_trial({_parameter(family, key): value for key, value in family.usual.items()})
        return study.ask()

    def _tried(
        self, proposal: Proposal, tried: Combination, live: Mapping[int, FrozenTrial], bar: Update, say: Say
    ) -> bool | None:
        """Whether this process made the trial, which another may have begun or taken over; None where time is up."""
        claimed = self.store.claimed(proposal)
        if claimed is None:
            return False
        try:
            with self.store.alive(claimed):
                outcome = self.store.kept(claimed) or self._outcome(claimed, tried, live, bar, say)
                self.store.end(claimed, outcome)
        except LostError:
            return False
        except _TimeUpError:
            self.store.give_up(claimed)
            return None
        except BaseException:
            self.store.give_up(claimed)  # a trial that did not end does not count and is run again
            raise
        return True

    def _outcome(
        self, claimed: FrozenTrial, tried: Combination, live: Mapping[int, FrozenTrial], bar: Update, say: Say
    ) -> TrialOutcome:
        started = time.perf_counter()
        curve: dict[int, float] = {}
        state, failed = "COMPLETE", ""
        try:
            self._train(claimed, tried, curve, live, bar, say)
        except _ConvergedError:
            pass  # as complete as a run that stops early
        except _PrunedError:
            state = "PRUNED"
        except (LostError, StorageError):
            raise
        except BayesnegError as error:  # diverged, say: a result for the setting, not the end of the search
            state, failed = "PRUNED", str(error)
        return TrialOutcome(curve, state, time.perf_counter() - started, failed)

    def _show(self, done: Sequence[Trial], bar: Update) -> None:
        leader = max(best_of(done).values(), key=lambda trial: trial.value or 0.0, default=None)
        self.shown = len(done), "" if leader is None else f"best {leader.value:.4f} {leader.label}"
        bar(BAR, *self.shown)

    def _train(
        self,
        claimed: FrozenTrial,
        tried: Combination,
        curve: dict[int, float],
        live: Mapping[int, FrozenTrial],
        bar: Update,
        say: Say,
    ) -> None:
        done, started = _ended(live), time.perf_counter()
        place, family = claimed.user_attrs["place"], claimed.user_attrs["family"]
        earlier = [live[each] for each in range(seen_from(place))] if self._depends(place) else []
        complete = [each.intermediate_values for each in earlier if each.state.name == "COMPLETE"]

        def after_epoch(line: dict[str, Any]) -> None:
            n_done, best = self.shown
            epoch = line["epoch"]
            bar(BAR, n_done, f"{best}  now {tried.label}, epoch {epoch}".strip())
            say(self.pace.while_running(done, family, (time.perf_counter() - started) / epoch, self.epochs))
            value = next((value for key, value in line.items() if key.startswith("ndcg@")), None)
            if value is not None:
                curve[epoch] = value
                self.store.report(claimed, epoch, value)
                values = [*curve.values()]
                if self.patience is not None and len(values) - 1 - values.index(max(values)) >= self.patience:
                    raise _ConvergedError
                if epoch < self.epochs and self._is_below(curve, epoch, complete):
                    raise _PrunedError
            if self.pace.is_over(done):
                raise _TimeUpError

        fit(
            tried.model,
            self.split,
            self._built(tried),
            loss=tried.loss.build(),
            epochs=self.epochs,
            seed=self.seed,
            evaluate_every=self.evaluate_every,
            label=tried.label,
            progress=after_epoch,
        )

    def _is_below(self, curve: Mapping[int, float], epoch: int, complete: Sequence[Mapping[int, float]]) -> bool:
        """Whether the best score so far lies below the median of earlier complete trials at this epoch; never in the
        first third.
        """
        if len(complete) < self._unpruned or epoch < math.ceil(self.epochs / 3):
            return False
        scores = [each[epoch] for each in complete if epoch in each]
        return bool(scores) and max(curve.values()) < median(scores)

    def _built(self, tried: Combination) -> NegativeSampler:
        sampler = tried.sampler.build(self.split)
        if isinstance(sampler, PosteriorSampler) and isinstance(sampler.prior, Learned):
            shared: Any = {"prior": self.learned.setdefault(sampler.prior, sampler.prior)}
            return replace(sampler, **shared)  # type: ignore[type-var]
        return sampler


def seen_from(place: int) -> int:
    """How many of the first trials a trial depends on: up to so many processes work on later ones at a time."""
    return max(0, place + 1 - max(BEHIND, place // 4))


def best_of(trials: Sequence[Trial]) -> dict[str, Trial]:
    """The best trial of each family, the first of equals; a pruned trial counts with its best epoch."""
    found: dict[str, Trial] = {}
    for trial in trials:
        known = found.get(trial.family)
        if trial.state != "failed" and (known is None or (trial.value or 0.0) > (known.value or 0.0)):
            found[trial.family] = trial
    return found


def _parameter(family: Family, key: str) -> str:
    """Each family has separate parameters, since the best values differ between samplers."""
    return f"{family.name} {key}"


def _suggested(asked: optuna.Trial, family: Family, key: str) -> Any:
    name, values = _parameter(family, key), family.ranges[key]
    if isinstance(values, Among):
        return asked.suggest_categorical(name, values.values)
    if isinstance(values, WholeBetween):
        return asked.suggest_int(name, *values, log=True)
    return asked.suggest_float(name, *values, log=True)


def _ended(live: Mapping[int, FrozenTrial]) -> list[Trial]:
    """The trials that ended, in the order of their places."""
    return [_trial(place + 1, each) for place, each in live.items() if each.state.name != "RUNNING"]


def _trial(number: int, frozen: FrozenTrial) -> Trial:
    own = frozen.user_attrs
    state: State = "failed" if "failed" in own else "complete" if frozen.state.name == "COMPLETE" else "pruned"
    return Trial(
        number=number,
        sampler=own["sampler"],
        label=own["label"],
        family=own["family"],
        state=state,
        curve=dict(sorted(frozen.intermediate_values.items())),
        settings=own["settings"],
        loss=own["loss"],
        loss_settings=own["loss_settings"],
        seconds=own["seconds"],
        why=own.get("failed", ""),
    )
