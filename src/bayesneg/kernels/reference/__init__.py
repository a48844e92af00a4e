"""The executable specification, in NumPy."""
