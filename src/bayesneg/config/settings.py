"""The settings of samplers and models as text: what each may be given, with its type and meaning."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError

from bayesneg.config.build_priors import PRIORS
from bayesneg.config.custom import is_own
from bayesneg.errors import InputError

Settings = Mapping[str, Any]
KNOWN = ", ".join([*PRIORS, "file.py:Class"])


class Options(BaseModel):
    """Settings of one sampler or model; what is not given keeps the object's own default."""

    model_config = ConfigDict(extra="forbid")


class NoOptions(Options):
    pass


class PNSOptions(Options):
    power: float = Field(0.75, description="probability ∝ popularity^power")


class AOBPROptions(Options):
    scale: float = Field(200.0, description="λ in ranks")
    fraction: float | None = Field(None, description="λ as a fraction of the item count, instead of scale")
    rank: Literal["score", "factor"] = Field(
        "score", description="score (the user's whole list) or factor (one factor's)"
    )


class DNSOptions(Options):
    candidates: int | Literal["all"] = Field(2, description="uniform candidates per example, or all")
    top: int = Field(1, description="one of so many highest, uniformly: DNS(M, N)")


class SRNSOptions(Options):
    memory: int = Field(8, description="items remembered per user, S1")
    fresh: int = Field(64, description="items that compete for the memory after each choice, S2")
    temperature: float = Field(10.0, description="τ of the softmax that decides who stays")
    alpha: float = Field(5.0, description="weight of the variance")
    warmup: int = Field(50, description="epochs until alpha has its full weight, T0")


def _known_priors(text: str) -> str:
    for kind in text.split("+"):
        if kind not in PRIORS and not is_own(kind):
            raise PydanticCustomError("prior", "{kind} is no prior; valid: {known}", {"kind": kind, "known": KNOWN})
    return text


class PriorOptions(Options):
    """What a prior can be told."""

    prior: Annotated[str, AfterValidator(_known_priors)] = Field(
        "popularity",
        description="believed before scores are seen: popularity, flat, rate, group, smoothed (group), learned, "
        "self (with likelihood=uninformative), oracle or file.py:Class; several joined by +",
    )
    column: str | None = Field(
        None, description="user column of the group and smoothed priors; occupation, or the first there is"
    )
    hidden: float | None = Field(
        None, description="hidden positives for each observed one, of the rate, smoothed, learned and self priors"
    )
    item_model: Literal["auto", "ease", "neighbours"] | None = Field(
        None, description="what the learned prior learns from: auto (by the catalogue's size), ease or neighbours"
    )
    l2: float | None = Field(None, description="of the learned prior's EASE")
    strength: float | None = Field(None, description="factor on the odds of the prior")
    rejected: str | None = Field(None, description="a file of pairs that were shown and not chosen")
    chosen_column: str | None = Field(
        None, description="a column of that file, 0 or less where the pair was not chosen; without it no row was"
    )
    seen: float | None = Field(None, description="factor on the odds of the prior for those pairs")


class PosteriorOptions(PriorOptions):
    candidates: int | Literal["all"] = Field(5, description="uniform candidates per example, or all")
    likelihood: Literal["paper", "mixture", "empirical", "uninformative"] = Field(
        "paper",
        description="how F follows from the count: paper (as it is), mixture (inverted), empirical or uninformative",
    )
    cdf_over: Literal["unobserved", "catalogue", "all"] = Field(
        "unobserved", description="what F counts: unobserved items, those as a share of the catalogue, or all"
    )


class BNSOptions(PosteriorOptions):
    weight: float | str = Field(5.0, description="λ; or linear/START/RATE/FLOOR for max(START − RATE·epoch, FLOOR)")
    cdf: Literal["exact", "refreshed", "auto"] = Field(
        "auto", description="how F is had: exact, refreshed (fast, from a summary) or auto (by the catalogue's size)"
    )

    moved: float | None = Field(
        None, description="of a refreshed F: share of its length that a user's vector may move before it is made anew"
    )
    pool: int | None = Field(None, description="of a refreshed F: items that are all looked at when it is made")


class WarmStartOptions(BNSOptions):
    warmup: int = Field(10, description="epochs of RNS before BNS")


class MFOptions(Options):
    dim: int = Field(32, description="length of the vectors")
    learning_rate: float = Field(0.01, description="step size of SGD")
    regularization: float = Field(0.01, description="L2 penalty on every vector touched")
    init_scale: float | None = Field(None, description="standard deviation of the first vectors")
    update: Literal["sequential", "simultaneous"] = Field(
        "sequential", description="sequential (items follow the new user vector) or simultaneous"
    )
    shuffle: Literal["once", "epoch"] = Field(
        "once", description="once (one order of examples) or epoch (a new one each)"
    )
    threads: int = Field(1, description="threads that train at once; above 1 not deterministic")
    sampling_batch: int = Field(1, description="examples a sampler of your own answers at once")
    ensemble_size: int = Field(1, description="models that learn side by side; the score is the mean of theirs")


class TorchOptions(Options):
    """What every model trained with torch can be told."""

    dim: int = Field(32, description="length of the vectors")
    init_scale: float = Field(0.1, description="standard deviation of the first vectors")
    learning_rate: float = Field(0.01, description="first step size of Adam")
    decay: float = Field(0.1, description="factor on the learning rate every decay_every epochs")
    decay_every: int = Field(20, description="epochs between two cuts of the learning rate")
    regularization: float = Field(1e-5, description="strength of the penalty")
    penalty: Literal["weight_decay", "batch"] = Field(
        "weight_decay", description="weight_decay (on all parameters) or batch (on the vectors of the batch)"
    )
    scale_regularization: bool = Field(True, description="multiply regularization by 128 / batch_size")
    batch_size: int = Field(128, description="examples per step")
    shuffle: Literal["once", "epoch"] = Field(
        "epoch", description="once (one order of examples) or epoch (a new one each)"
    )
    ensemble_size: int = Field(1, description="models that learn side by side; the score is the mean of theirs")
    chunk: int = Field(1 << 24, description="scores held at once where a sampler looks at the whole catalogue")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="the same as --device")


class LightGCNOptions(TorchOptions):
    layers: int = Field(1, description="times the vectors are smoothed over the graph")


class ItemKNNOptions(Options):
    neighbours: int = Field(200, description="most similar items kept of each item")
    shrink: float = Field(10.0, description="pulls similarities that few users speak for towards 0")


class EASEOptions(Options):
    l2: float = Field(400.0, description="L2 penalty on the weights between items")
    form: Literal["auto", "dense", "low-rank"] = Field(
        "auto", description="how the weights are held: dense (exact, 4·items² bytes), low-rank, or auto (by size)"
    )


class ALSOptions(Options):
    dim: int = Field(64, description="length of the vectors")
    regularization: float = Field(50.0, description="L2 penalty on every vector")
    alpha: float = Field(10.0, description="weight of a chosen pair; every other pair weighs 1")
    iterations: int = Field(15, description="times both sides are solved for")


def assignments(parts: Iterable[str], where: str) -> dict[str, str]:
    """``["dim=8"]`` → ``{"dim": "8"}``."""
    found: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        if not equals or not key or not value.strip():
            raise InputError(f"{where}: {part!r} is not of the form key=value")
        if key in found:
            raise InputError(f"{where}: {key} is given twice")
        found[key] = value.strip()
    return found


def checked(options: type[Options], settings: Settings, where: str) -> dict[str, Any]:
    """The given settings with their types, or one sentence about the first that is wrong."""
    for key in settings:
        check_known(key, options.model_fields, f"setting of {where}")
    try:
        valid = options.model_validate(dict(settings))
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        about = options.model_fields[key].description
        message = first["msg"][0].lower() + first["msg"][1:]
        raise InputError(f"{where}: {key}={settings[key]} ({about}): {message}") from None
    return {key: getattr(valid, key) for key in settings}


def check_known(name: str, valid: Iterable[str], noun: str) -> None:
    """An error that lists the valid names, unless the name is one of them."""
    names = sorted(valid)
    if name in names:
        return
    close = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    listed = ", ".join(names) if names else "none"
    raise InputError(f"{name!r} is no {noun}; {hint}valid: {listed}")
