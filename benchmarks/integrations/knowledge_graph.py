"""PyKEEN with its basic negative sampler and with ours: a generated graph with known false negatives, and Nations.

    python -m benchmarks.integrations.knowledge_graph

Settings are the defaults of the samplers and were not tuned for any of them. Differences are paired over seeds. Writes
results/integrations/knowledge_graph.json.
"""

from __future__ import annotations

import logging
import warnings
from typing import Any

import numpy as np

from bayesneg.evaluation.statistics import mean_interval
from benchmarks.integrations.graph_world import graph_world
from benchmarks.machine import write_result

SEEDS = range(10, 15)
EPOCHS = 30
VARIANTS: dict[str, dict[str, Any] | None] = {
    "basic": None,
    "BNS, relation prior": {"prior": "relation"},
    "BNS, popularity prior": {"prior": "popularity"},
    "hardest of 5": {"prior": 0.0},  # λ has no effect without a prior: DNS
}
MODELS = {"DistMult": {"embedding_dim": 32}, "TransE": {"embedding_dim": 32}}


def parts(name: str, seed: int) -> tuple[Any, Any, Any]:
    """Training, validation and test triples."""
    from pykeen.datasets import Nations
    from pykeen.triples import CoreTriplesFactory

    if name == "Nations":
        data = Nations()
        return data.training, data.validation, data.testing
    import torch

    world = graph_world(seed=seed)
    sizes = {"num_entities": world.n_entities, "num_relations": world.n_relations}
    train, validation, test = (
        CoreTriplesFactory(torch.from_numpy(part).long(), **sizes)
        for part in (world.train, world.validation, world.test)
    )
    return train, validation, test


def measured(data: str, kind: str, variant: str, seed: int) -> dict[str, float]:
    """MRR and hits of a trained model, and the share of its negatives that are held-out true triples."""
    import torch
    from pykeen.evaluation import RankBasedEvaluator
    from pykeen.models import model_resolver
    from pykeen.sampling import BasicNegativeSampler
    from pykeen.training import SLCWATrainingLoop
    from pykeen.utils import set_random_seed

    from bayesneg.integrations.pykeen import BayesianNegativeSampler

    train, validation, test = parts(data, seed)
    set_random_seed(seed)
    model = model_resolver.make(kind, MODELS[kind], triples_factory=train, random_seed=seed)
    settings = VARIANTS[variant]
    ours = None if settings is None else {"model": model, **settings}
    loop = SLCWATrainingLoop(
        model=model, triples_factory=train, optimizer=torch.optim.Adam(model.parameters(), lr=0.02),
        negative_sampler=BasicNegativeSampler if ours is None else BayesianNegativeSampler,
        negative_sampler_kwargs=ours,
    )  # fmt: skip
    loop.train(train, num_epochs=EPOCHS, batch_size=256, use_tqdm=False)
    sampler = (BasicNegativeSampler if ours is None else BayesianNegativeSampler)(
        mapped_triples=train.mapped_triples, num_entities=train.num_entities, num_relations=train.num_relations,
        **(ours or {}),
    )  # fmt: skip
    hidden = {tuple(row) for part in (validation, test) for row in part.mapped_triples.tolist()}
    drawn = [sampler.corrupt_batch(train.mapped_triples).view(-1, 3) for _ in range(5)]
    false = float(np.mean([tuple(row) in hidden for row in torch.cat(drawn).tolist()]))
    result = RankBasedEvaluator().evaluate(
        model, test.mapped_triples, batch_size=256, use_tqdm=False,
        additional_filter_triples=[train.mapped_triples, validation.mapped_triples],
    )  # fmt: skip
    return {"mrr": result.get_metric("mrr"), "hits@10": result.get_metric("hits@10"), "false": false}


def main() -> None:
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    results: dict[str, Any] = {"seeds": list(SEEDS), "epochs": EPOCHS}
    for data in ("generated", "Nations"):
        for kind in MODELS:
            runs = {name: [measured(data, kind, name, seed) for seed in SEEDS] for name in VARIANTS}
            found: dict[str, Any] = {}
            for name, each in runs.items():
                found[name] = {key: float(np.mean([run[key] for run in each])) for key in each[0]}
                gains = np.array([a["mrr"] - b["mrr"] for a, b in zip(each, runs["basic"], strict=True)])
                found[name]["mrr_gain"] = [float(gains.mean()), *map(float, mean_interval(gains))]
                print(f"{data}, {kind}, {name}: {found[name]}", flush=True)
            results[f"{data}, {kind}"] = found
    print(f"wrote {write_result(__file__, results)}")


if __name__ == "__main__":
    main()
