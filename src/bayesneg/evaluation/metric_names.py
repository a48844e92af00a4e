"""How the keys of metrics read to a person."""

from __future__ import annotations

_NAMES = {
    "ndcg": "NDCG",
    "precision": "Precision",
    "recall": "Recall",
    "hit": "Hit rate",
    "mrr": "MRR",
    "map": "MAP",
    "auc": "AUC",
    "coverage": "Coverage",
    "popularity": "Popularity",
    "tnr": "TNR",
    "inf": "INF",
}


def metric_name(key: str) -> str:
    """``"ndcg@20"`` → ``"NDCG@20"``; a key nobody named reads as it is written.

    >>> metric_name("ndcg@20"), metric_name("validation_recall@5"), metric_name("novelty@5")
    ('NDCG@20', 'Validation Recall@5', 'novelty@5')
    """
    if key.startswith("validation_"):
        return f"Validation {metric_name(key.removeprefix('validation_'))}"
    base, at, k = key.partition("@")
    return f"{_NAMES.get(base, base)}{at}{k}"
