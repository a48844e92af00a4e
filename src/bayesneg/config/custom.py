"""A custom sampler, prior or loss, read from a Python file: ``file.py:Name``."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

import numpy as np

from bayesneg.errors import BayesnegError, InputError
from bayesneg.integrity.sources import OF_MODULE, digest_of_source
from bayesneg.interfaces import Loss, NegativeSampler, Prior

OF_FILE: Final = "custom file "  # before the path in the name of a module: no name that an import could mean
PriorFunction = Callable[[np.ndarray, np.ndarray], np.ndarray]


def is_custom(name: str) -> bool:
    return name.partition(":")[0].endswith(".py")


def named_code(texts: Iterable[Any]) -> str | None:
    """The first of some names or settings that names a Python file, which would be run; None where none does."""
    parts = (part for text in texts if isinstance(text, str) for part in text.split("+"))
    return next((part for part in parts if is_custom(part)), None)


def name_in_file(value: type | FunctionType) -> str | None:
    """``file.py:Name`` for a class or function that was read from a file; None for any other."""
    home = value.__module__
    return f"{home.removeprefix(OF_FILE)}:{value.__qualname__}" if home.startswith(OF_FILE) else None


def custom_class(name: str) -> type[NegativeSampler]:
    """The sampler class that ``file.py:Class`` names."""
    path, _, class_name = name.partition(":")
    module = _module(Path(path))
    found = {key: kind for key, kind in vars(module).items() if _is_kind(kind, NegativeSampler, module)}
    if class_name not in found:
        raise InputError(
            f"{path} has no sampler {class_name!r}; it has: {', '.join(found) or 'none'} "
            "(a sampler is a subclass of bayesneg.NegativeSampler, written file.py:Class)"
        )
    return found[class_name]


def custom_prior(name: str) -> type[Prior] | PriorFunction:
    """What ``file.py:Name`` names: a subclass of Prior, or a function of users and items."""
    path, _, prior_name = name.partition(":")
    found = _kinds_and_functions(Path(path), Prior)
    if prior_name not in found:
        raise InputError(
            f"{path} has no prior {prior_name!r}; it has: {', '.join(found) or 'none'} (a prior is a subclass of "
            "bayesneg.Prior or a function of users and items, written prior=file.py:Name)"
        )
    return found[prior_name]


def custom_loss(name: str) -> type[Loss] | Callable[[Any], Any]:
    """What ``file.py:Name`` names: a subclass of Loss, or a torch function of scores."""
    path, _, loss_name = name.partition(":")
    found = _kinds_and_functions(Path(path), Loss)
    if loss_name not in found:
        raise InputError(
            f"{path} has no loss {loss_name!r}; it has: {', '.join(found) or 'none'} (a loss is a subclass of "
            "bayesneg.losses.Loss or a torch function of the scores, written file.py:Name)"
        )
    return found[loss_name]


@contextmanager
def sentences_about(name: str) -> Iterator[None]:
    """Whatever the constructor of a custom class raises becomes one sentence with the name of the class."""
    try:
        yield
    except BayesnegError:
        raise
    except Exception as error:
        what = "" if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: "  # those are sentences
        raise InputError(f"{name}: {what}{error}") from error


def _kinds_and_functions(path: Path, base: type) -> dict[str, Any]:
    """The subclasses of ``base`` and the functions that a file defines."""
    module = _module(path)
    return {
        key: value
        for key, value in vars(module).items()
        if _is_kind(value, base, module) or (isinstance(value, FunctionType) and value.__module__ == module.__name__)
    }


def _module(path: Path) -> ModuleType:
    """The file as a module, run once, and again where it was changed; what is wrong in it is named with its line."""
    name = f"{OF_FILE}{path.resolve()}"
    if not path.is_file():
        raise InputError(f"{path} does not exist; a custom sampler or loss is written file.py:Class")
    source = path.read_bytes()
    if name in sys.modules and vars(sys.modules[name])[OF_MODULE] == digest_of_source(source):
        return sys.modules[name]
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    module = importlib.util.module_from_spec(found)
    vars(module)[OF_MODULE] = digest_of_source(source)  # of what is run here, and no compiled file beside it
    sys.modules[name] = module  # dataclasses look their module up
    try:
        exec(compile(source, path, "exec"), vars(module))
    except Exception as error:
        del sys.modules[name]
        raise InputError(f"{path} line {_line(path, error)}: {type(error).__name__}: {_said(error)}") from error
    return module


def _line(path: Path, error: Exception) -> int | str:
    """The last line of the file that was reached."""
    if isinstance(error, SyntaxError):
        return error.lineno or "?"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if Path(frame.filename).resolve() == path.resolve()]
    return lines[-1] or "?" if lines else "?"


def _said(error: Exception) -> str:
    return error.msg if isinstance(error, SyntaxError) else str(error)


def _is_kind(kind: Any, base: type, module: ModuleType) -> bool:
    is_defined_here = isinstance(kind, type) and issubclass(kind, base) and kind.__module__ == module.__name__
    return is_defined_here and not inspect.isabstract(kind)
