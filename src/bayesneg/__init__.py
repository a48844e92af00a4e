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
    from bayesneg import losses as losses
    from bayesneg import samplers as samplers
    from bayesneg import testing as testing
    from bayesneg import tracking as tracking
    from bayesneg.data.interactions import Interactions as Interactions
    from bayesneg.data.load import load as load
    from bayesneg.data.load import read_split as read_split
    from bayesneg.data.prepared.preparing import prepare as prepare
    from bayesneg.data.splits import Split as Split
    from bayesneg.data.splits import split as split
    from bayesneg.data.synthetic import synthetic as synthetic
    from bayesneg.errors import BayesnegError as BayesnegError
    from bayesneg.evaluation.ranking import evaluate as evaluate
    from bayesneg.evaluation.results import EvaluationReport as EvaluationReport
    from bayesneg.experiments.audit import Audit as Audit
    from bayesneg.experiments.audit import audit as audit
    from bayesneg.experiments.audit import hide as hide
    from bayesneg.experiments.compare import compare as compare
    from bayesneg.interfaces import NO_NEGATIVE as NO_NEGATIVE
    from bayesneg.interfaces import Batch as Batch
    from bayesneg.interfaces import Negatives as Negatives
    from bayesneg.interfaces import NegativeSampler as NegativeSampler
    from bayesneg.interfaces import Observer as Observer
    from bayesneg.interfaces import Prior as Prior
    from bayesneg.models import baselines as baselines
    from bayesneg.models.mf import MF as MF
    from bayesneg.models.torch.custom import TorchModel as TorchModel
    from bayesneg.models.torch.lightgcn import LightGCN as LightGCN
    from bayesneg.models.torch.lightgcn import TorchMF as TorchMF
    from bayesneg.recommendation.newcomers import NewItem as NewItem
    from bayesneg.recommendation.newcomers import NewUser as NewUser
    from bayesneg.report.audit_page.page import write_audit as write_audit
    from bayesneg.report.comparison import write_report as write_report
    from bayesneg.runs.comparison_table import Comparison as Comparison
    from bayesneg.runs.exports.loading import ExportedModel as ExportedModel
    from bayesneg.runs.exports.loading import load_export as load_export
    from bayesneg.runs.record import RunRecord as RunRecord
    from bayesneg.runs.run import Run as Run
    from bayesneg.runs.run import load_run as load_run
    from bayesneg.runs.tuning_result import TuningResult as TuningResult
    from bayesneg.samplers import priors as priors
    from bayesneg.samplers.aobpr import AOBPR as AOBPR
    from bayesneg.samplers.bns import BNS as BNS
    from bayesneg.samplers.bns import Posterior as Posterior
    from bayesneg.samplers.dns import DNS as DNS
    from bayesneg.samplers.posterior import likelihoods as likelihoods
    from bayesneg.samplers.schedules import WarmStart as WarmStart
    from bayesneg.samplers.srns import SRNS as SRNS
    from bayesneg.samplers.static import PNS as PNS
    from bayesneg.samplers.static import RNS as RNS
    from bayesneg.training import fit as fit
    from bayesneg.tuning.tune import tune as tune

__version__ = "0.2.0"

# Where each public name lives. A module is imported when a name of it is first asked for, so that ``import bayesneg``
# takes no time and loads neither numba nor polars nor matplotlib.
_HOMES = {
    "bayesneg.data.interactions": ("Interactions",),
    "bayesneg.data.load": ("load", "read_split"),
    "bayesneg.data.prepared.preparing": ("prepare",),
    "bayesneg.data.splits": ("Split", "split"),
    "bayesneg.data.synthetic": ("synthetic",),
    "bayesneg.errors": ("BayesnegError",),
    "bayesneg.evaluation.ranking": ("evaluate",),
    "bayesneg.evaluation.results": ("EvaluationReport",),
    "bayesneg.experiments.audit": ("Audit", "audit", "hide"),
    "bayesneg.experiments.compare": ("compare",),
    "bayesneg.interfaces": ("NO_NEGATIVE", "Batch", "NegativeSampler", "Negatives", "Observer", "Prior"),
    "bayesneg.models.mf": ("MF",),
    "bayesneg.models.torch.custom": ("TorchModel",),
    "bayesneg.models.torch.lightgcn": ("LightGCN", "TorchMF"),
    "bayesneg.recommendation.newcomers": ("NewItem", "NewUser"),
    "bayesneg.report.audit_page.page": ("write_audit",),
    "bayesneg.report.comparison": ("write_report",),
    "bayesneg.runs.exports.loading": ("ExportedModel", "load_export"),
    "bayesneg.runs.comparison_table": ("Comparison",),
    "bayesneg.runs.record": ("RunRecord",),
    "bayesneg.runs.run": ("Run", "load_run"),
    "bayesneg.runs.tuning_result": ("TuningResult",),
    "bayesneg.samplers": ("AOBPR", "BNS", "DNS", "PNS", "RNS", "SRNS", "Posterior", "WarmStart"),
    "bayesneg.training": ("fit",),
    "bayesneg.tuning.tune": ("tune",),
}
_NAMESPACES = {
    "baselines": "bayesneg.models.baselines",
    "likelihoods": "bayesneg.samplers.posterior.likelihoods",
    "losses": "bayesneg.losses",
    "priors": "bayesneg.samplers.priors",
    "samplers": "bayesneg.samplers",
    "testing": "bayesneg.testing",
    "tracking": "bayesneg.tracking",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
__all__ = ["__version__", *_HOME_OF, *_NAMESPACES]


def __getattr__(name: str) -> Any:
    if name in _NAMESPACES:
        value: Any = import_module(_NAMESPACES[name])
    elif name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'bayesneg' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
