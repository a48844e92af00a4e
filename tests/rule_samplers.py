"""Every rule and variant that has more than one execution; each must pick what the reference picks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import bayesneg as bn
from bayesneg.interfaces import RuleSampler
from bayesneg.kernels.reference.formulas import Tabled
from bayesneg.samplers import registry
from bayesneg.samplers.posterior.likelihoods import Likelihood, tabled


@dataclass(frozen=True)
class Bent(Likelihood):
    """A table with level stretches, steep ones and certainty about neither end."""

    def form(self) -> Tabled:
        return tabled(np.array([0.0, 0.2, 0.35, 0.6, 0.9, 0.95]), np.array([0.01, 0.01, 0.4, 0.4, 0.95, 0.999]))


FLAT = bn.priors.Flat(0.2)

SAMPLERS = {
    "rns": bn.RNS(),
    "pns": bn.PNS(),
    "dns": bn.DNS(candidates=4),
    "dns(m,n)": bn.DNS(candidates=6, top=3),
    "dns of all": bn.DNS(candidates="all"),
    "bns": bn.BNS(),
    "bns, many candidates": bn.BNS(candidates=25),
    "bns of all": bn.BNS(candidates="all"),
    "bns over all items": bn.BNS(cdf_over="all", weight=1.0),
    "bns, share of the catalogue": bn.BNS(cdf_over="catalogue", weight=1.0, prior=bn.priors.Flat(0.2)),
    "bns, strong prior": bn.BNS(prior=bn.priors.Flat(0.5)),
    "bns, certain prior": bn.BNS(prior=lambda users, items: (items % 2).astype(float)),
    "bns, mixture": bn.BNS(likelihood="mixture", prior=FLAT),
    "bns, mixture, mostly false": bn.BNS(likelihood=bn.likelihoods.Mixture(0.9), prior=FLAT),
    "bns, mixture, share of the catalogue": bn.BNS(likelihood="mixture", prior=FLAT, cdf_over="catalogue", weight=1.0),
    "bns, table": bn.BNS(likelihood=Bent(), prior=FLAT),
    "bns, table, small weight": bn.BNS(likelihood=Bent(), weight=0.1),
    "bns, flat": bn.BNS(likelihood="uninformative", prior=lambda users, items: items % 5 / 10.0),
    "bns, empirical": bn.BNS(likelihood=bn.likelihoods.Empirical(held_out=0.4), prior=FLAT),
    "bns, bcl": bn.BNS(likelihood=bn.likelihoods.BCL(0.8), prior=FLAT),
    "bns, bcl, measured": bn.BNS(likelihood=bn.likelihoods.BCL(held_out=0.4), prior=FLAT),
    "posterior": bn.Posterior(),
    "posterior, mixture": bn.Posterior(likelihood="mixture"),
    "posterior, table": bn.Posterior(likelihood=Bent()),
    "posterior, share of the catalogue": bn.Posterior(cdf_over="catalogue"),
    "posterior of all": bn.Posterior(candidates="all"),
    "aobpr": bn.AOBPR(scale=4.0),
    "aobpr by factor": bn.AOBPR(scale=4.0, rank="factor"),
    "srns": bn.SRNS(memory=3, fresh=5, warmup=2),
    "ahns": bn.samplers.AHNS(candidates=6, shift=0.3, level=0.7),
    "ahns, another power": bn.samplers.AHNS(candidates=6, shift=2.0, level=1.3, exponent=-0.4),
    "sir": bn.samplers.SIR(candidates=6, temperature=0.7),
    "sir by popularity": bn.samplers.SIR(candidates=6, temperature=2.0, proposal="popularity"),
}
# a registered sampler of a class that is not listed joins by itself if it chooses one negative; WarmStart has the rules
# of its parts
LISTED = {type(sampler) for sampler in SAMPLERS.values()} | {bn.WarmStart}
OTHERS = {
    name: registry.as_sampler(name)
    for name, (kind, _) in registry.samplers().items()
    if issubclass(kind, RuleSampler) and kind not in LISTED
}
SAMPLERS |= {name: sampler for name, sampler in OTHERS.items() if not sampler.gives_weights}

SUMMARISED = {
    "bns, refreshed": bn.BNS(cdf="refreshed"),
    "bns, refreshed, from a pool": bn.BNS(cdf="refreshed", refresh=bn.samplers.Refresh(pool=7)),
    "bns, refreshed at every step": bn.BNS(cdf="refreshed", refresh=bn.samplers.Refresh(moved=0.0)),
    "bns, refreshed, many candidates": bn.BNS(candidates=25, cdf="refreshed"),
    "bns of all, refreshed": bn.BNS(candidates="all", cdf="refreshed"),
    "bns over all items, refreshed": bn.BNS(cdf_over="all", weight=1.0, cdf="refreshed"),
    "bns, share of the catalogue, refreshed": bn.BNS(
        cdf_over="catalogue", weight=1.0, prior=bn.priors.Flat(0.2), cdf="refreshed"
    ),
    "bns, mixture, refreshed": bn.BNS(likelihood="mixture", prior=FLAT, cdf="refreshed"),
    "bns, table, refreshed": bn.BNS(likelihood=Bent(), prior=FLAT, cdf="refreshed"),
    "bns, empirical, refreshed": bn.BNS(likelihood=bn.likelihoods.Empirical(held_out=0.4), prior=FLAT, cdf="refreshed"),
    "bns, strong prior, refreshed": bn.BNS(prior=bn.priors.Flat(0.5), cdf="refreshed"),
    "bns, certain prior, refreshed": bn.BNS(prior=lambda users, items: (items % 2).astype(float), cdf="refreshed"),
}
