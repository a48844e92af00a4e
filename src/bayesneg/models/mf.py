"""Matrix factorization, one pair at a time.

S. Rendle et al., "BPR: Bayesian Personalized Ranking from Implicit Feedback", UAI 2009; settings of B. Liu and B. Wang,
ICDE 2023. The score is x_ui = w_u · h_i; a pair (u, i) with its negative j is one step on ln σ(x_ui − x_uj). Several
negatives, other losses and the cosine as score are in ``mf_several``.

In an ensemble the embeddings of its models are concatenated and the score is the mean of their scores. Each model has
a separate gradient on the same pair, and the negative is chosen by the mean (AOBPR by factor: by a factor of one
model). The embeddings are stored divided by the square root of the ensemble size, so that their inner product is the
mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np

from bayesneg.checks import known_settings, number, one_of, whole
from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import BPR_LOSS, NO_LABELS, Batch, Embeddings, Loss, NegativeSampler, RuleSampler, Sampled
from bayesneg.kernels.reference.choices.base import Draws, Rule
from bayesneg.kernels.reference.losses import PairwiseLogistic
from bayesneg.kernels.reference.ranks import kth_highest
from bayesneg.models.mf_several import SeveralSteps, check_one_by_one, parts_of
from bayesneg.models.scorers import EmbeddingScorer, cold_in, unit_rows
from bayesneg.models.thresholds import thresholds_of
from bayesneg.models.validate import single, validate_negatives

if TYPE_CHECKING:
    from bayesneg.kernels.numba.scoring import Factors, TileLayout
    from bayesneg.kernels.numba.sgd import SGDConfig

BLOCK = 1 << 14  # pairs whose candidates are drawn at once
ALS_SCALE = 2.0  # of embeddings of ALS, unless given: scores are four times theirs
SCORES = 1 << 24  # held at once while thresholds are computed
NUMBERS = 1 << 20  # drawn numbers per block at most


@known_settings()
@dataclass(frozen=True)
class MF:
    """Matrix factorization, trained by SGD on one pair at a time, with the BPR loss or any other.

    The L2 penalty of a step is on the user, the positive and the negatives; several negatives share it by their
    weights. ``MF.paper()`` gives the settings of the BNS paper.

    Args:
        dim: The number of dimensions of an embedding.
        learning_rate: The step size of SGD.
        regularization: The strength of the L2 penalty on the embeddings of each step.
        init_scale: The standard deviation of the initial embeddings, by default sqrt(regularization). With
            ``init="als"`` they are multiplied by it, by default 2.
        update: ``"sequential"`` moves the items along the updated user embedding, as published; ``"simultaneous"`` is
            the textbook step.
        shuffle: ``"epoch"`` draws a new order of the training pairs for each epoch; ``"once"`` keeps one order.
        threads: Threads that train without locks (Hogwild); above 1 training is faster and not deterministic.
        sampling_batch: The number of consecutive pairs for which a custom sampler is called at once, before their
            steps are taken; built-in samplers see the embeddings as they are at each pair. A custom loss is evaluated
            for as many pairs at once, so raise it for speed.
        ensemble_size: Number of models in the ensemble, trained on the same negatives with separate gradients; the
            score is the mean of their scores.
        similarity: What a score is in training: the ``"inner"`` product of embeddings, or their ``"cosine"``.
        ranking: What items are ranked by after training: the ``"same"`` score, ``"inner"`` or ``"cosine"``.
        init: What training starts from: ``"normal"`` random embeddings, or those of ``"als"``, alternating least
            squares, which takes seconds and saves most of the epochs. The best of a few penalties and weights of
            observed pairs is chosen on held-out training pairs.

    >>> MF(dim=64).shuffle, MF.paper().shuffle
    ('epoch', 'once')
    """

    dim: int = 32
    learning_rate: float = 0.01
    regularization: float = 0.01
    init_scale: float | None = None
    update: Literal["sequential", "simultaneous"] = "sequential"
    shuffle: Literal["once", "epoch"] = "epoch"
    threads: int = 1
    sampling_batch: int = 1
    ensemble_size: int = 1
    similarity: Literal["inner", "cosine"] = "inner"
    ranking: Literal["same", "inner", "cosine"] = "same"
    init: Literal["normal", "als"] = "normal"

    def __post_init__(self) -> None:
        for name in ("dim", "threads", "sampling_batch", "ensemble_size"):
            whole(name, getattr(self, name))
        number("learning_rate", self.learning_rate, above=0)
        number("regularization", self.regularization, least=0)
        one_of("update", self.update, ("sequential", "simultaneous"))
        one_of("shuffle", self.shuffle, ("once", "epoch"))
        one_of("similarity", self.similarity, ("inner", "cosine"))
        one_of("ranking", self.ranking, ("same", "inner", "cosine"))
        one_of("init", self.init, ("normal", "als"))
        if self.init_scale is not None:
            number("init_scale", self.init_scale, above=0)
        elif self.regularization == 0 and self.init == "normal":
            raise InputError("regularization=0 would start all vectors at 0, where nothing is learned; give init_scale")

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """The settings of the BNS paper: one shuffle for all epochs.

        Args:
            **changes: Fields that differ from the paper's settings.

        Returns:
            The model with the paper's settings and these changes.

        >>> MF.paper(dim=64).shuffle
        'once'
        """
        return cls(**{"shuffle": "once", **changes})

    @classmethod
    def recommended(cls, **changes: Any) -> Self:
        """The settings that go with ``BNS.recommended()``; docs/explanation/defaults.md has them beside baselines.

        Args:
            **changes: Fields that differ from the recommended settings.

        Returns:
            The model with the recommended settings and these changes.

        >>> MF.recommended().dim
        128
        """
        settings = {"dim": 128, "learning_rate": 0.015, "regularization": 0.02, "init": "als", "init_scale": ALS_SCALE}
        return cls(**{**settings, **changes})

    def start(self, train: Interactions, *, rng: np.random.Generator) -> MFLearner:
        if self.init == "als":
            return MFLearner(self, train, *self._by_als(train, rng))
        scale = np.sqrt(self.regularization) if self.init_scale is None else self.init_scale
        scale, width = scale / np.sqrt(self.ensemble_size), self.dim * self.ensemble_size
        users = rng.normal(0.0, scale, (train.n_users, width)).astype(np.float32)
        items = rng.normal(0.0, scale, (train.n_items, width)).astype(np.float32)
        return MFLearner(self, train, users, items)

    def _by_als(self, train: Interactions, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """The embeddings of ALS, scaled: its scores lie between 0 and 1, where a pairwise loss learns too much."""
        from bayesneg.models.als_start import chosen_setting, solved

        scale = np.float32((ALS_SCALE if self.init_scale is None else self.init_scale) / np.sqrt(self.ensemble_size))
        how = chosen_setting(train, rng)
        found = [solved(train, how, dim=self.dim, seed=int(rng.integers(2**31))) for _ in range(self.ensemble_size)]
        for parts in ([one.user_vectors for one in found], [one.item_vectors for one in found]):
            yield np.ascontiguousarray(scale * np.concatenate(parts, axis=1))


class MFLearner(EmbeddingScorer):
    """Embeddings in training, float32; samplers see them in their current state, normalised under the cosine."""

    def __init__(self, settings: MF, train: Interactions, users: np.ndarray, items: np.ndarray) -> None:
        self.settings, self.train, self.vectors = settings, train, Embeddings(users, items)
        self.thresholds: np.ndarray | None = None  # (n_users,), for losses that ask for them
        self.known: tuple[np.ndarray, np.ndarray] | None = None  # users and items that an earlier run has learned
        super().__init__(*(self.vectors if settings.similarity == "inner" else self._directions()))

    def state_dict(self) -> dict[str, np.ndarray]:
        more = {} if self.thresholds is None else {"thresholds": self.thresholds}
        return {**self.vectors._asdict(), **more}

    def load_state_dict(self, state: Mapping[str, np.ndarray]) -> None:
        self.vectors.users[:], self.vectors.items[:] = state["users"], state["items"]
        self.thresholds = state.get("thresholds")
        self._renormalise()

    def trained_embeddings(self) -> Embeddings:
        return self.vectors

    def start_from(self, embeddings: Embeddings, known: tuple[np.ndarray, np.ndarray]) -> None:
        self.known = known
        self.vectors.users[:], self.vectors.items[:] = embeddings
        self._renormalise()

    def is_finite(self) -> bool:
        return all(bool(np.isfinite(vectors).all()) for vectors in self.vectors)

    def frozen(self) -> EmbeddingScorer:
        own = self.settings
        by = own.similarity if own.ranking == "same" else own.ranking
        users, items = self._directions() if by == "cosine" else (part.copy() for part in self.vectors)
        return EmbeddingScorer(users, items, cold=cold_in(self.train, self.known))

    def _directions(self) -> Embeddings:
        """Embeddings whose inner product is the cosine, in an ensemble the mean of the models' cosines."""
        n_models = self.settings.ensemble_size
        parts = (unit_rows(part.reshape(len(part) * n_models, -1)).reshape(part.shape) for part in self.vectors)
        return Embeddings(*(part / np.float32(np.sqrt(n_models)) for part in parts))

    def _renormalise(self) -> None:
        """Normalise what scores read; steps keep it normalised but for rounding, which a checkpoint would lose."""
        if self.settings.similarity == "cosine":
            self.users[:], self.items[:] = self._directions()

    def train_epoch(
        self,
        sampler: NegativeSampler,
        *,
        epoch: int,
        order: np.ndarray,
        rng: np.random.Generator,
        loss: Loss = BPR_LOSS,
        labels: Mapping[str, Interactions] = NO_LABELS,
    ) -> Iterator[Sampled]:
        check_one_by_one(sampler)
        size = self.settings.sampling_batch
        if isinstance(sampler, RuleSampler):
            size = sampler.pairs_at_once or max(1, min(BLOCK, NUMBERS // sampler.width(self.n_items)))
        batches = self._batches(order, size, epoch, rng)
        if type(loss.form()) is PairwiseLogistic and self.settings.similarity == "inner" and not sampler.gives_weights:
            return (
                self._compiled(sampler, batches) if isinstance(sampler, RuleSampler) else self._called(sampler, batches)
            )
        return self._several(sampler, loss, epoch, batches)

    def _several(self, sampler: NegativeSampler, loss: Loss, epoch: int, batches: Iterator[Batch]) -> Iterator[Sampled]:
        """Several weighted negatives, a loss other than BPR, or the cosine."""
        from bayesneg.kernels.numba import scoring, sgd_several

        own, rank = self.settings, loss.threshold_at
        if rank is not None and (self.thresholds is None or (epoch - 1) % loss.threshold_every == 0):
            self.thresholds = self._thresholds_at(rank)
        steps = SeveralSteps(
            loss,
            sgd_several.SeveralConfig(*self._config, own.similarity == "cosine"),
            scoring.Factors(self.users, self.items, scoring.no_tiles()),
            sgd_several.Raw(*self.vectors),
            self._layout,
            self.train,
            np.empty(0) if self.thresholds is None or rank is None else self.thresholds,
            own.threads,
            own.sampling_batch,
        )
        yield from steps.run(sampler, batches)
        self._renormalise()

    def _thresholds_at(self, rank: int) -> np.ndarray:
        """The ``rank``-th highest score (n_users,) float64 of each user."""
        sizes = {"n_users": self.n_users, "n_items": self.n_items, "scores_at_once": SCORES}
        parts: list[np.ndarray] = thresholds_of(self.score_all, kth_highest, rank, **sizes)
        return np.concatenate(parts, dtype=np.float64)

    def _batches(self, order: np.ndarray, size: int, epoch: int, rng: np.random.Generator) -> Iterator[Batch]:
        for start in range(0, len(order), size):
            positions = order[start : start + size]
            users, positives = self.train.users[positions], self.train.indices[positions]
            yield Batch(users, positives, positions, epoch, self.train, self, rng, self.settings.threads)

    def _compiled(self, sampler: RuleSampler, batches: Iterator[Batch]) -> Iterator[Sampled]:
        """The choice and the step in one kernel, with the items in tiles for rules that sweep them."""
        from bayesneg.kernels.numba import scoring
        from bayesneg.kernels.numba.choices.base import compiled

        tiled = scoring.no_tiles()
        with ThreadPoolExecutor(self.settings.threads) as pool:
            for batch in batches:
                draws, rule = sampler.draws(batch), sampler.rule(batch)
                if compiled(rule).sweeps and tiled.values.size == 0:
                    tiled = scoring.tile_items(self.items, self._layout)
                factors = scoring.Factors(self.users, self.items, tiled)
                sampled = _nothing_yet(batch)
                train_part = partial(self._train_part, rule, batch, draws, factors, sampled)
                list(pool.map(train_part, parts_of(len(batch.users), self.settings.threads)))
                yield sampled

    @property
    def _config(self) -> SGDConfig:
        from bayesneg.kernels.numba import sgd

        own = self.settings
        return sgd.SGDConfig(own.learning_rate, own.regularization, own.update == "simultaneous", own.ensemble_size)

    @cached_property
    def _layout(self) -> TileLayout:
        from bayesneg.kernels.numba import scoring

        return scoring.tile_layout(self.train.users, self.train.indices, self.n_items)

    def _train_part(
        self, rule: Rule, batch: Batch, draws: Draws, factors: Factors, sampled: Sampled, part: slice
    ) -> None:
        from bayesneg.kernels.numba import sgd

        sgd.train_block(
            rule,
            batch.users[part],
            batch.positives[part],
            Draws(*(array[part] for array in draws)),
            self.train.indptr,
            self.train.indices,
            factors,
            self._config,
            sampled.negatives[part],
            sampled.info[part],
        )

    def _called(self, sampler: NegativeSampler, batches: Iterator[Batch]) -> Iterator[Sampled]:
        """A custom sampler is called for the negatives, and compiled code takes the steps."""
        from bayesneg.kernels.numba import scoring, sgd

        factors = scoring.Factors(self.users, self.items, scoring.no_tiles())
        for batch in batches:
            sampled = _nothing_yet(batch)
            sampled.negatives[:] = validate_negatives(single(sampler.sample(batch), sampler), batch)
            sgd.learn_given(
                batch.users,
                batch.positives,
                sampled.negatives,
                factors,
                self._config,
                sampled.info,
            )
            yield sampled


def _nothing_yet(batch: Batch) -> Sampled:
    n = len(batch.users)
    return Sampled(batch.users, np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32))
