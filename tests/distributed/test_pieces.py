"""The pieces of training in several processes, each by itself."""

from __future__ import annotations

import sys
from contextlib import contextmanager

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.numba import draws
from bayesneg.kernels.numba.distributed.counts import counts_at_most, scores_of_rows, tiled_rows

pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")

import torch

from bayesneg.distributed.checkpoints import epochs_in, load, newest, save, usable
from bayesneg.distributed.choices.factor_ranks import FactorRanks
from bayesneg.distributed.counting import Hidden, _counted_by_torch
from bayesneg.distributed.group import ProcessGroup
from bayesneg.distributed.sharding.owners import Owners, window
from bayesneg.kernels.reference.choices.aobpr import FACTOR_TRIES, AtFactorRank, choose_at_factor_rank
from bayesneg.kernels.torch.choices.aobpr import TorchAtFactorRank
from bayesneg.kernels.torch.choices.base import DrawTensors
from bayesneg.models.torch.adam import Adam
from bayesneg.models.torch.device import rows_on
from bayesneg.samplers.static import PopularityTables


@pytest.fixture(scope="module")
def data():
    return bn.synthetic(80, 300, seed=1)


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_part_of_a_batch_is_drawn_as_the_whole(data, size):
    rng = np.random.default_rng(0)
    users, tables = data.users[rng.permutation(len(data))[:200]], PopularityTables.of(data, 0.75)
    whole, sizes = draws.uniform_candidates(users, data.observed, 5, 7)
    weighted, _ = draws.weighted_items(users, data.observed, *tables, 9)
    owners = Owners.balanced(data.indptr, size)
    for rank in range(size):
        first, last = owners.range_of(rank)
        places, rows = np.flatnonzero((users >= first) & (users < last)), window(data, first, last)
        found, few = draws.uniform_candidates(users[places], rows.observed, 5, 7, places=places)
        assert np.array_equal(found, whole[places])
        assert np.array_equal(few, sizes[places])
        own = tables._replace(row_mass=tables.row_mass[int(data.indptr[first]) :])
        assert np.array_equal(
            draws.weighted_items(users[places], rows.observed, *own, 9, places=places)[0], weighted[places]
        )


@pytest.mark.parametrize("d", [3, 16, 40])
def test_parts_of_a_catalogue_are_counted_as_the_whole(d):
    rng = np.random.default_rng(d)
    w, h = (rng.normal(size=(n, d)).astype(np.float32) for n in (20, 300))
    items = rng.integers(0, 300, (20, 6))
    x = scores_of_rows(w, h, items)
    np.testing.assert_allclose(x, np.einsum("bd,bmd->bm", w, h[items]), rtol=1e-4, atol=1e-5)
    hidden = [np.sort(rng.choice(300, rng.integers(0, 40), replace=False)) for _ in range(20)]
    exact = scores_of_rows(w, h, np.tile(np.arange(300), (20, 1)))
    for b, rows in enumerate(hidden):
        exact[b, rows] = np.nan
    expected = (exact[:, None, :] <= x[:, :, None]).sum(axis=2)
    total, by_torch = np.zeros_like(expected), np.zeros_like(expected)
    for low, high in ((0, 100), (100, 130), (130, 300)):
        inside = [rows[(rows >= low) & (rows < high)] - low for rows in hidden]
        starts, flat = np.concatenate(([0], np.cumsum([len(rows) for rows in inside]))), np.concatenate(inside)
        total += counts_at_most(w, tiled_rows(h[low:high]), high - low, starts, flat, x)
        given = (torch.from_numpy(part) for part in (w, x, items - low, h[low:high]))
        by_torch += _counted_by_torch(*given, Hidden(starts, flat)).numpy()
    assert np.array_equal(total, expected)
    counts_itself = np.array([[items[b, k] not in hidden[b] for k in range(6)] for b in range(20)])
    # by matrix products a score may differ by rounding from that of another shape; an item counts itself all the same
    assert (np.abs(by_torch - expected)[counts_itself] <= 1).all()
    assert (by_torch == expected)[counts_itself].mean() > 0.95


def test_the_lists_of_factors_are_read_as_in_the_specification(alone):
    """Users with few unobserved items: most draws are rejected, and what is left is found by reading on."""
    rng, n_items, d = np.random.default_rng(4), 200, 6
    observed = rng.random((30, n_items)) < np.linspace(0.3, 0.99, 30)[:, None]
    observed[np.arange(30), np.arange(30)] = False
    data = bn.Interactions.from_pairs(*np.nonzero(observed))
    n_items = data.n_items
    w, h = (rng.normal(size=(n, d)).astype(np.float32) for n in (data.n_users, n_items))
    orders, clock = np.zeros((d, n_items), dtype=np.int32), np.zeros(1, dtype=np.int64)
    rule = AtFactorRank(3.0, orders, np.zeros(d), clock, 1000)
    choice, uniforms = TorchAtFactorRank(rule, torch.device("cpu")), rng.random((data.n_users, 2 * FACTOR_TRIES))
    lists = FactorRanks(alone, Owners.evenly(n_items, 1), Owners.evenly(d, 1))
    lists.sort(choice, torch.from_numpy(h))
    assert np.array_equal(orders, np.argsort(-h.T, axis=1, kind="stable"))
    np.testing.assert_allclose(rule.spreads, h.astype(np.float64).std(axis=0), rtol=1e-12)
    sizes, empty = torch.ones(data.n_users).long(), torch.empty(data.n_users, 0)
    draws = DrawTensors(empty.long(), sizes, empty.double(), torch.from_numpy(uniforms))
    who, rows = torch.arange(data.n_users), rows_on(data, torch.device("cpu"))
    found = lists.choose(choice, torch.from_numpy(w), draws, who, rows)
    expected = [choose_at_factor_rank(w[u], rule, data.row(u), uniforms[u]) for u in range(data.n_users)]
    assert found.tolist() == expected


def test_users_are_divided_by_their_pairs(data):
    for size in (2, 3, 7):
        bounds = Owners.balanced(data.indptr, size).bounds
        pairs = np.diff(data.indptr[bounds])
        assert (np.diff(bounds) >= 1).all()
        assert pairs.max() <= len(data) / size + data.counts.max()


def test_adam_on_touched_rows_leaves_the_others_as_they_are():
    rng, rows = np.random.default_rng(0), torch.tensor([1, 4])
    first = torch.from_numpy(rng.normal(size=(6, 3)).astype(np.float32))
    settings = {"lr": 0.1, "weight_decay": 0.01, "fused": True}
    dense, sparse, plain = (torch.nn.Parameter(first.clone()) for _ in range(3))
    optimizers = Adam([dense], rows="touched", **settings), Adam([sparse], rows="touched", **settings)
    usual = torch.optim.Adam([plain], **settings)
    for _ in range(4):
        gradient = torch.zeros_like(first)
        gradient[rows] = torch.from_numpy(rng.normal(size=(2, 3)).astype(np.float32))
        dense.grad, plain.grad = gradient.clone(), gradient.clone()
        optimizers[0].step()
        optimizers[1].step_rows(sparse, rows, gradient[rows])
        usual.step()
    others = [0, 2, 3, 5]
    assert torch.equal(dense[others], first[others])
    assert torch.equal(dense, sparse)
    torch.testing.assert_close(dense[rows], plain[rows])  # touched in every step, they move as usual
    assert not torch.equal(plain[others], first[others])


@pytest.fixture
def alone(tmp_path):
    """A group of one process."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    yield ProcessGroup(torch.device("cpu"))
    torch.distributed.destroy_process_group()


def test_a_checkpoint_without_a_file_is_damaged_and_the_metrics_stay(alone, data, tmp_path):
    def train(**more):
        model = bn.TorchMF(dim=4, device="cpu")
        return bn.fit(model, bn.split(data, seed=0), bn.RNS(), epochs=2, out=tmp_path / "run", progress=False, **more)

    train()
    (shard,) = newest(tmp_path / "run").glob("*.safetensors")
    shard.unlink()
    with pytest.raises(bn.BayesnegError, match=r"safetensors: no such file, but the folder needs it"):
        train(resume=True)
    assert (tmp_path / "run" / "metrics.json").exists()


def test_a_checkpoint_is_read_in_other_parts_and_a_damaged_one_is_named(alone, tmp_path):
    arrays = {"model.users.rows": np.arange(12.0).reshape(6, 2), "lines": np.zeros(3, dtype=np.uint8)}
    save(tmp_path, 7, arrays, {"model.users": (10, 16)}, alone)
    checkpoint = newest(tmp_path)
    assert (checkpoint.name, epochs_in(checkpoint)) == ("checkpoint-000007", 7)
    assert load(checkpoint, {"model.users": (12, 12)})["model.users.rows"].shape == (0, 2)
    part = load(checkpoint, {"model.users": (12, 15)})
    assert np.array_equal(part["model.users.rows"], arrays["model.users.rows"][2:5])
    assert np.array_equal(part["lines"], arrays["lines"])
    with pytest.raises(bn.BayesnegError, match=r"damaged \(2 rows of model\.users\.rows are missing\)"):
        load(checkpoint, {"model.users": (8, 12)})
    for path in checkpoint.iterdir():
        path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(bn.BayesnegError, match="the checkpoint is damaged"):
        load(checkpoint, {"model.users": (12, 15)})


def test_the_checkpoint_before_is_used_where_a_file_of_the_newest_is_damaged(alone, tmp_path):
    for epoch in (1, 2, 3):
        save(tmp_path, epoch, {"lines": np.arange(epoch)}, {}, alone)
    assert [path.name for path in sorted(tmp_path.glob("checkpoint-*"))] == ["checkpoint-000002", "checkpoint-000003"]
    assert usable(tmp_path, alone).name == "checkpoint-000003"
    for name in ("checkpoint-000003", "checkpoint-000002"):
        (path,) = (tmp_path / name).glob("*.safetensors")
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        if name == "checkpoint-000003":
            assert usable(tmp_path, alone).name == "checkpoint-000002"
    with pytest.raises(bn.BayesnegError, match=r"safetensors: the file is damaged \(its sha256"):
        usable(tmp_path, alone)


def test_a_checkpoint_that_cannot_be_written_is_named(alone, tmp_path):
    (tmp_path / ".checkpoint-000001.part").write_text("in the way")
    with pytest.raises(bn.BayesnegError, match=r"checkpoint-000001 could not be written"):
        save(tmp_path, 1, {"lines": np.zeros(3)}, {}, alone)


def test_a_fit_that_diverges_leaves_nothing(alone, tmp_path):
    split = bn.split(bn.synthetic(60, 150, seed=3), seed=0)
    model = bn.TorchMF(dim=4, device="cpu", learning_rate=1e38)
    with pytest.raises(bn.BayesnegError, match="diverged"):
        bn.fit(model, split, bn.RNS(), epochs=3, progress=False, out=tmp_path / "run", checkpoint_every=1)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def full(monkeypatch):
    """The disk has room for so many bytes of a file in the block."""
    resource = pytest.importorskip("resource", reason="limits the size of files by a system call")

    @contextmanager
    def limited(n_bytes):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)

    return limited


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ("bayesneg.runs.folder.write_split", "users.parquet"),
        ("bayesneg.runs.folder.append_line", "epochs.jsonl"),
        ("bayesneg.training.processes.save", "checkpoint-000002"),
        ("bayesneg.training.processes.write_weights", "weights.safetensors"),
        ("bayesneg.runs.folder.write_json", "metrics.json"),
    ],
)
def test_wherever_a_disk_fills_its_file_is_named_and_the_run_can_go_on(
    alone, tmp_path, monkeypatch, full, where, named
):
    split, out = bn.split(bn.synthetic(60, 150, seed=3), seed=0), tmp_path / "run"
    given = {"epochs": 4, "progress": False, "select": "last", "checkpoint_every": 2}
    model = bn.TorchMF(dim=4, device="cpu", batch_size=64)
    whole = bn.fit(model, split, bn.RNS(), **given)
    folder, name = where.rsplit(".", 1)
    write = getattr(sys.modules[folder], name)

    def writes(*parts):
        if name == "write_json" and parts[0].name != named:
            return write(*parts)
        with full(30):
            return write(*parts)

    with monkeypatch.context() as filled:
        filled.setattr(where, writes)
        with pytest.raises(bn.BayesnegError, match=rf"{named}.*(File too large|could not be written).*(free|room)"):
            bn.fit(model, split, bn.RNS(), **given, out=out)
    assert not [*tmp_path.rglob("*.part")]
    assert out.exists() == (name != "write_split")  # a run that never began leaves nothing
    resumed = bn.fit(model, split, bn.RNS(), **given, out=out, resume=True)
    assert resumed.record.final == whole.record.final
    assert bn.load_run(out).record.final == whole.record.final
