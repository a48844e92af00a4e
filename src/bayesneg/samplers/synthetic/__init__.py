"""Samplers of synthetic negatives: vectors made of embeddings, which only torch models can learn from."""
