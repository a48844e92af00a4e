"""Knowledge graphs: corruptions chosen by Bayesian negative sampling, as a negative sampler of PyKEEN.

A triple (h, r, t) is a positive of the "user" (h, r) with the "item" t, or of (r, t) with h. Entities that complete no
known triple are unobserved; some of them complete a true one, and the popular ones more likely.
B. Liu and B. Wang, "Bayesian Negative Sampling for Recommendation", ICDE 2023.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
from pykeen.models import Model
from pykeen.sampling import NegativeSampler as CorruptionSampler
from torch import Tensor
from torch.utils.data import get_worker_info

from bayesneg.checks import number, one_of, whole
from bayesneg.errors import InputError
from bayesneg.torch import choose

__all__ = ["BayesianNegativeSampler"]

SIDES = (0, 2)  # the columns of head and tail


class BayesianNegativeSampler(CorruptionSampler):
    """Of a few random corruptions of the head or of the tail, those of least sampling risk.

    Args:
        mapped_triples: The training triples (n, 3), from PyKEEN.
        model: The model that is trained; its current scores give the informativeness and F.
        candidates: Number of entities drawn per triple.
        weight: Weight λ of the posterior in the sampling risk.
        prior: Prior probability that a corruption is true: ``"relation"`` (the entity's share of the triples of the
            relation, on that side), ``"popularity"`` (its share of all triples), or a number.
        likelihood: Step from the counted rank to F, as in :func:`bayesneg.torch.choose`.
        **kwargs: Settings of PyKEEN's negative samplers, such as ``num_negs_per_pos``.
    """

    def __init__(
        self,
        *,
        mapped_triples: Tensor,
        model: Model,
        candidates: int = 5,
        weight: float = 5.0,
        prior: Literal["relation", "popularity"] | float = "relation",
        likelihood: str = "paper",
        **kwargs: Any,
    ) -> None:
        super().__init__(mapped_triples=mapped_triples, **kwargs)
        whole("candidates", candidates, least=self.num_negs_per_pos)
        number("weight", weight, least=0)
        if isinstance(prior, str):
            one_of("prior", prior, ("relation", "popularity"))
        else:
            number("prior", prior, least=0, most=1)
        self._model = (model,)  # in a tuple: its parameters are not the sampler's
        self.settings: dict[str, Any] = {"candidates": candidates, "weight": weight, "likelihood": likelihood}
        self.prior = prior
        triples = mapped_triples.long()
        for side in SIDES:
            self.register_buffer(f"known_{side}", self._keys(triples, side)[0].sort().values, persistent=False)
            self.register_buffer(f"shares_{side}", self._shares(triples, side), persistent=False)

    def corrupt_batch(self, positive_batch: Tensor) -> Tensor:
        """Choose the corruptions of a batch.

        Args:
            positive_batch: Triples (…, 3).

        Returns:
            Triples (…, K, 3), each with another head or another tail.
        """
        if get_worker_info() is not None:
            raise InputError("num_workers must be 0: a worker process would choose by an old copy of the model")
        positives = positive_batch.reshape(-1, 3)
        negatives = positives[:, None, :].repeat(1, self.num_negs_per_pos, 1)
        heads = torch.rand(len(positives), device=positives.device) < 0.5
        for side, rows in zip(SIDES, (heads.nonzero()[:, 0], (~heads).nonzero()[:, 0]), strict=True):
            if len(rows):
                negatives[rows, :, side] = self._chosen(positives[rows], side)
        return negatives.reshape(*positive_batch.shape[:-1], self.num_negs_per_pos, 3)

    def _chosen(self, triples: Tensor, side: int) -> Tensor:
        """The entities (B, K) that replace the head or the tail."""
        scores, own = self._scores(triples, side), triples[:, side]
        prior = self.prior
        p: float | Tensor = prior if isinstance(prior, float | int) else self.get_buffer(f"shares_{side}")
        if prior == "relation":
            p = self.get_buffer(f"shares_{side}")[triples[:, 1]]
        found = choose(
            scores, own, prior=p, observed=self._observed(triples, side), negatives=self.num_negs_per_pos,
            **self.settings,
        ).view(len(triples), -1)  # fmt: skip
        random = torch.randint(self.num_entities - 1, found.shape, device=found.device)
        return torch.where(found >= 0, found, random + (random >= own[:, None]))  # where every entity is known

    @torch.no_grad()
    def _scores(self, triples: Tensor, side: int) -> Tensor:
        """The scores (B, n_entities) of every entity in the place of the head or the tail."""
        (model,) = self._model
        training = model.training
        model.eval()  # no dropout, and batch statistics stay
        batch = triples.to(model.device)
        scores = model.score_t(batch[:, :2]) if side == 2 else model.score_h(batch[:, 1:])
        model.train(training)
        return scores.to(triples.device)

    def _keys(self, triples: Tensor, side: int) -> tuple[Tensor, Tensor]:
        """A number for each triple, and that (B, 1) of the one with entity 0 in the place of the head or the tail."""
        other = triples[:, 2 - side]
        first = (other * self.num_relations + triples[:, 1]) * self.num_entities
        return first + triples[:, side], first[:, None]

    def _observed(self, triples: Tensor, side: int) -> Tensor:
        """True (B, n_entities) where an entity completes a known triple."""
        known = self.get_buffer(f"known_{side}")
        asked = self._keys(triples, side)[1] + torch.arange(self.num_entities, device=triples.device)
        return known[torch.searchsorted(known, asked).clamp(max=len(known) - 1)] == asked

    def _shares(self, triples: Tensor, side: int) -> Tensor:
        """Shares (n_entities,) of all triples, or (n_relations, n_entities) of those of each relation."""
        if self.prior != "relation":
            return torch.bincount(triples[:, side], minlength=self.num_entities) / len(triples)
        pairs = triples[:, 1] * self.num_entities + triples[:, side]
        counts = torch.bincount(pairs, minlength=self.num_relations * self.num_entities)
        table = counts.view(self.num_relations, self.num_entities).float()
        return table / table.sum(dim=1, keepdim=True).clamp(min=1)
