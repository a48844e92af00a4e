"""Adam with one kernel launch per parameter on a GPU, on all rows of a table or on those with a gradient."""

from __future__ import annotations

from typing import Any, Literal

import torch
from torch import Tensor

from bayesneg.kernels.torch.gradients import fused_for


class Adam(torch.optim.Adam):
    """``torch.optim.Adam``, with the Triton kernel where it runs: torch's fused one occupies few multiprocessors.

    Args:
        parameters: What is trained.
        rows: ``"all"`` moves every row of a table in each step, ``"touched"`` those with a gradient: the moments of the
            others wait, and weight decay leaves them as they are. Steps are counted for the table, not for a row.
        settings: Other arguments of ``torch.optim.Adam``.
    """

    def __init__(self, parameters: Any, *, rows: Literal["all", "touched"] = "all", **settings: Any) -> None:
        super().__init__(parameters, **settings)
        self.moves_all_rows = rows == "all"

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        simple = closure is None and all(_simple(parameter) for parameter in parameters)
        if self.moves_all_rows and not simple:
            return super().step(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                if self.moves_all_rows:
                    self._step_one(parameter, group)
                else:
                    self._step_touched(parameter, group)
        return None

    def begin(self, parameter: Tensor) -> dict[str, Tensor]:
        """The state of a parameter, made where there is none."""
        state: dict[str, Tensor] = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        return state

    def _step_one(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.begin(parameter)
        state["step"].add_(1)
        assert parameter.grad is not None
        fused_for(parameter.device).adam_step(
            parameter, parameter.grad.contiguous(), state["exp_avg"], state["exp_avg_sq"], state["step"], group["lr"],
            betas=group["betas"], epsilon=group["eps"], decay=group["weight_decay"],
        )  # fmt: skip

    def _step_touched(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.begin(parameter)
        state["step"].add_(1)
        gradient = parameter.grad
        assert gradient is not None
        moved = _moved((parameter, state["exp_avg"], state["exp_avg_sq"]), gradient, state["step"], group)
        for table, rows in zip((parameter, state["exp_avg"], state["exp_avg_sq"]), moved, strict=True):
            table.copy_(rows)

    @torch.no_grad()
    def step_rows(self, parameter: Tensor, which: Tensor, gradients: Tensor) -> None:
        """A step with the gradients (t, d) of some rows (t,), each once; no other row is read.

        Args:
            parameter: The table.
            which: The rows.
            gradients: Their gradients.
        """
        (group,) = self.param_groups
        state = self.begin(parameter)
        state["step"].add_(1)
        tables = parameter, state["exp_avg"], state["exp_avg_sq"]
        rows = tuple(table.index_select(0, which) for table in tables)
        for table, moved in zip(tables, _moved(rows, gradients, state["step"], group), strict=True):
            table.index_copy_(0, which, moved)


def _moved(
    given: tuple[Tensor, ...], gradients: Tensor, step: Tensor, group: dict[str, Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows and their two moments after a step; those without a gradient as they were."""
    rows, mean, square = given
    beta1, beta2 = group["betas"]
    full = gradients + group["weight_decay"] * rows
    new_mean = mean + (1.0 - beta1) * (full - mean)
    new_square = beta2 * square + (1.0 - beta2) * full * full
    root = (new_square / (1.0 - beta2**step)).sqrt() + group["eps"]
    new_rows = rows - group["lr"] / (1.0 - beta1**step) * new_mean / root
    if gradients.ndim < 2:  # no table
        return new_rows, new_mean, new_square
    touched = gradients.flatten(1).ne(0).any(dim=1).view(-1, *[1] * (gradients.ndim - 1))
    pairs = ((new_rows, rows), (new_mean, mean), (new_square, square))
    first, second, third = (torch.where(touched, new, old) for new, old in pairs)
    return first, second, third


def _simple(parameter: Tensor) -> bool:
    """Whether the fused kernel can step it."""
    if fused_for(parameter.device) is None or parameter.dtype != torch.float32 or not parameter.is_contiguous():
        return False
    return parameter.grad is None or not parameter.grad.is_sparse
