"""How kernels are compiled.

Only entry points are cached on disk. Everything else is inlined into them: passing the arrays of a rule, its draws and
its factors to a function takes longer than an inner product.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import njit
from numba.core import cgutils, event, types
from numba.extending import intrinsic

PACKAGE = Path(__file__).parents[2]
COMPILED = (
    *PACKAGE.glob("kernels/reference/**/*.py"),
    *PACKAGE.glob("kernels/numba/**/*.py"),
    *PACKAGE.glob("evaluation/_*.py"),
)
# with the names: an index on disk refers to the rules by their modules
SOURCES = b"".join(str(path.relative_to(PACKAGE)).encode() + path.read_bytes() for path in sorted(COMPILED))
DIGEST = hashlib.sha256(SOURCES).hexdigest()[:12]
BYTE, WORD = ir.IntType(8).as_pointer(), ir.IntType(32)
PREFETCH = ir.FunctionType(ir.VoidType(), [BYTE, WORD, WORD, WORD])
READ, KEEP, DATA = (ir.Constant(WORD, value) for value in (0, 3, 1))
null: Any = cgutils.get_null_value
WORTH_A_THREAD = 1 << 17  # numbers per thread at least, since a thread takes long to start
INLINED: Any = {"nogil": True, "error_model": "numpy", "forceinline": True}

kernel = njit(**INLINED)
# sums may be reordered into vector lanes; infinities and NaN keep their meaning
reordering_kernel = njit(**INLINED, fastmath={"reassoc", "contract", "nsz"})


def entry_point(function: Callable[..., Any]) -> Any:
    """Compile a function and cache it on disk, under a name with the digest of all kernel files.

    numba's cache checks the file of the function alone, and cannot read an index that refers to a class since removed.
    """
    function.__qualname__ += f"_{DIGEST}"
    return njit(nogil=True, error_model="numpy", cache=True)(function)


class _OnceCompiling(event.Listener):
    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell, self.told = tell, False

    def on_start(self, event: event.Event) -> None:
        if not self.told:
            self.told = True
            self.tell()

    def on_end(self, event: event.Event) -> None:
        pass


@contextmanager
def telling(tell: Callable[[], None]) -> Iterator[None]:
    """Call ``tell`` when something is first compiled; what is found on disk is not compiled."""
    with event.install_listener("numba:compile", _OnceCompiling(tell)):
        yield


def _lent(typing_context: Any, value: Any) -> Any:
    """An argument of an entry point, an array or a tuple of arrays, without reference counting.

    numba counts a reference for each array it takes out of a tuple, with an atomic instruction that costs as much as an
    inner product. The caller holds the arrays while the entry point runs, so nothing can be freed.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return _uncounted(context, builder, signature.args[0], args[0])

    return value(value), codegen


lent: Any = intrinsic(_lent)


def _uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value=value)
        array.meminfo = null(array.meminfo.type)
        array.parent = null(array.parent.type)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        for position, part_kind in enumerate(kind.types):  # type: ignore[attr-defined]
            part = _uncounted(context, builder, part_kind, builder.extract_value(value, position))
            value = builder.insert_value(value, part, position)
    return value


def _prefetch(typing: Any, array: types.Array, place: types.Integer) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), BYTE)
        fetch = cgutils.get_or_insert_function(builder.module, PREFETCH, "llvm.prefetch.p0i8")  # type: ignore[no-untyped-call]
        builder.call(fetch, [address, READ, KEEP, DATA])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


# prefetch(array, place) asks for array[place], place at least 0, and does not wait for it
prefetch: Any = intrinsic(_prefetch)


def in_parts(fill: Callable[[int, int], None], n_examples: int, m: int, threads: int) -> None:
    """``fill(first, last)`` for parts of the examples, in threads where there is enough for each; the caller is one.

    Args:
        fill: The work on the examples from ``first`` to ``last``, which releases the interpreter.
        n_examples: The number of examples.
        m: The numbers of an example.
        threads: The number of threads at most.
    """
    threads = max(1, min(threads, n_examples * m // WORTH_A_THREAD))
    if threads == 1:
        fill(0, n_examples)
        return
    bounds = np.linspace(0, n_examples, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(max(1, threads - 1)) as pool:  # starts a thread for each part it is given, and no other
        others = [pool.submit(fill, first, last) for first, last in pairwise(bounds[1:])]
        fill(0, bounds[1])
        for other in others:
            other.result()
