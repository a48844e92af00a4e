"""Samplers: what is drawn for each training example, and which rule chooses the negative."""

from typing import Any

from bayesneg.interfaces import CandidateDraw, NegativeSampler, Preset, RuleSampler
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.samplers.ahns import AHNS
from bayesneg.samplers.aobpr import AOBPR
from bayesneg.samplers.bns import BNS, Posterior
from bayesneg.samplers.candidates import UniformDraw
from bayesneg.samplers.dens import DENS
from bayesneg.samplers.dns import DNS
from bayesneg.samplers.in_batch import InBatch
from bayesneg.samplers.posterior.refresh import Refresh
from bayesneg.samplers.schedules import LinearDecay, WarmStart
from bayesneg.samplers.sir import SIR
from bayesneg.samplers.srns import SRNS
from bayesneg.samplers.static import PNS, RNS
from bayesneg.samplers.synthetic.mixgcf import MixGCF

__all__ = [
    "AHNS",
    "AOBPR",
    "BNS",
    "DENS",
    "DNS",
    "PNS",
    "RNS",
    "SIR",
    "SRNS",
    "CandidateDraw",
    "InBatch",
    "LinearDecay",
    "MixGCF",
    "NegativeSampler",
    "Posterior",
    "Preset",
    "Refresh",
    "RuleSampler",
    "SharedPool",
    "UniformDraw",
    "WarmStart",
]


def __getattr__(name: str) -> Any:
    """Any registered sampler class: one in a module of this folder is public by declaring its names."""
    from bayesneg.samplers.registry import samplers

    for found in samplers().values():
        if found.kind.__name__ == name:
            return found.kind
    raise AttributeError(f"module 'bayesneg.samplers' has no attribute {name!r}")
