"""What is compared: models, samplers, losses and baselines, as objects, lists, mappings or text, under a label each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from typing import Any, Final, NamedTuple

from bayesneg.config.loss_specs import check_loss, parse_losses
from bayesneg.config.settings import assignments
from bayesneg.config.specs import baseline_specs, build_baselines, build_model, parse_samplers
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.interfaces import BPR_LOSS, Loss, Model, NegativeSampler
from bayesneg.models.baseline import Baseline
from bayesneg.models.validate import check_several
from bayesneg.runs.record import settings_text

MakeSampler = Callable[[Split], NegativeSampler]
SamplerLike = str | NegativeSampler | MakeSampler
Samplers = SamplerLike | Mapping[str, SamplerLike] | Iterable[SamplerLike]
Losses = str | Loss | Mapping[str, str | Loss] | Iterable[str | Loss]
Models = str | Model | Mapping[str, str | Model] | Iterable[str | Model]
Baselines = str | Baseline | Mapping[str, str | Baseline] | Iterable[str | Baseline]
YARDSTICKS: Final = "popularity,ease"  # baselines beside trained models unless others are given; both take seconds
NO_BASELINES: Final = "none"


class Contender(NamedTuple):
    """What is trained: a model with a sampler and a loss, or a baseline, which needs neither."""

    model: Model
    sampler: NegativeSampler | None
    loss: Loss | None


def contenders(
    models: Mapping[str, Model],
    samplers: Mapping[str, MakeSampler],
    losses: Mapping[str, Loss],
    baselines: Mapping[str, Baseline],
    split: Split,
) -> dict[str, Contender]:
    """Label → contender: every model with every sampler and every loss, then the baselines.

    A label names the sampler, and the model and the loss where there are several.
    """
    built = {label: make(split) for label, make in samplers.items()}
    found = {
        joint_label(sampler, model=model if len(models) > 1 else "", loss=loss if len(losses) > 1 else ""): Contender(
            models[model], built[sampler], losses[loss]
        )
        for model in models
        for sampler in built
        for loss in losses
    }
    for each, sampler, loss in product(models.values(), built.values(), losses.values()):  # before any is trained
        check_several(each, sampler, loss)
    if both := found.keys() & baselines.keys():
        raise InputError(f"{min(both)} is a label of both samplers and baselines; give one of them another")
    return found | {label: Contender(baseline, None, None) for label, baseline in baselines.items()}


def check_order(function: str, model: object) -> None:
    """An error where the data of an experiment comes before its model."""
    if isinstance(model, Split):
        raise InputError(
            f"model is a split; {function} takes model, split, samplers, in this order: "
            f"bn.{function}(bn.MF(), split, 'rns,bns')"
        )


def joint_label(sampler: str, *, model: str = "", loss: str = "") -> str:
    """``LightGCN + BNS + Softmax``, of the parts that are given."""
    return " + ".join(part for part in (model, sampler, loss) if part)


def named_samplers(samplers: Samplers) -> dict[str, MakeSampler]:
    """Label → function that makes the sampler for a split.

    >>> list(named_samplers("rns,bns:candidates=10"))
    ['RNS', 'BNS (candidates=10)']
    """
    found = by_label("samplers", samplers, _sampler)
    if not found:
        raise InputError("samplers must name at least one sampler, got none")
    return found


def named_models(model: Models) -> dict[str, Model]:
    """Label → model that is trained with sampled negatives.

    >>> from bayesneg.models.mf import MF
    >>> list(named_models([MF(), MF(dim=8)]))
    ['MF', 'MF (dim=8)']
    """
    found = by_label("model", model, _model)
    if not found:
        raise InputError("model must be a model such as bn.MF(), or several, got none")
    return found


def named_losses(loss: Losses | None) -> dict[str, Loss]:
    """Label → loss; BPR where none is given.

    >>> list(named_losses("bpr,softmax:temperature=0.2"))
    ['BPR', 'Softmax (temperature=0.2)']
    """
    found: dict[str, Loss] = by_label("loss", BPR_LOSS if loss is None else loss, _loss)
    if not found:
        raise InputError("loss must name at least one loss, got none; leave it out for BPR")
    return found


def named_baselines(baselines: Baselines) -> dict[str, Baseline]:
    """Label → baseline, which needs no sampler; ``"none"`` and ``()`` are none.

    >>> named_baselines("ease:l2=200")
    {'EASE (l2=200)': EASE(l2=200.0, form='auto')}
    """
    is_none = isinstance(baselines, str) and baselines.strip().lower() == NO_BASELINES
    return by_label("baselines", () if is_none else baselines, _baseline)


def _sampler(label: str | None, given: Any) -> Iterator[tuple[str, MakeSampler]]:
    if isinstance(given, str):
        yield from ((label or spec.label, spec.build) for spec in parse_samplers(given))
    elif isinstance(given, NegativeSampler):
        yield label or settings_text(given), lambda split: given
    elif isinstance(given, type) and issubclass(given, NegativeSampler):
        name = given.__name__
        raise InputError(f"samplers: {label or name} is the class {name}; give a sampler, {name}()")
    elif callable(given):
        name = label or given.__name__
        yield name, lambda split: _made(name, given, split)
    else:
        where = f"samplers: {label}" if label else "samplers: each"
        raise InputError(f"{where} must be a sampler, or a function of a split, got {given!r}")


def _made(label: str, make: MakeSampler, split: Split) -> NegativeSampler:
    sampler = make(split)
    if not isinstance(sampler, NegativeSampler):
        raise InputError(f"samplers: the function {label} must return a sampler, such as bn.RNS(), got {sampler!r}")
    return sampler


def _model(label: str | None, given: Any) -> Iterator[tuple[str, Model]]:
    if isinstance(given, str):
        for part in filter(None, (part.strip() for part in given.split(","))):
            name, *rest = part.split(":")
            yield from _model(label, build_model(name.lower(), assignments(rest, f"model {name}")))
    elif given is None or isinstance(given, type | Split | NegativeSampler):
        raise InputError(f"model must be a model such as bn.MF(), or several, got {given!r:.60}")
    elif isinstance(given, Baseline):
        name = type(given).__name__
        raise InputError(f"model: {name} samples no negatives; compare and tune take it in baselines=[…]")
    else:
        yield label or settings_text(given), given


def _loss(label: str | None, given: Any) -> Iterator[tuple[str, Loss]]:
    if isinstance(given, str):
        yield from ((label or spec.label, spec.build()) for spec in parse_losses(given))
        return
    check_loss(given)
    yield label or settings_text(given), given


def _baseline(label: str | None, given: Any) -> Iterator[tuple[str, Baseline]]:
    if isinstance(given, str):
        yield from ((label or name, built) for name, built in build_baselines(baseline_specs(given)).items())
    elif isinstance(given, Baseline):
        yield label or settings_text(given), given
    else:
        where = f"baselines: {label}" if label else "baselines: each"
        raise InputError(f"{where} must be a model without sampler, such as bn.baselines.EASE(), got {given!r}")


def by_label(argument: str, given: Any, read: Callable[[str | None, Any], Iterator[tuple[str, Any]]]) -> Any:
    """Label → object, for a mapping, a list or one of them; each label once."""
    pairs: Iterable[tuple[Any, Any]] = (
        given.items()
        if isinstance(given, Mapping)
        else ((None, each) for each in (given if isinstance(given, list | tuple) else [given]))
    )
    found: dict[str, Any] = {}
    for key, each in pairs:
        if key is not None and not isinstance(key, str):
            raise InputError(f"{argument}: a label must be text, got {key!r}; write {str(key)!r}")
        for label, one in read(key, each):
            if label in found:
                raise InputError(f"{argument} has {label} twice; give each once, or as a mapping with other labels")
            found[label] = one
    return found
