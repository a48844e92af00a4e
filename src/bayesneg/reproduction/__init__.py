"""Reproduction of the paper: its tables and figures, measured here and compared with the published numbers."""
