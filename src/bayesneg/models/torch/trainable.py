"""A torch module with its optimizer: the forward pass, one step of Adam, and that step as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from bayesneg.errors import InputError
from bayesneg.interfaces import LayeredModule, Loss, Negatives
from bayesneg.kernels.reference.losses import LossValues, Scores
from bayesneg.kernels.reference.mixing import Layers
from bayesneg.kernels.torch import losses
from bayesneg.models.torch.adam import Adam
from bayesneg.models.torch.batch_scores import DirectScores, EmbeddingScores, ScoredBatch, pooled
from bayesneg.models.torch.device import memory_named, pick_device
from bayesneg.models.torch.graph import SmoothedEmbeddings
from bayesneg.models.torch.settings import TorchSettings
from bayesneg.models.validate import evaluate_custom


class TrainableScores(Protocol):
    """Scores of a batch through which gradients flow."""

    def scored(self, positives: Tensor, negatives: Negatives) -> ScoredBatch:
        """The scores of the positives (B,) and of the negatives (B, K), and what they are computed from."""
        ...

    def penalty(self, positives: Tensor, negatives: Negatives, shares: Tensor, strength: float) -> Tensor:
        """½ · strength · the squared norms of the batch's embeddings, by the shares (B, K) of the negatives."""
        ...


class Trainable:
    """A module in training.

    Args:
        settings: Learning rate, penalty, batch size and device.
        module: Gives embeddings, or has a method ``scores``.
        shape: The numbers of users and of items.
        gives_scores: Whether scores come from ``module.scores(users)`` and not from embeddings.
        ensemble_size: Number of models concatenated in the embeddings.
    """

    def __init__(
        self,
        settings: TorchSettings,
        module: nn.Module,
        shape: tuple[int, int],
        *,
        gives_scores: bool,
        ensemble_size: int,
    ) -> None:
        self.settings, self.shape, self.gives_scores, self.ensemble_size = settings, shape, gives_scores, ensemble_size
        self.device = pick_device(settings.device)
        with memory_named(self.device, settings):
            self.module = module.to(self.device)
        on_gpu = self.device.type == "cuda"
        self.optimizer = Adam(
            self.module.parameters(),
            lr=torch.tensor(settings.learning_rate, device=self.device) if on_gpu else settings.learning_rate,
            weight_decay=settings.strength if settings.penalty == "weight_decay" else 0.0,
            fused=True,
            capturable=on_gpu,
            rows=settings.adam_rows,
        )

    # ---------------------------------------------------------------------------------------------------------- a step

    def forward(self, users: Tensor, *, layered: bool = False) -> EmbeddingScores | DirectScores:
        """The scores for ``users`` (B,), with gradients; ``layered`` gives those of a layered model layer by layer."""
        if not self.gives_scores:
            layers = self.layers() if layered else None
            return EmbeddingScores(
                *(self.embeddings() if layers is None else pooled(layers)),
                users,
                layers=layers,
                ensemble_size=self.ensemble_size,
                first_layer=self._penalized(),
                cosine=self.settings.similarity == "cosine",
            )
        give_scores = getattr(self.module, "scores", None)  # a method, or a submodule, of the user's module
        if not callable(give_scores):
            raise InputError(f"{type(self.module).__name__} has no method scores(users); gives='scores' needs one")
        scores = give_scores(users)
        if scores.shape != (len(users), self.shape[1]):
            raise InputError(
                f"scores(users) must give {len(users)} × {self.shape[1]} numbers, a row per user and a column per "
                f"item, got {tuple(scores.shape)}"
            )
        return DirectScores(scores)

    def layers(self) -> Layers | None:
        """The embeddings of every layer, with gradients; None for a module of embeddings alone."""
        return Layers(*self.module.layer_embeddings()) if isinstance(self.module, LayeredModule) else None

    @cached_property
    def n_layers(self) -> int:
        """The number of layers, the first one included."""
        with torch.no_grad():
            layers = self.layers()
        return 1 if layers is None else len(layers.items)

    def _penalized(self) -> tuple[Tensor, Tensor] | None:
        """The first-layer embeddings, where the penalty is on them."""
        if self.settings.penalty != "first_layer":
            return None
        assert isinstance(self.module, SmoothedEmbeddings)  # TorchModel refuses this penalty
        return self.module.first_layer()

    def update(self, scores: EmbeddingScores | DirectScores, positives: Tensor, negatives: Tensor) -> Tensor:
        """One step of Adam on mean −ln σ(x_i − x_j); returns 1 − σ(x_i − x_j) (B,), 0 where there is no negative."""
        self.optimizer.zero_grad(set_to_none=True)
        strength = 0.0 if self.settings.penalty == "weight_decay" else self.settings.strength
        infos = scores.backward(positives, negatives, strength)
        self.optimizer.step()
        return infos

    def learn(
        self, scores: EmbeddingScores | DirectScores, positives: Tensor, negatives: Negatives, loss: Loss, **more: Any
    ) -> tuple[Scores, LossValues]:
        """One step of Adam on the mean loss of the examples with a negative that counts.

        Args:
            scores: The scores of the batch.
            positives: The positives (B,).
            negatives: The negatives, with weights.
            loss: The loss.
            **more: Further fields of :class:`~bayesneg.kernels.reference.losses.Scores`.

        Returns:
            The scores before the step, and the loss with its derivatives, of each example.
        """
        self.optimizer.zero_grad(set_to_none=True)
        strength = 0.0 if self.settings.penalty == "weight_decay" else self.settings.strength
        found = backpropagate(scores, positives, negatives, loss, strength, **more)
        self.optimizer.step()
        return found

    def set_learning_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    def embeddings(self) -> tuple[Tensor, Tensor]:
        """The embeddings (n_users, d) and (n_items, d) that the module gives; an error where it gives anything else."""
        given = self.module()
        if not (
            isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(part, Tensor) for part in given)
        ):
            got = [type(part).__name__ for part in given] if isinstance(given, tuple | list) else type(given).__name__
            raise InputError(
                f"{type(self.module).__name__} must give two tensors, the users' vectors and the items', got {got}"
            )
        users, items = given
        if (
            users.ndim != 2 or items.ndim != 2 or (len(users), len(items)) != self.shape
            or users.shape[1] != items.shape[1]
        ):  # fmt: skip
            raise InputError(
                f"the model gives user vectors of shape {tuple(users.shape)} and item vectors of shape "
                f"{tuple(items.shape)}; the data has {self.shape[0]} users and {self.shape[1]} items, "
                "and both need one width"
            )
        return users, items

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Without gradients, and with the module in evaluation mode (dropout off)."""
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.module.train()

    # ------------------------------------------------------------------------------------------------- as a CUDA graph

    def recorded(self, step: Callable[[], None], changed: Sequence[Tensor]) -> torch.cuda.CUDAGraph:
        """Take one step and return it as a CUDA graph; the warm-up steps that recording needs are undone.

        Args:
            step: The step to record.
            changed: The tensors that a step changes beside those of the module and the optimizer.
        """
        self.begin_optimizer()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.rehearse(step, changed)
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad(set_to_none=True)  # so that the gradients live where the graph writes them
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # another thread packs the next block
            step()
        graph.replay()
        return graph

    def rehearse(self, step: Callable[[], None], changed: Sequence[Tensor]) -> None:
        """Take a step and undo it."""
        tensors = [*self.tensors().values(), *changed]
        before = [value.clone() for value in tensors]
        step()
        for value, old in zip(tensors, before, strict=True):
            value.copy_(old)

    # ---------------------------------------------------------------------------------------------------------- state

    def tensors(self) -> dict[str, Tensor]:
        """Parameters, buffers and the optimizer's state, by name; writing to them changes the model."""
        found = dict(self.module.state_dict())  # parameters and buffers
        for name, parameter in self.module.named_parameters():
            for key, value in self.optimizer.state[parameter].items():
                found[f"{name}.{key}"] = value
        return found

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Copy saved arrays into the tensors of the same names."""
        with memory_named(self.device, self.settings):
            self.begin_optimizer()
        for key, value in self.tensors().items():
            if key in state:  # a parameter that never had a gradient has no state
                value.copy_(torch.from_numpy(np.array(state[key])))

    def first_layer(self) -> tuple[Tensor, Tensor] | None:
        """The parameters of users and items in the module of LightGCN and TorchMF; None for any other."""
        return self.module.first_layer() if isinstance(self.module, SmoothedEmbeddings) else None

    def set_first_layer(self, vectors: np.ndarray) -> None:
        """Copy vectors (n_users + n_items, d) into these parameters."""
        assert isinstance(self.module, SmoothedEmbeddings)
        with torch.no_grad():
            self.module.first.copy_(torch.from_numpy(vectors))

    def begin_optimizer(self) -> None:
        """Create the optimizer's state, as its first step would."""
        if any(self.optimizer.state[parameter] for parameter in self.module.parameters()):
            return
        before = [parameter.detach().clone() for parameter in self.module.parameters()]
        for parameter in self.module.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        with torch.no_grad():
            for parameter, value in zip(self.module.parameters(), before, strict=True):
                parameter.copy_(value)
                for memory in self.optimizer.state[parameter].values():
                    memory.zero_()

    def is_finite(self) -> bool:
        return all(bool(torch.isfinite(parameter).all()) for parameter in self.module.parameters())


def backpropagate(
    scores: TrainableScores, positives: Tensor, negatives: Negatives, loss: Loss, strength: float, **more: Any
) -> tuple[Scores, LossValues]:
    """Accumulate the gradients of the mean loss of the examples with a negative that counts.

    Args:
        scores: The scores of the batch.
        positives: The positives (B,).
        negatives: The negatives, with weights.
        loss: The loss.
        strength: The L2 penalty on the embeddings of the batch.
        **more: Further fields of :class:`~bayesneg.kernels.reference.losses.Scores`.

    Returns:
        The scores, and the loss with its derivatives, of each example.
    """
    scored = scores.scored(positives, negatives)
    given = Scores(
        scored.positive.detach(), scored.negatives.detach(), negatives.weights, negatives.log_q, **more
    )  # fmt: skip
    values = evaluate_loss(loss, given)
    counted = losses.counted(given.weights)
    share = counted / counted.sum().clamp(min=1)
    outputs, slopes = scored.pulled(values, share)
    if strength:
        shares = share[:, None] * given.weights / given.weights.sum(dim=1, keepdim=True).clamp(min=1e-30)
        outputs.append(scores.penalty(positives, negatives, shares, strength))
        slopes.append(torch.ones_like(outputs[-1]))
    torch.autograd.backward(outputs, slopes)
    return given, values


def evaluate_loss(loss: Loss, scores: Scores) -> LossValues:
    """The loss of each example, built in or custom, and its derivatives by the scores, on their device.

    A custom loss in NumPy is given arrays in host memory.
    """
    form = loss.form()
    if form is not None:
        return losses.evaluate(form, scores)
    if loss.takes_tensors:
        return loss.evaluate(scores)
    arrays = Scores(*(None if part is None else part.double().cpu().numpy() for part in scores))
    given = scores.positive
    return LossValues(*(torch.from_numpy(part).to(given.device, given.dtype) for part in evaluate_custom(loss, arrays)))
