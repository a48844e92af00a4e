"""The loss in the place of MultipleNegativesRankingLoss, and the judge of mined negatives."""

from __future__ import annotations

import numpy as np
import pytest

from bayesneg.errors import InputError
from bayesneg.integrations.word_overlap import WordOverlap
from benchmarks.integrations.text_world import encoder_for, retrieval, text_world, train
from tests.integrations.needs import needs

pytestmark = needs("torch", "sentence_transformers", "datasets", "accelerate")


def overlap(world):
    return WordOverlap(world.anchors, world.positives, false_share=world.false_share)


@pytest.mark.parametrize("hard_negatives", [0, 2])
def test_without_a_prior_it_is_the_loss_that_it_replaces(hard_negatives):
    import torch
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from bayesneg.integrations.sentence_transformers import PosteriorRankingLoss

    model = encoder_for(text_world(3, 1))
    generator = torch.Generator().manual_seed(0)
    vectors = [torch.randn(6, 4, generator=generator).requires_grad_() for _ in range(2 + hard_negatives)]
    losses = [MultipleNegativesRankingLoss(model), PosteriorRankingLoss(model, prior=0.0)]
    found = [loss.compute_loss_from_embeddings(vectors, None) for loss in losses]
    torch.testing.assert_close(found[0], found[1])
    gradients = [torch.autograd.grad(value, vectors) for value in found]
    torch.testing.assert_close(gradients[0], gradients[1])
    with_prior = PosteriorRankingLoss(model, prior=0.1).compute_loss_from_embeddings(vectors, None)
    assert with_prior < found[0]


def test_false_negatives_lose_their_weight_and_retrieval_gains():
    from bayesneg.integrations.sentence_transformers import PosteriorRankingLoss
    from benchmarks.integrations.text_retrieval import weights

    gains = []
    for seed in range(3):
        world = text_world(40, 1, seed=seed)
        found = {}
        for name, prior in (("none", 0.0), ("overlap", overlap(world))):
            loss = PosteriorRankingLoss(encoder_for(world, seed=seed), prior=prior)
            train(loss, [world.anchors, world.positives], epochs=10, seed=seed)
            found[name] = retrieval(loss.model, world)["r_precision"]
        gains.append(found["overlap"] - found["none"])
        omega = weights(loss, world, seed)
        assert omega["omega_false"] < 0.5
        assert omega["omega_true"] > 0.95
    assert np.mean(gains) > 0.02, gains


def test_a_prior_for_rows_needs_their_numbers():
    import torch

    from bayesneg.integrations.sentence_transformers import PosteriorRankingLoss

    world = text_world(3, 1)
    loss = PosteriorRankingLoss(encoder_for(world), prior=overlap(world))
    vectors = [torch.randn(4, 4), torch.randn(4, 4)]
    for labels in (None, torch.tensor([])):
        with pytest.raises(InputError, match="needs the row number of each pair; add it"):
            loss.compute_loss_from_embeddings(vectors, labels)
    assert loss.get_config_dict()["prior"] == "WordOverlap"
    with pytest.raises(InputError, match="prior must be a number of at least 0 and at most 1, got 15"):
        PosteriorRankingLoss(encoder_for(world), prior=15)


def test_most_false_negatives_that_were_mined_are_dropped():
    from datasets import Dataset
    from sentence_transformers.util import mine_hard_negatives

    from bayesneg.integrations.sentence_transformers import PosteriorRankingLoss, keep_true_negatives

    world = text_world(40, 1, seed=0)
    loss = PosteriorRankingLoss(encoder_for(world), prior=0.0)
    train(loss, [world.anchors, world.positives], epochs=5, seed=0)
    pairs = Dataset.from_dict({"anchor": world.anchors, "positive": world.positives})
    mined = mine_hard_negatives(pairs, loss.model, num_negatives=5, verbose=False)
    kept = keep_true_negatives(mined, pairs, loss.model, prior=overlap(world))
    facts = dict(zip(world.positives, world.facts.tolist(), strict=True))

    def same(triplets):
        return np.array([facts[a] == facts[b] for a, b in zip(triplets["positive"], triplets["negative"], strict=True)])

    assert same(mined).mean() > 0.4
    assert same(kept).mean() < 0.1
    assert (~same(kept)).sum() > 0.8 * (~same(mined)).sum()
    assert min(kept["unbias"]) >= 0.5
    assert len(keep_true_negatives(mined, pairs, loss.model, prior=0.0)) == len(mined)
    with pytest.raises(InputError, match="pairs must hold every text that was mined"):
        keep_true_negatives(mined, pairs.select(range(5)), loss.model, prior=0.1)
