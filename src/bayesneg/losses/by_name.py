"""The built-in losses by name, found from the classes themselves."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from bayesneg.errors import InputError
from bayesneg.interfaces.loss import BPR, BPR_LOSS, Loss


@cache
def losses() -> dict[str, type[Loss]]:
    """List the built-in losses.

    Returns:
        Name → class, in alphabetical order.
    """
    package = import_module("bayesneg.losses")
    modules = [import_module(f"{package.__name__}.{module.name}") for module in iter_modules(package.__path__)]
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    return dict(sorted((kind.NAME, kind) for kind in (BPR, *kinds) if issubclass(kind, Loss) and kind.NAME))


def as_loss(loss: Loss | str | None) -> Loss:
    """Make a loss of what a user may give.

    Args:
        loss: A loss, which is returned as it is; the name of one, which stands for its default settings; None for BPR.

    Returns:
        The loss.

    >>> as_loss("softmax")
    Softmax(temperature=0.1, negative_weight=1.0, include_positive=False)
    """
    if isinstance(loss, Loss):
        return loss
    if loss is None:
        return BPR_LOSS
    if isinstance(loss, str) and loss in losses():
        return losses()[loss]()
    known = ", ".join(losses())
    raise InputError(
        f"loss must be one of {known}, or an object such as bn.losses.Softmax(temperature=0.1), got {loss!r}"
    )
