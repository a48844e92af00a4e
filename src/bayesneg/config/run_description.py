"""A run as plain values, from which ``bayesneg train run.toml`` makes it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from bayesneg.config.writing import loss_table, model_table, sampler_table
from bayesneg.data.splits import Split
from bayesneg.interfaces import Loss, Model, NegativeSampler

HERE: Final = "."  # the data of a run whose folder alone has it


def run_description(
    model: Model, split: Split, sampler: NegativeSampler | None, loss: Loss, **training: Any
) -> dict[str, Any]:
    """The keys of a run file.

    Args:
        model: The model.
        split: The data. Where it was read from files or a built-in dataset, these are named, otherwise the folder
            of the run.
        sampler: The sampler; None for a baseline.
        loss: The loss.
        training: The other arguments of :func:`bayesneg.fit` that decide the result, by name; None is left out.

    Returns:
        Name → value, with the options of ``bayesneg train`` as names; the model, sampler and loss are tables with
        every setting, or text that begins with ``python:`` where no settings give the object.
    """
    origin: Mapping[str, Any] = split.origin or {"data": HERE}
    found = {**origin, "fingerprint": split.fingerprint, **training, "model": model_table(model)}
    if sampler is not None:
        found |= {"sampler": sampler_table(sampler, split), "loss": loss_table(loss)}
    return {
        key: list(value) if isinstance(value, tuple) else value for key, value in found.items() if value is not None
    }
