"""The negative sampler for knowledge graphs."""

from __future__ import annotations

import pytest

from bayesneg.errors import InputError
from benchmarks.integrations.graph_world import graph_world
from tests.integrations.needs import needs

pytestmark = needs("torch", "pykeen")


def prepared(**settings):
    import torch
    from pykeen.models import DistMult
    from pykeen.triples import CoreTriplesFactory

    from bayesneg.integrations.pykeen import BayesianNegativeSampler

    world = graph_world(seed=1)
    factory = CoreTriplesFactory(torch.from_numpy(world.train).long(), world.n_entities, world.n_relations)
    model = DistMult(triples_factory=factory, embedding_dim=8, random_seed=0)
    sizes = {"num_entities": world.n_entities, "num_relations": world.n_relations}
    return model, factory, BayesianNegativeSampler(
        mapped_triples=factory.mapped_triples, model=model, **sizes, **settings
    )  # fmt: skip


@pytest.mark.parametrize("prior", ["relation", "popularity", 0.05])
def test_a_corruption_has_another_head_or_tail_and_is_no_known_triple(prior):
    import torch

    torch.manual_seed(0)
    _, factory, sampler = prepared(prior=prior, num_negs_per_pos=3)
    positives = factory.mapped_triples[:200]
    negatives = sampler.corrupt_batch(positives)
    assert negatives.shape == (200, 3, 3)
    changed = negatives != positives[:, None, :]
    assert (changed.sum(dim=2) == 1).all()
    assert not changed[:, :, 1].any()
    assert 0.3 < changed[:, 0, 0].float().mean() < 0.7
    known = {tuple(row) for row in factory.mapped_triples.tolist()}
    assert not known & {tuple(row) for row in negatives.view(-1, 3).tolist()}
    assert all(len({tuple(row) for row in each}) == 3 for each in negatives.tolist())


def test_without_a_prior_it_takes_the_hardest_candidate():
    import torch

    torch.manual_seed(0)
    model, factory, sampler = prepared(prior=0.0, candidates=80)
    positives = factory.mapped_triples[:100]
    negatives = sampler.corrupt_batch(positives)[:, 0]
    scores, observed = model.score_t(positives[:, :2]), sampler._observed(positives, 2)
    hardest = scores.masked_fill(observed, -torch.inf).argmax(dim=1)
    tails = negatives[:, 2] != positives[:, 2]
    assert torch.equal(negatives[tails, 2], hardest[tails])


def test_the_prior_of_a_relation_is_the_share_of_its_triples():
    _, factory, sampler = prepared()
    triples = factory.mapped_triples
    of_relation = triples[triples[:, 1] == 1]
    for side in (0, 2):
        shares = sampler.get_buffer(f"shares_{side}")[1]
        entity = int(of_relation[0, side])
        assert float(shares[entity]) == pytest.approx(float((of_relation[:, side] == entity).float().mean()))
        assert float(shares.sum()) == pytest.approx(1.0)


def test_it_trains_in_the_loop_of_pykeen_and_leaves_the_mode_of_the_model():
    import torch
    from pykeen.training import SLCWATrainingLoop

    model, factory, sampler = prepared()
    loop = SLCWATrainingLoop(
        model=model, triples_factory=factory, optimizer=torch.optim.Adam(model.parameters(), lr=0.02),
        negative_sampler=type(sampler), negative_sampler_kwargs={"model": model},
    )  # fmt: skip
    losses = loop.train(factory, num_epochs=5, batch_size=64, use_tqdm=False)
    assert losses[-1] < losses[0]
    model.train()
    sampler.corrupt_batch(factory.mapped_triples[:4])
    assert model.training
    assert not list(sampler.parameters())


def test_bad_input_is_answered_with_a_sentence():
    with pytest.raises(InputError, match="prior must be one of relation, popularity, got 'rank'"):
        prepared(prior="rank")
    with pytest.raises(InputError, match="candidates must be a whole number of at least 3, got 2"):
        prepared(candidates=2, num_negs_per_pos=3)
