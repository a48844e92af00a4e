"""The study of docs/study.md: what knowing the false negatives is worth, contender by contender."""
