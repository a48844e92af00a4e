"""Priors: the probability that an unobserved item is a false negative, before its score is seen."""

from bayesneg.samplers.priors.basic import (
    Flat,
    Function,
    Group,
    Item,
    Oracle,
    Popularity,
    as_prior,
    checked,
    probabilities_of,
)
from bayesneg.samplers.priors.calibration import Calibration, calibration_of
from bayesneg.samplers.priors.combined import Combined, Scaled
from bayesneg.samplers.priors.exposure import Exposure
from bayesneg.samplers.priors.learned import Learned
from bayesneg.samplers.priors.rates import Rate, SmoothedGroup
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
    "Rate",
    "Scaled",
    "SelfEstimated",
    "SmoothedGroup",
    "as_prior",
    "calibration_of",
    "checked",
    "probabilities_of",
]
