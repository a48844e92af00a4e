"""Vector instructions that numba does not write by itself; they work on 64 scores, or 16, at a time.

Where the processor can permute bytes (AVX-512 VBMI), a table of 256 bytes is looked up in registers, which takes a
tenth of the time of loading each entry; elsewhere the same code loads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

LEVELS = 256
BLOCK = 64  # scores handled together; the widest vectors hold as many bytes
LANES = 16  # and as many numbers
UNSURE = 128  # what a table holds for a level whose scores must be compared one by one
ZERO = 1 << 23  # from here to twice as far the last bits of a float32 are those of the whole number

INT, LONG = ir.IntType(32), ir.IntType(64)
BYTES, FLOATS = ir.VectorType(ir.IntType(8), BLOCK), ir.VectorType(ir.FloatType(), LANES)
INTS = ir.VectorType(INT, LANES)


def _sort_out(
    typing: Any, x: types.Array, scale: types.Float, shift: types.Float, table: types.Array, unsure: types.Array
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scores, entries, kept = _arrays(context, builder, signature, arguments, 0, 3, 4)
        look_up = _permuted if "+avx512vbmi," in context.codegen().magic_tuple()[2] + "," else _loaded
        total, n_unsure = (_room(builder, LONG(0)) for _ in range(2))
        with _steps(builder, scores, BLOCK) as first:
            parts = [_load(builder, first, FLOATS, lane) for lane in range(0, BLOCK, LANES)]
            levels = _joined(builder, [_levels(builder, part, *arguments[1:3]) for part in parts])
            found = look_up(builder, entries.data, levels)
            is_unsure = builder.icmp_signed("<", found, BYTES(None))  # the highest bit is that of UNSURE
            sure = builder.select(is_unsure, BYTES(None), found)
            _add_to(builder, total, _sum(builder, sure, "v64i32"))
            for place, part in enumerate(parts):
                mask = builder.shuffle_vector(is_unsure, is_unsure, _numbers(place * LANES, LANES))
                _append(builder, part, mask, kept.data, n_unsure)
        return context.make_tuple(builder, signature.return_type, [builder.load(total), builder.load(n_unsure)])

    answer = types.UniTuple(types.int64, 2)  # type: ignore[no-untyped-call]
    return answer(x, types.float32, types.float32, table, unsure), generate


# sort_out(x, scale, shift, table, unsure): the sum of table[counting.level_of(score, scale, shift)] over the scores of
# ``x``, whole blocks, and how many are UNSURE instead; these are put into ``unsure``, which has LANES places more
sort_out: Any = intrinsic(_sort_out)


def _compare_all(typing: Any, x: types.Array, tests: types.Array) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scores, thresholds = _arrays(context, builder, signature, arguments, 0, 1)
        total = _room(builder, LONG(0))
        with _steps(builder, scores, BLOCK) as first:
            parts = [_load(builder, first, FLOATS, lane) for lane in range(0, BLOCK, LANES)]
            counts = [_room(builder, INTS(None)) for _ in parts]
            for count in counts:
                builder.store(INTS(None), count)
            with _steps(builder, thresholds, 1) as place:
                test = _everywhere(builder, builder.load(place))
                for part, count in zip(parts, counts, strict=True):
                    for order in ("<", "<="):
                        _add_to(builder, count, builder.zext(builder.fcmp_ordered(order, part, test), INTS))
            for count in counts:
                _add_to(builder, total, _sum(builder, builder.load(count), "v16i32"))
        return builder.load(total)

    return types.int64(x, tests), generate


# compare_all(x, tests): how many pairs have x < test, plus how many have x <= test; ``x`` are whole blocks
compare_all: Any = intrinsic(_compare_all)


def _list_reaching(typing: Any, x: types.Array, cut: types.Float, places: types.Array) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        scores, listed = _arrays(context, builder, signature, arguments, 0, 2)
        n_listed = _room(builder, LONG(0))
        numbers = _room(builder, _numbers(0, LANES))
        cut = _everywhere(builder, arguments[1])
        with _steps(builder, scores, LANES) as first:
            reaching = builder.fcmp_ordered(">=", _load(builder, first, FLOATS), cut)
            _append(builder, builder.load(numbers), reaching, listed.data, n_listed)
            _add_to(builder, numbers, ir.Constant(INTS, [LANES] * LANES))
        return builder.load(n_listed)

    return types.int64(x, types.float32, places), generate


# list_reaching(x, cut, places): put the places of all scores of at least ``cut`` into ``places`` (int32), which has
# LANES more than are needed, and say how many there are; ``x`` are whole lanes
list_reaching: Any = intrinsic(_list_reaching)


# ------------------------------------------------------------------------------------------------- the instructions


def _arrays(context: Any, builder: Any, signature: Any, arguments: Any, *places: int) -> list[Any]:
    return [context.make_array(signature.args[place])(context, builder, arguments[place]) for place in places]


@contextmanager
def _steps(builder: Any, array: Any, step: int) -> Iterator[Any]:
    """A loop over a contiguous array; gives the address of each ``step``-th place."""
    count = builder.udiv(builder.extract_value(array.shape, 0), LONG(step))
    with cgutils.for_range(builder, count) as loop:
        yield builder.gep(array.data, [builder.mul(loop.index, LONG(step))])


def _room(builder: Any, value: Any) -> Any:
    return cgutils.alloca_once_value(builder, value)  # type: ignore[no-untyped-call]


def _call(builder: Any, name: str, answer: Any, *arguments: Any) -> Any:
    kind = ir.FunctionType(answer, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)  # type: ignore[no-untyped-call]


def _numbers(first: int, count: int) -> Any:
    return ir.Constant(ir.VectorType(INT, count), list(range(first, first + count)))


def _everywhere(builder: Any, value: Any) -> Any:
    one = builder.insert_element(FLOATS(ir.Undefined), value, INT(0))
    return builder.shuffle_vector(one, FLOATS(ir.Undefined), INTS(None))


def _load(builder: Any, pointer: Any, kind: Any, place: int = 0) -> Any:
    load = builder.load(builder.bitcast(builder.gep(pointer, [LONG(place)]), kind.as_pointer()))
    load.align = 1
    return load


def _add_to(builder: Any, place: Any, value: Any) -> None:
    builder.store(builder.add(builder.load(place), value), place)


def _levels(builder: Any, scores: Any, scale: Any, shift: Any) -> Any:
    """The levels of sixteen scores as bytes: the last of each float32."""
    lowest, highest = (ir.Constant(FLOATS, [float(level)] * LANES) for level in (ZERO, ZERO + LEVELS - 1))
    level = builder.fadd(builder.fmul(scores, _everywhere(builder, scale)), _everywhere(builder, shift))
    level = builder.select(builder.fcmp_ordered(">", level, lowest), level, lowest)
    level = builder.select(builder.fcmp_ordered("<", level, highest), level, highest)
    return builder.trunc(builder.bitcast(level, INTS), ir.VectorType(ir.IntType(8), LANES))


def _joined(builder: Any, quarters: Sequence[Any]) -> Any:
    halves = [builder.shuffle_vector(*quarters[place : place + 2], _numbers(0, 2 * LANES)) for place in (0, 2)]
    return builder.shuffle_vector(*halves, _numbers(0, BLOCK))


def _permuted(builder: Any, table: Any, levels: Any) -> Any:
    quarters = [_load(builder, table, BYTES, first) for first in range(0, LEVELS, BLOCK)]
    name = "llvm.x86.avx512.vpermi2var.qi.512"
    low, high = (_call(builder, name, BYTES, a, levels, b) for a, b in (quarters[:2], quarters[2:]))
    return builder.select(builder.icmp_signed("<", levels, BYTES(None)), high, low)


def _loaded(builder: Any, table: Any, levels: Any) -> Any:
    found = BYTES(ir.Undefined)
    for lane in range(BLOCK):
        place = builder.zext(builder.extract_element(levels, INT(lane)), LONG)
        found = builder.insert_element(found, builder.load(builder.gep(table, [place])), INT(lane))
    return found


def _sum(builder: Any, numbers: Any, kind: str) -> Any:
    wide = builder.zext(numbers, ir.VectorType(INT, BLOCK)) if numbers.type == BYTES else numbers
    return builder.zext(_call(builder, f"llvm.vector.reduce.add.{kind}", INT, wide), LONG)


def _append(builder: Any, numbers: Any, mask: Any, kept: Any, n_kept: Any) -> None:
    """Store the numbers of the mask side by side; what else is stored behind them will be overwritten."""
    kind = "v16f32" if numbers.type == FLOATS else "v16i32"
    name, nothing = f"llvm.experimental.vector.compress.{kind}", numbers.type(ir.Undefined)
    together = _call(builder, name, numbers.type, numbers, mask, nothing)
    target = builder.bitcast(builder.gep(kept, [builder.load(n_kept)]), numbers.type.as_pointer())
    builder.store(together, target).align = 4
    count = builder.ctpop(builder.bitcast(mask, ir.IntType(LANES)))
    _add_to(builder, n_kept, builder.zext(count, LONG))
