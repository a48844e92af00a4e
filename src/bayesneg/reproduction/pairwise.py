"""Pairwise tests of the samplers of a study, paired over users and over seeds.

A difference is clear only if it is significant over the users (each user's mean over the seeds) and over the seeds
(each seed's mean over the users), after Holm's correction for all pairs of the study; in a study of readings, for
the pairs of the same published row.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

from bayesneg.evaluation.statistics import PairedDifference, holm_corrected
from bayesneg.reproduction.published import MAIN
from bayesneg.reproduction.studies import PaperStudy
from bayesneg.runs.pairing import paired


class PairwiseTest(NamedTuple):
    """Two samplers of a study and ``one`` minus ``other`` in NDCG@20, with corrected p-values."""

    one: str
    other: str
    difference: PairedDifference

    @property
    def verdict(self) -> str:
        return self.difference.verdict(self.one, self.other)


def correction_family(study: PaperStudy) -> str:
    """Among which pairs the p-values are corrected, in words."""
    return "the readings of one row" if study.readings else "this table"


def pairwise_tests(study: PaperStudy) -> list[PairwiseTest]:
    """Every pair of samplers that share a seed on the same data; readings of different published rows do not pair."""
    tests, families = [], []
    for one, other in combinations(study.lines, 2):
        if study.readings and one.row.paper != other.row.paper:
            continue
        if (found := paired(one.runs, other.runs, MAIN)) is not None:
            tests.append(PairwiseTest(one.label, other.label, found))
            families.append(one.row.paper if study.readings else None)
    for family in set(families):
        places = [place for place, name in enumerate(families) if name == family]
        corrected = holm_corrected([tests[place].difference for place in places])
        for place, difference in zip(places, corrected, strict=True):
            tests[place] = tests[place]._replace(difference=difference)
    return tests
