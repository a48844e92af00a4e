"""What ``bayesneg train`` and ``bn.fit(None, split)`` train."""

from __future__ import annotations

from typing import Final

from bayesneg.config.specs import SamplerSpec
from bayesneg.models.mf import MF
from bayesneg.samplers.bns import BNS

EPOCHS: Final = 200  # at most,
PATIENCE: Final = 10  # so many without a better one on
EVALUATED_USERS: Final = 1000  # validation users


def recommended() -> tuple[MF, SamplerSpec]:
    """The recommended model and sampler."""
    return MF.recommended(), SamplerSpec("BNS (recommended)", {}, BNS.recommended())
