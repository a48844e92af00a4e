"""Studies over many runs, whose records are archived in ``results/``."""
