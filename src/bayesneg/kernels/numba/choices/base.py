"""How compiled code finds the choice of a rule: by the type of the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numba.extending import overload

from bayesneg.kernels.numba.compiling import INLINED
from bayesneg.kernels.reference.choices.base import Rule, load_execution


class Example(NamedTuple):
    """The example of the block that a choice is for."""

    b: int
    user: int
    positive: int
    start: int  # the user's observed items are indices[start:stop]
    stop: int
    refresh: bool  # whether a rule with a memory refreshes it after this choice


class CompiledChoice(NamedTuple):
    """How a rule is executed by compiled code."""

    function: Callable[..., int]
    sweeps: bool  # may score the whole catalogue for one example
    remembers: bool  # refreshes a memory once per user and batch


_CHOICES: dict[type, CompiledChoice] = {}


def chooses(rule: type, *, sweeps: bool = False, remembers: bool = False) -> Callable[[Any], Any]:
    """Register the decorated function as the compiled choice of a rule."""

    def register(function: Callable[..., int]) -> Callable[..., int]:
        _CHOICES[rule] = CompiledChoice(function, sweeps, remembers)
        return function

    return register


def compiled(rule: Rule) -> CompiledChoice:
    """The compiled execution of a rule."""
    return _compiled(type(rule))


def _compiled(rule: type) -> CompiledChoice:
    if rule not in _CHOICES:
        load_execution(rule, __package__)
    return _CHOICES[rule]


def choose(rule: Any, draws: Any, example: Any, indices: Any, factors: Any, x: Any) -> int:
    """The item that ``rule`` chooses, in compiled code; ``x`` is scratch memory for scores."""
    raise TypeError("choose is for compiled code; call reference.choose_batch from Python")


@overload(choose, jit_options=INLINED)
def _choose(rule, draws, example, indices, factors, x):  # type: ignore[no-untyped-def]
    return _compiled(rule.instance_class).function
