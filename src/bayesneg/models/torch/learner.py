"""Training in mini-batches with torch: any module that gives vectors or scores, any sampler, CPU or GPU.

A block of many batches is drawn at once, since draws do not look at scores; then each batch is chosen for and learned
from. On the CPU the compiled kernels choose; on the GPU, and for models without vectors, torch does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import islice

import numpy as np
import torch
from torch import Tensor, nn

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, Embeddings, NegativeSampler, RuleSampler, Sampled
from bayesneg.kernels.rules import Draws, FromMemory, Rule
from bayesneg.kernels.torch.choices import Rows
from bayesneg.models.embedding import EmbeddingScorer
from bayesneg.models.torch.adam import Adam
from bayesneg.models.torch.device import memory_named, pick_device
from bayesneg.models.torch.settings import TorchSettings
from bayesneg.models.torch.state import FromScores, FromVectors, State
from bayesneg.models.torch.steps import CompiledSteps, Packed, TorchSteps, highest_rank, largest_batch, pack
from bayesneg.models.torch.summaries import TorchSummaries
from bayesneg.models.validate import checked_negatives

EXAMPLES = 1 << 15  # at most so many per block, unless a batch has more
NUMBERS = 1 << 18  # and so many drawn numbers


class TorchLearner:
    """A module in training; also the scorer that samplers and evaluation see."""

    def __init__(
        self,
        settings: TorchSettings,
        train: Interactions,
        module: nn.Module,
        *,
        scores: bool = False,
        ensemble_size: int = 1,
    ) -> None:
        self.settings, self.train, self.scores, self.ensemble_size = settings, train, scores, ensemble_size
        self.device = pick_device(settings.device)
        with memory_named(self.device, self.settings):
            self.module = module.to(self.device)
        on_gpu = self.device.type == "cuda"
        self.optimizer = Adam(
            self.module.parameters(),
            lr=torch.tensor(settings.learning_rate, device=self.device) if on_gpu else settings.learning_rate,
            weight_decay=settings.strength if settings.penalty == "weight_decay" else 0.0,
            fused=True,
            capturable=on_gpu,
        )
        self._drawing_threads = (os.cpu_count() or 1) if on_gpu else 1  # while a GPU works, the cores are free
        self._steps: TorchSteps | CompiledSteps | None = None
        self._summaries: TorchSummaries | None = None
        self._seen: EmbeddingScorer | None = None  # the vectors as they are now, fetched when asked for

    # ---------------------------------------------------------------------------------------------------- as a scorer

    @property
    def n_users(self) -> int:
        return self.train.n_users

    @property
    def n_items(self) -> int:
        return self.train.n_items

    def score(self, users: np.ndarray, items: np.ndarray) -> np.ndarray:
        if self.scores:
            return np.take_along_axis(self.score_all(users), np.asarray(items), axis=1)
        return self._vectors().score(users, items)

    def score_all(self, users: np.ndarray) -> np.ndarray:
        if not self.scores:
            return self._vectors().score_all(users)
        with self._judged():
            which = torch.as_tensor(np.asarray(users, dtype=np.int64), device=self.device)
            return self.forward(which).chunk(0, self.n_items).float().cpu().numpy()

    def embeddings(self) -> Embeddings:
        if self.scores:
            raise InputError(
                "this model gives scores and no vectors; choose a sampler that needs none (BNS: cdf='exact')"
            )
        return self._vectors().embeddings()

    def refreshed_knots(
        self, batch: Batch, ranks: np.ndarray, *, moved: float, pool: int, over_all: bool
    ) -> Tensor | None:
        """Summaries of the lists of the batch's users, on the GPU; None where whoever asks had better make them."""
        if self.device.type == "cpu" or self.scores:
            return None
        with self._judged():
            users, items = (vectors.float() for vectors in self._checked_vectors())
            if self._summaries is None:
                self._summaries = TorchSummaries(self.rows, ranks, users.shape[1], self.device)
            which = torch.from_numpy(batch.users).to(self.device)
            return self._summaries.refresh(
                which, (users, items), batch.epoch, moved=moved, pool=pool, over_all=over_all
            )

    def _vectors(self) -> EmbeddingScorer:
        if self._seen is None:
            with self._judged():
                given = [vectors.detach() for vectors in self._checked_vectors()]  # they may be the parameters
            self._seen = EmbeddingScorer(*(vectors.float().cpu().contiguous().numpy() for vectors in given))
        return self._seen

    @contextmanager
    def _judged(self) -> Iterator[None]:
        """Without gradients, and without what a module does in training only, such as dropout."""
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.module.train()

    # ------------------------------------------------------------------------------------------------------- training

    def train_epoch(
        self, sampler: NegativeSampler, *, epoch: int, order: np.ndarray, rng: np.random.Generator
    ) -> Iterator[Sampled]:
        self._set_rate(self.settings.rate_at(epoch))
        size = self.settings.batch_size
        if isinstance(sampler, RuleSampler):
            size *= max(1, min(EXAMPLES, NUMBERS // sampler.width(self.n_items)) // size)
        blocks = self._blocks(order, size, epoch, rng)
        with memory_named(self.device, self.settings):
            if isinstance(sampler, RuleSampler):
                yield from self._ruled(sampler, blocks, min(size, len(order)))
            else:
                for block in blocks:
                    yield self._called(sampler, block)
                    self._seen = None

    def _blocks(self, order: np.ndarray, size: int, epoch: int, rng: np.random.Generator) -> Iterator[Batch]:
        for start in range(0, len(order), size):
            positions = order[start : start + size]
            users, positives = self.train.users[positions], self.train.indices[positions]
            yield Batch(users, positives, positions, epoch, self.train, self, rng, self._drawing_threads)

    def _ruled(self, sampler: RuleSampler, blocks: Iterator[Batch], room: int) -> Iterator[Sampled]:
        if self._compiled_chooses:
            for block in blocks:
                rule, draws = sampler.rule(block), sampler.draws(block)
                if not isinstance(self._steps, CompiledSteps) or not self._steps.fits(rule):
                    self._steps = CompiledSteps(self, rule)
                yield self._steps.run(rule, draws, block)
                self._seen = None
            return
        steps, before = None, None
        for block, draws, packed in self._drawn_ahead(sampler, blocks):
            rule = sampler.rule(block)
            steps = self._steps_for(rule, draws, block, room, fresh=steps is None)
            coming = steps.run(rule, block, packed)
            self._seen = None
            if before is not None:
                yield before.sampled()
            before = coming
        if steps is not None and before is not None:
            yield before.sampled()
            steps.close()

    @property
    def _compiled_chooses(self) -> bool:
        """Compiled code reads vectors in the processor's memory; torch chooses for all other models."""
        return self.device.type == "cpu" and not self.scores

    def _drawn_ahead(self, sampler: RuleSampler, blocks: Iterator[Batch]) -> Iterator[tuple[Batch, Draws, Packed]]:
        """Each block with its draws; the next one is drawn, without looking at the model, while the GPU works."""
        first = next(blocks, None)
        if first is None:
            return
        memory = isinstance(sampler.rule(first), FromMemory)

        def drawn(block: Batch) -> tuple[Batch, Draws, Packed]:
            draws = sampler.draws(block)
            return block, draws, pack(draws, block, self.settings.batch_size, self.device, memory=memory)

        with ThreadPoolExecutor(1) as pool:
            coming = [pool.submit(drawn, first)]
            while coming:
                ready = coming.pop().result()
                coming = [pool.submit(drawn, block) for block in islice(blocks, 1)]
                yield ready

    def _called(self, sampler: NegativeSampler, batch: Batch) -> Sampled:
        """Any sampler: it is called for the negatives of one batch."""
        negatives = checked_negatives(sampler.sample(batch), batch).astype(np.int32)
        users, positives, chosen = (
            torch.from_numpy(array.astype(np.int64)).to(self.device)
            for array in (batch.users, batch.positives, negatives)
        )
        infos = self.update(self.forward(users), positives, chosen)
        return Sampled(batch.users, negatives, infos.cpu().numpy())

    def forward(self, users: Tensor) -> State:
        """The model's scores for these users, with gradients."""
        if self.scores:
            if not callable(getattr(self.module, "scores", None)):
                raise InputError(f"{type(self.module).__name__} has no method scores(users); gives='scores' needs one")
            scores = self.module.scores(users)  # type: ignore[operator]
            if scores.shape != (len(users), self.n_items):
                raise InputError(
                    f"scores(users) must give {len(users)} × {self.n_items} numbers, a row per user and a column per "
                    f"item, got {tuple(scores.shape)}"
                )
            return FromScores(scores)
        return FromVectors(*self._checked_vectors(), users, ensemble_size=self.ensemble_size)

    def update(self, state: State, positives: Tensor, negatives: Tensor) -> Tensor:
        """One step of Adam on mean −ln σ(x_i − x_j); returns 1 − σ(x_i − x_j) (B,), 0 where there is no negative."""
        self.optimizer.zero_grad(set_to_none=True)
        strength = self.settings.strength if self.settings.penalty == "batch" else 0.0
        infos = state.backward(positives, negatives, strength)
        self.optimizer.step()
        return infos

    def recorded(self, step: Callable[[], None], own: Sequence[Tensor]) -> torch.cuda.CUDAGraph:
        """Take one step and return it as a CUDA graph; the steps that recording needs leave no trace.

        ``own`` are the tensors that a step changes beside the learner's.
        """
        self._begin_optimizer()
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.rehearse(step, own)
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad(set_to_none=True)  # so that the gradients live where the graph writes them
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # another thread packs the next block
            step()
        graph.replay()
        return graph

    def rehearse(self, step: Callable[[], None], own: Sequence[Tensor]) -> None:
        """Take a step and undo it."""
        tensors = [*self._tensors().values(), *own]
        before = [value.clone() for value in tensors]
        step()
        for value, old in zip(tensors, before, strict=True):
            value.copy_(old)

    # ---------------------------------------------------------------------------------------------------------- state

    def state_dict(self) -> dict[str, np.ndarray]:
        return {key: value.detach().cpu().numpy().copy() for key, value in self._tensors().items()}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        with memory_named(self.device, self.settings):
            self._begin_optimizer()
        for key, value in self._tensors().items():
            if key in state:  # a parameter that never had a gradient has nothing to remember
                value.copy_(torch.from_numpy(np.array(state[key])))
        self._seen = None

    def is_finite(self) -> bool:
        return all(bool(torch.isfinite(parameter).all()) for parameter in self.module.parameters())

    def frozen(self) -> EmbeddingScorer | TorchLearner:
        return self if self.scores else EmbeddingScorer(*(vectors.copy() for vectors in self.embeddings()))

    def _tensors(self) -> dict[str, Tensor]:
        """Parameters, buffers and what Adam remembers, by name; writing to them changes the learner."""
        found = dict(self.module.state_dict())  # parameters and buffers
        for name, parameter in self.module.named_parameters():
            for key, value in self.optimizer.state[parameter].items():
                found[f"{name}.{key}"] = value
        return found

    def _begin_optimizer(self) -> None:
        """Make Adam's memory exist, as its first step would."""
        if any(self.optimizer.state[parameter] for parameter in self.module.parameters()):
            return
        before = [parameter.detach().clone() for parameter in self.module.parameters()]
        for parameter in self.module.parameters():
            parameter.grad = torch.zeros_like(parameter)
        self.optimizer.step()
        with torch.no_grad():
            for parameter, value in zip(self.module.parameters(), before, strict=True):
                parameter.copy_(value)
                for memory in self.optimizer.state[parameter].values():
                    memory.zero_()

    def _set_rate(self, rate: float) -> None:
        for group in self.optimizer.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate)
            else:
                group["lr"] = rate

    # ---------------------------------------------------------------------------------------------------- what it needs

    @cached_property
    def rows(self) -> Rows:
        """The training pairs on the device."""
        indptr, items = torch.from_numpy(self.train.indptr.copy()), torch.from_numpy(self.train.indices.copy())
        return Rows(indptr.to(self.device), items.to(self.device), self.train.n_items)

    def _steps_for(self, rule: Rule, draws: Draws, block: Batch, room: int, *, fresh: bool) -> TorchSteps:
        """The steps of earlier blocks where they fit; what a rule remembers is loaded anew with each epoch."""
        capacity = largest_batch(self.train.counts[block.users], self.settings.batch_size)
        most_rank = highest_rank(rule, draws, self.n_items)
        known = self._steps
        if not isinstance(known, TorchSteps) or not known.fits(rule, draws, capacity, most_rank):
            if isinstance(known, TorchSteps) and not fresh:
                known.close()
            capacity += capacity // 8  # so that another order of examples seldom needs more
            self._steps = known = TorchSteps(self, rule, draws, room, capacity, most_rank)
        if fresh:
            known.open(rule)
        return known

    def _checked_vectors(self) -> tuple[Tensor, Tensor]:
        """What the module gives, if it is what it should be."""
        given = self.module()
        if not (
            isinstance(given, tuple | list) and len(given) == 2 and all(isinstance(part, Tensor) for part in given)
        ):
            got = [type(part).__name__ for part in given] if isinstance(given, tuple | list) else type(given).__name__
            raise InputError(
                f"{type(self.module).__name__} must give two tensors, the users' vectors and the items', got {got}"
            )
        users, items = given
        wanted = (self.n_users, self.n_items)
        if users.ndim != 2 or items.ndim != 2 or (len(users), len(items)) != wanted or users.shape[1] != items.shape[1]:
            raise InputError(
                f"the model gives user vectors of shape {tuple(users.shape)} and item vectors of shape "
                f"{tuple(items.shape)}; the data has {wanted[0]} users and {wanted[1]} items, and both need one width"
            )
        return users, items
