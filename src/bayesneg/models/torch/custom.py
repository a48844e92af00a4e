"""A torch model of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Literal

import numpy as np

from bayesneg.checks import one_of
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.models.torch.settings import TorchSettings, require_torch

if TYPE_CHECKING:
    from torch import nn

    from bayesneg.models.torch.learner import TorchLearner

ONE_AT_A_TIME = Lock()  # several runs at a time share torch's global generator, from which modules are made


@dataclass(frozen=True, kw_only=True)
class TorchModel(TorchSettings):
    """Any ``nn.Module``, trained with any sampler.

    ``build(train)`` makes the module. With ``gives="vectors"`` calling the module without arguments gives the vectors
    of all users (n_users, d) and of all items (n_items, d), whose inner product is the score; with ``gives="scores"``
    it has a method ``scores(users)`` that gives scores (B, n_items) for users (B,). The module starts from the seed of
    the fit.
    """

    build: Callable[[Interactions], nn.Module]
    gives: Literal["vectors", "scores"] = "vectors"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("gives", self.gives, ("vectors", "scores"))
        if not callable(self.build):
            raise InputError(
                f"build must be a function that takes the training data and makes a module, got {self.build!r}"
            )

    def start(self, train: Interactions, *, rng: np.random.Generator) -> TorchLearner:
        require_torch("TorchModel")
        import torch

        from bayesneg.models.torch.learner import TorchLearner

        with ONE_AT_A_TIME, torch.random.fork_rng():  # the global state is given back as it was
            torch.manual_seed(int(rng.integers(2**63)))
            module = self.build(train)
        if not isinstance(module, torch.nn.Module):
            raise InputError(f"build must make a torch.nn.Module, got {type(module).__name__}")
        if not any(parameter.requires_grad for parameter in module.parameters()):
            raise InputError(f"{type(module).__name__} has no parameters to train")
        return TorchLearner(self, train, module, scores=self.gives == "scores")
