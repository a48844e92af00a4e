"""The record of a run: one sampler, one seed, all its numbers and none of its weights."""

from __future__ import annotations

import hashlib
import math
import os
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final, Literal

import numpy as np

from bayesneg import __version__
from bayesneg.data.interactions import Interactions
from bayesneg.data.splits import Split
from bayesneg.errors import InputError
from bayesneg.evaluation.results import metrics_html
from bayesneg.integrity.sources import code_digest

SCHEMA: Final = 2  # of what is stored of a run; another one is not read


@dataclass(frozen=True, repr=False)
class RunRecord:
    """One run: its settings, its data, and every measure of every epoch; no weights.

    Args:
        label: The name in tables, such as ``BNS (candidates=10)``.
        seed: Seed of initialization, order and draws.
        dataset: The name of the data.
        sampler: The sampler's short name, such as ``bns``; empty for a baseline.
        model: The model's settings as text, such as ``MF (dim=64)``.
        loss: The loss's settings as text, such as ``Softmax (temperature=0.2)``; empty for a baseline.
        spec: Settings of the model, the sampler and the loss in plain values, and ``evaluate_every``.
        versions: Versions of Python and of the libraries that compute; the GPU, the CPU and the threads of BLAS.
        data: Counts and the fingerprint of the split: ``n_users``, ``n_items``, ``n_train``, ``fingerprint``, …;
            digests of the ``user_columns``, which it does not cover.
        epochs: One line per epoch, each with the key ``epoch``, sampling quality, seconds, and metrics if evaluated.
        final: Test metrics of the reported epoch.
        intervals: Their 95% intervals over users, (low, high).
        reported_epoch: The epoch of ``final``.
        select: How it was chosen: ``last``, or ``best`` on validation data.
        uses_test_labels: Whether the sampler looks at test labels on purpose, as an oracle does.
        per_user: Metric → values (n_users,) of the reported epoch; None where they were not kept.
        before_final: Of a final model, trained on all data: what was measured before, without the held-out part
            (``reported_epoch``, ``select``, test metrics ``final`` with ``intervals``, ``validation``, and the line of
            the ``last_epoch``); empty for any other run.
        run_file: What ``run.toml`` holds, which ``bayesneg train`` makes the run of again; empty where unknown.

    >>> run = RunRecord(label="RNS", seed=0, dataset="toy", epochs=[{"epoch": 1, "tnr": 0.9}])
    >>> run.last("tnr"), run.at_epochs("tnr")
    (0.9, {1: 0.9})
    """

    label: str
    seed: int
    dataset: str
    sampler: str = ""
    model: str = ""
    loss: str = "BPR"
    spec: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)
    epochs: Sequence[Mapping[str, Any]] = ()
    final: Mapping[str, float | None] = field(default_factory=dict)
    intervals: Mapping[str, Sequence[float | None] | None] = field(default_factory=dict)
    reported_epoch: int = 0
    select: Literal["last", "best"] = "last"
    uses_test_labels: bool = False
    per_user: Mapping[str, np.ndarray] | None = None
    before_final: Mapping[str, Any] = field(default_factory=dict)
    run_file: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.label.strip():
            raise InputError("label must name the sampler, got an empty text")
        if self.select not in ("last", "best"):
            raise InputError(f"select must be 'last' or 'best', got {self.select!r}")

    def __repr__(self) -> str:
        key = next((key for key in reversed(list(self.final)) if key.startswith("ndcg@")), None)
        found = f", {key} {self.final[key]:.4f}" if key is not None and is_number(self.final[key]) else ""
        epochs = "" if self.is_baseline else f", epoch {self.reported_epoch} of {len(self.epochs)}"
        return f"RunRecord({self.label!r} on {self.dataset!r}, seed {self.seed}{epochs}{found})"

    def _repr_html_(self) -> str:
        about = [self.model, *([] if self.is_baseline else [f"loss {self.loss}"]), f"seed {self.seed}"]
        chosen = "last" if self.select == "last" else "best on validation data"
        about += [] if self.is_baseline else [f"epoch {self.reported_epoch} of {len(self.epochs)}, the {chosen}"]
        about += ["sees test labels"] if self.uses_test_labels else []
        title, before = f"{self.label} on {self.dataset}", self.before_final
        if before:
            about += ["trained on all data; the metrics were measured before, without the held-out part"]
            return metrics_html(title, before["final"], before["intervals"], [" · ".join(about)])
        return metrics_html(title, self.final, self.intervals, [" · ".join(about)])

    @property
    def is_baseline(self) -> bool:
        """Whether the model needed no negatives, so that there is no sampler to judge."""
        return "sampler" in self.spec and self.spec["sampler"] is None

    def at_epochs(self, key: str) -> dict[int, float]:
        """The curve of a measure.

        Args:
            key: The measure, such as ``"ndcg@20"`` or ``"tnr"``.

        Returns:
            Epoch → value, for the epochs that recorded a finite number.
        """
        return {int(line["epoch"]): float(line[key]) for line in self.epochs if is_number(line.get(key))}

    def last(self, key: str) -> float:
        """The last value of a measure.

        Args:
            key: The measure, as in :meth:`at_epochs`.

        Returns:
            The value at the last epoch that recorded it; NaN where none did.
        """
        values = self.at_epochs(key)
        return values[max(values)] if values else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Convert to plain values, for JSON.

        Returns:
            All fields but the values per user and the run file.
        """
        left_out = ("per_user", "run_file")
        return jsonable({item.name: getattr(self, item.name) for item in fields(self) if item.name not in left_out})

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> RunRecord:
        """Restore a record.

        Args:
            stored: What :meth:`to_dict` returned, with or without ``per_user``; null becomes NaN.

        Returns:
            The record.
        """
        check_kinds(stored)
        intervals = {key: ends and tuple(_or_nan(end) for end in ends) for key, ends in stored["intervals"].items()}
        per_user = stored.get("per_user")
        return cls(
            **{
                **stored,
                "final": {key: _or_nan(value) for key, value in stored["final"].items()},
                "intervals": intervals,
                "per_user": per_user and {key: np.asarray(values) for key, values in per_user.items()},
            }
        )


KINDS: Final[dict[str, Any]] = {  # field → the types of JSON that it may have; of what a list or an object holds, too
    **dict.fromkeys(("label", "dataset", "sampler", "model", "loss", "select"), str),
    **dict.fromkeys(("seed", "reported_epoch"), int),
    **dict.fromkeys(("spec", "versions", "data", "before_final", "run_file"), dict),
    "uses_test_labels": bool,
    "epochs": (list, dict),
    "final": (dict, int | float | None),
    "intervals": (dict, list | tuple | None),
}


def check_kinds(stored: Mapping[str, Any]) -> None:
    """An error unless the values of a stored record have the types of its fields.

    Args:
        stored: What was read from a file, which may be damaged.
    """
    for key, kind in KINDS.items():
        whole, inner = kind if isinstance(kind, tuple) else (kind, object)
        value = stored.get(key, whole())
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if not isinstance(value, whole) or not all(isinstance(each, inner) for each in inside):
            raise TypeError(f"{key} is {value!r:.40}")


def check_schema(found: object, where: object) -> None:
    """An error unless what is stored has the schema that this version reads."""
    if found != SCHEMA:
        raise InputError(
            f"{where} has schema {found or 1}, this version of bayesneg reads schema {SCHEMA}; train it again, or read "
            "it with the version that wrote it"
        )


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def is_number(value: object) -> bool:
    """True for a finite number; records hold None or NaN where nothing could be measured."""
    return isinstance(value, int | float | np.floating | np.integer) and math.isfinite(value)


PLAIN = bool | int | float | str
HEAVY = np.ndarray | Interactions  # recorded as a digest
SOURCE: Final = "source sha256"  # no name of a setting


def describe(value: Any) -> Any:
    """Settings as JSON: an object by its class and its fields or plain attributes, a function by its name.

    Custom classes and functions have a digest of their source: settings do not show their code.
    """
    if isinstance(value, Interactions):
        return f"interactions {value.fingerprint}"
    if is_dataclass(value) and not isinstance(value, type):
        settings = {item.name: getattr(value, item.name) for item in fields(value)}
        shown = {item.name for item in fields(value) if item.repr}
        return {
            **_class_of(value),
            **{key: describe(item) for key, item in settings.items() if key in shown or isinstance(item, HEAVY)},
        }
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        content = repr(value.tolist()).encode() if value.dtype == object else np.ascontiguousarray(value).tobytes()
        return f"array {value.shape} sha256 {hashlib.sha256(content).hexdigest()[:16]}"
    if value is None or isinstance(value, PLAIN):
        return value
    if isinstance(value, list | tuple):
        return [describe(item) for item in value]
    if isinstance(value, FunctionType | BuiltinFunctionType | type):
        code = None if isinstance(value, BuiltinFunctionType) else code_digest(value)
        return f"{value.__module__}.{value.__qualname__}" + (f" ({SOURCE} {code})" if code else "")
    settings = {key: item for key, item in getattr(value, "__dict__", {}).items() if isinstance(item, PLAIN)}
    return {**_class_of(value), **settings}


def _class_of(value: Any) -> dict[str, str]:
    code = code_digest(type(value))
    return {"class": type(value).__name__, **({SOURCE: code} if code else {})}


def settings_text(value: Any) -> str:
    """A short name with what differs from the defaults: ``BNS (candidates=10)``."""
    name = type(value).__name__
    if not is_dataclass(value):
        return name
    shown = (item for item in fields(value) if item.repr)
    changed = [f"{item.name}={_text(getattr(value, item.name))}" for item in shown if not _is_default(value, item)]
    return f"{name} ({', '.join(changed)})" if changed else name


def _is_default(value: Any, item: Any) -> bool:
    current = getattr(value, item.name)
    default = item.default_factory() if callable(item.default_factory) else item.default
    return current is default or (isinstance(current, type(default)) and np.array_equal(current, default))


def _text(value: Any) -> str:
    if is_dataclass(value):
        return settings_text(value)
    if isinstance(value, FunctionType | BuiltinFunctionType):
        return value.__qualname__
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)


def versions(device: str = "") -> dict[str, str]:
    """Of Python and of what computes the numbers, as far as it is installed, and the GPU, where one does."""
    found = {"python": platform.python_version(), "bayesneg": __version__}
    for name in ("numpy", "numba", "scipy", "polars", "torch"):
        with suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found | ({"device": device} if device else {})


def machine() -> dict[str, str]:
    """What else decides the last bits of the numbers: the processor, and the threads of BLAS."""
    named = (os.environ.get(name) for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"))
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": processor(), "blas_threads": next(filter(None, named), str(usable))}


@cache
def processor() -> str:
    """The type of the processor, as the system names it."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8", errors="replace").splitlines() if info.exists() else []
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def data_facts(split: Split, wanted: int) -> dict[str, Any]:
    """What a reader of the record must know of the data, odd users and items counted."""
    from bayesneg.evaluation.ranking import evaluated_users  # compiled code, which reading a record does not need

    train, names = split.train, sorted(split.train.user_columns)
    unobserved = train.n_items - train.counts[train.counts > 0]
    return {
        "name": train.name,
        "n_users": train.n_users,
        "n_items": train.n_items,
        "n_train": len(train),
        "n_validation": 0 if split.validation is None else len(split.validation),
        "n_test": len(split.test),
        "n_duplicates": train.n_duplicates,
        "n_below_min_rating": train.n_below_min_rating,
        "n_test_only_users": split.n_test_only_users,
        "n_test_only_items": split.n_test_only_items,
        "n_users_without_negatives": int((unobserved == 0).sum()),
        "n_users_not_evaluated": int((split.test.counts > 0).sum()) - len(evaluated_users(split.test, None)),
        "n_users_short_of_candidates": int(((unobserved > 0) & (unobserved < wanted)).sum()),
        "truth_known": split.truth is not None,
        "split": split.how,
        "fingerprint": split.fingerprint,
        **({"user_columns": {name: _digest_of_column(train.user_columns[name]) for name in names}} if names else {}),
    }


def _digest_of_column(values: np.ndarray) -> str:
    """A short sha256 of a user column, as its text: a run's folder keeps it so."""
    digest = hashlib.sha256()
    for value in values.tolist():
        digest.update(b"\0" if value is None else f"{value}\x1f".encode(errors="surrogatepass"))
    return digest.hexdigest()[:16]


def jsonable(value: Any) -> Any:
    """NumPy numbers as Python's, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
