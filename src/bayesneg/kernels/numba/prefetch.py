"""Asking for memory before it is needed."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

BYTE, WORD = ir.IntType(8).as_pointer(), ir.IntType(32)
SIGNATURE = ir.FunctionType(ir.VoidType(), [BYTE, WORD, WORD, WORD])
READ, KEEP, DATA = (ir.Constant(WORD, value) for value in (0, 3, 1))


def _prefetch(typing: Any, array: types.Array, place: types.Integer) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        address = builder.bitcast(builder.gep(data, [arguments[1]]), BYTE)
        fetch = cgutils.get_or_insert_function(builder.module, SIGNATURE, "llvm.prefetch.p0i8")  # type: ignore[no-untyped-call]
        builder.call(fetch, [address, READ, KEEP, DATA])
        return context.get_dummy_value()

    return types.void(array, types.int64), generate


# prefetch(array, place) asks for array[place], place at least 0, and does not wait for it
prefetch: Any = intrinsic(_prefetch)
