"""Hyperparameter search, and advice from it."""
