"""What this repository measures and how its pages are written; not part of the package.

Run modules from the root of the repository: ``python -m benchmarks.speed.bench_epoch``.
"""
