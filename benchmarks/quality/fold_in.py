"""Folding in new users against training with them: NDCG@20 of users held out of training entirely.

    BAYESNEG_DATA=… python -m benchmarks.quality.fold_in

A tenth of the users is new. Of each, a random fifth of the items is held out to be found. "Retrained" has the other
items of the new users in its training data; "folded in" has never seen them and is given these items afterwards.
Another tenth, also unseen, chose the rule: the regression of ``bayesneg.recommendation.fold_in``, least squares with
the items' vectors fixed (the step of implicit ALS, its weight and penalty the best of a grid), or steps of BPR on the
user's vector. "Five items" gives the new users five random items only. Writes results/quality/fold_in.json.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, Final

import numpy as np

import bayesneg as bn
from bayesneg.data.splits import Split
from bayesneg.evaluation.metrics import ndcg
from bayesneg.evaluation.statistics import estimate
from bayesneg.recommendation.fold_in import EXPONENT, RIDGE, LeastSquaresFoldIn, RegressionFoldIn
from bayesneg.recommendation.lists import item_lists
from bayesneg.recommendation.similar import history_of
from bayesneg.seeding import stream
from benchmarks.machine import write_result

K: Final = 20
FEW: Final = 5
EXPONENTS: Final = (0.5, 0.75, 1.0)
RIDGES: Final = (0.01, 0.03, 0.1)
DEFAULT: Final = f"exponent {EXPONENT:g}, ridge {RIDGE:g}"
WEIGHTS: Final = (1.0, 3.0, 10.0, 30.0, 100.0)  # of the observed items in least squares
PENALTIES: Final = (0.1, 1.0, 3.0, 10.0)  # times the mean diagonal of the Gram matrix
STEPS: Final = (5, 20)  # passes over the items of a new user
COSINE: Final = bn.MF(dim=32, similarity="cosine", learning_rate=0.1, regularization=1e-4, init_scale=0.1)
MODELS: Final[dict[str, tuple[Any, Any, Any]]] = {
    "MF, BPR": (bn.MF(dim=32), bn.RNS(), None),
    "MF, softmax, cosine": (COSINE, bn.RNS(negatives=32), bn.losses.Softmax(temperature=0.15)),
    "EASE": (bn.baselines.EASE(), None, None),
    "ALS": (bn.baselines.ALS(), None, None),
}
EPOCHS: Final = {"ml-100k": 60, "ml-1m": 25}

Histories = dict[int, np.ndarray]
Vector = Callable[[np.ndarray], np.ndarray]


def main() -> None:
    found = {name: of_dataset(name) for name in EPOCHS}
    settings = [
        rule["regression"]["on the choosing users"]
        for name in found
        for model in found[name]["models"].values()
        for rule in model.get("rules", {}).values()
    ]
    means = {text: float(np.mean([each[text] for each in settings])) for text in settings[0]}
    print("mean over data, models and histories, on the choosing users:", means, file=sys.stderr)
    print(f"wrote {write_result(__file__, {'regression': means, 'data': found})}")


def of_dataset(name: str) -> dict[str, Any]:
    """Every model on one dataset."""
    whole = bn.split(bn.load(name), test=0.2, by="user", seed=0)
    order = stream(0, "new users").permutation(whole.train.n_users)
    tenth = len(order) // 10
    choosing, testing = order[:tenth], order[tenth : 2 * tenth]
    kept = [~np.isin(part.users, order[: 2 * tenth]) for part in (whole.train, whole.test)]
    reduced = Split(train=whole.train.select(kept[0]), test=whole.test.select(kept[1]))
    results = {}
    for model, how in MODELS.items():
        results[model] = of_model(how, whole, reduced, choosing, testing, EPOCHS[name])
        print(name, model, results[model], file=sys.stderr, flush=True)
    return {"new_users": len(testing), "users_trained_on": int((reduced.train.counts > 0).sum()), "models": results}


def of_model(
    how: tuple[Any, Any, Any],
    whole: Split,
    reduced: Split,
    choosing: np.ndarray,
    testing: np.ndarray,
    epochs: int,
) -> dict[str, Any]:
    """Retrained and folded in, and where the model has vectors what the other rules give."""
    model, sampler, loss = how
    settings: dict[str, Any] = {"epochs": epochs, "evaluate_every": epochs, "select": "last", "progress": False}
    retrained, run = (bn.fit(model, data, sampler, loss=loss, **settings) for data in (whole, reduced))
    trained = by_scorer(retrained.scorer, whole, testing)
    histories = {user: whole.train.row(user) for user in (*choosing, *testing)}
    few = {user: _some(items, user) for user, items in histories.items()}
    started = time.perf_counter()
    folded = by_fold_in(run, whole, testing, histories)
    seconds = (time.perf_counter() - started) / len(testing)
    result = {
        "retrained": float(trained.mean()),
        "folded_in": float(folded.mean()),
        "difference": asdict(estimate(folded - trained, "users")),
        "folded_in_five_items": float(by_fold_in(run, whole, testing, few).mean()),
        "popularity": float(by_scorer(_popularity(reduced), whole, testing).mean()),
        "milliseconds_per_user": 1000 * seconds,
    }
    if sampler is not None:
        result["rules"] = {
            "all items": rules(run, whole, choosing, testing, histories),
            "five items": rules(run, whole, choosing, testing, few),
        }
    return result


def rules(run: bn.Run, whole: Split, choosing: np.ndarray, testing: np.ndarray, histories: Histories) -> dict[str, Any]:
    """NDCG@20 of each rule; the settings of least squares and the number of steps are those best on other users.

    The regression has one setting for all models and datasets, that of the library; the record has the others too.
    """
    vectors = run.scorer.embeddings()
    histories_of_train = run.split.train.indptr, run.split.train.indices
    gram = float(np.square(vectors.items.astype(np.float64)).sum()) / vectors.items.shape[1]
    candidates: dict[str, dict[str, Vector]] = {
        "regression": {
            f"exponent {exponent:g}, ridge {ridge:g}": RegressionFoldIn(
                vectors.users, vectors.items, *histories_of_train, exponent=exponent, ridge=ridge
            ).vector
            for exponent in EXPONENTS
            for ridge in RIDGES
        },
        "least squares": {
            f"weight {weight:g}, penalty {penalty:g}": LeastSquaresFoldIn(
                vectors.items, weight + 1, penalty * gram
            ).vector
            for weight in WEIGHTS
            for penalty in PENALTIES
        },
        "gradient steps": {f"{passes} passes": _steps(vectors, passes) for passes in STEPS},
    }
    found = {}
    for rule, settings in candidates.items():
        scores = {
            text: _mean(by_vectors(vector, vectors.items, whole, choosing, histories))
            for text, vector in settings.items()
        }
        best = DEFAULT if rule == "regression" else max(scores, key=lambda text: scores[text])
        value = _mean(by_vectors(settings[best], vectors.items, whole, testing, histories))
        found[rule] = {"settings": best, "on the choosing users": scores, "on the test users": value}
    return found


def by_fold_in(run: bn.Run, whole: Split, users: np.ndarray, histories: Histories) -> np.ndarray:
    """NDCG@20 (n,) of new users; items of their history are never recommended."""
    ids, found = whole.train.item_ids, []
    for user in users:
        new = run.fold_in(ids[histories[user]])
        lists = item_lists(new.scorer, history_of(whole.train, whole.train.row(user)), np.zeros(1, dtype=np.int64), K)
        found.append(_ndcg(lists.items, whole, np.array([user]))[0])
    return np.array(found)


def by_vectors(vector: Vector, items: np.ndarray, whole: Split, users: np.ndarray, histories: Histories) -> np.ndarray:
    """The same for vectors by any rule."""
    from bayesneg.models.scorers import EmbeddingScorer

    found = np.zeros((whole.train.n_users, items.shape[1]), dtype=np.float32)
    found[users] = [vector(histories[user]) for user in users]
    return by_scorer(EmbeddingScorer(found, items), whole, users)


def by_scorer(scorer: Any, whole: Split, users: np.ndarray) -> np.ndarray:
    """The same for users that the scorer knows."""
    return _ndcg(item_lists(scorer, whole.train, users, K).items, whole, users)


def _ndcg(items: np.ndarray, whole: Split, users: np.ndarray) -> np.ndarray:
    hits = np.stack([np.isin(row, whole.test.row(user)) for row, user in zip(items, users, strict=True)])
    return ndcg(hits, whole.test.counts[users])


def _steps(vectors: Any, passes: int, *, rate: float = 0.05, penalty: float = 0.01) -> Vector:
    """SGD on the BPR loss from the mean user, with uniform negatives and the items fixed."""
    items, mean = vectors.items.astype(np.float64), vectors.users.astype(np.float64).mean(axis=0)

    def vector(history: np.ndarray) -> np.ndarray:
        rng, w, own = stream(0, "steps", int(history[0])), mean.copy(), set(history.tolist())
        for _ in range(passes):
            for item in rng.permutation(history):
                negative = int(rng.integers(len(items)))
                while negative in own:
                    negative = int(rng.integers(len(items)))
                apart = items[item] - items[negative]
                w += rate * (apart / (1.0 + np.exp(w @ apart)) - penalty * w)
        return w.astype(np.float32)

    return vector


def _some(items: np.ndarray, user: int) -> np.ndarray:
    return items if len(items) <= FEW else np.sort(stream(0, "some", int(user)).choice(items, FEW, replace=False))


def _popularity(split: Split) -> Any:
    return bn.fit(bn.baselines.MostPopular(), split, progress=False).scorer


def _mean(values: np.ndarray) -> float:
    return float(np.nanmean(values))


if __name__ == "__main__":
    main()
