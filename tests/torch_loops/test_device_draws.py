"""Draws that a device makes itself: those of the samplers' own draws in law, and the same negatives count."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402
from bayesneg.kernels.reference import plans  # noqa: E402
from bayesneg.kernels.reference.draws import first_of_its_user  # noqa: E402
from bayesneg.kernels.torch import draws  # noqa: E402
from bayesneg.models.torch.device import rows_on  # noqa: E402
from bayesneg.models.torch.negatives import held_out_pairs  # noqa: E402
from bayesneg.torch import sampler as sampler_module  # noqa: E402
from tests.torch_loops.test_sampler import SAMPLERS, TRAIN, loop  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture
def on_device(monkeypatch):
    """Every Sampler draws as on a GPU."""
    monkeypatch.setattr(sampler_module, "draws_itself", lambda device: True)


def pairs_of(n=None):
    return (torch.from_numpy(part[:n].astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_draws_on_a_device(name, on_device):
    one, two = (bnt.Sampler(SAMPLERS[name], TRAIN, seed=3) for _ in range(2))
    (seen, vectors), (_, again) = loop(one), loop(two)
    assert one._on_device
    torch.testing.assert_close(vectors, again, rtol=0, atol=0)
    for users, negatives in seen:
        weights = (negatives.items >= 0).float() if negatives.weights is None else negatives.weights
        wide = np.broadcast_to(negatives.items.numpy(), weights.shape)
        counted = weights.numpy() > 0
        assert counted.any()
        assert not TRAIN.contains(np.broadcast_to(users[:, None], wide.shape)[counted], wide[counted]).any()


def counted(name, calls=60):
    """How often each item is a negative of the pairs of all users."""
    sampler = bnt.Sampler(SAMPLERS[name], TRAIN, seed=5)
    generator = torch.Generator().manual_seed(0)
    U, V = torch.randn(TRAIN.n_users, 4, generator=generator), torch.randn(TRAIN.n_items, 4, generator=generator)
    users, items = pairs_of()
    found = torch.cat([sampler(users, items, U, V).items for _ in range(calls)])
    return np.bincount(found[found >= 0].numpy(), minlength=TRAIN.n_items)


@pytest.mark.parametrize("name", ["rns", "pns", "pns, several", "dns", "aobpr", "bns, learned"])
def test_the_negatives_of_device_draws_have_the_law_of_those_of_the_host(name, monkeypatch):
    host = counted(name)
    monkeypatch.setattr(sampler_module, "draws_itself", lambda device: True)
    device = counted(name)
    assert host.sum() == device.sum()
    distance = ((host - device) ** 2 / np.maximum(host + device, 1)).sum()  # χ² of two samples
    assert distance < TRAIN.n_items + 5 * np.sqrt(2 * TRAIN.n_items)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("where", ["host", "device"])
def test_held_out_pairs_have_no_negative(shared, where, monkeypatch):
    monkeypatch.setattr(sampler_module, "draws_itself", lambda device: where == "device")
    settings = {"candidates": 30, "weighting": "posterior", "shared": shared, "cdf": "exact"}
    sampler = bnt.Sampler(bn.BNS(likelihood="empirical", **settings), TRAIN)
    users, items = pairs_of()
    U, V = torch.randn(80, 4), torch.randn(60, 4)
    weights = sampler(users, items, U, V).weights
    whole = bn.Batch(TRAIN.users, TRAIN.indices, np.arange(len(TRAIN)), 1, TRAIN, None, np.random.default_rng(0))
    held_out = held_out_pairs(sampler._sampler, whole)
    assert held_out.any()
    np.testing.assert_array_equal((weights.sum(dim=1) == 0).numpy(), held_out)


def test_a_warm_start_changes_its_draws_between_epochs(on_device):
    sampler = bnt.Sampler(bn.WarmStart(bn.RNS(), bn.BNS(candidates=6, weighting="posterior"), warmup=1), TRAIN)
    seen, _ = loop(sampler)
    n_batches = len(seen) // 2
    assert {negatives.items.shape[1] for _, negatives in seen[:n_batches]} == {1}
    assert {negatives.items.shape[1] for _, negatives in seen[n_batches:]} == {6}


def test_inclusion_and_first_examples_are_those_of_the_reference():
    p = np.array([0.0, 0.1, 0.9, 1.0])
    found = draws.pool_log_q(torch.from_numpy(p), 7, 20)
    np.testing.assert_allclose(found.numpy(), plans.pool_log_q(p, 7, 20), rtol=1e-12)
    users = np.array([3, 1, 3, 0, 1, 2])
    found = draws.first_of_its_user(torch.from_numpy(users), 4)
    np.testing.assert_array_equal(found.numpy() > 0, first_of_its_user(users))


def test_popular_items_are_drawn_exactly_for_a_user_who_has_most_of_them():
    """A draw by rejection would give up: one item in ten thousand, by weight, is left."""
    weights = torch.tensor([1e4, 1e4, 1.0, 3.0, 1e4])
    data = bn.Interactions.from_numbers(
        np.array([0, 0, 0, 1, 2]), np.array([0, 1, 4, 0, 3]), user_ids=np.arange(4), item_ids=np.arange(5)
    )
    keys = draws.WeightedKeys(draws.RowKeys(rows_on(data, CPU)), weights)
    users = torch.zeros(8_000, dtype=torch.int64)
    items, sizes = keys.drawn(users, 2, torch.Generator().manual_seed(0))
    assert (sizes == 2).all()
    assert set(items.flatten().tolist()) == {2, 3}
    assert abs((items == 3).double().mean().item() - 0.75) < 0.02
    nobody, _ = keys.drawn(torch.full((100,), 3), 1, torch.Generator().manual_seed(0))
    assert set(nobody.flatten().tolist()) <= {0, 1, 4}


def test_a_custom_draw_is_made_on_the_host(on_device):
    class Last:
        def draw(self, users, size, *, train, rng):
            free = [np.setdiff1d(np.arange(train.n_items), train.row(user))[-size:] for user in users]
            return np.stack(free).astype(np.int32), np.full(len(users), size, dtype=np.int32)

    sampler = bnt.Sampler(bn.RNS(draw=Last()), TRAIN)
    users, items = pairs_of(5)
    found = sampler(users, items, torch.randn(80, 4), torch.randn(60, 4)).items[:, 0]
    for user, item in zip(users.tolist(), found.tolist(), strict=True):
        assert item == np.setdiff1d(np.arange(TRAIN.n_items), TRAIN.row(user))[-1]
