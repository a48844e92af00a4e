"""The search: trials on validation data, one after another, recorded by Optuna.

A trial depends on the seed and on the trials before it only: each has its own random stream, so that a resumed search
is the same as one that was never interrupted. Test labels are not used: a trial is trained on a split whose test part
*is* the validation part.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bayesneg.data.splits import Split
from bayesneg.errors import BayesnegError, InputError
from bayesneg.interfaces import NegativeSampler, Prior
from bayesneg.progress import Update
from bayesneg.runs.tuning_result import State, Trial
from bayesneg.samplers.posterior.sampler import PosteriorSampler
from bayesneg.samplers.priors.learned import Learned
from bayesneg.seeding import stream
from bayesneg.training import fit
from bayesneg.tuning.pace import Pace
from bayesneg.tuning.space import Among, Combination, Family, WholeBetween

if TYPE_CHECKING:
    import optuna

BAR: Final = "search"  # the label of the progress bar
JOURNAL: Final = "search.jsonl"
RANDOM: Final = 8  # trials before Optuna's model of what is good proposes any
UNPRUNED: Final = 4  # trials before any is pruned, and the first of each family
ATTEMPTS: Final = 40  # to find a setting that was not tried, the last of them at random


class _PrunedError(Exception):
    """The trial lies below the median of those before it."""


class _ConvergedError(Exception):
    """The trial has not improved for as many evaluations as ``patience``."""


class _TimeUpError(Exception):
    """The minutes of the search are used, but for those of the final comparison."""


def require_optuna() -> None:
    if find_spec("optuna") is None:
        raise InputError("tuning needs optuna, which is not installed; run: pip install 'bayesneg[tune]'")


@dataclass
class Search:
    """What is searched, on which data, and the study that records it."""

    families: Sequence[Family]
    split: Split  # a blind one
    epochs: int
    evaluate_every: int
    patience: int | None  # evaluations without a better one after which a trial ends; None: never
    seed: int
    study: optuna.Study
    pace: Pace
    learned: dict[Prior, Prior] = field(default_factory=dict)  # shared by trials with the same settings
    shown: tuple[int, str] = (0, "")  # on the progress bar: trials done, and the best

    def run(self, n_trials: int, bar: Update, say: Callable[[str], None]) -> list[Trial]:
        """Runs trials until there are ``n_trials``, earlier ones included, nothing new is left to try, or time is up.

        ``say`` takes the estimate of how long it will take.
        """
        from optuna.trial import TrialState

        for stale in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            self.study.tell(stale.number, state=TrialState.FAIL)  # its process was killed
        self._show(bar)
        n_before = len(self.trials())
        while len(done := self.trials()) < n_trials and not self.pace.is_over(done):
            if len(done) > n_before and self.pace.is_time_to_say(done):
                to_come = [one.name for number in range(len(done), n_trials) for one in self._in_turn(number)[:1]]
                say(self.pace.estimate(done, to_come))
            found = self._propose({trial.label for trial in done}, len(done))
            if found is None:
                break
            asked, tried = found
            try:
                self._try(asked, tried, bar)
            except _TimeUpError:
                self.study.tell(asked, state=TrialState.FAIL)  # it does not count either
                break
            except BaseException:
                # a trial that did not end does not count and is run again
                self.study.tell(asked, state=TrialState.FAIL, skip_if_finished=True)
                raise
            self._show(bar)
        return done

    def trials(self) -> list[Trial]:
        """The trials that ended, in order."""
        from optuna.trial import TrialState

        ended = self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.PRUNED))
        return [_trial(number, frozen) for number, frozen in enumerate(ended, 1)]

    def _propose(self, known: Collection[str], n_done: int) -> tuple[optuna.Trial, Combination] | None:
        """A setting that was not tried: the default of every sampler first, then what Optuna proposes."""
        from optuna.trial import TrialState

        for family in self._in_turn(n_done):
            for attempt in range(ATTEMPTS):
                asked = self._asked(family, n_done, attempt)
                tried = family.suggested(partial(_suggested, asked, family), self.split)
                if tried.label not in known:
                    for key, value in {
                        "label": tried.label,
                        "family": family.name,
                        "settings": dict(tried.sampler.settings),
                        "sampler": tried.sampler.text(self.split),
                        "loss_settings": dict(tried.loss.settings),
                        "loss": tried.loss.text(),
                    }.items():
                        asked.set_user_attr(key, value)
                    return asked, tried
                self.study.tell(asked, state=TrialState.FAIL)  # it would give the same result
        return None

    def _in_turn(self, n_done: int) -> list[Family]:
        """The sampler whose turn it is, and the next ones if it has nothing new: each sampler once, then each as often
        as it has settings to search.
        """
        if n_done < len(self.families):
            return [self.families[n_done]]
        turns = [each for each in self.families for _ in each.ranges]
        first = (n_done - len(self.families)) % max(1, len(turns))
        return list({each.name: each for each in (*turns[first:], *turns[:first])}.values())

    def _asked(self, family: Family, n_done: int, attempt: int) -> optuna.Trial:
        from optuna.samplers import RandomSampler, TPESampler
        from optuna.trial import TrialState

        seed = int(stream(self.seed, "search", n_done, attempt).integers(2**31))
        modelled = attempt < ATTEMPTS // 4  # the best settings may all be tried: then any other
        self.study.sampler = TPESampler(seed=seed, n_startup_trials=RANDOM) if modelled else RandomSampler(seed)
        waiting = self.study.get_trials(deepcopy=False, states=(TrialState.WAITING,))
        if n_done < len(self.families) and attempt == 0 and not waiting:
            self.study.enqueue_trial({_parameter(family, key): value for key, value in family.usual.items()})
        return self.study.ask()

    def _try(self, asked: optuna.Trial, tried: Combination, bar: Update) -> None:
        from optuna.trial import TrialState

        started = time.perf_counter()
        state = TrialState.COMPLETE
        try:
            self._train(asked, tried, bar)
        except _ConvergedError:
            pass  # as complete as a run that stops early
        except _PrunedError:
            state = TrialState.PRUNED
        except BayesnegError as error:  # diverged, say: a result for the setting, not the end of the search
            asked.set_user_attr("failed", str(error))
            state = TrialState.PRUNED
        asked.set_user_attr("seconds", time.perf_counter() - started)
        best = max(self._curve(asked).values()) if state == TrialState.COMPLETE else None
        self.study.tell(asked, best, state=state)

    def _show(self, bar: Update) -> None:
        done = self.trials()
        leader = max(best_of(done).values(), key=lambda trial: trial.value or 0.0, default=None)
        self.shown = len(done), "" if leader is None else f"best {leader.value:.4f} {leader.label}"
        bar(BAR, *self.shown)

    def _train(self, asked: optuna.Trial, tried: Combination, bar: Update) -> None:
        values: list[float] = []
        done = self.trials()

        def after_epoch(line: dict[str, Any]) -> None:
            n_done, best = self.shown
            bar(BAR, n_done, f"{best}  now {tried.label}, epoch {line['epoch']}".strip())
            value = next((value for key, value in line.items() if key.startswith("ndcg@")), None)
            if value is None:
                return
            asked.report(value, line["epoch"])
            values.append(value)
            if self.patience is not None and len(values) - 1 - values.index(max(values)) >= self.patience:
                raise _ConvergedError
            if line["epoch"] < self.epochs and asked.should_prune():
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

    def _built(self, tried: Combination) -> NegativeSampler:
        sampler = tried.sampler.build(self.split)
        if isinstance(sampler, PosteriorSampler) and isinstance(sampler.prior, Learned):
            shared: Any = {"prior": self.learned.setdefault(sampler.prior, sampler.prior)}
            return replace(sampler, **shared)  # type: ignore[type-var]
        return sampler

    def _curve(self, asked: optuna.Trial) -> dict[int, float]:
        return self.study.get_trials(deepcopy=False)[asked.number].intermediate_values


def best_of(trials: Sequence[Trial]) -> dict[str, Trial]:
    """The best trial of each family, the first of equals; a pruned trial counts with its best epoch."""
    found: dict[str, Trial] = {}
    for trial in trials:
        known = found.get(trial.family)
        if trial.state != "failed" and (known is None or (trial.value or 0.0) > (known.value or 0.0)):
            found[trial.family] = trial
    return found


@contextmanager
def opened(folder: Path | None, plan: Mapping[str, Any], *, resume: bool) -> Iterator[optuna.Study]:
    """A study in ``folder``, or in memory; an existing study is resumed if it has the same plan."""
    import optuna

    said = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # the progress bar shows them
    try:
        yield _study(folder, plan, resume)
    finally:
        optuna.logging.set_verbosity(said)


def _study(folder: Path | None, plan: Mapping[str, Any], resume: bool) -> optuna.Study:
    from optuna import create_study
    from optuna.pruners import MedianPruner
    from optuna.storages import InMemoryStorage

    journal = None if folder is None else folder / JOURNAL
    if journal is not None and journal.exists() and not resume:
        raise InputError(f"{folder} already holds a search; choose another --out, or add --resume to resume it")
    if journal is not None:
        _check_place(journal)
        journal.parent.mkdir(parents=True, exist_ok=True)
        _mend(journal)
    study = create_study(
        study_name="tune",
        storage=InMemoryStorage() if journal is None else _kept_in(journal),
        direction="maximize",
        pruner=MedianPruner(
            n_startup_trials=max(UNPRUNED, len(plan["samplers"])), n_warmup_steps=math.ceil(plan["epochs"] / 3)
        ),
        load_if_exists=True,
    )
    known = study.user_attrs
    for key, value in plan.items():
        begun = known.get(key, value)  # missing where the process was killed before it was recorded
        if begun != value:
            raise InputError(
                f"{folder} holds a search with another {key} ({begun}, now {value}); resume it as it was begun, or "
                "choose another --out"
            )
    for key in plan:  # only now: a refused search stays unchanged
        if key not in known:
            study.set_user_attr(key, plan[key])
    return study


def _kept_in(journal: Path) -> optuna.storages.JournalStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    class Lock(JournalFileOpenLock):
        """Keeps a Ctrl-C during the release: Optuna would raise an error about its missing lock file instead."""

        def release(self) -> None:
            try:
                super().release()
            except FileNotFoundError as error:
                raise error.__context__ or error from None

    path = str(journal.resolve())
    return JournalStorage(JournalFileBackend(path, lock_obj=Lock(path)))


def _check_place(journal: Path) -> None:
    folder = journal.parent
    if folder.exists() and not journal.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder} exists and is not an empty folder; choose another --out")


def _mend(journal: Path) -> None:
    """Removes the lock and the incomplete last line that a killed process may leave."""
    journal.with_name(f"{journal.name}.lock").unlink(missing_ok=True)
    content = journal.read_bytes() if journal.exists() else b""
    if content and not content.endswith(b"\n"):
        journal.write_bytes(content[: content.rfind(b"\n") + 1])


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


def _trial(number: int, frozen: optuna.trial.FrozenTrial) -> Trial:
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
