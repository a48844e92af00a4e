"""The torch kernels pick what the reference picks, on the same scores, priors and draws; also on a GPU."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn
from bayesneg.kernels.reference.choices.base import choose_batch
from bayesneg.seeding import stream
from rule_samplers import SAMPLERS
from worlds import batch_of, exact_scorer, random_interactions

torch = pytest.importorskip("torch", reason="torch is not installed (the extra 'torch')")


from bayesneg.kernels.reference.draws import first_of_its_user  # noqa: E402
from bayesneg.kernels.torch.choices.base import (  # noqa: E402
    DrawTensors,
    TensorBatch,
    torch_choice,
)
from bayesneg.kernels.torch.score_lists import TrainingRows  # noqa: E402
from bayesneg.models.torch.batch_scores import DirectScores, EmbeddingScores  # noqa: E402

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def rows_on(train, device):
    indptr, items = (torch.from_numpy(a.copy()).to(device) for a in (train.indptr, train.indices))
    return TrainingRows(indptr, items, train.n_items)


def chosen_by_torch(rule, drawn, batch, device, *, chunk=10**6, scores_only=False):
    """What the torch kernels pick; what the rule remembers is written back, as a step does at an epoch's end."""
    rows, vectors = rows_on(batch.train, device), batch.scorer.embeddings()
    users, items = (torch.from_numpy(v.copy()).to(device) for v in vectors)

    def tensor(array):
        array = array.astype(np.int64) if np.issubdtype(array.dtype, np.integer) else array
        return torch.from_numpy(np.ascontiguousarray(array)).to(device)

    which = tensor(batch.users)
    tensors = TensorBatch(
        which, tensor(batch.positives), rows.indptr[which], rows.counts(which),
        tensor(first_of_its_user(batch.users)).long(),
        DrawTensors(*(tensor(array) for array in drawn)), int(batch.train.counts[batch.users].sum()) + 3,
        torch_choice(rule).highest_rank(rule, drawn, batch.train.n_items), chunk,
    )  # fmt: skip
    scores = DirectScores(users[which] @ items.T) if scores_only else EmbeddingScores(users, items, which)
    choice = torch_choice(rule)(rule, torch.device(device))
    chosen = choice.choose(tensors, rows, scores).cpu().numpy()
    choice.store()
    return chosen


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("scale", [1.0, 1e4, 0.0], ids=["plain", "huge", "all tied"])
@pytest.mark.parametrize("most", [0.3, 1.0], ids=["sparse", "dense"])
def test_torch_kernels_pick_what_the_reference_picks(name, scale, most, device):
    for seed in range(2):
        rng = np.random.default_rng([seed, 7])
        train = random_interactions(rng, 12, 30, most=most)
        scorer = exact_scorer(rng, 12, 30, scale=scale)
        one, two = (SAMPLERS[name].prepare(train, rng=stream(seed, "memory")) for _ in range(2))
        for epoch in (1, 2, 3):
            batch = batch_of(train, scorer, stream(seed, "draws", epoch), size=60, epoch=epoch)
            drawn = one.draws(batch)
            expected = choose_batch(one.rule(batch), drawn, batch)
            chunk = 10**6 if epoch == 1 else 7  # items at a time
            np.testing.assert_array_equal(chosen_by_torch(two.rule(batch), drawn, batch, device, chunk=chunk), expected)
            one.end_epoch(epoch, scorer)
            two.end_epoch(epoch, scorer)


def test_models_that_give_scores_only_choose_alike():
    rng = np.random.default_rng(0)
    train, scorer = random_interactions(rng, 12, 30, most=0.5), exact_scorer(rng, 12, 30)
    sampler = bn.BNS().prepare(train, rng=rng)
    batch = batch_of(train, scorer, stream(0, "draws"), size=50)
    drawn = sampler.draws(batch)
    one, two = (chosen_by_torch(sampler.rule(batch), drawn, batch, "cpu", scores_only=only) for only in (False, True))
    np.testing.assert_array_equal(one, two)
