"""A sampler for any torch loop: tensors in, tensors out, on their device.

Draws, scores, weights and choices are computed where the embeddings are. Three things need the host and say so: a
prior given as a NumPy function, a custom sampler written in NumPy, and :meth:`Sampler.end_epoch` of a sampler with a
state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from scipy.sparse import coo_array, issparse
from torch import Tensor

from bayesneg.data.interactions import Interactions
from bayesneg.errors import InputError
from bayesneg.interfaces import Batch, Negatives, NegativeSampler, RuleSampler
from bayesneg.kernels.reference.choices.aobpr import AtScoreRank
from bayesneg.kernels.reference.pools import SharedPool
from bayesneg.kernels.torch.choices.base import DrawTensors, TensorBatch
from bayesneg.kernels.torch.draws import RowKeys, first_of_its_user
from bayesneg.kernels.torch.pools import TorchPoolWeights, TorchPrior
from bayesneg.kernels.torch.score_lists import TrainingRows
from bayesneg.kernels.torch.selections import TorchOne, TorchSelection, torch_selection
from bayesneg.models.torch.batch_scores import EmbeddingScores
from bayesneg.models.torch.weighted import rows_on
from bayesneg.models.validate import validate_weighted
from bayesneg.samplers.ahns import AHNS
from bayesneg.samplers.bns import BNS, Posterior
from bayesneg.samplers.candidates import UniformDraw
from bayesneg.samplers.dns import DNS
from bayesneg.samplers.in_batch import InBatch
from bayesneg.samplers.posterior.sampler import PosteriorSampler
from bayesneg.samplers.registry import as_sampler
from bayesneg.samplers.schedules import WarmStart
from bayesneg.samplers.srns import SRNS
from bayesneg.samplers.static import RNS
from bayesneg.seeding import stream
from bayesneg.torch.device_draws import candidates_of, pool_of, uniforms_of
from bayesneg.torch.tensor_scorer import TensorScorer
from bayesneg.torch.validation import check_numbers, check_table, same_device

EXACT_ON_GPU = 1 << 18  # cdf="auto" of BNS on a GPU is exact up to so many items
SCORES = 1 << 26  # held at once where a rule reads whole score lists


class Sampler:
    """Negatives for a training loop of your own.

    Args:
        sampler: A sampler such as ``bn.BNS()``, or its name; a custom :class:`~bayesneg.NegativeSampler` is called with
            arrays in host memory.
        train: The training interactions, whose numbers of users and items the loop uses too; a SciPy sparse matrix
            (n_users, n_items) is taken as well.
        seed: Seed of every draw.
        similarity: What a score is: the ``"inner"`` product of embeddings, or their ``"cosine"``.

    Example:
        >>> import bayesneg as bn, bayesneg.torch as bnt
        >>> train = bn.synthetic(50, 40, seed=0)
        >>> sampler = bnt.Sampler(bn.BNS(candidates=5), train, seed=0)
        >>> U, V = torch.randn(50, 8), torch.randn(40, 8)
        >>> users, positives = torch.tensor([0, 1]), torch.from_numpy(train.indices[train.indptr[:2]]).long()
        >>> sampler(users, positives, U, V).items.shape
        torch.Size([2, 1])
    """

    def __init__(
        self, sampler: NegativeSampler | str, train: Interactions, *, seed: int = 0, similarity: str = "inner"
    ) -> None:
        if similarity not in ("inner", "cosine"):
            raise InputError(f"similarity must be one of inner, cosine, got {similarity!r}")
        self.train = replace(_interactions(train), truth=None)
        self.seed, self.epoch, self.cosine = seed, 1, similarity == "cosine"
        self._given = as_sampler(sampler)
        self._sampler: NegativeSampler | None = None  # bound at the first call, when the device is known
        self._saved: Mapping[str, np.ndarray] | None = None
        self._generator_state: Tensor | None = None

    def _bind(self, device: torch.device) -> None:
        self._device = device
        given = self._given
        if isinstance(given, WarmStart):
            raise InputError(
                "WarmStart changes the sampler between epochs; in a loop of your own make two Samplers and switch"
            )
        if isinstance(given, BNS) and given.cdf == "auto" and not given.shared and device.type == "cuda":
            given = replace(given, cdf="exact" if self.train.n_items <= EXACT_ON_GPU else "refreshed")
        if isinstance(given, RNS | DNS | BNS | Posterior | AHNS) and not isinstance(given.draw, UniformDraw):
            raise InputError(
                "a custom draw is NumPy code; draw in a custom NegativeSampler instead, or leave draw alone"
            )
        self._sampler = given.prepare(self.train, rng=stream(self.seed, "sampler"))
        if self._saved is not None:
            self._sampler.load_state_dict(self._saved)
        self._generator = torch.Generator(device=device).manual_seed(self.seed)
        if self._generator_state is not None:
            self._generator.set_state(self._generator_state)
        self._rng = stream(self.seed, "sampler", self.epoch)
        self._rows: TrainingRows = rows_on(self.train, device)
        self._keys = RowKeys(self._rows)
        self._scorer = TensorScorer(self.train, self._rows, cosine=self.cosine)
        self._weigher: TorchPoolWeights | None = None
        self._selection: TorchSelection | None = None
        self._prior: TorchPrior | None = None
        if isinstance(self._sampler, PosteriorSampler):
            self._prior = TorchPrior(self._sampler.parts().prior.form(), device)

    # ------------------------------------------------------------------------------------------------------- sampling

    @torch.compiler.disable
    @torch.no_grad()
    def __call__(self, users: Tensor, positives: Tensor, user_vectors: Tensor, item_vectors: Tensor) -> Negatives:
        """Sample the negatives of a batch.

        Args:
            users: The users (B,), dense numbers.
            positives: The positives (B,), dense numbers.
            user_vectors: The embeddings (n_users, d) of all users.
            item_vectors: The embeddings (n_items, d) of all items.

        Returns:
            Items (B, K), or (N,) where the batch shares a pool, with their weights and log-probabilities, on the
            device of the embeddings and without gradients. An item of weight 0 does not count; −1 is no item.
        """
        n_users, n_items = self.train.n_users, self.train.n_items
        same_device(users=users, positives=positives, user_vectors=user_vectors, item_vectors=item_vectors)
        check_numbers("users", users, 0, n_users)
        check_numbers("positives", positives, 0, n_items)
        if users.shape != positives.shape:
            raise InputError(f"users and positives must be of one length, got {len(users)} and {len(positives)}")
        check_table("user_vectors", user_vectors, n_users)
        check_table("item_vectors", item_vectors, n_items)
        if self._sampler is None or self._device != users.device:
            self._bind(users.device)
        with torch.autocast(users.device.type, enabled=False):
            return self._sample(users.long(), positives.long(), user_vectors.float(), item_vectors.float())

    def _sample(self, users: Tensor, positives: Tensor, U: Tensor, V: Tensor) -> Negatives:
        sampler = self._sampler
        assert sampler is not None
        self._scorer.see(users, U, V)
        scores = EmbeddingScores(U, V, users, cosine=self.cosine)
        if not isinstance(sampler, RuleSampler):
            return self._custom(sampler, users, positives)
        batch = self._batch(users, positives)
        rule = sampler.rule(batch)
        if sampler.is_shared:
            return self._shared(sampler, rule, users, positives, scores)
        if self._selection is None or type(self._selection.rule) is not type(rule):
            self._selection = torch_selection(rule, self._device)
            if isinstance(self._selection, TorchOne):
                self._selection.choice.load(rule)
        self._selection.update(rule)
        items, sizes = candidates_of(sampler, users, self._keys, self._generator)
        empty = torch.zeros(len(users), 0, dtype=torch.float64, device=self._device)
        p = empty if self._prior is None else self._prior.of_pairs(users, items.clamp(min=0))
        uniforms = uniforms_of(sampler, rule, len(users), self._generator)
        draws = DrawTensors(items, sizes, p, empty if uniforms is None else uniforms)
        found, weights = self._selection.select(self._tensors(users, positives, draws, rule), self._rows, scores)
        log_q = sampler.log_q()
        q = None if log_q is None else torch.as_tensor(log_q, device=self._device).float()[found.clamp(min=0)]
        return Negatives(found, weights, q)

    def _shared(
        self, sampler: RuleSampler, rule: Any, users: Tensor, positives: Tensor, scores: EmbeddingScores
    ) -> Negatives:
        if len(users) < 2 and isinstance(sampler, InBatch):
            raise InputError(
                "in-batch negatives are the positives of other examples, and the batch has one; raise the batch size "
                "or drop the last batch (drop_last=True)"
            )
        pool: SharedPool = pool_of(sampler, positives, self.train, self._generator)
        if self._weigher is None:
            self._weigher = TorchPoolWeights(rule, self._device)
        else:
            self._weigher.update(rule)
        empty = torch.zeros(len(users), 0, dtype=torch.float64, device=self._device)
        draws = DrawTensors(empty.long(), torch.ones_like(users), empty, empty)
        tensors = self._tensors(users, positives, draws, rule)
        weights = self._weigher.weigh(pool, tensors, self._rows, scores, scores.of_pool(pool.items))
        return Negatives(pool.items, weights, pool.log_q if pool.corrects else None)

    def _tensors(self, users: Tensor, positives: Tensor, draws: DrawTensors, rule: Any) -> TensorBatch:
        starts = self._rows.indptr[users]
        counts = self._rows.indptr[users + 1] - starts
        firsts = first_of_its_user(users, self.train.n_users) if isinstance(self._sampler, SRNS) else users[:0]
        capacity = int(counts.sum()) if self._device.type == "cpu" else len(users) * self._rows.longest
        most_rank = 0
        if isinstance(rule, AtScoreRank):  # a uniform number is at most 1 − 2⁻⁵³, and −log(2⁻⁵³) is below 37
            most_rank = min(self.train.n_items - 1, int(37 * rule.scale) + 1)
        chunk = max(1, SCORES // len(users))
        return TensorBatch(users, positives, starts, counts, firsts, draws, capacity, most_rank, chunk)

    def _batch(self, users: Tensor, positives: Tensor) -> Batch:
        """The batch as rules see it; on a GPU its numbers stay there, and rules that need them ask the scorer."""
        on_host = self._device.type == "cpu"
        which, items = (part.numpy().astype(np.int32) if on_host else NOBODY for part in (users, positives))
        return Batch(which, items, NOBODY, self.epoch, self.train, self._scorer, self._rng)

    def _custom(self, sampler: NegativeSampler, users: Tensor, positives: Tensor) -> Negatives:
        """A sampler written in NumPy is called with arrays in host memory."""
        which, chosen = (part.cpu().numpy().astype(np.int32) for part in (users, positives))
        batch = Batch(
            which, chosen, _positions(self.train, which, chosen), self.epoch, self.train, self._scorer, self._rng
        )
        found = validate_weighted(sampler.sample(batch), batch)
        log_q = None if found.log_q is None else torch.as_tensor(found.log_q, device=self._device).float()
        items = torch.as_tensor(np.asarray(found.items).astype(np.int64), device=self._device)
        return Negatives(items, torch.as_tensor(found.weights, device=self._device), log_q, found.vectors)

    # ---------------------------------------------------------------------------------------------------------- state

    @torch.no_grad()
    def end_epoch(self, user_vectors: Tensor, item_vectors: Tensor) -> None:
        """Tell the sampler that an epoch has ended: schedules go on, and samplers with a state learn from the model.

        Args:
            user_vectors: The embeddings (n_users, d) of all users.
            item_vectors: The embeddings (n_items, d) of all items.
        """
        same_device(user_vectors=user_vectors, item_vectors=item_vectors)
        if self._sampler is None:
            self._bind(user_vectors.device)
        assert self._sampler is not None
        self._store()
        self._scorer.see(None, user_vectors.detach().float(), item_vectors.detach().float())
        self._sampler.end_epoch(self.epoch, self._scorer)
        self._selection = None  # it takes the state over again
        self.epoch += 1
        self._rng = stream(self.seed, "sampler", self.epoch)
        if isinstance(self._sampler, PosteriorSampler) and self._sampler.holds_out:
            self._prior = TorchPrior(self._sampler.parts().prior.form(), self._device)
            self._weigher = None

    def _store(self) -> None:
        """Write the state of a rule on the device back to the sampler."""
        if isinstance(self._selection, TorchOne):
            self._selection.choice.store()

    def state_dict(self) -> dict[str, Any]:
        """Everything that a checkpoint must keep.

        Returns:
            The epoch, the state of the random generator and that of the sampler, as plain values and tensors.
        """
        state: dict[str, Any] = {"epoch": self.epoch, "seed": self.seed}
        if self._sampler is None:
            return state
        self._store()
        arrays = {key: torch.from_numpy(np.array(value)) for key, value in self._sampler.state_dict().items()}
        return {**state, "generator": self._generator.get_state(), "sampler": arrays}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state.

        Args:
            state: What :meth:`state_dict` returned.
        """
        self.epoch, self.seed = int(state["epoch"]), int(state["seed"])
        self._generator_state = state.get("generator")
        self._saved = {key: value.numpy() for key, value in state.get("sampler", {}).items()}
        self._sampler = None  # bound again at the next call


NOBODY = np.empty(0, dtype=np.int64)


def _interactions(train: Any) -> Interactions:
    if isinstance(train, Interactions):
        return train
    if issparse(train):
        pairs: Any = coo_array(train)  # type: ignore[call-overload]
        n_users, n_items = pairs.shape
        return Interactions.from_numbers(
            pairs.row.astype(np.int64),
            pairs.col.astype(np.int64),
            user_ids=np.arange(n_users),
            item_ids=np.arange(n_items),
        )
    raise InputError(
        f"train must be interactions, as bn.load and bn.split give them, or a SciPy sparse matrix, got "
        f"{type(train).__name__}"
    )


def _positions(train: Interactions, users: np.ndarray, items: np.ndarray) -> np.ndarray:
    """The position (B,) of each pair in ``train.indices``."""
    keys = train.users.astype(np.int64) * train.n_items + train.indices
    return np.searchsorted(keys, users.astype(np.int64) * train.n_items + items)
