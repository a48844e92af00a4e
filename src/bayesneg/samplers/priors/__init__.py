"""What BNS believes before it sees a score."""

from bayesneg.samplers.priors.basic import (
    FlatPrior,
    FunctionPrior,
    GroupPrior,
    ItemPrior,
    OraclePrior,
    PopularityPrior,
    as_prior,
    checked,
    probabilities_of,
)

__all__ = [
    "FlatPrior",
    "FunctionPrior",
    "GroupPrior",
    "ItemPrior",
    "OraclePrior",
    "PopularityPrior",
    "as_prior",
    "checked",
    "probabilities_of",
]
