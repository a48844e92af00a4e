"""LightGCN: embeddings smoothed over the user–item graph.

X. He et al., "LightGCN: Simplifying and Powering Graph Convolution Network for Recommendation", SIGIR 2020. With
Â = D^(−1/2) A D^(−1/2) the normalised adjacency matrix of users and items, E = mean of E₀, ÂE₀, …, Â^L E₀; without
layers it is matrix factorization. Needs the extra ``torch``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from bayesneg.checks import known_settings, number, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.models.torch.settings import TorchSettings, require_torch

if TYPE_CHECKING:
    from bayesneg.models.torch.learner import TorchLearner


@known_settings(init="bn.MF(init='als') starts from ALS")
@dataclass(frozen=True, kw_only=True)
class LightGCN(TorchSettings):
    """LightGCN, trained in mini-batches with Adam.

    ``LightGCN.paper()`` gives the settings of the BNS paper. The training settings are described in
    :class:`~bayesneg.models.torch.settings.TorchSettings`.

    Args:
        dim: The number of dimensions of an embedding.
        layers: The number of graph convolutions; 0 is matrix factorization.
        init_scale: The standard deviation of the initial first-layer embeddings.
        ensemble_size: Number of models in the ensemble, trained on the same negatives with separate gradients; the
            score is the mean of their scores.

    >>> LightGCN(dim=64, layers=3, penalty="first_layer", regularization=1e-4, learning_rate=1e-3).layers
    3
    """

    dim: int = 32
    layers: int = 1
    init_scale: float = 0.1
    ensemble_size: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("dim", self.dim)
        whole("ensemble_size", self.ensemble_size)
        whole("layers", self.layers, least=0)
        number("init_scale", self.init_scale, above=0)

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of the BNS paper: a tenth of the learning rate every 20 epochs, the penalty scaled by 128/batch.

        Args:
            **changes: Fields that differ from the paper's settings.

        Returns:
            The model with the paper's settings and these changes.

        >>> LightGCN.paper(dim=64).decay
        0.1
        """
        return cls(**{"decay": 0.1, "decay_every": 20, "scale_regularization": True, **changes})

    def start(self, train: Interactions, *, rng: np.random.Generator) -> TorchLearner:
        require_torch("LightGCN")
        from bayesneg.models.torch.graph import SmoothedEmbeddings
        from bayesneg.models.torch.learner import TorchLearner

        shape = (train.n_users + train.n_items, self.dim * self.ensemble_size)
        first = rng.normal(0.0, self.init_scale, shape).astype(np.float32)
        module = SmoothedEmbeddings(first, train, self.layers, ensemble_size=self.ensemble_size)
        return TorchLearner(self, train, module, ensemble_size=self.ensemble_size)


@known_settings(init="bn.MF(init='als') starts from ALS")
@dataclass(frozen=True, kw_only=True)
class TorchMF(LightGCN):
    """Matrix factorization in mini-batches with Adam: LightGCN without graph convolutions.

    ``TorchMF.paper()`` gives the settings of the BNS paper. The other settings are those of :class:`LightGCN`.

    Args:
        layers: Always 0.
    """

    layers: Literal[0] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.layers != 0:
            raise InputError(f"layers must be 0 in TorchMF, got {self.layers}; LightGCN has layers")
