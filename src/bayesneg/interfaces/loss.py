"""What a loss is: a function of the scores of positives and negatives, with its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from bayesneg.errors import InputError
from bayesneg.interfaces.negatives import Negatives
from bayesneg.kernels.reference.losses import LossForm, LossValues, PairwiseLogistic, Scores


class Loss(ABC):
    """A loss of one positive and its negatives. A custom loss implements :meth:`evaluate` in NumPy.

    ``NAME`` is the name of the loss on the command line; a built-in loss is registered by having one.

    >>> import numpy as np
    >>> class Hinge(Loss):
    ...     def evaluate(self, scores):
    ...         gaps = 1.0 + scores.negatives - scores.positive[:, None]
    ...         slopes = scores.weights * (gaps > 0)
    ...         return LossValues((slopes * gaps).sum(axis=1), -slopes.sum(axis=1), slopes)
    >>> Hinge().evaluate(Scores(np.array([1.0]), np.array([[0.5]]), np.array([[1.0]]))).value
    array([0.5])
    """

    NAME: ClassVar[str] = ""

    @abstractmethod
    def evaluate(self, scores: Scores) -> LossValues:
        """Compute the loss of a batch and its derivatives.

        Args:
            scores: The scores of the positives (B,) and of the negatives (B, K), the weights (B, K) of the negatives,
                0 for one that does not count, and the log-probabilities of their draw where it is not uniform.

        Returns:
            The loss (B,) of each example, and its derivatives by the score of the positive (B,) and by those of the
            negatives (B, K).
        """

    def form(self) -> LossForm | None:
        """The loss as compiled code and torch execute it.

        Returns:
            A tuple of numbers for a built-in loss; None, the default, for a custom one.
        """
        return None

    @property
    def takes_tensors(self) -> bool:
        """Whether :meth:`evaluate` takes and returns tensors of torch; arrays of NumPy, the default."""
        return False

    @property
    def needs_several(self) -> bool:
        """Whether the loss has no minimum with one negative, as a softmax without the positive; False by default."""
        return False

    @property
    def threshold_at(self) -> int | None:
        """The rank K of the score that :class:`Scores` gives as the user's threshold; None for a loss without one."""
        return None

    @property
    def threshold_every(self) -> int:
        """The number of epochs between two computations of the thresholds."""
        return 1


class BuiltInLoss(Loss):
    """A loss that NumPy, compiled code and torch all execute."""

    @abstractmethod
    def form(self) -> LossForm: ...

    def evaluate(self, scores: Scores) -> LossValues:
        return self.form().evaluate(scores)


@dataclass(frozen=True)
class BPR(BuiltInLoss):
    """The BPR loss: Σ_k ω_k · softplus(s_k − s_i) / Σ_k ω_k, the mean over the weighted negatives.

    Example:
        >>> BPR()
        BPR()

    Reference:
        S. Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", UAI 2009.
    """

    NAME: ClassVar = "bpr"

    def form(self) -> PairwiseLogistic:
        return PairwiseLogistic()


BPR_LOSS = BPR()  # the loss of a training without another


def no_minimum(loss: Loss, given: str) -> str:
    """The sentence about one negative and inner products with a loss that needs several; ``given`` says whose."""
    return (
        f"{type(loss).__name__} with one negative is linear in the scores and has no minimum, and {given}; give "
        "several, such as rns:negatives=16, or a shared pool of several, set similarity=cosine, or take "
        "softmax:include_positive=true"
    )


def check_has_minimum(loss: Loss, negatives: Negatives, n_examples: int, *, cosine: bool, given: str) -> None:
    """An error for one negative and inner products; a pool that one example shares may be a short last batch."""
    if cosine or not loss.needs_several or negatives.items.shape[-1] > 1 or (negatives.is_shared and n_examples == 1):
        return
    raise InputError(no_minimum(loss, given))


def not_finite(name: str, field: str) -> str:
    """The sentence about a custom loss that gives NaN or infinity for finite scores."""
    return f"{name}: {field} is not finite for finite scores; mind logarithms of 0, divisions by 0 and large powers"
