"""Seconds and memory; every module measures one thing and writes ``results/speed/MODULE.json``."""

from benchmarks import one_thread as one_thread
