"""A custom torch model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

import numpy as np

from bayesneg.checks import known_settings, one_of
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.models.torch.settings import TorchSettings, require_torch

if TYPE_CHECKING:
    from torch import nn

    from bayesneg.models.torch.learner import TorchLearner

ONE_AT_A_TIME = Lock()  # runs in parallel threads share torch's global generator, which initialises modules


@known_settings(init="bn.MF(init='als') starts from ALS")
@dataclass(frozen=True, kw_only=True)
class TorchModel(TorchSettings):
    """A custom ``nn.Module``, trained with any sampler.

    The module is built from the seed of the fit. The training settings are described in
    :class:`~bayesneg.models.torch.settings.TorchSettings`; ``penalty="first_layer"`` is for LightGCN alone.

    Args:
        build: A function that takes the training data and returns the module.
        gives: ``"vectors"``: calling the module without arguments returns the embeddings of all users (n_users, d)
            and of all items (n_items, d), whose inner product is the score; ``"scores"``: a method ``scores(users)``
            returns the scores (B, n_items) for users (B,).
    """

    build: Callable[[Interactions], nn.Module]
    gives: Literal["vectors", "scores"] = "vectors"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.penalty == "first_layer":
            raise InputError(
                "penalty='first_layer' needs LightGCN, whose first-layer embeddings are known; "
                "use penalty='batch' or 'weight_decay' with TorchModel"
            )
        one_of("gives", self.gives, ("vectors", "scores"))
        if not callable(self.build):
            raise InputError(
                f"build must be a function that takes the training data and makes a module, got {self.build!r}"
            )

    def start(self, train: Interactions, *, rng: np.random.Generator) -> TorchLearner:
        require_torch("TorchModel")
        import torch

        from bayesneg.models.torch.learner import TorchLearner

        with ONE_AT_A_TIME, torch.random.fork_rng():  # the global state is restored
            torch.manual_seed(int(rng.integers(2**63)))
            module = self.build(train)
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"build must make a torch.nn.Module, got {type(module).__name__}")
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise InputError(f"{type(module).__name__} has no parameters to train")
        return TorchLearner(self, train, module, scores=self.gives == "scores")
