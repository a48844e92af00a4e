"""How much of a loss's gradient falls on false negatives, in any training loop."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bayesneg.checks import one_of
from bayesneg.config.loss_specs import as_loss
from bayesneg.errors import InputError
from bayesneg.evaluation.sampling_quality import Tally
from bayesneg.interfaces import Loss, Negatives
from bayesneg.kernels.reference.losses import Scores
from bayesneg.kernels.torch.losses import effective_weights
from bayesneg.models.torch.batch_scores import EmbeddingScores
from bayesneg.models.torch.trainable import evaluate_loss
from bayesneg.models.torch.weighted import MEASURED, SampledSums
from bayesneg.torch.validation import (
    check_kind,
    check_lengths,
    check_negatives,
    check_numbers,
    check_table,
    parts_of,
    same_device,
    training_data,
)

NAME = "held_out"


class GradientShare:
    """The share of the gradient that falls on false negatives: Σ |∂L/∂s_k| over held-out positives, of that over all.

    ``fit`` records the same figures in every epoch as ``gradient_fn``, ``tnr`` and ``inf``. Some examples of each batch
    are measured, on the device; only :meth:`result` copies to the host.

    Args:
        labels: Held-out positives of the users, which training does not see: interactions, or a SciPy sparse matrix.
        loss: The loss of the loop: an object such as ``bn.losses.Softmax(temperature=0.1)``, a custom loss, or a name.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.

    Example:
        >>> import bayesneg as bn, bayesneg.torch as bnt
        >>> split = bn.split(bn.synthetic(50, 40, seed=0), test=0.2, seed=0)
        >>> U, V = torch.ones(50, 8), torch.ones(40, 8)
        >>> users, positives = (torch.tensor(part[:64]).long() for part in (split.train.users, split.train.indices))
        >>> negatives = bnt.Sampler(bn.RNS(negatives=30, shared=True), split.train)(users, positives, U, V)
        >>> meter = bnt.GradientShare(split.test, "softmax")
        >>> meter.add(users, positives, U, V, negatives)
        >>> sorted(meter.result())
        ['gradient_fn', 'inf', 'tnr']
    """

    def __init__(self, labels: Any, loss: Loss | str = "bpr", *, similarity: str = "inner") -> None:
        one_of("similarity", similarity, ("inner", "cosine"))
        self.labels, self.loss, self.cosine = training_data("labels", labels), as_loss(loss), similarity == "cosine"
        self._sums: SampledSums | None = None  # on the device of the first batch

    @torch.compiler.disable
    @torch.no_grad()
    def add(
        self, users: Tensor, positives: Tensor, user_vectors: Tensor, item_vectors: Tensor, negatives: Negatives
    ) -> None:
        """Measure a batch.

        Args:
            users: The users (B,), dense numbers.
            positives: The positives (B,), dense numbers.
            user_vectors: The embeddings (n_users, d) of all users, as the loss saw them.
            item_vectors: The embeddings (n_items, d) of all items, as the loss saw them.
            negatives: What :class:`~bayesneg.torch.Sampler` returned for the batch.
        """
        check_table("user_vectors", user_vectors, self.labels.n_users)
        check_table("item_vectors", item_vectors, self.labels.n_items)
        check_kind(negatives)
        same_device(
            users=users, positives=positives, user_vectors=user_vectors, item_vectors=item_vectors,
            **parts_of(negatives),
        )  # fmt: skip
        check_numbers("users", users, 0, self.labels.n_users)
        check_numbers("positives", positives, 0, self.labels.n_items)
        check_lengths(users, positives)
        check_negatives(negatives, len(users), user_vectors.shape[1], self.labels.n_items)
        if self._sums is None:
            self._sums = SampledSums({NAME: self.labels}, users.device)
        if self._sums.sums.device != users.device:
            raise InputError(
                f"the meter has measured on {self._sums.sums.device} and got tensors on {users.device}; call result(), "
                "or make another GradientShare"
            )
        with torch.autocast(users.device.type, enabled=False):
            self._add(
                self._sums, users[:MEASURED].long(), positives[:MEASURED].long(), user_vectors, item_vectors, negatives
            )

    def _add(self, sums: SampledSums, users: Tensor, positives: Tensor, U: Tensor, V: Tensor, given: Negatives) -> None:
        negatives = (
            given if given.is_shared else Negatives(*(None if part is None else part[:MEASURED] for part in given))
        )
        scores = EmbeddingScores(U, V, users, cosine=self.cosine)
        x_positive, x = scores.of_negatives(positives, negatives)
        given_weights = negatives.weights if negatives.weights is None else negatives.weights[: len(users)].float()
        weights = effective_weights(negatives.items, given_weights, len(users))
        log_q = None if negatives.log_q is None else negatives.log_q.masked_fill(negatives.items < 0, 0)
        rank, threshold = self.loss.threshold_at, None
        if rank is not None:
            threshold = scores.rows(slice(None)).topk(min(rank, len(V)), dim=1).values[:, -1]
        found = Scores(x_positive, x, weights, log_q, threshold)
        sums.add(users, negatives, found, evaluate_loss(self.loss, found))

    def result(self) -> dict[str, float]:
        """The measures of what was added since the last call; the next call begins anew.

        Returns:
            ``gradient_fn``, the share of the gradient that falls on false negatives; ``tnr``, the share of true
            negatives, weighted by ω; ``inf``, the mean signed information. NaN where nothing was added.
        """
        tally = Tally()
        if self._sums is not None:
            measured = self._sums.fetched()
            tally.add_sums(measured.all, measured.false[NAME])
            self._sums = None
        return {"gradient_fn": tally.gradient_fn, "tnr": tally.tnr, "inf": tally.inf}
