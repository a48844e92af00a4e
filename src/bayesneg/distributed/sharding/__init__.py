"""Tables of embeddings divided among processes: who owns what, rows fetched and gradients sent back, steps of Adam."""
