"""docs/explanation/study.md: what knowing the false negatives is worth, from the runs of ``benchmarks.studies.negatives``."""

from benchmarks.pages.study.page import publish as publish
