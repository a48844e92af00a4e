"""The embeddings of a torch loop as the scorer that samplers see."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.interfaces import Batch, Embeddings
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.models.scorers import EmbeddingScorer
from bayesneg.models.torch.batch_scores import EmbeddingScores
from bayesneg.models.torch.summaries import TorchSummaries


class TensorScorer:
    """Scores of the embeddings last seen. On the CPU arrays share the memory of the tensors.

    Args:
        train: The training interactions.
        rows: The same on the device.
        saved: What :meth:`saved_summaries` returned, for an epoch that goes on.
    """

    def __init__(self, train: Interactions, rows: TrainingRows, saved: Mapping[str, Tensor] | None = None) -> None:
        self.train, self.rows = train, rows
        self._summaries: TorchSummaries | None = None
        self._saved = saved
        self._on_host: EmbeddingScorer | None = None
        self._n_layers = 1  # until embeddings are seen

    def see(self, scores: EmbeddingScores) -> None:
        """Take over the embeddings, and the users of the batch."""
        self.scores, self._on_host, self._n_layers = scores, None, len(scores.layers.items)

    @property
    def n_users(self) -> int:
        return self.train.n_users

    @property
    def n_items(self) -> int:
        return self.train.n_items

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        return self._host().score(users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        return self._host().score_all(users)

    def embeddings(self) -> Embeddings:
        return self._host().embeddings()

    @property
    def n_layers(self) -> int:
        """As declared by :class:`~bayesneg.interfaces.LayeredScorer`."""
        return self._n_layers

    def refreshed_knots(
        self, batch: Batch, ranks: np.ndarray, *, moved: float, pool: int, over_all: bool
    ) -> Tensor | None:
        """As declared by :class:`~bayesneg.interfaces.RefreshesOnDevice`."""
        if len(batch.users) and self.scores.which.device.type == "cpu":  # compiled code refreshes
            return None
        users, items = self.scores.users, self.scores.items
        if self._summaries is None:
            self._summaries = TorchSummaries(self.rows, ranks, users.shape[1], users.device)
            if self._saved is not None:
                self._summaries.load_state_dict(self._saved)
        return self._summaries.refresh(
            self.scores.which, (users, items), batch.epoch, moved=moved, pool=pool, over_all=over_all
        )

    def saved_summaries(self) -> Mapping[str, Tensor] | None:
        """The summaries that a GPU keeps, copied to the host; None where it has none."""
        if self._summaries is None:
            return self._saved
        return {key: value.cpu() for key, value in self._summaries.state_dict().items()}

    def _host(self) -> EmbeddingScorer:
        if self._on_host is None:
            self._on_host = EmbeddingScorer(self.scores.users.cpu().numpy(), self.scores.items.cpu().numpy())
        return self._on_host
