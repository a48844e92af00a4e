"""What serves the posterior of a sampler: likelihoods, held-out pairs, the refreshed F, the unbias of any item."""
