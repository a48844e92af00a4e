"""What custom samplers may return for the torch models and for MF, and what is refused with a sentence."""

from __future__ import annotations

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

SPLIT = bn.split(bn.synthetic(60, 40, seed=0), test=0.2, seed=0)
TORCH = bn.TorchMF(dim=4, batch_size=64, device="cpu")
MF = bn.MF(dim=4, sampling_batch=64)


class Answers(bn.NegativeSampler):
    """Returns what a function makes of the batch."""

    def __init__(self, make, weighted=True):
        self.make, self.weighted = make, weighted

    @property
    def gives_weights(self):
        return self.weighted

    def sample(self, batch):
        return self.make(batch)


def unobserved(batch, k=2):
    """The first unobserved items (B, k) of each user."""
    every = np.arange(batch.train.n_items)
    return np.array([np.setdiff1d(every, batch.train.row(user))[:k] for user in batch.users], dtype=np.int64)


def ragged(batch):
    return [[1], *[[1, 2]] * (len(batch.users) - 1)]


def words(batch):
    return [["a", "b"]] * len(batch.users)


def trained(model, make, *, weighted=True):
    run = bn.fit(model, SPLIT, Answers(make, weighted), epochs=1, progress=False)
    return run.scorer.embeddings().items


@pytest.mark.parametrize("model", [TORCH, MF], ids=["torch", "mf"])
def test_plain_lists_are_taken(model):
    found = trained(model, lambda batch: bn.Negatives(unobserved(batch).tolist(), [[1, 1]] * len(batch.users)))
    wanted = trained(model, lambda batch: bn.Negatives(unobserved(batch)))
    np.testing.assert_array_equal(found, wanted)
    found = trained(model, lambda batch: unobserved(batch)[:, 0].tolist(), weighted=False)
    wanted = trained(model, lambda batch: unobserved(batch)[:, 0], weighted=False)
    np.testing.assert_array_equal(found, wanted)


def test_a_pool_may_be_a_plain_list():
    found = trained(TORCH, lambda batch: bn.Negatives(list(range(30))))
    np.testing.assert_array_equal(found, trained(TORCH, lambda batch: bn.Negatives(np.arange(30))))


@pytest.mark.parametrize("model", [TORCH, MF], ids=["torch", "mf"])
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda batch: bn.Negatives(unobserved(batch, 0)), r"Negatives.items must have at least one .*\(\d+, 0\)"),
        (lambda batch: bn.Negatives(np.empty(0, dtype=np.int64)), r"must have at least one negative.*\(0,\)"),
        (
            lambda batch: bn.Negatives(ragged(batch)),
            "Negatives.items .* lists of one length",
        ),
        (ragged, "the answer of sample .* lists of one length"),
        (
            lambda batch: bn.Negatives(unobserved(batch), words(batch)),
            "Negatives.weights .* numbers",
        ),
        (
            lambda batch: bn.Negatives(unobserved(batch), None, words(batch)),
            "Negatives.log_q must be finite numbers",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(model, make, said):
    with pytest.raises(bn.BayesnegError, match=said):
        trained(model, make)


@pytest.mark.parametrize(
    ("vectors", "said"),
    [
        (
            lambda n: torch.ones(n, 2, 5),
            r"Negatives.vectors .* \(\d+, 2, 4\) on cpu.* got \(\d+, 2, 5\)",
        ),
        (lambda n: torch.ones(n, 3, 4), r"Negatives.vectors must have the shape \(\d+, 2, 4\)"),
        (lambda n: torch.ones(n, 2, 4, device="meta"), r"on cpu, .* on meta"),
        (lambda n: np.ones((n, 2, 4)), "Negatives.vectors must be a tensor .* got ndarray; return None"),
    ],
)
def test_vectors_that_do_not_fit_the_model_are_refused(vectors, said):
    with pytest.raises(bn.BayesnegError, match=said):
        trained(TORCH, lambda batch: bn.Negatives(unobserved(batch), None, None, vectors(len(batch.users))))


def test_vectors_that_fit_the_model_are_taken():
    trained(TORCH, lambda batch: bn.Negatives(unobserved(batch), None, None, torch.ones(len(batch.users), 2, 4)))
