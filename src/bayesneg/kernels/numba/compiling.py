"""How kernels are compiled.

Only entry points are kept on disk, and numba's cache looks at one file only; an entry point therefore closes over
``DIGEST``, so that a change in any kernel file compiles it anew. All else is inlined into them: a call hands over every
array of a rule, its draws and its factors, which takes longer than a dot product.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

PACKAGE = Path(__file__).parents[2]
COMPILED = (
    *PACKAGE.glob("kernels/reference/*.py"),
    *PACKAGE.glob("kernels/numba/*.py"),
    *PACKAGE.glob("evaluation/_*.py"),
)
SOURCES = b"".join(path.read_bytes() for path in sorted(COMPILED))
DIGEST = int.from_bytes(hashlib.sha256(SOURCES).digest()[:6], "big")
null: Any = cgutils.get_null_value
INLINED: Any = {"nogil": True, "error_model": "numpy", "forceinline": True}

kernel = njit(**INLINED)
entry_point = njit(nogil=True, error_model="numpy", cache=True)
# sums may be reordered into vector lanes; infinities and NaN keep their meaning
reordering_kernel = njit(**INLINED, fastmath={"reassoc", "contract", "nsz"})


def _lent(typing_context: Any, value: Any) -> Any:
    """An entry point's own argument, an array or a tuple of arrays, whose references are not counted from here on.

    numba counts a reference for each array it takes out of a tuple, with an atomic instruction that costs as much as a
    dot product. The caller holds the arrays while the entry point runs, so nothing can be freed.
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
        for place, own in enumerate(kind.types):  # type: ignore[attr-defined]
            part = _uncounted(context, builder, own, builder.extract_value(value, place))
            value = builder.insert_value(value, part, place)
    return value
