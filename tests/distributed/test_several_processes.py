"""One, two and four processes train the same: draws, choices, vectors, metrics, recommendations, checkpoints."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import bayesneg as bn
from bayesneg.distributed.sharding import order
from bayesneg.interfaces import Sampled
from bayesneg.kernels.reference.choices.aobpr import choose_at_rank
from bayesneg.seeding import stream
from bayesneg.training.state import TrainingState

pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

from launching import finished, torchrun
from scenarios import (
    BATCH,
    DIM,
    EPOCHS,
    KEYED,
    POOLS,
    RESUMED,
    SAMPLERS,
    STILL,
    SUMMARISED,
    TRAINED,
    Recorded,
    earlier,
    grown,
    mf,
    tied,
    world,
)

SIZES = (4, 2, 1)
WORKER = Path(__file__).with_name("worker.py")


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What four, two and one processes have written; each goes on from the checkpoint of those before."""
    folder = tmp_path_factory.mktemp("processes")
    bn.fit(mf(), earlier(), bn.RNS(), epochs=2, progress=False, out=folder / "earlier")
    for size in SIZES:
        out, err = finished(process := torchrun(size, WORKER, folder), 600)
        assert process.returncode == 0, out + err
    return folder


@pytest.fixture(scope="module")
def split():
    return world()


def choices_of(found: Path, size: int, name: str) -> np.ndarray:
    tables = [np.load(found / str(size) / f"choices {name} {rank}.npy") for rank in range(size)]
    width = max(table.shape[1] for table in tables)
    wide = [np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=-2) for table in tables]
    return np.concatenate(wide)  # users, and so positions, ascend over the processes


@pytest.mark.parametrize("name", [*SAMPLERS, *POOLS])
@pytest.mark.parametrize("size", [2, 4])
def test_any_number_of_processes_makes_the_same_choices_with_the_same_vectors(found, size, name):
    one, several = choices_of(found, 1, name), choices_of(found, size, name)
    if name in POOLS:  # scores of a pool are products of matrices, whose rounding depends on their shapes
        np.testing.assert_allclose(several, one, atol=1e-5)
    else:
        assert np.array_equal(several, one)


@pytest.mark.parametrize("size", SIZES)
def test_equal_scores_are_ranked_by_item_number_over_all_processes(found, size):
    data, w, h, ranks = tied()
    items = np.concatenate([np.load(found / str(size) / f"ties {rank}.npy") for rank in range(size)])
    expected = [choose_at_rank(h @ w[user], data.row(user), ranks[user]) for user in range(data.n_users)]
    assert items.tolist() == expected


class Seen:
    """The negatives in the order of training."""

    def __init__(self):
        self.negatives = []

    def see(self, sampled):
        assert isinstance(sampled, Sampled)
        self.negatives.append(sampled.negatives)

    def end_epoch(self, epoch, sampler, scorer):
        return {}


@pytest.mark.parametrize("name", [*SAMPLERS, *POOLS])
def test_they_are_the_choices_of_plain_training(found, split, name):
    model = mf(learning_rate=STILL, penalty="batch", regularization=0.0)
    sampler, several = {**SAMPLERS, **POOLS}[name], choices_of(found, 2, name)
    epochs, seen, recorded = EPOCHS.get(name, 1), Seen(), Recorded()
    single = not sampler.gives_weights
    bn.fit(model, split, sampler, epochs=epochs, select="last", progress=False, observer=seen if single else None)
    recorded.undo()
    if not single:
        np.testing.assert_allclose(several, recorded.table(), atol=0.1 if name in SUMMARISED else 1e-5)
        return
    drawn = np.concatenate(seen.negatives).reshape(epochs, -1)
    for epoch in range(epochs):
        pairs = stream(0, "order", epoch + 1).permutation(len(split.train))
        assert np.array_equal(several[np.argsort(several[:, 0])][pairs, 1 + 2 * epoch], drawn[epoch])


@pytest.fixture
def keyed(monkeypatch):
    """Plain training in the order of data that is too large for several processes to hold it."""
    monkeypatch.setattr(order, "MOST_HELD", 100)

    def computed(self: TrainingState) -> np.ndarray:
        found = order.order_of(stream(self.seed, "order", self.epoch), len(self.split.train))
        assert isinstance(found, order.KeyedOrder)
        return found.pairs(np.arange(len(found)))

    monkeypatch.setattr(TrainingState, "_order", computed)


@pytest.mark.parametrize("name", KEYED)
def test_a_keyed_order_gives_any_number_of_processes_the_choices_of_one(found, split, name, keyed):
    one = choices_of(found, 1, f"keyed {name}")
    for size in (2, 4):
        several = choices_of(found, size, f"keyed {name}")
        np.testing.assert_allclose(several, one, atol=1e-5 if name in POOLS else 0)
    assert not np.array_equal(one, choices_of(found, 1, name))  # it is another order than that of few pairs
    if name == "bns":  # plain training chooses a single one by compiled code, which Recorded does not see
        return
    recorded, model = Recorded(), mf(learning_rate=STILL, penalty="batch", regularization=0.0)
    bn.fit(model, split, KEYED[name], epochs=1, select="last", progress=False)
    recorded.undo()
    np.testing.assert_allclose(one, recorded.table(), atol=1e-5)


def test_a_keyed_order_trains_as_one_process_does_in_that_order(found, split, keyed):
    plain = bn.fit(mf(), split, bn.BNS(cdf="exact"), epochs=3, progress=False)
    for size in SIZES:
        run = bn.load_run(found / str(size) / "runs" / "keyed")
        np.testing.assert_allclose(run.scorer.users, plain.scorer.users, atol=1e-4)
        np.testing.assert_allclose(run.scorer.items, plain.scorer.items, atol=1e-4)


@pytest.mark.parametrize("size", SIZES)
def test_initial_embeddings_are_those_of_one_process(found, split, size):
    plain = mf().start(split.train, rng=stream(0, "init")).trained_embeddings()
    for table, whole in plain._asdict().items():
        parts = [np.load(found / str(size) / f"initial {rank}.npz")[table] for rank in range(size)]
        assert np.array_equal(np.concatenate(parts), whole)
        assert max(map(len, parts)) <= -(-len(whole) // size) + (10 if table == "users" else 0)  # balanced by pairs


@pytest.mark.parametrize("name", TRAINED)
def test_training_ends_with_the_metrics_and_vectors_of_one_process(found, split, name):
    model, sampler, loss = TRAINED[name]
    plain = bn.fit(model, split, sampler, loss=loss, epochs=3, progress=False)
    runs = {size: bn.load_run(found / str(size) / "runs" / name) for size in SIZES}
    for size, run in runs.items():
        results = [json.loads((found / str(size) / f"trained {name} {rank}.json").read_text()) for rank in range(size)]
        assert all(result["final"] == results[0]["final"] for result in results)  # every process returns the same
        if name not in SUMMARISED:
            assert dict(run.record.final) == pytest.approx(dict(plain.record.final), rel=1e-5)
            for line, other in zip(run.record.epochs, plain.record.epochs, strict=True):
                assert {**line, "seconds": 0} == pytest.approx({**other, "seconds": 0}, rel=1e-4)
            np.testing.assert_allclose(run.scorer.users, plain.scorer.users, atol=1e-4)
        np.testing.assert_allclose(run.scorer.items, runs[1].scorer.items, atol=1e-4)
        assert run.evaluate().mean == pytest.approx(
            dict(run.record.final), rel=1e-6
        )  # sharded and unsharded evaluation


@pytest.mark.parametrize("size", SIZES)
def test_each_process_has_the_recommendations_of_its_users(found, size):
    folder = found / str(size)
    parts = [pl.read_parquet(folder / f"recommended {rank} 0.parquet") for rank in range(size)]
    assert not any(set(one["user"]) & set(other["user"]) for one in parts for other in parts if one is not other)
    whole = bn.load_run(folder / "runs" / "bns").recommend_all(k=5)
    assert pl.concat(parts).drop("score").equals(whole.drop("score"))
    np.testing.assert_allclose(pl.concat(parts)["score"], whole["score"], rtol=1e-4)


@pytest.mark.parametrize("name", RESUMED)
def test_a_checkpoint_of_four_processes_is_resumed_by_two_and_by_one(found, split, name):
    model, sampler, select = RESUMED[name]
    plain = bn.fit(model, split, sampler, epochs=8, progress=False, select=select)
    run = bn.load_run(found / f"resumed {name} 1")
    assert run.record.reported_epoch == plain.record.reported_epoch
    np.testing.assert_allclose(run.scorer.users, plain.scorer.users, atol=1e-5)
    np.testing.assert_allclose(run.scorer.items, plain.scorer.items, atol=1e-5)
    for line, other in zip(run.record.epochs, plain.record.epochs, strict=True):
        assert {**line, "seconds": 0} == pytest.approx({**other, "seconds": 0}, rel=1e-5)
    assert [path.name for path in (found / f"resumed {name} 1").glob("checkpoint-*")][-1:] == ["checkpoint-000008"]


def test_they_start_from_an_earlier_run_as_one_process_does(found):
    before = bn.load_run(found / "earlier")
    plain = bn.fit(mf(), grown(), bn.RNS(), start=before, epochs=2, progress=False)
    for size in SIZES:
        run = bn.load_run(found / str(size) / "runs" / "started")
        assert run.record.spec["start"] == plain.record.spec["start"]
        assert dict(run.record.final) == pytest.approx(dict(plain.record.final), rel=1e-5)
        for one, other in zip(run.scorer.embeddings(), plain.scorer.embeddings(), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-4)
        assert all(map(np.array_equal, run.scorer.cold, plain.scorer.cold))
        assert np.array_equal(run.scorer.users[[3, 40]], before.scorer.users[[3, 40]])  # without a training pair now
        parts = pl.concat([pl.read_parquet(path) for path in sorted((found / str(size)).glob("started *.parquet"))])
        assert parts.drop("score").equals(run.recommend_all(k=3).drop("score"))


@pytest.mark.parametrize("size", [2, 4])
def test_the_bytes_sent_are_those_of_unique_rows_of_others(found, split, size):
    stored = [json.loads((found / str(size) / f"sent {rank}.json").read_text()) for rank in range(size)]
    chosen = choices_of(found, size, "rns")
    negatives = dict(zip(chosen[:, 0].astype(int).tolist(), chosen[:, 1].astype(int).tolist(), strict=True))
    pairs, train, expected = stream(0, "order", 1).permutation(len(split.train)), split.train, Counter()
    for first in range(0, len(pairs), BATCH):
        positions = pairs[first : first + BATCH]
        for part in stored:
            (low, high), (begin, end) = part["ranges"]["users"], part["ranges"]["items"]
            own = [p for p in positions.tolist() if low <= train.users[p] < high]
            needed = {int(train.indices[p]) for p in own} | {negatives[p] for p in own}
            expected["rows"] += sum(not begin <= item < end for item in needed)
    total = Counter()
    for part in stored:
        total.update(part["sent"])
    assert total["rows"] == total["gradients"] == 4 * DIM * expected["rows"]
    assert total["ids"] == 4 * expected["rows"]


@pytest.mark.parametrize("size", SIZES)
def test_a_process_keeps_its_part_of_what_samplers_remember(found, split, size):
    stored = [json.loads((found / str(size) / f"sent {rank}.json").read_text()) for rank in range(size)]
    lists = 0
    for part in stored:
        kept, (users, items) = part["kept"], (last - first for first, last in part["ranges"].values())
        assert (kept["srns items"], kept["srns users.0"], kept["srns past.0"]) == (
            [users, 4],
            [users, DIM],
            [items, DIM],
        )
        lists += kept["aobpr, factor orders"][0]
        assert kept["aobpr, factor orders"][0] <= -(-DIM // size)
    assert lists == DIM
    # in an epoch, and all processes together: 15 counts a round to each other process and back, 12 bytes a look-up
    total, n = Counter(), len(split.train)
    for part in stored:
        total.update({"counts": part["aobpr"].get("counts of ranks", 0)})
        total.update({"look-ups": part["aobpr, factor"].get("ranks", 0)})
    assert total["counts"] == pytest.approx(120 * n * (size - 1) * (8 + np.ceil(np.log2(150) / 4)), rel=0.1)
    assert total["look-ups"] == pytest.approx(8 * 12 * n * (size - 1) / size, rel=0.1)


def test_what_processes_cannot_share_is_refused_by_all(found):
    stored = [json.loads((found / "4" / f"refused {rank}.json").read_text()) for rank in range(4)]
    assert all(one == stored[0] for one in stored)
    for word in ("MF trains in one process", "custom sampler", "MixGCF mixes", "custom prior"):
        assert word in stored[0][word]
    assert "3 items, too few for 4 processes" in stored[0]["too few"]
    differing = {"seed": "seed is 1 on rank 3 and 0 on rank 0", "settings": "model dim is 4 on rank 3"}
    for word, said in {**differing, "patience": "patience is 2 on rank 3"}.items():
        assert said in stored[0][word]
    assert "the data with its split is" in stored[0]["data"]
    assert "on rank 3" in stored[0]["data"]
