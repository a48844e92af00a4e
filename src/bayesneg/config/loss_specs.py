"""Losses as text: ``softmax:temperature=0.1``, a custom one ``file.py:Class`` or ``file.py:function``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

from bayesneg.config.build import reach, typed
from bayesneg.config.custom import custom_loss, is_custom, sentences_about
from bayesneg.config.registry import name_of
from bayesneg.config.settings import Setting, Settings, assignments, changed, check_known
from bayesneg.config.specs import labelled, pieces
from bayesneg.config.writing import value_text
from bayesneg.errors import InputError
from bayesneg.interfaces import BPR_LOSS, Loss
from bayesneg.losses import TorchLoss, losses


@dataclass(frozen=True)
class LossSpec:
    """A loss by name, or an object under a label, with settings on top of it."""

    name: str
    settings: Settings
    base: Loss | None = None

    @classmethod
    def parse(cls, text: str) -> LossSpec:
        """``softmax:temperature=0.1`` → LossSpec("softmax", {"temperature": "0.1"}).

        >>> LossSpec.parse("Softmax:temperature=0.2").build()
        Softmax(temperature=0.2, negative_weight=1.0, include_positive=False)
        """
        name, *rest = pieces(text)
        if is_custom(name):
            return cls(name if ":" in name else f"{name}:", assignments(rest, name))
        check_known(name.lower(), [*losses(), "file.py:Class", "file.py:function"], "loss")
        return cls(name.lower(), assignments(rest, f"loss {name}"))

    @property
    def kind(self) -> type[Loss]:
        """The class."""
        if self.base is not None:
            return type(self.base)
        found = custom_loss(self.name) if is_custom(self.name) else losses()[self.name]
        return found if isinstance(found, type) else TorchLoss

    def checked(self) -> dict[str, Any]:
        """The settings with their types."""
        return typed(self.kind, self.settings, self.name if is_custom(self.name) else f"loss {self.name}", self.base)

    def build(self) -> Loss:
        """The loss."""
        settings = self.checked()
        if self.base is not None:
            return replace(self.base, **settings) if settings else self.base  # type: ignore[type-var]
        if not is_custom(self.name):
            return self.kind(**settings)
        found = custom_loss(self.name)
        with sentences_about(self.name):
            return found(**settings) if isinstance(found, type) else TorchLoss(found)

    def known(self) -> dict[str, Setting]:
        """The settings it has."""
        return reach(self.kind, {}).settings

    @property
    def is_custom(self) -> bool:
        """Whether it is none of the built-in losses."""
        return name_of(self.kind, losses()) is None

    @property
    def label(self) -> str:
        """As tables show it, ``Softmax (temperature=0.1)``."""
        own = self.name.partition(":")[2] if is_custom(self.name) else self.kind.__name__
        return labelled(self.name if self.base else own, self.settings)

    @property
    def fixed(self) -> set[str]:
        """What was given with the loss."""
        return {*self.settings, *({} if self.base is None else changed(self.base))}

    def with_settings(self, settings: Settings) -> LossSpec:
        return LossSpec(self.name, {**settings, **self.settings}, self.base)

    def text(self) -> str | None:
        """As :meth:`parse` takes it; None where no text gives the object."""
        if self.base is None:
            return ":".join((self.name, *(f"{key}={value}" for key, value in self.settings.items())))
        return loss_text(self.build())


def parse_losses(text: str) -> list[LossSpec]:
    """``bpr, softmax:temperature=0.1`` → two specs.

    >>> [spec.label for spec in parse_losses("bpr,softmax:temperature=0.1")]
    ['BPR', 'Softmax (temperature=0.1)']
    """
    specs = [LossSpec.parse(part) for part in re.split(",", text) if part.strip()]
    if not specs:
        raise InputError("no loss is named; give for example bpr,softmax:temperature=0.1")
    return specs


def as_loss(loss: Loss | str | None) -> Loss:
    """Make a loss of what a user may give.

    Args:
        loss: A loss, which is returned as it is; text as on the command line; None for BPR.

    Returns:
        The loss.

    >>> as_loss("softmax:temperature=0.2")
    Softmax(temperature=0.2, negative_weight=1.0, include_positive=False)
    """
    if loss is None:
        return BPR_LOSS
    if isinstance(loss, str):
        specs = parse_losses(loss)
        if len(specs) > 1:
            raise InputError(f"loss must be one loss, got {len(specs)} in {loss!r}; bn.compare takes several")
        return specs[0].build()
    check_loss(loss)
    return loss


def check_loss(loss: object) -> None:
    """An error that says how a loss is given, unless it is one."""
    if isinstance(loss, Loss):
        return
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise InputError(f"loss is the class {loss.__name__}; give an object, {loss.__name__}()")
    if callable(loss):
        raise InputError("loss is a function; wrap a torch function of the scores: bn.losses.TorchLoss(function)")
    raise InputError(
        f"loss must be one of {', '.join(losses())}, or an object such as bn.losses.Softmax(temperature=0.1), "
        f"got {loss!r}"
    )


def loss_text(loss: Loss) -> str | None:
    """The loss as the command line takes it; None for a custom one.

    >>> from bayesneg.losses import Softmax
    >>> loss_text(Softmax(temperature=0.08, negative_weight=1.22))
    'softmax:temperature=0.08:negative_weight=1.22'
    """
    name = name_of(type(loss), losses())
    if name is None:
        return None
    return ":".join((name, *(f"{key}={value_text(value)}" for key, value in changed(loss).items())))
