"""Whether false negatives lose their weight in a contrastive loss, and whether retrieval gains.

    python -m benchmarks.integrations.text_retrieval

Two generated worlds; settings were fixed on worlds of other seeds. Every variant sees the same world, the same first
weights and the same batches; differences are paired over seeds. Writes results/integrations/text_retrieval.json.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import numpy as np

from bayesneg.evaluation.statistics import mean_interval
from benchmarks.integrations.text_world import TextWorld, encoder_for, retrieval, text_world, train
from benchmarks.machine import write_result

os.environ.setdefault("HF_HUB_OFFLINE", "1")
SEEDS = range(10, 20)
EPOCHS = 20
MINED_AFTER = 10  # epochs
WORLDS = {"hard negatives": (15, 4), "no hard negatives": (100, 1)}  # subjects × attributes


def losses(world: TextWorld) -> dict[str, Any]:
    """Each variant as a function from a model to its loss."""
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from bayesneg.integrations.sentence_transformers import PosteriorRankingLoss
    from bayesneg.integrations.word_overlap import WordOverlap

    share = world.false_share

    def overlap(times: float = 1.0, likelihood: str = "mixture") -> Any:
        prior = WordOverlap(world.anchors, world.positives, false_share=share * times)
        return partial(PosteriorRankingLoss, prior=prior, likelihood=likelihood)

    return {
        "none": MultipleNegativesRankingLoss,
        "constant prior": partial(PosteriorRankingLoss, prior=share),
        "constant prior, F as counted": partial(PosteriorRankingLoss, prior=share, likelihood="paper"),
        "word overlap": overlap(),
        "word overlap, θ / 3": overlap(1 / 3),
        "word overlap, 3 θ": overlap(3.0),
        "word overlap, without F": overlap(likelihood="uninformative"),
        "oracle": partial(PosteriorRankingLoss, prior=KnownFacts(world), likelihood="uninformative"),
    }


class KnownFacts:
    """A prior of 1 for texts that state the same fact: the upper bound."""

    def __init__(self, world: TextWorld) -> None:
        self.facts = world.facts

    def of(self, rows: Any, columns: Any) -> np.ndarray:
        return (self.facts[rows][:, None] == self.facts[columns]).astype(np.float64)


def weights(loss: Any, world: TextWorld, seed: int) -> dict[str, float]:
    """The mean ω of the trained model on false and on true negatives, over batches of an epoch."""
    import torch

    from bayesneg.torch import log_unbias

    found: dict[str, list[np.ndarray]] = {"false": [], "true": []}
    rng = np.random.default_rng(seed)
    for rows in np.array_split(rng.permutation(len(world.facts)), len(world.facts) // 64):
        texts = ([texts[row] for row in rows] for texts in (world.anchors, world.positives))
        vectors = [loss.model.encode(part, convert_to_tensor=True, show_progress_bar=False) for part in texts]
        scores = loss.similarity_fct(*vectors)
        prior = loss.prior if isinstance(loss.prior, float) else torch.as_tensor(loss.prior.of(rows, rows))
        omega = log_unbias(scores, prior=prior, likelihood=loss.likelihood).exp().numpy()
        same = world.facts[rows][:, None] == world.facts[rows]
        found["false"].append(omega[same & ~np.eye(len(rows), dtype=bool)])
        found["true"].append(omega[~same])
    return {f"omega_{name}": float(np.concatenate(parts).mean()) for name, parts in found.items()}


def trained(world: TextWorld, seed: int) -> dict[str, dict[str, float]]:
    """Retrieval and weights of each variant."""
    found = {}
    for name, make in losses(world).items():
        loss = make(encoder_for(world, seed=seed))
        train(loss, [world.anchors, world.positives], epochs=EPOCHS, seed=seed)
        found[name] = retrieval(loss.model, world) | (weights(loss, world, seed) if name != "none" else {})
    return found


def mined(world: TextWorld, seed: int) -> dict[str, dict[str, float]]:
    """Hard negatives mined by a model half trained: what is kept, and retrieval after the second half with it."""
    from datasets import Dataset
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from sentence_transformers.util import mine_hard_negatives

    from bayesneg.integrations.sentence_transformers import keep_true_negatives
    from bayesneg.integrations.word_overlap import WordOverlap

    pairs = Dataset.from_dict({"anchor": world.anchors, "positive": world.positives})
    prior = WordOverlap(world.anchors, world.positives, false_share=world.false_share)
    start = MultipleNegativesRankingLoss(encoder_for(world, seed=seed))
    train(start, [world.anchors, world.positives], epochs=MINED_AFTER, seed=seed)
    all_mined = mine_hard_negatives(pairs, start.model, num_negatives=5, verbose=False)
    facts = dict(zip(world.positives, world.facts.tolist(), strict=True))
    judge = partial(keep_true_negatives, all_mined, pairs, start.model)
    same = [facts[a] == facts[b] for a, b in zip(all_mined["positive"], all_mined["negative"], strict=True)]
    n_true = len(same) - sum(same)
    kept = {
        "all mined": all_mined,
        "constant prior": judge(prior=world.false_share),
        "word overlap": judge(prior=prior),
        "oracle": all_mined.select(np.flatnonzero(~np.array(same))),
    }
    found = {}
    for name, triplets in kept.items():
        columns = [list(triplets[column]) for column in ("anchor", "positive", "negative")]
        false = float(np.mean([facts[a] == facts[b] for a, b in zip(*columns[1:], strict=True)])) if columns[0] else 0.0
        model = encoder_for(world, seed=seed)
        model.load_state_dict(start.model.state_dict())
        epochs = max(1, round((EPOCHS - MINED_AFTER) * len(pairs) / max(1, len(triplets))))  # as many steps for each
        train(MultipleNegativesRankingLoss(model), columns, epochs=epochs, seed=seed)
        true_kept = (1 - false) * len(triplets) / n_true
        found[name] = retrieval(model, world) | {"false": false, "true_kept": true_kept}
    return found


def summary(runs: list[dict[str, dict[str, float]]]) -> dict[str, dict[str, Any]]:
    """Means over seeds, and the paired difference of retrieval from the first variant with its 95% interval."""
    baseline, found = next(iter(runs[0])), {}
    for name in runs[0]:
        row: dict[str, Any] = {key: float(np.mean([run[name][key] for run in runs])) for key in runs[0][name]}
        for key in ("mrr", "r_precision"):
            differences = np.array([run[name][key] - run[baseline][key] for run in runs])
            row[f"{key}_gain"] = [float(differences.mean()), *map(float, mean_interval(differences))]
        found[name] = row
    return found


def main() -> None:
    results: dict[str, Any] = {"seeds": list(SEEDS), "epochs": EPOCHS, "in_batch": {}, "mined": {}}
    for name, (subjects, attributes) in WORLDS.items():
        worlds = {seed: text_world(subjects, attributes, seed=seed) for seed in SEEDS}
        for part, measure in (("in_batch", trained), ("mined", mined)):
            results[part][name] = summary([measure(world, seed) for seed, world in worlds.items()])
            print(f"{part}, {name}, share of false negatives {worlds[SEEDS[0]].false_share:.4f}")
            for variant, row in results[part][name].items():
                shown = {k: [round(x, 4) for x in v] if isinstance(v, list) else round(v, 4) for k, v in row.items()}
                print(f"  {variant}: {shown}", flush=True)
    print(f"wrote {write_result(__file__, results)}")


if __name__ == "__main__":
    main()
