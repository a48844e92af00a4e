"""docs/explanation/reproduction.md: the tables and figures of the paper, and where they do not reproduce."""

from benchmarks.pages.reproduction.page import publish as publish
