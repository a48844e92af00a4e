"""A loop that is restored in the middle of an epoch goes on as if it had not stopped, while embeddings move."""

from __future__ import annotations

import io

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402
from bayesneg.models.torch.device import rows_on  # noqa: E402
from bayesneg.models.torch.summaries import TorchSummaries  # noqa: E402
from tests.torch_loops.test_sampler import DEVICES, TRAIN  # noqa: E402

PARTS = torch.from_numpy(np.random.default_rng(0).permutation(len(TRAIN))[:256]).split(64)
REFRESHED = {"cdf": "refreshed", "refresh": bn.samplers.Refresh(pool=10)}
SAMPLERS = {
    "one": bn.BNS(**REFRESHED),
    "several": bn.BNS(candidates=6, negatives=2, **REFRESHED),
    "weighted": bn.BNS(candidates=6, weighting="posterior", **REFRESHED),
    "shared": bn.BNS(candidates=30, shared=True, weighting="posterior", **REFRESHED),
    "after a warm start": bn.WarmStart("rns", bn.BNS(**REFRESHED), warmup=0),
    "aobpr": bn.AOBPR(rank="factor", scale=10.0),
    "srns": bn.SRNS(memory=5, fresh=5),
    "dens": bn.samplers.DENS(warmup=0, gate_learning_rate=0.5),
}


def vectors(step, device="cpu"):
    """Embeddings that move a little from step to step, and sometimes far."""
    generator = torch.Generator().manual_seed(0)
    tables = [torch.randn(n, 8, generator=generator) for n in (TRAIN.n_users, TRAIN.n_items)]
    moves = [torch.randn(table.shape, generator=generator) for table in tables]
    return [(table + 0.05 * step * move).to(device) for table, move in zip(tables, moves, strict=True)]


def sampled(sampler, step, device="cpu"):
    part = PARTS[step]
    users, items = (torch.tensor(array).long()[part].to(device) for array in (TRAIN.users, TRAIN.indices))
    return sampler(users, items, *vectors(step, device))


def copied(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SAMPLERS)
def test_a_loop_goes_on_in_the_middle_of_an_epoch_while_embeddings_move(name, device):
    whole = bnt.Sampler(SAMPLERS[name], TRAIN, seed=2)
    for step in range(2):
        sampled(whole, step, device)
    restored = bnt.Sampler(SAMPLERS[name], TRAIN)
    restored.load_state_dict(copied(whole.state_dict()))
    restored.load_state_dict(copied(restored.state_dict()))  # before the first call, too
    for step in range(2, 4):
        one, two = (sampled(sampler, step, device) for sampler in (whole, restored))
        torch.testing.assert_close(tuple(one[:2]), tuple(two[:2]), rtol=0, atol=0)


def test_summaries_are_saved_within_an_epoch_only():
    sampler = bnt.Sampler(SAMPLERS["one"], TRAIN)
    sampled(sampler, 0)
    assert "summaries.knots" in sampler.state_dict()["sampler"]
    sampler.end_epoch(*vectors(1))
    assert not sampler.state_dict()["sampler"]


def test_the_summaries_of_a_gpu_go_on_from_their_state():
    def refreshed(summaries, step):
        users, items = vectors(step)
        which = torch.tensor(TRAIN.users).long()[PARTS[step]]
        return summaries.refresh(which, (users, items), 1, moved=0.12, pool=10, over_all=False).clone()

    ranks, rows = np.array([1, 2, 5, 20, 60]), rows_on(TRAIN, torch.device("cpu"))
    whole, restored = (TorchSummaries(rows, ranks, 8, torch.device("cpu")) for _ in range(2))
    for step in range(2):
        refreshed(whole, step)
    restored.load_state_dict(copied(whole.state_dict()))
    for step in range(2, 4):
        torch.testing.assert_close(refreshed(whole, step), refreshed(restored, step), rtol=0, atol=0)


def test_damaged_summaries_of_a_gpu_are_refused():
    train = TRAIN
    ranks = np.arange(4)
    users, items = torch.randn(train.n_users, 3), torch.randn(train.n_items, 3)

    def made() -> TorchSummaries:
        return TorchSummaries(rows_on(train, torch.device("cpu")), ranks, 3, torch.device("cpu"))

    whole = made()
    whole.refresh(torch.arange(5), (users, items), 1, moved=0.1, pool=10, over_all=False)
    state = whole.state_dict()
    made().load_state_dict(state)
    for key, value in (
        ("items", state["items"] + 2**30),
        ("slots", state["slots"] + 2**30),
        ("knots", state["knots"] * np.nan),
        ("then", state["then"][:, :2]),
    ):
        with pytest.raises(bn.BayesnegError, match=key):
            made().load_state_dict({**state, key: value})
