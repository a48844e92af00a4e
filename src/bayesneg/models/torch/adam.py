"""Adam with one kernel launch per parameter on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from bayesneg.kernels.torch.gradients import fused_for


class Adam(torch.optim.Adam):
    """``torch.optim.Adam``, with the Triton kernel where it runs: torch's fused one occupies few multiprocessors."""

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        parameters = [parameter for group in self.param_groups for parameter in group["params"]]
        if closure is not None or not all(_simple(parameter) for parameter in parameters):
            return super().step(closure)
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._step_one(parameter, group)
        return None

    def _step_one(self, parameter: Tensor, group: dict[str, Any]) -> None:
        state = self.state[parameter]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=parameter.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"].add_(1)
        assert parameter.grad is not None
        fused_for(parameter.device).adam_step(
            parameter, parameter.grad.contiguous(), state["exp_avg"], state["exp_avg_sq"], state["step"], group["lr"],
            betas=group["betas"], epsilon=group["eps"], decay=group["weight_decay"],
        )  # fmt: skip


def _simple(parameter: Tensor) -> bool:
    """Whether the fused kernel can step it."""
    if fused_for(parameter.device) is None or parameter.dtype != torch.float32 or not parameter.is_contiguous():
        return False
    return parameter.grad is None or not parameter.grad.is_sparse
