"""What ``bayesneg train`` trains: the model, the sampler, the loss and for how long, from its options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bayesneg.errors import InputError

if TYPE_CHECKING:
    from bayesneg.config.specs import SamplerSpec
    from bayesneg.data.splits import Split
    from bayesneg.interfaces import Loss, Model, NegativeSampler
    from bayesneg.runs.run import Run


@dataclass(frozen=True)
class Plan:
    """What to train, and for how long.

    Args:
        model: The model.
        spec: The sampler; None for a baseline.
        loss: The loss; None for a baseline.
        label: The name of the run.
        epochs: Passes over the data, at most.
        evaluate_users: Users who are evaluated between epochs; None for all.
        patience: Evaluations without a better one before training stops; None for never.
        note: What a person should know about it; empty for nothing.
    """

    model: Model
    spec: SamplerSpec | None
    loss: Loss | None
    label: str
    epochs: int
    evaluate_users: int | None
    patience: int | None
    note: str = ""

    def sampler(self, split: Split) -> NegativeSampler | None:
        """The sampler for a split; None for a baseline."""
        return None if self.spec is None else self.spec.build(split)


def planned(
    model: str | None,
    *,
    sampler: str | None,
    loss: str | None,
    settings: Sequence[str],
    device: str | None,
    label: str | None,
    epochs: int | None,
    evaluate_users: int | None,
    patience: int | None,
    selection: str,
    earlier: Run | None,
) -> Plan:
    """The plan that options ask for; without a model, sampler and loss the recommended one, with these settings."""
    from bayesneg.config.build import typed
    from bayesneg.config.loss_specs import as_loss
    from bayesneg.config.recommended import EPOCHS, EVALUATED_USERS, PATIENCE, recommended
    from bayesneg.config.registry import BASELINES
    from bayesneg.config.specs import SamplerSpec, build_model, labelled, sort_settings, with_device
    from bayesneg.runs.record import describe, settings_text

    named, model, note = model is not None, model or "mf", ""
    if patience is not None and selection == "last" and model not in BASELINES:
        raise InputError("--patience stops on validation data; give --select best, or drop --patience")
    if model in BASELINES:
        needless = {"--sampler": sampler, "--loss": loss, "--patience": patience, "--evaluate-users": evaluate_users}
        _check_baseline(model, {**needless, "--epochs": None if epochs == 1 else epochs, "--start": earlier})
        for_model, _ = sort_settings(settings, model, [])
        built = build_model(model, with_device(for_model, model, device))
        return Plan(built, None, None, label or labelled(model.upper(), for_model), 1, None, None)
    chosen = as_loss(loss)
    is_recommended = model == "mf" and sampler is None and chosen == as_loss(None)
    if is_recommended and earlier is not None:  # it goes on as it began
        is_recommended = earlier.record.spec["model"] == describe(recommended()[0])
    if is_recommended:
        with_device({}, model, device)  # which mf does not have
        base, spec = recommended()
        for_model, (spec,) = sort_settings(settings, model, [spec])
        built = replace(base, **typed(type(base), for_model, f"model {model}"))
        epochs = EPOCHS if epochs is None else epochs
        evaluate_users = EVALUATED_USERS if evaluate_users is None else evaluate_users
        patience = PATIENCE if patience is None and selection == "best" else patience
    else:
        for_model, (spec,) = sort_settings(settings, model, [SamplerSpec.parse(sampler or "bns")])
        built = build_model(model, with_device(for_model, model, device))
        if not named and earlier is None:
            note = _plain_defaults(settings_text(built), {"--sampler": sampler, "--loss": loss})
    epochs = 100 if epochs is None else epochs
    return Plan(built, spec, chosen, label or spec.label, epochs, evaluate_users, patience, note)


def _plain_defaults(model: str, options: dict[str, str | None]) -> str:
    """What is said where an option turns the recommended settings off."""
    given = " and ".join(name for name, value in options.items() if value is not None)
    return (
        f"note: with {given} the plain defaults were trained, here {model}; drop {given} for the recommended settings, "
        "of which --set changes single ones, or name --model mf to leave this note out"
    )


def _check_baseline(model: str, options: dict[str, Any]) -> None:
    """A baseline is solved at once: what is said of epochs and negatives would have no effect."""
    reasons = {"--sampler": "samples no negatives", "--loss": "learns from no negatives"}
    reasons |= {"--start": "is solved from all data at once"}
    for option, value in options.items():
        if value is not None:
            raise InputError(f"model {model} {reasons.get(option, 'is solved at once, without epochs')}; drop {option}")
