"""Shared pools, compiled: ranks in a row of scores, weights of a pool, the likeliest items of a user."""
