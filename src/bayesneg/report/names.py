"""How numbers and names of the records read to a person."""

from __future__ import annotations

from collections.abc import Iterable

from bayesneg.runs.record import is_number

NOTHING = "–"
UNIFORM = "uniform, expected"  # the row or line of what uniform sampling is expected to have

_HIGHER_IS_BETTER = ("ndcg", "precision", "recall", "hit", "mrr", "map", "auc")
_ORDER = ("ndcg", "precision", "recall", "hit", "mrr", "map", "auc", "coverage", "popularity")


def is_better_higher(key: str) -> bool:
    """True for measures of accuracy; coverage and popularity describe a list, they do not rank it."""
    return base_of(key) in _HIGHER_IS_BETTER


def base_of(key: str) -> str:
    return key.partition("@")[0]


def cutoff(key: str) -> int | None:
    """``"ndcg@20"`` → 20; None where the key has no cut-off."""
    k = key.partition("@")[2]
    return int(k) if k.isdigit() else None


def sorted_keys(keys: Iterable[str]) -> list[str]:
    """Metrics in reading order, the largest cut-off first, unknown ones last."""
    rank = {base: place for place, base in enumerate(_ORDER)}
    return sorted(set(keys), key=lambda key: (-(cutoff(key) or 0), rank.get(base_of(key), len(rank)), key))


def primary_key(keys: Iterable[str]) -> str | None:
    """The metric a report leads with: NDCG@20, else the NDCG with the largest cut-off, else the first."""
    ordered = sorted_keys(keys)
    ndcg = [key for key in ordered if base_of(key) == "ndcg"]
    return "ndcg@20" if "ndcg@20" in ndcg else next(iter(ndcg or ordered), None)


def decimals(value: float) -> int:
    """How many decimals a measured number is shown with, and its interval too."""
    return 4 if not is_number(value) or abs(value) < 10 else 2 if abs(value) < 100 else 1


def number(value: float | None, digits: int | None = None) -> str:
    """A measured number as text: four decimals below 10, fewer above; a dash where nothing was measured.

    >>> number(0.41836), number(168.34), number(float("nan")), number(-0.0123)
    ('0.4184', '168.3', '–', '−0.0123')
    """
    if value is None or not is_number(value):
        return NOTHING
    if digits is None:
        digits = decimals(value)
    text = f"{value:z.{digits}f}"  # z: no minus before a rounded zero
    return text.replace("-", "−")


def signed(value: float | None, digits: int | None = None) -> str:
    """As :func:`number`, with a plus before what is above zero."""
    return f"+{number(value, digits)}" if value is not None and value > 0 else number(value, digits)


def percent(share: float, spread: float = float("nan")) -> str:
    """A share with its half-width, where it has one; two decimals below 1%.

    >>> percent(0.0712), percent(0.0712, 0.0021), percent(0.0031, 0.0004)
    ('7.1%', '7.1% ± 0.2%', '0.31% ± 0.04%')
    """
    if not is_number(share):
        return NOTHING
    digits = 2 if abs(share) < 0.01 else 1
    return f"{share:.{digits}%} ± {spread:.{digits}%}" if is_number(spread) else f"{share:.{digits}%}"


def joined(words: Iterable[str]) -> str:
    """``a``; ``a and b``; ``a, b and c``."""
    *head, tail = list(words) or [""]
    return f"{', '.join(head)} and {tail}" if head else tail


def counted(n: int, noun: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
