"""Negative samplers: each a draw, where it needs one a prior, and a rule."""
