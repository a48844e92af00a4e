"""What losses and negatives cost in a training step."""
