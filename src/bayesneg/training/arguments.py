"""The arguments of a fit, checked before anything is trained."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, ParamSpec, TypeVar

from bayesneg.checks import an_object
from bayesneg.data.splits import Split, carve_validation
from bayesneg.errors import InputError
from bayesneg.evaluation.ranking import evaluated_users
from bayesneg.interfaces import Learner, Model, NegativeSampler, Observer, Tracker
from bayesneg.models.baseline import Baseline
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.runs.run import Run

VALIDATION: Final = 0.1  # share of the training part, as the command line holds it out
P = ParamSpec("P")
R = TypeVar("R")


def model_first(way_out: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a function of a model and a split: where the split is missing, an error ends with the way out."""

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def checked(*args: P.args, **keywords: P.kwargs) -> R:
            if len(args) < 2 and "split" not in keywords:
                got = "a split" if isinstance(args[0] if args else None, Split) else "no split"
                raise InputError(
                    f"{function.__name__} takes the model first, then the split that bn.split(data) makes, and got "
                    f"{got}{' alone' if got == 'a split' else ''}; {way_out}"
                )
            return function(*args, **keywords)

        return checked

    return decorated


def stopping_early(split: Split) -> Split:
    """The split with a validation part to stop on: where there is none, a tenth of the training part, with a warning.

    A split of a final model, with nothing held out, stays as it is.
    """
    if split.validation is not None or not len(split.test):
        return split
    rule = dict(split.origin or {})
    how = {"by": rule.get("split_by", "interaction"), "seed": rule.get("split_seed", 0)}
    try:
        found = carve_validation(split, VALIDATION, **how)
    except InputError:
        said = "and is too small for one: all epochs are trained; give epochs=… to choose how many"
    else:
        said = "a tenth of the training part is held out; epochs=… with select='last' trains on all of it"
        split = replace(found, origin={**rule, "validation": VALIDATION} if rule else None)
    warnings.warn(f"the split has no validation part to stop on, {said}", stacklevel=4)
    return split


def sorted_observers(given: object) -> tuple[list[Observer], list[Tracker]]:
    """Observers and trackers, which may be given one by one or together."""
    observers: list[Observer] = []
    trackers: list[Tracker] = []
    for one in [] if given is None else list(given) if isinstance(given, list | tuple) else [given]:
        if isinstance(one, Tracker):
            trackers.append(one)
        elif isinstance(one, Observer) and not isinstance(one, type):
            observers.append(one)
        else:
            raise InputError(
                "observer must be an object with the methods of bn.Observer, a tracker such as "
                f"bn.tracking.TensorBoard('logs'), or a list of these, got {one!r}"
            )
    return observers, trackers


def check_given(
    model: Model,
    split: Split,
    sampler: NegativeSampler | None,
    loss: object,
    observers: Sequence[Observer],
    patience: int | None,
) -> None:
    """An error unless these go together."""
    an_object("model", model, "bn.MF()")
    an_object("sampler", sampler, "bn.BNS()")
    if not isinstance(split, Split):
        raise InputError(
            f"split must be a split, got {type(split).__name__}; fit takes model, split, sampler, in this order, and "
            "bn.split(data) makes a split"
        )
    name = type(model).__name__
    if isinstance(model, Baseline):
        observed = observers or None
        for argument, given in (("a sampler", sampler), ("a loss", loss), ("an observer", observed)):
            if given is not None:
                raise InputError(f"{name} samples no negatives; call fit without {argument}")
        if patience is not None:
            raise InputError(f"{name} is solved at once and has no epochs to stop; call fit without patience")
    elif sampler is None:
        raise InputError(
            f"{name} is trained with sampled negatives; give fit a sampler, such as bn.BNS(), or train what is "
            "recommended: bn.fit(None, split)"
        )


def tells_epochs_apart(learner: Learner, split: Split, sample: int | None) -> bool:
    """Whether the validation part can choose an epoch: not where popularity ranks each of its users.

    Args:
        learner: The learner before its first epoch.
        split: The data.
        sample: Number of users that are evaluated between epochs; None for all.
    """
    if split.validation is None:
        return True
    users = evaluated_users(split.validation, sample)
    if split.train.counts[users].any():
        return True
    scorer = learner.frozen()
    return not (isinstance(scorer, EmbeddingScorer) and scorer.cold is not None and scorer.cold.users[users].all())


def warn_of_cold_validation(epochs: int, split: Split) -> None:
    """Say that no epoch can be chosen, and how one could be, where a user has two interactions."""
    if (split.known.counts > 1).any():
        way_out = "to choose one, hold out a part of each user's interactions, by='user' or 'last' (--split-by)"
    else:
        way_out = "no user has two interactions, one to train on and one to hold out"
    warnings.warn(
        "no validation user that is evaluated has a training interaction: every epoch ranks them alike, by popularity, "
        f"so all {epochs:,} epochs are trained and the last is reported; {way_out}",
        UserWarning,
        stacklevel=3,
    )


def check_measured(split: Split, run: Run | None) -> None:
    """An error unless the metrics of ``run`` can stand for a model that is trained on all data."""
    if run is None:
        return
    if not isinstance(run, Run):
        raise InputError(f"measured_by must be a run, such as bn.fit(…) returns, got {type(run).__name__}")
    if len(split.test):
        raise InputError(
            "measured_by is for a final model, trained on all data, and this split has a test part; train on "
            "split.whole(), or call fit without measured_by"
        )
    if not run.record.final:
        raise InputError("measured_by must be a run with a test part, got one that nothing was measured of")
