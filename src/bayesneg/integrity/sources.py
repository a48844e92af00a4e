"""Digests of custom code, which no setting shows: a run, audit or search is resumed with the code it began with."""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import textwrap
from types import FunctionType
from typing import Final

OF_MODULE: Final = "__source_sha256__"  # the digest of a whole file, in the module that was made of it
DIGITS: Final = 16


def digest_of_source(source: str | bytes) -> str:
    """A short sha256 of source code.

    Args:
        source: The text, or the bytes of its file.

    Returns:
        16 hexadecimal digits.
    """
    return hashlib.sha256(source.encode() if isinstance(source, str) else source).hexdigest()[:DIGITS]


def code_digest(value: type | FunctionType) -> str | None:
    """The digest of the code of a custom class or function.

    Of one from a file that the user named, it is that of the whole file. Otherwise it is that of the definition, and of
    those base classes that the same package has; modules that the code imports are not looked at.

    Args:
        value: A class or function.

    Returns:
        16 hexadecimal digits; None for what this library defines, and where no source is known, as in a bare prompt.
    """
    package = value.__module__.partition(".")[0]
    if package in ("bayesneg", "builtins"):
        return None
    home = sys.modules.get(value.__module__)
    if home is not None and OF_MODULE in vars(home):
        return str(vars(home)[OF_MODULE])
    bases = value.__mro__ if isinstance(value, type) else (value,)
    parts = [_definition(each) for each in bases if each.__module__.partition(".")[0] == package]
    found = [part for part in parts if part is not None]
    return digest_of_source("\0".join(found)) if found else None


def _definition(value: type | FunctionType) -> str | None:
    """The lines of a definition; of a lambda the expression alone, since its line may hold anything else."""
    try:
        text = textwrap.dedent(inspect.getsource(value))
    except (OSError, TypeError, SyntaxError):
        return None
    if value.__name__ != "<lambda>":
        return text
    try:
        found = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Lambda)]
    except SyntaxError:
        return None
    return ast.unparse(found[0]) if len(found) == 1 else None
