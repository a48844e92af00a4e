"""A sampler or a prior of one's own, read from a Python file: ``file.py:Name``."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar

import numpy as np

from bayesneg.errors import BayesnegError, InputError
from bayesneg.interfaces import NegativeSampler, Prior

Made = TypeVar("Made")
PriorFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


def is_own(name: str) -> bool:
    return name.partition(":")[0].endswith(".py")


def own_class(name: str) -> type[NegativeSampler]:
    """The class that ``file.py:Class`` names."""
    path, _, class_name = name.partition(":")
    module = _module(Path(path))
    own = {key: kind for key, kind in vars(module).items() if _is_kind(kind, NegativeSampler, module)}
    if class_name not in own:
        raise InputError(
            f"{path} has no sampler {class_name!r}; it has: {', '.join(own) or 'none'} "
            "(a sampler is a subclass of bayesneg.NegativeSampler, written file.py:Class)"
        )
    return own[class_name]


def own_settings(name: str) -> list[str]:
    """The arguments of the class, which are its settings."""
    parameters = inspect.signature(own_class(name)).parameters.values()
    return [each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]


def own_sampler(name: str, settings: Mapping[str, str]) -> NegativeSampler:
    """The class made with the settings as keyword arguments, numbers read as numbers."""
    return _made(own_class(name), name, {key: _literal(value) for key, value in settings.items()})


def own_prior(name: str) -> Prior | PriorFunction:
    """What ``file.py:Name`` names: a subclass of Prior, made without arguments, or a function of users and items."""
    path, _, own_name = name.partition(":")
    module = _module(Path(path))
    own = {key: value for key, value in vars(module).items() if _is_kind(value, Prior, module)}
    functions = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__
    }
    if own_name in functions:
        return functions[own_name]
    if own_name not in own:
        raise InputError(
            f"{path} has no prior {own_name!r}; it has: {', '.join((*own, *functions)) or 'none'} (a prior is a "
            "subclass of bayesneg.Prior or a function of users and items, written prior=file.py:Name)"
        )
    return _made(own[own_name], name, {})


def _made(kind: Callable[..., Made], name: str, settings: Mapping[str, Any]) -> Made:
    """The class made with the settings; whatever it raises is a sentence about the user's file."""
    try:
        return kind(**settings)
    except BayesnegError:
        raise
    except Exception as error:
        what = "" if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: "  # those are sentences
        raise InputError(f"{name}: {what}{error}") from error


def _module(path: Path) -> ModuleType:
    """The file as a module, run once; what is wrong in it is named with its line."""
    name = f"own sampler {path.resolve()}"  # no name that an import could mean
    if name in sys.modules:
        return sys.modules[name]
    if not path.is_file():
        raise InputError(f"{path} does not exist; a sampler of your own is written file.py:Class")
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        found.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"{path} line {_line(path, error)}: {type(error).__name__}: {_said(error)}") from error
    return module


def _line(path: Path, error: Exception) -> int | str:
    """The last line of the file that was reached."""
    if isinstance(error, SyntaxError):
        return error.lineno or "?"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return own[-1] or "?" if own else "?"


def _said(error: Exception) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _is_kind(kind: Any, base: type, module: ModuleType) -> bool:
    own = isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__
    return own and not inspect.isabstract(kind)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
