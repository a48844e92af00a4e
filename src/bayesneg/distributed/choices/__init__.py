"""How the mini-batches of several processes get their negatives, and which rows of items they need for it."""
