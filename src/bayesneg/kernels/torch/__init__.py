"""The batched execution, in torch."""
