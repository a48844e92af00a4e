"""Priors: the probability that an unobserved item is a false negative, before its score is seen."""

from bayesneg.interfaces import Prior
from bayesneg.samplers.priors.basic import Flat, Function, Group, Item, Oracle, Popularity
from bayesneg.samplers.priors.combined import Combined, Scaled
from bayesneg.samplers.priors.exposure import Exposure
from bayesneg.samplers.priors.learned import Learned
from bayesneg.samplers.priors.rates import Rate, SmoothedGroup
from bayesneg.samplers.priors.reliability import Calibration, calibration
from bayesneg.samplers.priors.self_estimated import SelfEstimated

__all__ = [
    "Calibration",
    "Combined",
    "Exposure",
    "Flat",
    "Function",
    "Group",
    "Item",
    "Learned",
    "Oracle",
    "Popularity",
    "Prior",
    "Rate",
    "Scaled",
    "SelfEstimated",
    "SmoothedGroup",
    "calibration",
]
