"""docs/explanation/speed.md: seconds, memory and agreement, and their plots."""

from benchmarks.pages.speed.page import publish as publish
