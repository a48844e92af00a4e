"""Linear item models: what one chosen item says about the others. Solved, not trained; no negatives are sampled."""
