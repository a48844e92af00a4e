"""Sweeps with the settings of the paper: a recipe, its cells, and the workers that run them into one ledger."""
