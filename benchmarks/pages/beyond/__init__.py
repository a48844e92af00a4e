"""docs/beyond.md: better settings than those of the paper, chosen on validation data."""

from benchmarks.pages.beyond.page import publish as publish
