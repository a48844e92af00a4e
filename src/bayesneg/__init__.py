"""Negative sampling for implicit-feedback recommendation.

>>> import bayesneg as bn
>>> data = bn.synthetic(60, 80, seed=0)
>>> run = bn.fit(bn.MF(dim=8), bn.split(data, test=0.2, seed=0), bn.BNS(), epochs=2, progress=False)
>>> sorted(run.evaluate(k=5).mean)[:3]
['auc', 'coverage@5', 'hit@5']
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bayesneg.data.given import read_split as read_split
    from bayesneg.data.interactions import Interactions as Interactions
    from bayesneg.data.load import load as load
    from bayesneg.data.splits import Split as Split
    from bayesneg.data.splits import split as split
    from bayesneg.data.synthetic import synthetic as synthetic
    from bayesneg.errors import BayesnegError as BayesnegError
    from bayesneg.evaluation.ranking import evaluate as evaluate
    from bayesneg.experiments.audit import Audit as Audit
    from bayesneg.experiments.audit import audit as audit
    from bayesneg.experiments.audit import hide as hide
    from bayesneg.experiments.compare import compare as compare
    from bayesneg.interfaces import NO_NEGATIVE as NO_NEGATIVE
    from bayesneg.interfaces import Batch as Batch
    from bayesneg.interfaces import NegativeSampler as NegativeSampler
    from bayesneg.interfaces import Observer as Observer
    from bayesneg.interfaces import Prior as Prior
    from bayesneg.models.baseline import Baseline as Baseline
    from bayesneg.models.baselines import ALS as ALS
    from bayesneg.models.baselines import EASE as EASE
    from bayesneg.models.baselines import ItemKNN as ItemKNN
    from bayesneg.models.baselines import Popularity as Popularity
    from bayesneg.models.mf import MF as MF
    from bayesneg.models.torch.custom import TorchModel as TorchModel
    from bayesneg.models.torch.lightgcn import LightGCN as LightGCN
    from bayesneg.models.torch.lightgcn import TorchMF as TorchMF
    from bayesneg.report.audit_page.page import write_audit as write_audit
    from bayesneg.report.html import write_report as write_report
    from bayesneg.runs.run import Run as Run
    from bayesneg.runs.run import load_run as load_run
    from bayesneg.samplers.aobpr import AOBPR as AOBPR
    from bayesneg.samplers.bns import BNS as BNS
    from bayesneg.samplers.bns import Posterior as Posterior
    from bayesneg.samplers.candidates import UniformDraw as UniformDraw
    from bayesneg.samplers.dns import DNS as DNS
    from bayesneg.samplers.likelihoods import EmpiricalLikelihood as EmpiricalLikelihood
    from bayesneg.samplers.likelihoods import FlatLikelihood as FlatLikelihood
    from bayesneg.samplers.likelihoods import MixtureLikelihood as MixtureLikelihood
    from bayesneg.samplers.likelihoods import PaperLikelihood as PaperLikelihood
    from bayesneg.samplers.priors import FlatPrior as FlatPrior
    from bayesneg.samplers.priors import FunctionPrior as FunctionPrior
    from bayesneg.samplers.priors import GroupPrior as GroupPrior
    from bayesneg.samplers.priors import ItemPrior as ItemPrior
    from bayesneg.samplers.priors import OraclePrior as OraclePrior
    from bayesneg.samplers.priors import PopularityPrior as PopularityPrior
    from bayesneg.samplers.priors.calibration import Calibration as Calibration
    from bayesneg.samplers.priors.calibration import calibration_of as calibration_of
    from bayesneg.samplers.priors.combined import CombinedPrior as CombinedPrior
    from bayesneg.samplers.priors.combined import ScaledPrior as ScaledPrior
    from bayesneg.samplers.priors.exposure import ExposurePrior as ExposurePrior
    from bayesneg.samplers.priors.learned import LearnedPrior as LearnedPrior
    from bayesneg.samplers.priors.rates import RatePrior as RatePrior
    from bayesneg.samplers.priors.rates import SmoothedGroupPrior as SmoothedGroupPrior
    from bayesneg.samplers.priors.self_estimated import SelfPrior as SelfPrior
    from bayesneg.samplers.refresh import Refresh as Refresh
    from bayesneg.samplers.schedules import LinearDecay as LinearDecay
    from bayesneg.samplers.schedules import WarmStart as WarmStart
    from bayesneg.samplers.srns import SRNS as SRNS
    from bayesneg.samplers.static import PNS as PNS
    from bayesneg.samplers.static import RNS as RNS
    from bayesneg.training import fit as fit
    from bayesneg.tuning.tune import tune as tune

__version__ = "0.1.0"

# Where each public name lives; a module is imported when a name of it is first asked for, so that
# ``import bayesneg`` takes no time and pulls in neither numba nor polars nor matplotlib.
_HOMES = {
    "bayesneg.data.interactions": ("Interactions",),
    "bayesneg.data.given": ("read_split",),
    "bayesneg.data.load": ("load",),
    "bayesneg.data.splits": ("Split", "split"),
    "bayesneg.data.synthetic": ("synthetic",),
    "bayesneg.errors": ("BayesnegError",),
    "bayesneg.evaluation.ranking": ("evaluate",),
    "bayesneg.experiments.audit": ("Audit", "audit", "hide"),
    "bayesneg.experiments.compare": ("compare",),
    "bayesneg.tuning.tune": ("tune",),
    "bayesneg.interfaces": ("NO_NEGATIVE", "Batch", "NegativeSampler", "Observer", "Prior"),
    "bayesneg.models.baseline": ("Baseline",),
    "bayesneg.models.baselines": ("ALS", "EASE", "ItemKNN", "Popularity"),
    "bayesneg.models.torch.lightgcn": ("LightGCN", "TorchMF"),
    "bayesneg.models.mf": ("MF",),
    "bayesneg.models.torch.custom": ("TorchModel",),
    "bayesneg.report.audit_page.page": ("write_audit",),
    "bayesneg.report.html": ("write_report",),
    "bayesneg.runs.run": ("Run", "load_run"),
    "bayesneg.samplers.aobpr": ("AOBPR",),
    "bayesneg.samplers.bns": ("BNS", "Posterior"),
    "bayesneg.samplers.candidates": ("UniformDraw",),
    "bayesneg.samplers.dns": ("DNS",),
    "bayesneg.samplers.likelihoods": (
        "EmpiricalLikelihood",
        "FlatLikelihood",
        "MixtureLikelihood",
        "PaperLikelihood",
    ),
    "bayesneg.samplers.priors": (
        "FlatPrior",
        "FunctionPrior",
        "GroupPrior",
        "ItemPrior",
        "OraclePrior",
        "PopularityPrior",
    ),
    "bayesneg.samplers.priors.combined": ("CombinedPrior", "ScaledPrior"),
    "bayesneg.samplers.priors.exposure": ("ExposurePrior",),
    "bayesneg.samplers.priors.learned": ("LearnedPrior",),
    "bayesneg.samplers.priors.rates": ("RatePrior", "SmoothedGroupPrior"),
    "bayesneg.samplers.priors.calibration": ("Calibration", "calibration_of"),
    "bayesneg.samplers.refresh": ("Refresh",),
    "bayesneg.samplers.schedules": ("LinearDecay", "WarmStart"),
    "bayesneg.samplers.priors.self_estimated": ("SelfPrior",),
    "bayesneg.samplers.srns": ("SRNS",),
    "bayesneg.samplers.static": ("PNS", "RNS"),
    "bayesneg.training": ("fit",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'bayesneg' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
