"""A prior for pairs of texts: the more words two pairs share, the likelier they belong together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from scipy import sparse

from bayesneg.checks import number
from bayesneg.errors import InputError

BINS = 24
SAMPLE = 20_000  # pairs of rows, and sums of observed overlaps, that the calibration counts
HIGHEST = 0.95

__all__ = ["PairPrior", "WordOverlap"]


class PairPrior(Protocol):
    """Prior probabilities for the rows of a dataset of (anchor, positive) pairs."""

    def of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Probabilities of false negatives.

        Args:
            rows: Row numbers (B,) of the anchors.
            columns: Row numbers (n,) of the positives.

        Returns:
            The probability (B, n) that the positive of each column answers the anchor of each row.
        """
        ...


class WordOverlap:
    """The probability that the positive of row j answers the anchor of row i, from the words that the rows share.

    The overlap o of two texts is Σ idf(w) over their common words; that of two rows is the sum over the two texts of
    each. Nothing but the pairs themselves is read: an observed anchor and its positive show how much texts that belong
    together overlap (density h), random rows show how much any two do (density m), and p = θ·h(o)/m(o), made
    non-decreasing in o.

    Args:
        anchors: The N anchors, split into words at white space.
        positives: Their positives.
        false_share: Share θ of false negatives among random pairs of rows, the level of the prior.
        seed: Seed of the random rows.

    Example:
        >>> anchors = ["cat food", "cat food price", "car tax", "tax of a car"] * 20
        >>> positives = ["food for a cat", "the cat food shop", "car tax office", "tax office for a car"] * 20
        >>> prior = WordOverlap(anchors, positives, false_share=0.2)
        >>> prior.of([0], [1]) > prior.of([0], [2])
        array([[ True]])
    """

    def __init__(
        self, anchors: Sequence[str], positives: Sequence[str], *, false_share: float = 0.01, seed: int = 0
    ) -> None:
        number("false_share", false_share, least=0, most=1)
        if len(anchors) != len(positives) or len(anchors) < 2:
            raise InputError(
                f"anchors and positives must be two or more pairs, got {len(anchors)} anchors and "
                f"{len(positives)} positives"
            )
        words: dict[str, int] = {}
        found = [[numbered(text, words) for text in texts] for texts in (anchors, positives)]
        counted = [incidence(rows, len(words)) for rows in found]
        idf = np.log(2 * len(anchors) / np.maximum(1, sum(part.sum(axis=0) for part in counted)))
        first, second = (part @ sparse.diags_array(np.sqrt(idf)) for part in counted)
        self._rows = (first + second).tocsr()  # (q_i + d_i)·(q_j + d_j) has all four overlaps of two rows
        rng = np.random.default_rng(seed)
        observed = np.asarray(first.multiply(second).sum(axis=1)).ravel()
        together = rng.choice(observed, (4, SAMPLE)).sum(axis=0)
        i, j = rng.integers(len(anchors), size=(2, SAMPLE))
        apart = i != j
        random = np.asarray(self._rows[i[apart]].multiply(self._rows[j[apart]]).sum(axis=1)).ravel()
        self._edges, self._values = calibrated(together, random, false_share)

    def of(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        overlaps = (self._rows[np.asarray(rows)] @ self._rows[np.asarray(columns)].T).toarray()
        return self._values[np.searchsorted(self._edges, overlaps, side="right")]


def numbered(text: str, words: dict[str, int]) -> list[int]:
    """The numbers of the words of a text; new words join ``words``."""
    return sorted({words.setdefault(word, len(words)) for word in text.split()})


def incidence(rows: list[list[int]], n_words: int) -> sparse.csr_array:
    """1 (n_texts, n_words) where a word is in a text."""
    indptr = np.concatenate(([0], np.cumsum([len(row) for row in rows])))
    indices = np.array([word for row in rows for word in row], dtype=np.int64)
    return sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(len(rows), n_words))


def calibrated(together: np.ndarray, random: np.ndarray, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Edges (E,) of overlaps and the probability (E + 1,) between them."""
    edges = np.unique(np.quantile(np.concatenate((together, random)), np.linspace(0, 1, BINS + 1)[1:-1]))
    h, m = (np.bincount(np.searchsorted(edges, x, side="right"), minlength=len(edges) + 1) for x in (together, random))
    ratio = (h / h.sum()) / ((m + 1) / (m.sum() + len(m)))  # one more in each bin: none is empty
    return edges, np.minimum(share * np.maximum.accumulate(ratio), HIGHEST)
