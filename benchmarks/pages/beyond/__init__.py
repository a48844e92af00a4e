"""BPR with one negative: better settings than those of the paper, chosen on validation data."""
