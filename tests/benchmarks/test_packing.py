"""A sweep on packed splits gives the numbers of the data itself."""

from __future__ import annotations

import sweeps

from bayesneg.experiments.datasets import Source
from bayesneg.reproduction.sweeps.sweep import sweep
from bayesneg.runs import ledger
from benchmarks.studies.packing import PackedSource, pack


def test_from_packed_arrays_the_numbers_are_the_same(tmp_path):
    cells = sweeps.read(tmp_path, epochs=1).cells(Source().fingerprint)[::4]
    (dataset,) = {cell.dataset for cell in cells}
    pack(Source(), [dataset], tmp_path / "data.npz")
    packed = PackedSource(arrays=tmp_path / "data.npz")
    assert packed.fingerprint(dataset, "best") == Source().fingerprint(dataset, "best")
    found = []
    for source in (Source(), packed):
        path = tmp_path / f"{len(found)}.jsonl"
        assert sweep(cells, path, source, progress=False) == []
        found.append({key: entry.record.final for key, entry in ledger.read(path).items()})
    assert len(found[0]) == len(cells) > 1
    assert found[0] == found[1]
