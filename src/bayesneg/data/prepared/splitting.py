"""Splits of prepared data in bounded memory, stored beside it and equal to those in memory.

- ``user`` and ``last`` hold out interactions of one user after another: a range of users at a time.
- ``time`` finds the least time that is held out by counting, 16 bits at a time; of equal times, item and user likewise.
- ``interaction`` shuffles all positions as it does in memory, in a mapped file of 4 bytes per interaction (8 beyond
  2³² interactions). Its accesses are random: where that file does not fit into memory, it takes long.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np

from bayesneg.data.blocks import released, row_blocks, user_blocks
from bayesneg.data.interactions import Interactions
from bayesneg.data.prepared.files import GrowingArray, mapped, only_writer, read_json, scratch_array, write_json
from bayesneg.data.prepared.folder import as_data_error, check_files, check_rows, with_fingerprint
from bayesneg.data.shares import Shares, is_number, n_held_out, valid_or_none
from bayesneg.data.splits import RULES, TIMED, check_rule, check_sizes, held_positions
from bayesneg.errors import DataError, naming
from bayesneg.integrity.digests import check_seal, facts_of, sealed
from bayesneg.seeding import stream

FACTS: Final = "split.json"
DIGIT: Final = 16  # bits


def split_prepared(
    data: Interactions, held_out: Mapping[str, float], *, by: str, seed: int, how: str
) -> dict[str, Interactions]:
    """The parts by name, mapped: train, test and, where its amount is in ``held_out``, validation.

    They are written once, into the folder of the data; a split that was interrupted is made anew.
    """
    assert data.prepared is not None
    if by not in RULES:
        check_rule(data, by)
    folder = data.prepared / "splits" / _name(held_out, by, seed)
    if not (folder / FACTS).is_file():
        check_rule(data, by)
        with naming(folder):
            folder.parent.mkdir(exist_ok=True)
        with only_writer(folder.parent):
            if not (folder / FACTS).is_file():
                _write(data, held_out, by, seed, how, folder)
    facts, way_out = read_json(folder / FACTS), f"delete {folder}, which is made again"
    with as_data_error():
        check_seal(facts, folder / FACTS, way_out=way_out)
    check_files(folder, facts, way_out=way_out)
    if facts["data"] != data.fingerprint:
        raise DataError(f"{folder}: this split is of other data than {data.prepared}; delete the folder of the split")
    parts = {name: _part(data, folder / name, mark) for name, mark in facts["fingerprints"].items()}
    for name, part in parts.items():
        check_rows(folder / name, part, way_out=way_out)
    return parts


def _name(held_out: Mapping[str, float], by: str, seed: int) -> str:
    amounts = [f"{name}-{float(value)!r}" if is_number(value) else "invalid" for name, value in held_out.items()]
    return "-".join([str(by), *amounts, *([] if by in TIMED else [f"seed-{seed}"])])


def _write(data: Interactions, held_out: Mapping[str, float], by: str, seed: int, how: str, folder: Path) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # of a process that was killed; mkdir fails where a link is left
    with naming(folder):
        partial.mkdir()
    try:
        _write_parts(data, held_out, by, seed, partial)
        marks = {name: _part(data, partial / name, None).fingerprint for name in ("train", *held_out)}
        written = sorted(str(path.relative_to(partial)) for path in partial.glob("*/*.npy"))
        facts = {"how": how, "data": data.fingerprint, "fingerprints": marks, "files": facts_of(partial, written)}
        write_json(partial / FACTS, sealed(facts))
        with naming(folder):
            partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def _write_parts(data: Interactions, held_out: Mapping[str, float], by: str, seed: int, folder: Path) -> None:
    """Hold the parts out one after the other; what is left in the end is the training part."""
    last, whole = folder, data
    test, validation = (valid_or_none(held_out.get(name, 0), by) for name in ("test", "validation"))
    asked = Shares(test, validation, by)
    for number, (name, amount) in enumerate(held_out.items()):
        rng = stream(seed, "split", *([number] if number else []))  # as in memory, the test part has no counter
        before, last = last, folder / f"rest-{number}"
        with _mask(data, amount, by, rng, name, last.with_suffix(".scratch")) as is_held:
            n_held = sum(int(np.count_nonzero(is_held[part])) for part in released(row_blocks(len(data)), is_held))
            check_sizes(n_held, len(data), name, amount, whole=whole, asked=asked)
            _select(data, is_held, True, folder / name)
            _select(data, is_held, False, last)
        data = _part(data, last, None)
        if before != folder:
            shutil.rmtree(before)
    with naming(folder):
        last.rename(folder / "train")


@contextmanager
def _mask(
    data: Interactions, amount: float, by: str, rng: np.random.Generator, argument: str, scratch: Path
) -> Iterator[np.ndarray]:
    """True (n,) for the interactions that are held out."""
    with scratch_array(scratch, "bool", len(data)) as is_held:
        if by in ("interaction", "time"):
            n_held = int(n_held_out(np.array([len(data)]), amount, by, argument=argument)[0])
            if by == "time":
                _mark_newest(data, n_held, is_held)
            else:
                _mark_shuffled(n_held, is_held, rng, scratch.with_suffix(".order"))
        else:
            bare = replace(data, user_columns={})
            for start, stop in released(user_blocks(data.indptr), data.indices, data.times, is_held):
                part = bare.user_range(start, stop)
                held = held_positions(part, amount, by, rng, argument=argument)
                is_held[held + data.indptr[start]] = True
        yield is_held


def _mark_shuffled(n_held: int, is_held: np.ndarray, rng: np.random.Generator, scratch: Path) -> None:
    n = len(is_held)
    with scratch_array(scratch, "uint32" if n < 2**32 else "int64", n) as order:
        for part in released(row_blocks(n), order):
            order[part] = np.arange(part.start, part.stop)
        rng.shuffle(order)  # what rng.permutation(n) does, to the same numbers in fewer bytes
        for part in row_blocks(n_held):
            is_held[order[n - n_held :][part]] = True


def _mark_newest(data: Interactions, n_held: int, is_held: np.ndarray) -> None:
    times = data.times
    assert times is not None
    if n_held == 0:
        return

    def each() -> Iterator[np.ndarray]:
        return (_ascending(times[part]) for part in released(row_blocks(len(data)), times))

    oldest, n_tied = _least_of_highest(each, n_held)

    def tied() -> Iterator[np.ndarray]:
        return (pairs[at == oldest] for _, at, pairs in _with_pairs(data))

    least, _ = _least_of_highest(tied, n_tied)
    for rows, at, pairs in released(_with_pairs(data), is_held):
        is_held[rows] = (at > oldest) | ((at == oldest) & (pairs >= least))


def _with_pairs(data: Interactions) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """For ranges of users: their rows, the times in order, and item and user as one number."""
    assert data.times is not None
    for start, stop in released(user_blocks(data.indptr), data.indices, data.times):
        rows = slice(int(data.indptr[start]), int(data.indptr[stop]))
        users = np.repeat(np.arange(start, stop, dtype=np.uint64), np.diff(data.indptr[start : stop + 1]))
        pairs = (data.indices[rows].astype(np.uint64) << np.uint64(32)) | users
        yield rows, _ascending(data.times[rows]), pairs


def _ascending(times: np.ndarray) -> np.ndarray:
    """Unsigned integers in the same order."""
    sign = np.uint64(1 << 63)
    if times.dtype.kind == "i":
        return times.astype(np.int64).view(np.uint64) ^ sign
    bits = (times + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    return np.where(bits & sign, ~bits, bits | sign)


def _least_of_highest(blocks: Callable[[], Iterator[np.ndarray]], n: int) -> tuple[int, int]:
    """The n-th highest of all values, and how many of the n highest equal it; one pass over the blocks per digit."""
    prefix = 0
    for shift in range(64 - DIGIT, -1, -DIGIT):
        counts = np.zeros(1 << DIGIT, dtype=np.int64)
        for block in blocks():
            values = block if shift == 64 - DIGIT else block[block >> np.uint64(shift + DIGIT) == prefix]
            digits = (values >> np.uint64(shift)) & np.uint64((1 << DIGIT) - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=1 << DIGIT)
        at_least = np.cumsum(counts[::-1])[::-1]
        digit = int(np.flatnonzero(at_least >= n)[-1])
        n -= int(at_least[digit] - counts[digit])
        prefix = (prefix << DIGIT) | digit
    return prefix, n


def _select(data: Interactions, mask: np.ndarray, wanted: bool, folder: Path) -> None:
    """Write the interactions whose mask has this value."""
    folder.mkdir()
    with (
        GrowingArray(folder / "indptr.npy", "<i8") as indptr,
        GrowingArray(folder / "indices.npy", "<i4") as indices,
    ):
        indptr.append(np.zeros(1))
        for start, stop in released(user_blocks(data.indptr), data.indices, mask):
            rows = slice(int(data.indptr[start]), int(data.indptr[stop]))
            kept = mask[rows] == wanted
            before = np.concatenate(([0], np.cumsum(kept)))
            indptr.append(indices.length + before[data.indptr[start + 1 : stop + 1] - rows.start])
            indices.append(data.indices[rows][kept])
    if data.times is not None:
        with GrowingArray(folder / "times.npy", data.times.dtype.str) as times:
            for rows in released(row_blocks(len(data)), data.times, mask):
                times.append(data.times[rows][mask[rows] == wanted])


def _part(data: Interactions, folder: Path, fingerprint: str | None) -> Interactions:
    part = replace(
        data,
        indptr=mapped(folder / "indptr.npy"),
        indices=mapped(folder / "indices.npy"),
        times=None if data.times is None else mapped(folder / "times.npy"),
        origin=None,
        prepared=folder,
    )
    return part if fingerprint is None else with_fingerprint(part, fingerprint)
