"""Samplers: what is drawn for each training example, and which rule chooses the negative."""

from bayesneg.interfaces import CandidateDraw, NegativeSampler, RuleSampler
from bayesneg.samplers.aobpr import AOBPR
from bayesneg.samplers.bns import BNS, Posterior
from bayesneg.samplers.candidates import UniformDraw
from bayesneg.samplers.dns import DNS
from bayesneg.samplers.refresh import Refresh
from bayesneg.samplers.schedules import LinearDecay, WarmStart
from bayesneg.samplers.srns import SRNS
from bayesneg.samplers.static import PNS, RNS

__all__ = [
    "AOBPR",
    "BNS",
    "DNS",
    "PNS",
    "RNS",
    "SRNS",
    "CandidateDraw",
    "LinearDecay",
    "NegativeSampler",
    "Posterior",
    "Refresh",
    "RuleSampler",
    "UniformDraw",
    "WarmStart",
]
