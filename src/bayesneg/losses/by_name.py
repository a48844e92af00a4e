"""The built-in losses by name, found from the classes themselves."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from bayesneg.interfaces.loss import BPR, Loss


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
