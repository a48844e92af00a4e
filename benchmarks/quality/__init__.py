"""What an option does to recommendation quality; every module writes ``results/quality/MODULE.json``."""

from benchmarks import one_thread as one_thread
