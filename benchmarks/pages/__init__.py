"""The pages of ``docs/`` that are made from results: ``python -m benchmarks.pages [PAGE …] [--check]``."""
