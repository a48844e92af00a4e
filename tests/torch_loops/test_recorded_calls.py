"""When a recorded call is replayed; a stand-in takes the place of CUDA graphs, so that no GPU is needed."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import bayesneg as bn

torch = pytest.importorskip("torch")

import bayesneg.torch as bnt  # noqa: E402
from bayesneg.torch import recorded_call  # noqa: E402
from bayesneg.torch import sampler as sampler_module  # noqa: E402

TRAIN = bn.synthetic(50, 40, seed=0)


class Graph:
    """Computes again what was computed while it was recorded, into the same tensors."""

    body = None

    def register_generator_state(self, generator):
        pass

    def replay(self):
        compute, given, found = self.body
        found.items.copy_(compute(*given))


@pytest.fixture
def gpu(monkeypatch):
    """What is recorded on the stand-in of a GPU, and its current stream."""
    state = SimpleNamespace(recording=None, streams=[], stream=1, fails=False)

    @contextmanager
    def graph(cuda_graph, *, stream, capture_error_mode):
        state.recording = cuda_graph
        state.streams.append(stream)
        try:
            yield
        finally:
            state.recording = None

    monkeypatch.setattr(torch.cuda, "CUDAGraph", Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: ("stream of", device))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: SimpleNamespace(cuda_stream=state.stream))
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    recorded_call.stream_on.cache_clear()
    yield state
    recorded_call.stream_on.cache_clear()


class Loop:
    """Calls whose answer depends on the examples and on the embeddings."""

    def __init__(self, gpu):
        self.gpu, self.calls = gpu, recorded_call.RecordedCalls(torch.Generator())
        self.U, self.V, self.n_launched = torch.zeros(50, 2), torch.zeros(40, 2), 0

    def __call__(self, n=4, U=None, V=None):
        U, V = self.U if U is None else U, self.V if V is None else V
        users, positives = torch.randint(50, (n,)), torch.randint(40, (n,))

        def compute(users, positives):
            return (U[users].sum(dim=1) + 100 * V[positives].sum(dim=1)).long()[:, None]

        def call(users, positives):
            found = bn.Negatives(compute(users, positives))
            if self.gpu.recording is None:
                self.n_launched += 1
            elif self.gpu.fails:
                raise RuntimeError("out of memory")
            else:
                self.gpu.recording.body = compute, (users, positives), found
            return found

        before = self.n_launched
        found = self.calls.of(call, users, positives, (U, V))
        torch.testing.assert_close(found.items, compute(users, positives))
        return "launched" if self.n_launched > before else "replayed"

    def step(self):
        """As an optimizer does, in place."""
        self.U += torch.randint(9, self.U.shape)
        self.V += torch.randint(9, self.V.shape)


def test_a_replayed_call_reads_its_examples_and_the_embeddings_as_they_are(gpu):
    loop = Loop(gpu)
    seen = []
    for n in (4, 4, 4, 4, 3, 4):
        loop.step()
        seen.append(loop(n))
    assert seen == ["launched", "replayed", "replayed", "replayed", "launched", "replayed"]


def test_the_embeddings_of_another_model_are_not_replayed(gpu):
    loop, other = Loop(gpu), torch.ones(50, 2)
    assert [loop(), loop(), loop(U=other), loop()] == ["launched", "replayed", "launched", "replayed"]
    assert loop(U=loop.U[:, :1]) == "launched"  # the same address
    assert [loop(U=other), loop(U=other)] == ["launched", "replayed"]


def test_recordings_are_made_anew_in_each_epoch_and_are_few(gpu):
    loop, others = Loop(gpu), [torch.ones(50, 2) for _ in range(6)]
    for U in others:
        loop(U=U), loop(U=U)
    assert len(gpu.streams) == recorded_call.RECORDINGS
    loop.calls.begin_epoch()
    assert [loop(U=others[0]), loop(U=others[0])] == ["launched", "replayed"]


def test_a_graph_is_recorded_on_the_gpu_of_the_examples_whatever_the_current_one(gpu):
    loop = Loop(gpu)
    loop(), loop()
    assert gpu.streams == [("stream of", torch.device("cpu"))]


def test_a_call_in_another_stream_is_not_replayed(gpu):
    loop = Loop(gpu)
    loop(), loop()
    gpu.stream = 2
    assert loop() == "launched"


def test_nothing_is_recorded_in_inference_mode(gpu):
    loop = Loop(gpu)
    with torch.inference_mode():
        assert [loop(), loop()] == ["launched", "launched"]
    assert [loop(), loop()] == ["launched", "replayed"]


def test_a_recording_that_failed_is_forgotten(gpu):
    loop = Loop(gpu)
    loop(), loop(), loop(3)
    gpu.fails = True
    with pytest.raises(RuntimeError, match="out of memory"):
        loop(3)
    assert loop(4) == "launched"


def test_synthetic_negatives_after_a_warm_start_keep_their_gradient(monkeypatch):
    """The rule of the warm-up can be recorded, that of MixGCF cannot."""
    monkeypatch.setattr(sampler_module, "draws_itself", lambda device: True)
    sampler = bnt.Sampler(bn.WarmStart("rns", bn.samplers.MixGCF(), warmup=1), TRAIN, seed=0)
    U, V = torch.randn(50, 4, requires_grad=True), torch.randn(40, 4, requires_grad=True)
    users, items = (torch.from_numpy(part[:8].astype(np.int64)) for part in (TRAIN.users, TRAIN.indices))
    sampler(users, items, U, V)
    sampler.end_epoch(U, V)
    asked = []

    class Recorded:
        def of(self, call, users, positives, embeddings):
            asked.append(len(users))
            return bn.Negatives(*(None if part is None else part.clone() for part in call(users, positives)))

    sampler._recorded = Recorded()
    for _ in range(2):
        assert sampler(users, items, U, V).vectors.requires_grad
    assert asked == []
