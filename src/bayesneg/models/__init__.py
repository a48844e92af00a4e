"""Recommenders that learn from a positive and a sampled negative."""
