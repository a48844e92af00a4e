"""The study of docs/explanation/study.md: what knowing the false negatives is worth, contender by contender."""
