"""Contract checks for custom samplers and priors, to be called from any test framework::

    from bayesneg.testing import check_sampler

    def test_my_sampler():
        check_sampler(MySampler())

Each broken promise is an AssertionError that says what is wrong and how to fix it. The built-in samplers and priors
are held to the same checks.
"""

from __future__ import annotations

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import NegativeSampler, Prior
from bayesneg.samplers.priors.basic import PriorLike, as_prior
from bayesneg.testing.prior_checks import PRIOR_CHECKS
from bayesneg.testing.sampler_checks import SAMPLER_CHECKS
from bayesneg.testing.worlds import errors_named, name_of, require, worlds_of

__all__ = ["check_prior", "check_sampler"]


def check_sampler(sampler: NegativeSampler, *, train: Interactions | None = None) -> None:
    """Check that a sampler keeps the contract of :class:`~bayesneg.interfaces.NegativeSampler`.

    One integer item or NO_NEGATIVE per pair, never a training item; the same negatives for the same seed; global
    random state, batch and embeddings untouched; no state shared between two fits; a state that survives a checkpoint;
    ``unbias`` and ``prior_probability``, if any, probabilities; works in ``fit``, resumed to the same bytes, with MF
    and, where torch is installed, with a torch model.

    Args:
        sampler: The sampler, as ``fit`` takes it.
        train: Training data for a sampler that needs particular data; small random data by default.

    Raises:
        AssertionError: The first promise that the sampler breaks, and how to fix it.

    >>> from bayesneg.samplers import RNS
    >>> check_sampler(RNS())
    """
    require(
        isinstance(sampler, NegativeSampler),
        f"check_sampler takes a sampler such as MySampler(), an instance of bn.NegativeSampler, got {sampler!r}",
    )
    for check in SAMPLER_CHECKS:
        with errors_named(f"{name_of(sampler)}, in the check {check.__name__}"):
            check(sampler, worlds_of(train))


def check_prior(prior: PriorLike, *, train: Interactions | None = None) -> None:
    """Check that a prior keeps the contract of :class:`~bayesneg.interfaces.Prior`.

    A probability for every pair; ``users`` and ``items`` broadcast; fitted to the training data alone, deterministic,
    global random state untouched; a prior that follows training declares it and survives a checkpoint; works in BNS.

    Args:
        prior: A prior, or a function ``(users, items) → probability``.
        train: Training data for a prior that needs particular data; small random data by default.

    Raises:
        AssertionError: The first promise that the prior breaks, and how to fix it.

    >>> from bayesneg.samplers.priors import Flat
    >>> check_prior(Flat(0.1))
    """
    require(
        callable(prior) if not isinstance(prior, Prior) else True,
        f"check_prior takes a prior such as MyPrior(), or a function of users and items, got {prior!r}",
    )
    require(not isinstance(prior, type), f"check_prior takes a prior such as MyPrior(), got the class {prior!r}")
    for check in PRIOR_CHECKS:
        with errors_named(f"{name_of(prior)}, in the check {check.__name__}"):
            check(as_prior(prior), worlds_of(train))
