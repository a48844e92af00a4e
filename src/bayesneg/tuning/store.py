"""The trials of a study, as processes claim, report and end them.

Trials have places 0, 1, 2, …; each place is that of one trial. A process claims a place by adding a running trial with
that place, in one step; where two do so at once the first keeps it. While a trial of a shared study runs, its process
changes a number in it every few seconds. A trial whose number stands still is that of a dead process: it is failed, its
place is free again. Only changes are looked at, so the clocks of machines need not agree.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from bayesneg.errors import BayesnegError, StorageError
from bayesneg.runs.folder import append_line
from bayesneg.tuning.kept_trials import KEPT as KEPT
from bayesneg.tuning.kept_trials import kept_trials

if TYPE_CHECKING:
    import optuna
    from optuna.trial import FrozenTrial

BUDGET: Final = "trials"  # of a shared study: how many trials it has
BEAT: Final = 10.0  # seconds between two signs of life
GRACE: Final = 60.0  # seconds without one after which a process is dead
OUTAGE: Final = 60.0  # seconds that a process waits for a database that went away
Result = TypeVar("Result")


class LostError(BayesnegError):
    """The trial is no longer this process's: it showed no sign of life for too long."""


class TrialOutcome(NamedTuple):
    """How a trial ended."""

    curve: Mapping[int, float]  # epoch → score
    state: str  # COMPLETE or PRUNED
    seconds: float
    failed: str = ""


class Proposal(NamedTuple):
    """The setting of a trial, as Optuna records it."""

    place: int
    params: Mapping[str, Any]
    distributions: Mapping[str, Any]
    facts: Mapping[str, Any]  # label, family and settings


@dataclass
class Store:
    """A study, and what this process knows of it."""

    study: optuna.Study
    name: str = ""  # of a shared storage, without its password; empty where this process alone uses the study
    secrets: tuple[str, ...] = ()
    folder: Path | None = None  # keeps the trials that this process ended, of a shared study
    _seen: dict[int, tuple[Any, float]] = field(default_factory=dict)  # number → its sign of life, and since when
    _kept: dict[tuple[int, str], dict[str, Any]] = field(default_factory=dict)  # place, label → what was ended
    _open: optuna.Trial | None = None

    @property
    def is_shared(self) -> bool:
        return bool(self.name)

    def begin(self, n_trials: int) -> None:
        """Frees the places of trials that earlier processes left, and raises the number of trials to ``n_trials``."""
        if not self.is_shared:
            for left in self._running():
                self._fail(left)
            return
        self._kept = {(each["place"], each["label"]): each for each in kept_trials(self.folder)}
        own = {each["claim"] for each in self._kept.values()}
        with self._reaching():
            for left in self._running():
                if left.user_attrs.get("claim") in own:
                    self._fail(left)
            if self.study.user_attrs.get(BUDGET, 0) < n_trials:
                self.study.set_user_attr(BUDGET, n_trials)

    def budget(self, n_trials: int) -> int:
        """The number of trials: of a shared study, the highest that any process has asked for."""
        if not self.is_shared:
            return n_trials
        return max(n_trials, self._patiently(lambda: int(self.study.user_attrs.get(BUDGET, 0))))

    def live(self) -> dict[int, FrozenTrial]:
        """The trials that ended or run, by place."""
        found: dict[int, FrozenTrial] = {}
        for trial in self._patiently(lambda: self.study.get_trials(deepcopy=False)):
            if trial.state.name in ("COMPLETE", "PRUNED", "RUNNING") and "place" in trial.user_attrs:
                found.setdefault(trial.user_attrs["place"], trial)
        return dict(sorted(found.items()))

    def free_the_dead(self, live: Mapping[int, FrozenTrial]) -> None:
        """Fails running trials whose processes have shown no sign of life for too long."""
        now = time.monotonic()
        for trial in live.values():
            if trial.state.name != "RUNNING":
                continue
            sign = trial.user_attrs.get("beat"), len(trial.intermediate_values)
            known, since = self._seen.get(trial.number, (None, now))
            if known != sign:
                self._seen[trial.number] = sign, now
            elif now - since >= GRACE:
                self._patiently(partial(self._fail, trial))

    def claimed(self, proposal: Proposal) -> FrozenTrial | None:
        """A running trial with the setting; None where another process has the place."""
        claim, attempts = uuid.uuid4().hex, count()
        return self._patiently(lambda: self._claim(proposal, claim, is_first=next(attempts) == 0))

    def _claim(self, proposal: Proposal, claim: str, *, is_first: bool) -> FrozenTrial | None:
        from optuna.trial import TrialState, create_trial

        if is_first or not any(each.user_attrs.get("claim") == claim for each in self._running()):
            facts = {**proposal.facts, "place": proposal.place, "claim": claim, "by": _by()}
            self.study.add_trial(
                create_trial(
                    state=TrialState.RUNNING,
                    params=dict(proposal.params),
                    distributions=dict(proposal.distributions),
                    user_attrs=facts,
                )
            )
        trials = self.study.get_trials(deepcopy=False)
        (own,) = [each for each in trials if each.user_attrs.get("claim") == claim]
        for other in trials[: own.number]:
            if other.user_attrs.get("place") == proposal.place and other.state.name != "FAIL":
                self._fail(own)
                return None
        return own

    def report(self, trial: FrozenTrial, epoch: int, value: float) -> None:
        """Records a score; nothing happens while the database is away: ``end`` records them all."""
        try:
            with self._reaching():
                self._report(trial, epoch, value)
        except StorageError:
            return

    def _report(self, trial: FrozenTrial, epoch: int, value: float) -> None:
        from optuna.exceptions import UpdateFinishedTrialError

        try:
            self._writing(trial).report(value, epoch)
        except UpdateFinishedTrialError:
            raise LostError(f"trial {trial.number} was taken over") from None

    def end(self, trial: FrozenTrial, outcome: TrialOutcome) -> None:
        """Records the outcome: on this machine first, then in the study.

        Raises:
            LostError: Another process was given the place.
        """
        own = trial.user_attrs
        if self.folder is not None and (own["place"], own["label"]) not in self._kept:
            line = {"place": own["place"], "label": own["label"], "claim": own["claim"], **outcome._asdict()}
            append_line(self.folder / KEPT, line)
        self._patiently(lambda: self._end(trial, outcome))

    def _end(self, trial: FrozenTrial, outcome: TrialOutcome) -> None:
        from optuna.exceptions import UpdateFinishedTrialError
        from optuna.trial import TrialState

        (now,) = [each for each in self.study.get_trials(deepcopy=False) if each.number == trial.number]
        if now.state.name == outcome.state:
            return  # by an earlier attempt whose answer was lost
        for epoch, value in outcome.curve.items():
            if epoch not in now.intermediate_values:
                self._report(trial, epoch, value)
        writing = self._writing(trial)
        try:
            writing.set_user_attr("seconds", outcome.seconds)
            if outcome.failed:
                writing.set_user_attr("failed", outcome.failed)
            best = max(outcome.curve.values()) if outcome.state == "COMPLETE" else None
            self.study.tell(trial.number, best, state=TrialState[outcome.state])
        except (UpdateFinishedTrialError, ValueError):
            raise LostError(f"trial {trial.number} was taken over") from None

    def kept(self, trial: FrozenTrial) -> TrialOutcome | None:
        """How this process ended the same trial before, where the study does not know it."""
        line = self._kept.get((trial.user_attrs["place"], trial.user_attrs["label"]))
        if line is None:
            return None
        curve = {int(epoch): value for epoch, value in line["curve"].items()}
        return TrialOutcome(curve, line["state"], line["seconds"], line["failed"])

    def give_up(self, trial: FrozenTrial) -> None:
        """The trial did not end: it does not count, and its place is free."""
        try:
            with self._reaching():
                self._fail(trial)
        except StorageError:
            return  # the others will find it dead

    @contextmanager
    def alive(self, trial: FrozenTrial) -> Iterator[None]:
        """Shows signs of life while the trial runs."""
        if not self.is_shared:
            yield
            return
        stop = Event()
        thread = Thread(target=self._beat, args=(trial, stop), daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _beat(self, trial: FrozenTrial, stop: Event) -> None:
        from optuna.exceptions import UpdateFinishedTrialError

        beats = 0
        while not stop.wait(BEAT):
            beats += 1
            try:
                with self._reaching():
                    self._writing(trial).set_user_attr("beat", beats)
            except StorageError:
                continue
            except UpdateFinishedTrialError:
                return  # the next report says so

    def _writing(self, trial: FrozenTrial) -> optuna.Trial:
        """What a running trial is written with; made once, since that reads the study."""
        from optuna.trial import Trial

        if self._open is None or self._open.number != trial.number:
            self._open = Trial(self.study, trial._trial_id)
        return self._open

    def _running(self) -> Sequence[FrozenTrial]:
        from optuna.trial import TrialState

        return self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))

    def _fail(self, trial: FrozenTrial) -> None:
        from optuna.trial import TrialState

        self.study.tell(trial.number, state=TrialState.FAIL, skip_if_finished=True)

    def _patiently(self, action: Callable[[], Result]) -> Result:
        """The action, tried again while the database is away, but not for long."""
        until, pause = time.monotonic() + OUTAGE, 0.1
        while True:
            try:
                with self._reaching():
                    return action()
            except StorageError:
                if not self.is_shared or time.monotonic() > until:
                    raise
            time.sleep(pause)
            pause = min(2 * pause, 3.0)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        kept = "" if self.folder is None else f", and those of this process in {self.folder}"
        again = "" if self.folder is None else " and --resume"
        way_out = f"finished trials are kept there{kept}; when it is back, give the same command{again}"
        with reaching(self.name, self.secrets, way_out):
            yield


@contextmanager
def reaching(name: str, secrets: Sequence[str], way_out: str) -> Iterator[None]:
    """Errors of a shared storage become one sentence without its password; those of others pass."""
    if not name:
        yield
        return
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError, OSError) as error:
        said = _reason(error)
        for secret in secrets:
            said = said.replace(secret, "***")
        raise StorageError(f"{name} cannot be used: {said}; {way_out}") from None


def _reason(error: BaseException) -> str:
    """The last line of what the driver or the system says."""
    from sqlalchemy.exc import DBAPIError

    cause = error.__cause__ or error  # Optuna wraps what SQLAlchemy raises, which wraps what the driver raises
    told = cause.orig if isinstance(cause, DBAPIError) and cause.orig is not None else cause
    if isinstance(told, OSError) and told.strerror:
        return told.strerror
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    return lines[0].rstrip(".;") if lines else type(told).__name__


def _by() -> str:
    return f"{socket.gethostname()}, process {os.getpid()}"
