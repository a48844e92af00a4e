"""Which rule is chosen by in which way, where each process has a part of the catalogue."""

from __future__ import annotations

from typing import Any

from bayesneg.distributed.choices.base import Choosing
from bayesneg.distributed.choices.factor_ranks import ChoosingAtFactorRanks
from bayesneg.distributed.choices.memory import ChoosingFromMemory
from bayesneg.distributed.choices.score_ranks import ChoosingAtScoreRanks
from bayesneg.kernels.reference.choices.aobpr import AtFactorRank, AtScoreRank
from bayesneg.kernels.reference.choices.srns import FromMemory

KINDS: dict[type, type[Choosing]] = {
    FromMemory: ChoosingFromMemory,
    AtScoreRank: ChoosingAtScoreRanks,
    AtFactorRank: ChoosingAtFactorRanks,
}


def choosing_by(rule: Any) -> type[Choosing]:
    """The class that chooses by a rule; the rows that most rules need follow from their draws."""
    return KINDS.get(type(rule), Choosing)
