"""What ``bayesneg train`` trains unless told otherwise."""

from __future__ import annotations

from bayesneg.config.specs import SamplerSpec
from bayesneg.models.mf import MF
from bayesneg.samplers.bns import BNS


def recommended() -> tuple[MF, SamplerSpec]:
    """The recommended model and sampler."""
    return MF.recommended(), SamplerSpec("BNS (recommended)", {}, BNS.recommended())
