"""A generated corpus in which it is known which texts say the same, and a tiny text encoder made from scratch.

A fact is a subject with an attribute. Each pair of the training data states one fact twice, as an anchor and as its
positive, in words drawn among synonyms, with words that mean nothing. Several pairs state the same fact: in a batch,
the positive of one is a false negative of the other. Facts of one subject share words: the hard true negatives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class TextWorld:
    """Pairs for training, and anchors in new words to search the positives with."""

    anchors: list[str]
    positives: list[str]
    facts: np.ndarray  # (N,) the fact of each pair
    queries: list[str]
    query_facts: np.ndarray

    @property
    def false_share(self) -> float:
        """The share of pairs of rows that state the same fact."""
        same = self.facts[:, None] == self.facts
        return float((same.sum() - len(same)) / (same.size - len(same)))


def text_world(subjects: int, attributes: int, *, pairs: int = 10, synonyms: int = 3, seed: int = 0) -> TextWorld:
    """``pairs`` pairs for each of subjects × attributes facts, in random order, and one query for each fact."""
    rng = np.random.default_rng(seed)
    facts = np.repeat(np.arange(subjects * attributes), pairs)
    texts = [[statement(fact, attributes, synonyms, kind, rng) for kind in ("ask", "say")] for fact in facts.tolist()]
    queries = [statement(fact, attributes, synonyms, "ask", rng) for fact in range(subjects * attributes)]
    order = rng.permutation(len(facts))
    anchors, positives = ([texts[row][side] for row in order] for side in (0, 1))
    return TextWorld(anchors, positives, facts[order], queries, np.arange(subjects * attributes))


def statement(fact: int, attributes: int, synonyms: int, kind: str, rng: np.random.Generator) -> str:
    """Two words for the subject, one for the attribute, one for the fact, and five that mean nothing."""
    subject, attribute = divmod(fact, attributes)
    words = [f"subject{subject}-{part}-{rng.integers(synonyms)}" for part in "ab"]
    words += [f"attribute{attribute}-{rng.integers(synonyms)}", f"fact{fact}-{rng.integers(synonyms)}"]
    words += [f"{kind}{rng.integers(20)}" for _ in range(3)] + [f"noise{rng.integers(100)}" for _ in range(2)]
    rng.shuffle(words)
    return " ".join(words)


def tiny_encoder(texts: list[str], *, dim: int = 32, seed: int = 0) -> Any:
    """A sentence transformer that averages word embeddings, with random weights; nothing is downloaded."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = sorted({word for text in texts for word in text.split()})
    vocabulary = {"[UNK]": 0} | {word: number for number, word in enumerate(words, 1)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=dim)], device="cpu")


def encoder_for(world: TextWorld, *, seed: int = 0) -> Any:
    """A tiny encoder that knows the words of a world."""
    return tiny_encoder([*world.anchors, *world.positives, *world.queries], seed=seed)


def train(loss: Any, columns: list[list[str]], *, epochs: int, seed: int, batch_size: int = 64) -> None:
    """Train the model of a loss on (anchor, positive, …) columns; labels are row numbers."""
    import torch

    encoder = loss.model[0]
    optimizer = torch.optim.Adam(loss.model.parameters(), lr=0.02)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(columns[0]), generator=generator), batch_size):
            if len(rows) < 2:
                continue
            features = [encoder.preprocess([texts[row] for row in rows.tolist()]) for texts in columns]
            optimizer.zero_grad()
            loss(features, rows).backward()
            optimizer.step()


def retrieval(model: Any, world: TextWorld) -> dict[str, float]:
    """The queries search the positives: mean reciprocal rank, and precision at the number of relevant texts."""
    settings = {"convert_to_tensor": True, "show_progress_bar": False}
    scores = model.similarity(model.encode(world.queries, **settings), model.encode(world.positives, **settings))
    relevant = world.query_facts[:, None] == world.facts
    ranked = np.take_along_axis(relevant, np.argsort(-scores.cpu().numpy(), axis=1, kind="stable"), axis=1)
    wanted = relevant.sum(axis=1)
    precise = [row[:count].mean() for row, count in zip(ranked, wanted, strict=True)]
    return {"mrr": float((1.0 / (ranked.argmax(axis=1) + 1)).mean()), "r_precision": float(np.mean(precise))}
