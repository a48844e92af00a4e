"""Text retrieval: in-batch negatives weighted by the posterior, and mined hard negatives judged by it.

>>> from bayesneg.integrations.sentence_transformers import PosteriorRankingLoss
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.util import cos_sim
from torch import Tensor

from bayesneg.checks import number
from bayesneg.errors import InputError
from bayesneg.integrations.word_overlap import PairPrior
from bayesneg.torch import log_unbias

__all__ = ["PosteriorRankingLoss", "keep_true_negatives"]


class PosteriorRankingLoss(MultipleNegativesRankingLoss):
    """``MultipleNegativesRankingLoss`` whose negatives count as much as they are probably true.

    loss = −s_i/τ + log Σ_k ω_k · exp(s_k/τ), with ω = 1 for the positive and the posterior probability of a true
    negative for the other documents of the batch, F their rank in the row. With ``prior=0`` it is the parent.

    Args:
        model: The model that is trained.
        prior: Prior probability of a false negative: a number, or a prior for pairs of rows such as ``WordOverlap``;
            the dataset then needs a column ``label`` with the number of the row, 0 to N − 1.
        scale: Inverse temperature 1/τ.
        similarity_fct: Similarity of embeddings.
        likelihood: Step from the counted rank to F, as in :func:`bayesneg.torch.log_unbias`.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        *,
        prior: float | PairPrior,
        scale: float = 20.0,
        similarity_fct: Callable[[Tensor, Tensor], Tensor] = cos_sim,
        likelihood: str = "mixture",
    ) -> None:
        super().__init__(model, scale=scale, similarity_fct=similarity_fct)
        if isinstance(prior, float | int):
            number("prior", prior, least=0, most=1)
        self.prior, self.likelihood = prior, likelihood

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Compute the loss of a batch.

        Args:
            embeddings: Embeddings (B, d) of the anchors, of the positives, and of each column of hard negatives.
            labels: Row numbers (B,), where the prior is one for pairs of rows.

        Returns:
            The mean loss.
        """
        anchors, documents = embeddings[0], torch.cat(embeddings[1:])
        scores = self.similarity_fct(anchors, documents)  # (B, B · (1 + hard))
        prior = self.prior if isinstance(self.prior, float | int) else looked_up(self.prior, labels, scores)
        log_weights = log_unbias(scores, prior=prior, likelihood=self.likelihood)
        own = torch.arange(len(anchors), device=scores.device)
        return torch.nn.functional.cross_entropy(scores * self.scale + log_weights, own)

    def get_config_dict(self) -> dict[str, Any]:
        """The settings for the model card.

        Returns:
            The settings by name.
        """
        prior = self.prior if isinstance(self.prior, float | int) else type(self.prior).__name__
        return {**super().get_config_dict(), "prior": prior, "likelihood": self.likelihood}


def looked_up(prior: PairPrior, labels: Tensor | None, scores: Tensor) -> Tensor:
    """The prior (B, n) of a batch; hard negatives, which are no rows of the dataset, have the mean."""
    if labels is None or labels.shape != scores.shape[:1]:
        raise InputError(
            "a prior for pairs of rows needs the row number of each pair; "
            "add it: dataset.add_column('label', range(len(dataset)))"
        )
    rows = labels.long().cpu().numpy()
    found = torch.as_tensor(prior.of(rows, rows), device=scores.device)
    beyond = found.mean().expand(len(rows), scores.shape[1] - len(rows))
    return torch.cat([found, beyond], dim=1)


def keep_true_negatives(
    mined: Dataset,
    pairs: Dataset,
    model: SentenceTransformer,
    *,
    prior: float | PairPrior,
    least: float = 0.5,
    likelihood: str = "mixture",
    batch_size: int = 256,
) -> Dataset:
    """Drop mined hard negatives that are probably false.

    Args:
        mined: What ``mine_hard_negatives`` returned in its format ``triplet``: anchor, positive, negative.
        pairs: The pairs it mined from: anchor, positive. Its positives are the corpus.
        model: The model that ranks the corpus for each anchor.
        prior: Prior probability of a false negative: a number, or a prior for the rows of ``pairs``.
        least: Least posterior probability of a true negative that is kept.
        likelihood: Step from the counted rank to F.
        batch_size: Anchors whose scores are held at once.

    Returns:
        The kept triplets, with their posterior in the column ``unbias``.
    """
    number("least", least, least=0, most=1)
    names = mined.column_names[:3]
    anchors, positives, negatives = (list(mined[name]) for name in names)
    in_pairs = [list(pairs[name]) for name in pairs.column_names[:2]]
    row_of_anchor = {text: row for row, text in reversed(list(enumerate(in_pairs[0])))}
    row_of_text = {text: row for row, text in reversed(list(enumerate(in_pairs[1])))}
    unknown = sum(text not in row_of_text for text in (*positives, *negatives))
    if unknown:
        raise InputError(f"pairs must hold every text that was mined as its positive; {unknown} texts are not there")
    corpus = list(row_of_text)
    column = {text: number for number, text in enumerate(corpus)}
    rows = np.array([row_of_text[text] for text in corpus])
    known: dict[str, list[int]] = {}
    for anchor, positive in zip(*in_pairs, strict=True):
        known.setdefault(anchor, []).append(column[positive])
    vectors = model.encode(corpus, convert_to_tensor=True, show_progress_bar=False)
    unbias = np.empty(len(mined))
    for first in range(0, len(mined), batch_size):
        part = slice(first, first + batch_size)
        asked = model.encode(anchors[part], convert_to_tensor=True, show_progress_bar=False)
        scores = model.similarity(asked, vectors)
        mask = torch.zeros_like(scores, dtype=torch.bool)
        for b, anchor in enumerate(anchors[part]):
            mask[b, known[anchor]] = True
        own = torch.tensor([column[text] for text in positives[part]], device=scores.device)
        taken = torch.tensor([column[text] for text in negatives[part]], device=scores.device)
        p: float | Tensor
        if isinstance(prior, float | int):
            p = prior
        else:
            asking = np.array([row_of_anchor[anchor] for anchor in anchors[part]])
            p = torch.as_tensor(prior.of(asking, rows), device=scores.device)
        found = log_unbias(scores, prior=p, positives=own, mask=mask, likelihood=likelihood)
        unbias[part] = found.gather(1, taken[:, None])[:, 0].exp().cpu().numpy()
    return mined.add_column("unbias", unbias.tolist()).select(np.flatnonzero(unbias >= least))
