"""A run in files that other programs read: vectors, identifiers, a model card, and an index of the items."""
