"""The files of a run: their names, how they are written, their digests, and checkpoints."""
